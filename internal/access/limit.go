package access

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"retry-worker/internal/webserver"
)

const (
	// mostHeaders of a request; browsers and proxies send some twenty.
	mostHeaders = 100
	// perSecond requests of one address are answered for long, burst of them at once. An open page asks every two seconds:
	// it is enough for a house behind one proxy and for a program that goes through a list, and bounds who asks in a
	// circle.
	perSecond = 500
	burst     = 2000
)

// Limited answers no more than so many requests of one address (an IPv6 network of 64 bits counts as one), and none
// with too many headers; the others get 429 or 431, and are told to hooks.Limited.
func Limited(next http.Handler, now func() time.Time, hooks Hooks) http.Handler {
	l := &limiter{now: now, rates: newRecent[*rate.Limiter]()}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers := 0
		for _, values := range r.Header {
			headers += len(values)
		}
		switch {
		case headers > mostHeaders:
			hooks.limit(w, r, http.StatusRequestHeaderFieldsTooLarge, "too many headers: expected at most 100")
		case !l.allows(webserver.Network(peer(r))):
			w.Header().Set("Retry-After", "1")
			hooks.limit(w, r, http.StatusTooManyRequests, "too many requests from this address: wait a second")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// limit answers a request that is beyond a limit.
func (h *Hooks) limit(w http.ResponseWriter, r *http.Request, status int, message string) {
	if h.Limited != nil {
		h.Limited(peer(r))
	}
	secure(w.Header(), r)
	http.Error(w, message, status)
}

// limiter counts requests by address. Safe for concurrent use.
type limiter struct {
	now   func() time.Time
	mu    sync.Mutex
	rates recent[*rate.Limiter] // used by each request
}

func (l *limiter) allows(from netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.rates.use(from, func() *rate.Limiter { return rate.NewLimiter(perSecond, burst) })
	return (*own).AllowN(l.now(), 1)
}
