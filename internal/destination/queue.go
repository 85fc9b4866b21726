package destination

import (
	"cmp"
	"slices"
	"time"
)

// Held is a claim that waits.
type Held struct {
	// Claim identifies it among all that wait.
	Claim string
	// Since is when it was held.
	Since time.Time
	// Deadline is the claim's own, and Limit its policy's total limit; zero is none.
	Deadline, Limit time.Time
	// SendBy is the last instant by Deadline at which the destination is open; Queue.Add takes Deadline where it is zero.
	SendBy time.Time
	// Cents is what the claim is worth.
	Cents int64
	// RetriesLeft is how many failures more it can take.
	RetriesLeft int64
}

// timeToAct is what a person gets before a claim's deadline or limit passes; of a claim with less than twice that left,
// half of it.
const timeToAct = time.Hour

// giveUpAt returns when a person is told that the claim cannot be sent in time; zero is never.
func (h *Held) giveUpAt() time.Time {
	last := soonest(h.Limit, h.SendBy)
	if last.IsZero() {
		return last
	}
	return last.Add(-min(timeToAct, max(0, last.Sub(h.Since)/2)))
}

// Queue holds the claims that wait for one destination. Its zero value is empty. It is not safe for concurrent use.
type Queue struct {
	claims map[string]*Held
	turn   order // the nearest deadline first, then what is worth most, then what waits longest
	end    order // what is given up first
}

// order is a list of claims that is sorted when it is read.
type order struct {
	claims []*Held
	sorted bool
	before func(a, b *Held) int
}

func (o *order) add(h *Held) { o.claims, o.sorted = append(o.claims, h), false }

func (o *order) all() []*Held {
	if !o.sorted {
		slices.SortFunc(o.claims, o.before)
		o.sorted = true
	}
	return o.claims
}

// first returns the first claim; there must be one.
func (o *order) first() *Held { return o.all()[0] }

func (o *order) remove(h *Held) {
	i, _ := slices.BinarySearchFunc(o.all(), h, o.before)
	o.claims = slices.Delete(o.claims, i, i+1)
}

func byTurn(a, b *Held) int {
	return cmp.Or(earlier(a.SendBy, b.SendBy), cmp.Compare(b.Cents, a.Cents), a.Since.Compare(b.Since),
		cmp.Compare(a.Claim, b.Claim))
}

func byEnd(a, b *Held) int {
	return cmp.Or(earlier(a.giveUpAt(), b.giveUpAt()), cmp.Compare(a.Claim, b.Claim))
}

// earlier compares instants of which a zero one never comes.
func earlier(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return b.Compare(a)
	}
	return a.Compare(b)
}

// soonest of two instants, of which a zero one never comes.
func soonest(a, b time.Time) time.Time {
	if earlier(b, a) < 0 {
		return b
	}
	return a
}

// Add holds a claim; one that is held already takes the new one's place.
func (q *Queue) Add(h Held) {
	q.Remove(h.Claim)
	if q.claims == nil {
		*q = Queue{make(map[string]*Held), order{before: byTurn}, order{before: byEnd}}
	}
	if h.SendBy.IsZero() {
		h.SendBy = h.Deadline
	}
	q.claims[h.Claim] = &h
	q.turn.add(&h)
	q.end.add(&h)
}

// Remove lets go of a claim, and reports whether it was held.
func (q *Queue) Remove(claim string) (Held, bool) {
	h, ok := q.claims[claim]
	if !ok {
		return Held{}, false
	}
	delete(q.claims, claim)
	q.turn.remove(h)
	q.end.remove(h)
	return *h, true
}

// Len returns how many claims wait.
func (q *Queue) Len() int { return len(q.claims) }

// Bounds returns since when the claim waits that waits longest, and the nearest deadline; zero for none. It looks at all.
func (q *Queue) Bounds() (oldest, deadline time.Time) {
	for i, h := range q.turn.all() {
		if i == 0 {
			deadline = h.SendBy
		}
		if i == 0 || h.Since.Before(oldest) {
			oldest = h.Since
		}
	}
	return oldest, deadline
}

// Next returns the first n claims by turn.
func (q *Queue) Next(n int) (next []Held) {
	for _, h := range q.turn.all()[:min(n, q.Len())] {
		next = append(next, *h)
	}
	return next
}

// GiveUpAt returns when the next claim is to be given up; zero is never.
func (q *Queue) GiveUpAt() time.Time {
	if q.Len() == 0 {
		return time.Time{}
	}
	return q.end.first().giveUpAt()
}

// Canary returns the claim to send ahead, empty if none waits: one that would be given up before the next canary, which
// has nothing to lose; otherwise, as a canary may fail, one that has most retries left, and of these the one whose turn
// it is. It looks at all claims.
func (q *Queue) Canary(now time.Time) string {
	if q.Len() == 0 {
		return ""
	}
	hopeful := func(h *Held) int {
		if at := h.giveUpAt(); !at.IsZero() && at.Before(now.Add(longestTest)) {
			return 0
		}
		return 1
	}
	return slices.MinFunc(q.turn.all(), func(a, b *Held) int { // the first by turn of those alike
		return cmp.Or(cmp.Compare(hopeful(a), hopeful(b)), cmp.Compare(b.RetriesLeft, a.RetriesLeft))
	}).Claim
}
