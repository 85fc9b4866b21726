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
	lead(stop, kill, &lease{from, name, holder, leaseSpan}, work)
}

// lease is a right that one process has at a time.
type lease struct {
	from         Leases
	name, holder string
	span         time.Duration
}

func lead(stop, kill context.Context, l *lease, work func(stop, hard context.Context)) {
	stop, cancel := either(stop, kill)
	defer cancel()
	for stop.Err() == nil {
		until, held, err := l.ask(stop)
		if err != nil || !held {
			rest(stop, jitter(l.span/renewPart))
			continue
		}
		hard, lost := context.WithCancel(kill)
		var keeper sync.WaitGroup
		keeper.Go(func() { l.keep(hard, lost, until) })
		ends, cancel := either(stop, hard)
		work(ends, hard)
		back := kill.Err() == nil && hard.Err() == nil // work may have ended by a kill that hard has not heard of yet
		cancel()
		lost()
		if keeper.Wait(); back {
			l.giveBack(kill)
		}
	}
}

// either returns a context of a that ends with b, too. cancel ends it, and lets go of both.
func either(a, b context.Context) (ctx context.Context, cancel func()) {
	ctx, end := context.WithCancel(a)
	forget := context.AfterFunc(b, end)
	return ctx, func() { forget(); end() }
}

// ask takes the lease or renews it, and reports whether it is held, until when. That is counted on this machine's
// monotonic clock from before it was asked for: the store cannot have granted it earlier.
func (l *lease) ask(ctx context.Context) (until time.Time, held bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	until = time.Now().Add(l.span - 2*l.span/againPart)
	held, err = l.from.Lease(ctx, l.name, l.holder, l.span)
	return until, held, err
}

// keep renews the lease until ctx ends; lost ends that when the lease does.
func (l *lease) keep(ctx context.Context, lost context.CancelFunc, until time.Time) {
	alarm := time.AfterFunc(time.Until(until), lost)
	defer alarm.Stop()
	for wait := l.span / renewPart; ; wait = l.span / renewPart {
		if rest(ctx, wait); ctx.Err() != nil {
			return
		}
		until, held, err := l.ask(ctx)
		for ; err != nil && ctx.Err() == nil; until, held, err = l.ask(ctx) {
			rest(ctx, l.span/againPart)
		}
		if !held {
			lost()
		}
		alarm.Reset(time.Until(until))
	}
}

// giveBack gives the lease to the next at once; else it runs out by itself.
func (l *lease) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTime)
	defer cancel()
	_, _ = l.from.Lease(ctx, l.name, l.holder, 0)
}
