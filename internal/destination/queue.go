package destination

import (
	"cmp"
	"slices"
	"time"

	"retry-worker/internal/calendar"
)

// Held is a claim that waits.
type Held struct {
	// Claim identifies it among all waiting claims: the key of its job.
	Claim int64
	// Subject names it (journal.Subject).
	Subject struct{ Tenant, Policy, ID string }
	// Since is when it was held.
	Since time.Time
	// Deadline is the claim's own, Limit the end of its policy's total limit; zero for none.
	Deadline, Limit time.Time
	// SendBy is the last instant up to Deadline at which the destination is open. Gate.Hold sets it.
	SendBy time.Time
	// Cents is what the claim is worth.
	Cents int64
	// RetriesLeft is how many more failures it can take.
	RetriesLeft int64
}

// plan sets SendBy by the destination's calendar.
func (h *Held) plan(c *calendar.Calendar) {
	if !h.Deadline.IsZero() {
		h.SendBy = c.LastSafe(h.Deadline)
	}
}

// timeToAct is how long before a claim's deadline or limit it is given to a person, or half of the time it had when it
// was held, if that is less.
const timeToAct = time.Hour

// giveUpAt returns when the claim is given up, as it cannot be sent in time; zero means never.
func (h *Held) giveUpAt() time.Time {
	last := soonest(h.Limit, h.SendBy)
	if last.IsZero() {
		return last
	}
	return last.Add(-min(timeToAct, max(0, last.Sub(h.Since)/2)))
}

// Queue holds the claims that wait for one destination. Its zero value is empty. It is not safe for concurrent use.
type Queue struct {
	claims map[int64]*Held
	// turns holds the claims in the order of their turns.
	turns []*Held
	// endsAt is the earliest instant at which a claim may have to be given up; zero means never.
	endsAt time.Time
}

// compareTurns orders claims by nearest deadline, then highest value, then longest wait.
func compareTurns(a, b *Held) int {
	return cmp.Or(earlier(a.SendBy, b.SendBy), cmp.Compare(b.Cents, a.Cents), a.Since.Compare(b.Since),
		cmp.Compare(a.Claim, b.Claim))
}

// earlier compares instants; none counts as never.
func earlier(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return b.Compare(a)
	}
	return a.Compare(b)
}

// soonest returns the earlier of two instants; none counts as never.
func soonest(a, b time.Time) time.Time {
	if earlier(b, a) < 0 {
		return b
	}
	return a
}

// Add adds a claim, in place of one with the same name.
func (q *Queue) Add(h Held) {
	q.Remove(h.Claim)
	if q.claims == nil {
		q.claims = make(map[int64]*Held)
	}
	at, _ := slices.BinarySearchFunc(q.turns, &h, compareTurns)
	q.claims[h.Claim], q.turns = &h, slices.Insert(q.turns, at, &h)
	q.endsAt = soonest(q.endsAt, h.giveUpAt())
}

// Remove removes a claim, and reports whether it was there. The first by turn is removed in constant time.
func (q *Queue) Remove(claim int64) (Held, bool) {
	h, ok := q.claims[claim]
	if !ok {
		return Held{}, false
	}
	delete(q.claims, claim)
	if at, _ := slices.BinarySearchFunc(q.turns, h, compareTurns); at > 0 {
		q.turns = slices.Delete(q.turns, at, at+1)
	} else {
		q.turns[0], q.turns = nil, q.turns[1:]
	}
	return *h, true
}

// GiveUp removes and returns the claims that are given up at now. It takes linear time if one may be.
func (q *Queue) GiveUp(now time.Time) (givenUp []Held) {
	if q.endsAt.IsZero() || now.Before(q.endsAt) {
		return nil
	}
	q.endsAt = time.Time{}
	q.turns = slices.DeleteFunc(q.turns, func(h *Held) bool {
		if at := h.giveUpAt(); at.IsZero() || now.Before(at) {
			q.endsAt = soonest(q.endsAt, at)
			return false
		}
		delete(q.claims, h.Claim)
		givenUp = append(givenUp, *h)
		return true
	})
	return givenUp
}

// Len returns how many claims wait.
func (q *Queue) Len() int { return len(q.claims) }

// Has reports whether a claim waits.
func (q *Queue) Has(claim int64) bool { return q.claims[claim] != nil }

// replan takes over a changed calendar.
func (q *Queue) replan(c *calendar.Calendar) {
	q.endsAt = time.Time{}
	for _, h := range q.turns {
		h.plan(c)
		q.endsAt = soonest(q.endsAt, h.giveUpAt())
	}
	slices.SortFunc(q.turns, compareTurns)
}

// Sum returns since when the first claim waits, the nearest SendBy, and the total value. It takes linear
// time.
func (q *Queue) Sum() (oldest, deadline time.Time, cents int64) {
	for i, h := range q.turns {
		if i == 0 {
			deadline = h.SendBy
		}
		oldest = soonest(oldest, h.Since)
		cents += h.Cents
	}
	return oldest, deadline, cents
}

// Next returns the first n claims by turn.
func (q *Queue) Next(n int) (next []Held) {
	for _, h := range q.turns[:min(n, q.Len())] {
		next = append(next, *h)
	}
	return next
}

// Canary returns the claim to send ahead; 0 if none waits. As a canary may fail, it is one with the most retries
// left, the first of these by turn. It takes linear time.
func (q *Queue) Canary() int64 {
	if q.Len() == 0 {
		return 0
	}
	return slices.MinFunc(q.turns, func(a, b *Held) int { return cmp.Compare(b.RetriesLeft, a.RetriesLeft) }).Claim
}
