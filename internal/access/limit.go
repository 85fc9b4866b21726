package access

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"retry-worker/internal/clock"
	"retry-worker/internal/web"
)

const (
	// perSecond requests of one address are answered for long, burst of them at once. An open page asks every two
	// seconds: it is enough for a house behind one proxy and for a program that goes through a list, and bounds who
	// asks in a circle.
	perSecond = 500
	burst     = 2000
	// perChange is how often somebody may change something for long, changesAtOnce how often at once.
	perChange     = 2 * time.Second
	changesAtOnce = 120
	// perGuess is how often wrong tokens of one address are answered for long, guessesAtOnce how many at once: for one
	// person with a bad copy of a token. A right token is never asked about: whoever guesses keeps nobody out.
	perGuess      = 30 * time.Second
	guessesAtOnce = 6
)

// limits let each of many (addresses, people) do something burst times at once, and once in every for long. Safe for
// concurrent use.
type limits[K comparable] struct {
	every time.Duration
	burst int

	mu sync.Mutex
	// recent and older hold when each may do burst at once again; older are those not seen since recent began.
	recent, older map[K]time.Time
}

// mostApart is how many a generation keeps apart. There are two; the older goes when the recent one is full.
const mostApart = 4096

// wait counts once more of one of them and returns 0, or returns how long it must wait first.
func (l *limits[K]) wait(of K, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	full, known := l.recent[of]
	if !known {
		full = l.older[of]
		if l.recent == nil || len(l.recent) == mostApart {
			l.recent, l.older = map[K]time.Time{}, l.recent
		}
	}
	if full.Before(now) {
		full = now
	}
	span := time.Duration(l.burst) * l.every
	if latest := now.Add(span); full.After(latest) { // the clock was set back
		full = latest
	}
	wait := max(0, full.Add(l.every).Sub(now)-span)
	if wait == 0 {
		full = full.Add(l.every)
	}
	l.recent[of] = full
	return wait
}

// Limited answers no more than so many requests of one address (an IPv6 network of 64 bits counts as one); the others
// get 429.
func (g *Gate) Limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.asked.wait(web.Network(peer(r)), g.Now()) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		// By HTTP/2 thousands of refusals a second cost nothing to ask for: whoever is told at once asks at once.
		clock.Machine{}.Rest(r.Context(), time.Second)
		g.Crowded(peer(r))
		secure(w.Header(), r)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests from this address: wait a second", http.StatusTooManyRequests)
	})
}

// peer returns where a request comes from: of what headers say, web.Listen believes a proxy's alone.
func peer(r *http.Request) netip.Addr { return web.Address(r.RemoteAddr) }
