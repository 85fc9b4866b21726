package destination

import (
	"cmp"
	"slices"
	"time"
)

// Held is a claim that waits.
type Held struct {
	// Claim identifies it among all waiting claims.
	Claim string
	// Since is when it was held.
	Since time.Time
	// Deadline is the claim's own, Limit the end of its policy's total limit; zero for none.
	Deadline, Limit time.Time
	// SendBy is the last instant up to Deadline at which the destination is open. Queue.Add sets a zero one to
	// Deadline.
	SendBy time.Time
	// Cents is what the claim is worth.
	Cents int64
	// RetriesLeft is how many more failures it can take.
	RetriesLeft int64
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
	claims map[string]*Held
	turns  ranking // by nearest deadline, then highest value, then longest wait
	ends   ranking // by giveUpAt
}

// ranking is a list of claims that is sorted when first used, and stays sorted. Removing the first is cheap.
type ranking struct {
	compare func(a, b *Held) int
	claims  []*Held
	sorted  bool
}

func (r *ranking) all() []*Held {
	if !r.sorted {
		slices.SortFunc(r.claims, r.compare)
		r.sorted = true
	}
	return r.claims
}

func (r *ranking) add(h *Held) {
	at := len(r.claims)
	if r.sorted {
		at, _ = slices.BinarySearchFunc(r.claims, h, r.compare)
	}
	r.claims = slices.Insert(r.claims, at, h)
}

func (r *ranking) remove(h *Held) {
	at, _ := slices.BinarySearchFunc(r.all(), h, r.compare)
	if at == 0 {
		r.claims[0], r.claims = nil, r.claims[1:]
		return
	}
	r.claims = slices.Delete(r.claims, at, at+1)
}

func compareTurns(a, b *Held) int {
	return cmp.Or(earlier(a.SendBy, b.SendBy), cmp.Compare(b.Cents, a.Cents), a.Since.Compare(b.Since),
		cmp.Compare(a.Claim, b.Claim))
}

func compareEnds(a, b *Held) int {
	return cmp.Or(earlier(a.giveUpAt(), b.giveUpAt()), cmp.Compare(a.Claim, b.Claim))
}

// earlier compares instants; a zero one counts as never.
func earlier(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return b.Compare(a)
	}
	return a.Compare(b)
}

// soonest returns the earlier of two instants; a zero one counts as never.
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
		q.claims = make(map[string]*Held)
		q.turns.compare, q.ends.compare = compareTurns, compareEnds
	}
	if h.SendBy.IsZero() {
		h.SendBy = h.Deadline
	}
	q.claims[h.Claim] = &h
	q.turns.add(&h)
	q.ends.add(&h)
}

// Remove removes a claim, and reports whether it was there.
func (q *Queue) Remove(claim string) (Held, bool) {
	h, ok := q.claims[claim]
	if !ok {
		return Held{}, false
	}
	delete(q.claims, claim)
	q.turns.remove(h)
	q.ends.remove(h)
	return *h, true
}

// byTurn returns all claims in the order of their turns.
func (q *Queue) byTurn() []*Held { return q.turns.all() }

// byEnd returns all claims in the order in which they are given up.
func (q *Queue) byEnd() []*Held { return q.ends.all() }

// Len returns how many claims wait.
func (q *Queue) Len() int { return len(q.claims) }

// Sum returns since when the first claim waits, the nearest SendBy, zero for none, and the total value. It takes linear
// time.
func (q *Queue) Sum() (oldest, deadline time.Time, cents int64) {
	for i, h := range q.byTurn() {
		if i == 0 {
			deadline = h.SendBy
		}
		if i == 0 || h.Since.Before(oldest) {
			oldest = h.Since
		}
		cents += h.Cents
	}
	return oldest, deadline, cents
}

// Next returns the first n claims by turn.
func (q *Queue) Next(n int) (next []Held) {
	for _, h := range q.byTurn()[:min(n, q.Len())] {
		next = append(next, *h)
	}
	return next
}

// GiveUpAt returns when the next claim is given up; zero means never.
func (q *Queue) GiveUpAt() time.Time {
	if q.Len() == 0 {
		return time.Time{}
	}
	return q.byEnd()[0].giveUpAt()
}

// Canary returns the claim to send ahead; empty if none waits. As a canary may fail, it is one with the most retries
// left, the first of these by turn. It takes linear time.
func (q *Queue) Canary() string {
	if q.Len() == 0 {
		return ""
	}
	return slices.MinFunc(q.byTurn(), func(a, b *Held) int { return cmp.Compare(b.RetriesLeft, a.RetriesLeft) }).Claim
}
