package gatewaytest

import "time"

// expire does what has become due: activations that ran out and back-offs that
// ended make their jobs activatable.
func (e *Engine) expire(now time.Time) {
	for e.due.len() > 0 && !e.due.top().due.After(now) {
		j := e.due.top()
		if j.history != nil {
			j.history.ranOut(j)
		}
		if j.state == Activated {
			e.counts.TimedOut++
		}
		e.move(j, Activatable)
	}
}

// arm sets the alarm for the next due job, if anybody waits for one: without
// an audience, what is due is done by the next call.
func (e *Engine) arm() {
	if e.due.len() == 0 || (e.waiting == 0 && len(e.watchers) == 0) {
		return
	}
	next := e.due.top().due
	if !e.alarmAt.IsZero() && !next.Before(e.alarmAt) {
		return
	}
	e.disarm()
	e.alarmAt = next
	e.alarm = time.AfterFunc(next.Sub(e.now()), e.ring)
}

func (e *Engine) disarm() {
	if e.alarm != nil {
		e.alarm.Stop()
	}
	e.alarm, e.alarmAt = nil, time.Time{}
}

func (e *Engine) ring() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.disarm()
	e.expire(e.now())
	e.changed()
}

// changed tells the watchers to look again, and sets the alarm anew.
func (e *Engine) changed() {
	for w := range e.watchers {
		select {
		case w <- struct{}{}:
		default: // it was told and has not looked yet
		}
	}
	e.arm()
}
