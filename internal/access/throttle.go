package access

import (
	"net/netip"
	"sync"
	"time"
)

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
