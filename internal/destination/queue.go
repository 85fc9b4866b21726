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
	// turns are all of them: the nearest deadline first, then what is worth most, then what waits longest, once sorted.
	turns  []*Held
	sorted bool
	// ends is the claim that is given up first; nil where it is to be looked for.
	ends *Held
}

func compareTurns(a, b *Held) int {
	return cmp.Or(earlier(a.SendBy, b.SendBy), cmp.Compare(b.Cents, a.Cents), a.Since.Compare(b.Since),
		cmp.Compare(a.Claim, b.Claim))
}

func compareEnds(a, b *Held) int {
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
		q.claims = make(map[string]*Held)
	}
	if h.SendBy.IsZero() {
		h.SendBy = h.Deadline
	}
	q.claims[h.Claim] = &h
	q.turns, q.sorted, q.ends = append(q.turns, &h), false, nil
}

// Remove lets go of a claim, and reports whether it was held.
func (q *Queue) Remove(claim string) (Held, bool) {
	h, ok := q.claims[claim]
	if !ok {
		return Held{}, false
	}
	delete(q.claims, claim)
	i, _ := slices.BinarySearchFunc(q.byTurn(), h, compareTurns)
	q.turns = slices.Delete(q.turns, i, i+1)
	if h == q.ends {
		q.ends = nil
	}
	return *h, true
}

// byTurn returns all claims, whose turn is next first.
func (q *Queue) byTurn() []*Held {
	if !q.sorted {
		slices.SortFunc(q.turns, compareTurns)
		q.sorted = true
	}
	return q.turns
}

// Len returns how many claims wait.
func (q *Queue) Len() int { return len(q.claims) }

// Bounds returns since when the claim waits that waits longest, and the nearest deadline; zero for none. It looks at all.
func (q *Queue) Bounds() (oldest, deadline time.Time) {
	for i, h := range q.byTurn() {
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
	for _, h := range q.byTurn()[:min(n, q.Len())] {
		next = append(next, *h)
	}
	return next
}

// GiveUpAt returns when the next claim is to be given up; zero is never.
func (q *Queue) GiveUpAt() time.Time {
	if q.Len() == 0 {
		return time.Time{}
	}
	if q.ends == nil {
		q.ends = slices.MinFunc(q.turns, compareEnds)
	}
	return q.ends.giveUpAt()
}

// Canary returns the claim to send ahead, empty if none waits: as a canary may fail, one that has most retries left, and
// of these the one whose turn it is. It looks at all claims.
func (q *Queue) Canary() string {
	if q.Len() == 0 {
		return ""
	}
	return slices.MinFunc(q.byTurn(), func(a, b *Held) int { return cmp.Compare(b.RetriesLeft, a.RetriesLeft) }).Claim
}
