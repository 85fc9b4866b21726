package outbox

import (
	"context"
	"sync"
	"time"
)

const (
	// leaseSpan is how long a relay that died holds the others up.
	leaseSpan = 15 * time.Second
	// A lease is renewed after a third of its span, and tried again after a fifteenth where the store fails.
	// Two fifteenths before its end nothing is sent any more: what is sent takes a moment to arrive.
	renewPart, againPart = 3, 15
	// returnTime bounds giving it back.
	returnTime = 2 * time.Second
)

// Leases are rights of which each is one process's at a time; journal.Outbox has them.
type Leases interface {
	// Lease is journal.Outbox's.
	Lease(ctx context.Context, name, holder string, span time.Duration) (bool, error)
}

// Lead does work while this process holds the lease of that name, again and again until stop ends; it tries to take the
// lease meanwhile. work's stop ends with stop or the lease: it begins nothing more then. Its hard ends with kill or the
// lease: what is on its way is given up. The lease goes to the next at once where work returns for stop. holder names
// this process among all, and differs with each start. work returns when its stop ends.
func Lead(stop, kill context.Context, from Leases, name, holder string, work func(stop, hard context.Context)) {
	lead(stop, kill, from, name, holder, leaseSpan, func(stop context.Context, l *lease) { work(stop, l.ctx) })
}

// lead is Lead with a lease of that span, for work that asks it whether it holds.
func lead(stop, kill context.Context, from Leases, name, holder string, span time.Duration,
	work func(stop context.Context, l *lease)) {
	stop, cancel := either(stop, kill)
	defer cancel()
	for stop.Err() == nil {
		l := take(stop, kill, from, name, holder, span)
		if l == nil {
			rest(stop, jitter(span/renewPart))
			continue
		}
		ends, cancel := either(stop, l.ctx)
		work(ends, l)
		cancel()
		l.end(stop.Err() != nil && kill.Err() == nil)
	}
}

// either returns a context of a that ends with b, too. cancel ends it, and lets go of both.
func either(a, b context.Context) (ctx context.Context, cancel func()) {
	ctx, end := context.WithCancel(a)
	forget := context.AfterFunc(b, end)
	return ctx, func() { forget(); end() }
}

// lease is the right to do something, for a time that is counted on this machine's monotonic clock from before it was
// asked for: the store cannot have granted it earlier.
type lease struct {
	from         Leases
	name, holder string
	span         time.Duration
	// ctx ends with the lease, and with kill.
	ctx    context.Context
	cancel context.CancelFunc
	keeper sync.WaitGroup

	mu    sync.Mutex
	until time.Time
	alarm *time.Timer
}

// take asks for a lease; nil where another has it, or the store does not answer.
func take(stop, kill context.Context, from Leases, name, holder string, span time.Duration) *lease {
	sent := time.Now()
	within, cancel := context.WithTimeout(stop, storeTime)
	defer cancel()
	if held, err := from.Lease(within, name, holder, span); err != nil || !held {
		return nil
	}
	l := &lease{from: from, name: name, holder: holder, span: span}
	l.ctx, l.cancel = context.WithCancel(kill)
	l.alarm = time.AfterFunc(span, l.cancel)
	l.extend(sent)
	l.keeper.Go(l.keep)
	return l
}

// keep renews the lease until it ends.
func (l *lease) keep() {
	for wait := l.span / renewPart; ; {
		if rest(l.ctx, wait); l.ctx.Err() != nil {
			return
		}
		sent := time.Now()
		held, err := l.from.Lease(l.ctx, l.name, l.holder, l.span)
		switch {
		case err != nil:
			wait = l.span / againPart
		case !held:
			l.cancel()
			return
		default:
			wait = l.span / renewPart
			l.extend(sent)
		}
	}
}

// extend the lease to what was granted for a question that was sent then.
func (l *lease) extend(sent time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = sent.Add(l.span - 2*l.span/againPart)
	l.alarm.Reset(time.Until(l.until))
}

// holds reports whether something may be sent now. It looks at the clock, too: in a process that stood still the
// alarm may not have rung yet.
func (l *lease) holds() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ctx.Err() == nil && time.Now().Before(l.until)
}

// end the lease; back gives it to the next at once. Nothing may be on its way then.
func (l *lease) end(back bool) {
	back = back && l.holds()
	l.cancel()
	l.alarm.Stop()
	l.keeper.Wait()
	if !back {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), returnTime)
	defer cancel()
	_, _ = l.from.Lease(ctx, l.name, l.holder, 0) // else it runs out by itself
}
