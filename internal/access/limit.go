package access

import (
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"retry-worker/internal/clock"
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

// limits let each of many (addresses, people) do something burst times at once, and once in every for long. Safe for
// concurrent use.
type limits[K comparable] struct {
	every time.Duration
	burst int

	mu sync.Mutex
	// recent and older hold when each may do burst at once again; older are those not seen since recent began.
	recent, older map[K]time.Time
}

// mostApart are kept apart; of more, those that were seen longest ago are forgotten.
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

// giveBack counts one of them once less.
func (l *limits[K]) giveBack(of K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent[of] = l.recent[of].Add(-l.every)
}

// Limited answers no more than so many requests of one address (an IPv6 network of 64 bits counts as one), and none
// with too many headers; the others get 429 or 431, and are told to hooks.Limited.
func Limited(next http.Handler, now func() time.Time, hooks Hooks) http.Handler {
	rates := limits[netip.Prefix]{every: time.Second / perSecond, burst: burst}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers := 0
		for _, values := range r.Header {
			headers += len(values)
		}
		switch {
		case headers > mostHeaders:
			hooks.limit(w, r, http.StatusRequestHeaderFieldsTooLarge, "too many headers: expected at most 100")
		case rates.wait(webserver.Network(peer(r)), now()) > 0:
			// By HTTP/2 thousands of refusals a second cost nothing to ask for: whoever is told at once asks at once.
			clock.Machine{}.Rest(r.Context(), time.Second)
			w.Header().Set("Retry-After", "1")
			hooks.limit(w, r, http.StatusTooManyRequests, "too many requests from this address: wait a second")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// limit answers a request that is beyond a limit.
func (h *Hooks) limit(w http.ResponseWriter, r *http.Request, status int, message string) {
	h.Limited(peer(r))
	secure(w.Header(), r)
	http.Error(w, message, status)
}

const (
	// perChange is how often somebody may change something for long, changesAtOnce how often at once.
	perChange     = 2 * time.Second
	changesAtOnce = 120
)

const (
	// perGuess is how often wrong tokens of one address are answered for long, guessesAtOnce how many at once: for one
	// guesser, or one person with a bad copy of a token.
	perGuess      = 30 * time.Second
	guessesAtOnce = 6
	// perGuessInAll and guessesInAll are those of all addresses, of which many may guess together.
	perGuessInAll = 4 * time.Second
	guessesInAll  = 30
)

// guesses slow wrong tokens, by address (an IPv6 network of 64 bits counts as one) and in all. A right token is never
// asked about here: whoever guesses, and from wherever, keeps nobody out. Safe for concurrent use.
type guesses struct {
	mu   sync.Mutex // a guess is counted by both or by neither
	each limits[netip.Prefix]
	all  limits[struct{}]
}

func newGuesses() *guesses {
	return &guesses{each: limits[netip.Prefix]{every: perGuess, burst: guessesAtOnce},
		all: limits[struct{}]{every: perGuessInAll, burst: guessesInAll}}
}

// fail counts a wrong token, unless from must wait, for itself or with all: then it returns for how long.
func (g *guesses) fail(from netip.Prefix, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	own, all := g.each.wait(from, now), g.all.wait(struct{}{}, now)
	switch {
	case own == 0 && all > 0:
		g.each.giveBack(from)
	case own > 0 && all == 0:
		g.all.giveBack(struct{}{})
	}
	return max(own, all)
}

const (
	// mostStrangers are the requests of nobody that are under way at once, mostOfOneStranger those of one address. An
	// honest one takes milliseconds.
	mostStrangers     = 200
	mostOfOneStranger = 20
)

// strangers are the requests under way of whoever is not logged in: each holds memory until it has sent its body and
// taken its answer. One too many has the one that began first cut off, of its address or of all: who dawdles keeps
// nobody out. Safe for concurrent use; the zero value is empty.
type strangers struct {
	mu       sync.Mutex
	underWay []*stranger // in the order they began
}

// stranger is one request of nobody.
type stranger struct {
	from netip.Prefix
	mu   sync.Mutex
	w    *http.ResponseController // nil once it has ended
}

// begin counts a request until end is called.
func (s *strangers) begin(w http.ResponseWriter, r *http.Request) (end func()) {
	one := &stranger{from: webserver.Network(peer(r)), w: http.NewResponseController(w)}
	s.mu.Lock()
	s.underWay = append(s.underWay, one)
	oldest := s.tooMany(one.from)
	s.drop(oldest)
	s.mu.Unlock()
	if oldest != nil {
		oldest.cut()
	}
	return func() {
		one.mu.Lock()
		one.w = nil
		one.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.drop(one)
	}
}

// tooMany returns the one to cut off, once one of that address has come; nil where there is room.
func (s *strangers) tooMany(from netip.Prefix) (oldest *stranger) {
	own := 0
	for _, o := range slices.Backward(s.underWay) {
		if o.from == from {
			own, oldest = own+1, o
		}
	}
	switch {
	case own > mostOfOneStranger:
		return oldest
	case len(s.underWay) > mostStrangers:
		return s.underWay[0]
	}
	return nil
}

func (s *strangers) drop(one *stranger) {
	s.underWay = slices.DeleteFunc(s.underWay, func(o *stranger) bool { return o == one })
}

// cut ends what a request still reads and writes.
func (o *stranger) cut() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.w != nil { // a test's writer cannot be cut
		_ = o.w.SetReadDeadline(time.Unix(1, 0))
		_ = o.w.SetWriteDeadline(time.Unix(1, 0))
	}
}

// peer returns where a request comes from: of what headers say, webserver.Listen believes a proxy's alone.
func peer(r *http.Request) netip.Addr { return webserver.Address(r.RemoteAddr) }
