package access

import (
	"container/list"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

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

// Limited answers no more than so many requests of one address (an IPv6 network of 64 bits counts as one), and none
// with too many headers; the others get 429 or 431, and are told to hooks.Limited.
func Limited(next http.Handler, now func() time.Time, hooks Hooks) http.Handler {
	var mu sync.Mutex
	rates := newRecent[*rate.Limiter]() // used by each request
	allowed := func(from netip.Prefix) bool {
		mu.Lock()
		defer mu.Unlock()
		own := rates.use(from, func() *rate.Limiter { return rate.NewLimiter(perSecond, burst) })
		return (*own).AllowN(now(), 1)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers := 0
		for _, values := range r.Header {
			headers += len(values)
		}
		switch {
		case headers > mostHeaders:
			hooks.limit(w, r, http.StatusRequestHeaderFieldsTooLarge, "too many headers: expected at most 100")
		case !allowed(webserver.Network(peer(r))):
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

// paces are how often each person may change something yet, by name. Safe for concurrent use; the zero value is of
// nobody.
type paces struct {
	mu sync.Mutex
	of map[string]*rate.Limiter
}

func (p *paces) allow(name string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil || len(p.of) > maxAddresses { // names come from the tokens file or the provider: there are few
		p.of = map[string]*rate.Limiter{}
	}
	if p.of[name] == nil {
		p.of[name] = rate.NewLimiter(rate.Every(perChange), changesAtOnce)
	}
	return p.of[name].AllowN(now, 1)
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

// pace is how failures slow what follows them: the first few cost nothing, then each doubles the wait, from a second to
// most. One is forgiven each forgiven.
type pace struct {
	free           int
	most, forgiven time.Duration
}

var (
	// perAddress is for one guesser, or one person with a bad copy of a token.
	perAddress = pace{free: 5, most: 30 * time.Second, forgiven: time.Minute}
	// inAll is for many addresses that guess together.
	inAll = pace{free: 30, most: 4 * time.Second, forgiven: 5 * time.Second}
)

// failures of one address, or of all.
type failures struct {
	n     int
	since time.Time // when one was last forgiven
	until time.Time // nothing is tried before
}

// forgive lets go of what time has healed.
func (f *failures) forgive(p pace, now time.Time) {
	healed := int(now.Sub(f.since) / p.forgiven)
	if healed <= 0 {
		return
	}
	f.n = max(0, f.n-healed)
	f.since = f.since.Add(time.Duration(healed) * p.forgiven)
}

// wait that is left. A clock that was set back makes it no longer than the longest.
func (f *failures) wait(p pace, now time.Time) time.Duration {
	if latest := now.Add(p.most); f.until.After(latest) {
		f.until = latest
	}
	return max(0, f.until.Sub(now))
}

func (f *failures) add(p pace, now time.Time) {
	if f.n == 0 {
		f.since = now
	}
	f.n++
	if over := f.n - p.free; over > 0 {
		f.until = now.Add(min(p.most, time.Second<<min(over-1, 10)))
	}
}

// throttle slows wrong tokens, by address (an IPv6 network of 64 bits counts as one) and in all. A right token is never
// asked about here: whoever guesses, and from wherever, keeps nobody out. Safe for concurrent use.
type throttle struct {
	mu               sync.Mutex
	all              failures
	recent[failures] // used by each failure
}

func newThrottle() *throttle { return &throttle{recent: newRecent[failures]()} }

// fail counts a wrong token, unless from must wait: then it returns for how long.
func (t *throttle) fail(from netip.Prefix, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if wait := t.wait(from, now); wait > 0 {
		return wait
	}
	t.all.forgive(inAll, now)
	t.all.add(inAll, now)
	f := t.use(from, func() failures { return failures{} })
	f.forgive(perAddress, now)
	f.add(perAddress, now)
	return 0
}

func (t *throttle) wait(from netip.Prefix, now time.Time) time.Duration {
	wait := t.all.wait(inAll, now)
	if f := t.get(from); f != nil {
		wait = max(wait, f.wait(perAddress, now))
	}
	return wait
}

// maxAddresses that are kept apart; beyond that the one that was used longest ago is forgotten.
const maxAddresses = 4096

// recent keeps a value for each of the networks that were used last. Not for concurrent use.
type recent[T any] struct {
	each  map[netip.Prefix]*list.Element // of what order holds
	order list.List                      // of *kept[T], the last used in front
}

type kept[T any] struct {
	of    netip.Prefix
	value T
}

func newRecent[T any]() recent[T] { return recent[T]{each: map[netip.Prefix]*list.Element{}} }

// get the value of a network, which is not a use of it; nil where there is none.
func (r *recent[T]) get(of netip.Prefix) *T {
	e := r.each[of]
	if e == nil {
		return nil
	}
	return &e.Value.(*kept[T]).value
}

// use the value of a network, which is fresh's where there was none.
func (r *recent[T]) use(of netip.Prefix, fresh func() T) *T {
	e := r.each[of]
	if e == nil {
		e = r.order.PushFront(&kept[T]{of: of, value: fresh()})
		r.each[of] = e
	}
	r.order.MoveToFront(e)
	if r.order.Len() > maxAddresses {
		delete(r.each, r.order.Remove(r.order.Back()).(*kept[T]).of)
	}
	return &e.Value.(*kept[T]).value
}

// peer returns where a request comes from: of what headers say, webserver.Listen believes a proxy's alone.
func peer(r *http.Request) netip.Addr { return webserver.Address(r.RemoteAddr) }
