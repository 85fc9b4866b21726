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
	renewPart, againPart, marginPart = 3, 15, 7.5
	// returnTime bounds giving it back.
	returnTime = 2 * time.Second
)

// lease is the right to send, for a time that is counted on this machine's monotonic clock from before it was
// asked for: the store cannot have granted it earlier.
type lease struct {
	r *Relay
	// margin before its end.
	margin time.Duration
	// ctx ends with the lease, and with kill.
	ctx    context.Context
	cancel context.CancelFunc
	keeper sync.WaitGroup

	mu    sync.Mutex
	until time.Time
	alarm *time.Timer
}

// leaseName of the relay of a queue.
func leaseName(queue string) string { return "outbox/" + queue }

// take asks for the lease; nil where another has it, or the store does not answer.
func (r *Relay) take(stop, kill context.Context) *lease {
	sent := time.Now()
	within, cancel := context.WithTimeout(stop, storeTime)
	defer cancel()
	if held, err := r.box.Lease(within, leaseName(r.queue), r.holder, r.span); err != nil || !held {
		return nil
	}
	l := &lease{r: r, margin: time.Duration(float64(r.span) / marginPart)}
	l.ctx, l.cancel = context.WithCancel(kill)
	l.until = sent.Add(r.span - l.margin)
	l.alarm = time.AfterFunc(time.Until(l.until), l.cancel)
	l.keeper.Go(l.keep)
	return l
}

// keep renews the lease until it ends.
func (l *lease) keep() {
	for wait := l.r.span / renewPart; ; {
		if rest(l.ctx, wait); l.ctx.Err() != nil {
			return
		}
		sent := time.Now()
		held, err := l.r.box.Lease(l.ctx, leaseName(l.r.queue), l.r.holder, l.r.span)
		switch {
		case err != nil:
			wait = l.r.span / againPart
		case !held:
			l.cancel()
			return
		default:
			wait = l.r.span / renewPart
			l.extend(sent.Add(l.r.span - l.margin))
		}
	}
}

func (l *lease) extend(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = until
	l.alarm.Reset(time.Until(until))
}

// holds tells whether something may be sent now. It looks at the clock, too: in a process that stood still the
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
	_, _ = l.r.box.Lease(ctx, leaseName(l.r.queue), l.r.holder, 0) // else it runs out by itself
}
