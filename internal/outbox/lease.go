package outbox

import (
	"context"
	"sync"
	"time"
)

const (
	// leaseSpan is a lease's length, and how long a dead holder delays the others.
	leaseSpan = 15 * time.Second
	// A lease is renewed after a third of its span, and tried again after a fifteenth if the store fails. The work ends
	// two fifteenths before the lease, as messages take a moment to arrive.
	renewPart, againPart = 3, 15
	// returnTime bounds giving a lease back.
	returnTime = 2 * time.Second
)

// Leases grants leases: rights that one process has at a time (journal.Outbox does).
type Leases interface {
	// Lease is journal.Outbox's.
	Lease(ctx context.Context, name, holder string, span time.Duration) (bool, error)
}

// Lead tries to take the lease of that name, and runs work whenever this process holds it, until stop ends. work must
// return when its stop ends, with stop or the lease; what is on its way may go on until hard ends, with kill or the
// lease. If work returns for stop, Lead gives the lease back at once. holder must be unique among all processes and
// starts.
func Lead(stop, kill context.Context, from Leases, name, holder string, work func(stop, hard context.Context)) {
	l := &lease{from, name, holder}
	stop, cancel := either(stop, kill)
	defer cancel()
	for stop.Err() == nil {
		until, held, err := l.ask(stop)
		if err != nil || !held {
			rest(stop, jitter(leaseSpan/renewPart))
			continue
		}
		hard, lost := context.WithCancel(kill)
		var keeper sync.WaitGroup
		keeper.Go(func() { l.keep(hard, lost, until) })
		ends, cancel := either(stop, hard)
		work(ends, hard)
		back := kill.Err() == nil && hard.Err() == nil // hard may not have seen the kill yet
		cancel()
		lost()
		if keeper.Wait(); back {
			l.giveBack(kill)
		}
	}
}

// lease is one lease that this process may take.
type lease struct {
	from         Leases
	name, holder string
}

// either returns a child of a that also ends with b. cancel ends it and releases its resources.
func either(a, b context.Context) (ctx context.Context, cancel func()) {
	ctx, end := context.WithCancel(a)
	forget := context.AfterFunc(b, end)
	return ctx, func() { forget(); end() }
}

// ask takes or renews the lease, and reports whether it is held, and until when to work. It counts from before the
// call, on the monotonic clock, as the store cannot have granted the lease earlier.
func (l *lease) ask(ctx context.Context) (until time.Time, held bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	until = time.Now().Add(leaseSpan - 2*leaseSpan/againPart)
	held, err = l.from.Lease(ctx, l.name, l.holder, leaseSpan)
	return until, held, err
}

// keep renews the lease until ctx ends. It calls lost, which ends ctx, when the lease ends.
func (l *lease) keep(ctx context.Context, lost context.CancelFunc, until time.Time) {
	alarm := time.AfterFunc(time.Until(until), lost)
	defer alarm.Stop()
	for wait := leaseSpan / renewPart; ; wait = leaseSpan / renewPart {
		if rest(ctx, wait); ctx.Err() != nil {
			return
		}
		until, held, err := l.ask(ctx)
		for ; err != nil && ctx.Err() == nil; until, held, err = l.ask(ctx) {
			rest(ctx, leaseSpan/againPart)
		}
		if !held {
			lost()
		}
		alarm.Reset(time.Until(until))
	}
}

// giveBack gives the lease back. If that fails the lease runs out by itself.
func (l *lease) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTime)
	defer cancel()
	_, _ = l.from.Lease(ctx, l.name, l.holder, 0)
}
