package destination

import (
	"cmp"
	"container/heap"
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
	last := h.Limit
	if !h.SendBy.IsZero() && (last.IsZero() || h.SendBy.Before(last)) {
		last = h.SendBy
	}
	if last.IsZero() {
		return last
	}
	return last.Add(-min(timeToAct, max(0, last.Sub(h.Since)/2)))
}

// Queue holds the claims that wait for one destination. Its zero value is empty. It is not safe for concurrent use.
type Queue struct {
	claims map[string]*waiting
	turn   order // the nearest deadline first, then what is worth most, then what waits longest
	end    order // what is given up first
}

// waiting is a Held with its places in the orders.
type waiting struct {
	Held
	at [orders]int
}

// order is a heap of claims.
type order struct {
	claims []*waiting
	which  int // of waiting.at
	before func(a, b *waiting) int
}

// orders are how many there are.
const orders = 2

func (o *order) Len() int           { return len(o.claims) }
func (o *order) Less(i, j int) bool { return o.before(o.claims[i], o.claims[j]) < 0 }
func (o *order) Swap(i, j int) {
	o.claims[i], o.claims[j] = o.claims[j], o.claims[i]
	o.claims[i].at[o.which], o.claims[j].at[o.which] = i, j
}
func (o *order) Push(x any) {
	w := x.(*waiting)
	w.at[o.which] = len(o.claims)
	o.claims = append(o.claims, w)
}
func (o *order) Pop() any {
	last := len(o.claims) - 1
	w := o.claims[last]
	o.claims[last] = nil
	o.claims = o.claims[:last]
	return w
}

func byTurn(a, b *waiting) int {
	return cmp.Or(earlier(a.SendBy, b.SendBy), cmp.Compare(b.Cents, a.Cents), a.Since.Compare(b.Since), cmp.Compare(a.Claim, b.Claim))
}

func byEnd(a, b *waiting) int {
	return cmp.Or(earlier(a.giveUpAt(), b.giveUpAt()), cmp.Compare(a.Claim, b.Claim))
}

// earlier compares instants of which a zero one never comes.
func earlier(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}

// Add holds a claim; one that is held already takes the new one's place.
func (q *Queue) Add(h Held) {
	q.Remove(h.Claim)
	if q.claims == nil {
		q.claims = make(map[string]*waiting)
		q.turn, q.end = order{before: byTurn}, order{which: 1, before: byEnd}
	}
	if h.SendBy.IsZero() {
		h.SendBy = h.Deadline
	}
	w := &waiting{Held: h}
	q.claims[h.Claim] = w
	heap.Push(&q.turn, w)
	heap.Push(&q.end, w)
}

// Remove lets go of a claim, and reports whether it was held.
func (q *Queue) Remove(claim string) (Held, bool) {
	w, ok := q.claims[claim]
	if !ok {
		return Held{}, false
	}
	delete(q.claims, claim)
	heap.Remove(&q.turn, w.at[0])
	heap.Remove(&q.end, w.at[1])
	return w.Held, true
}

// Len returns how many claims wait.
func (q *Queue) Len() int { return len(q.claims) }

// First returns the claim whose turn it is; there must be one.
func (q *Queue) First() Held { return q.turn.claims[0].Held }

// Bounds returns since when the claim waits that waits longest, and the nearest deadline; zero for none. It looks at all.
func (q *Queue) Bounds() (oldest, deadline time.Time) {
	if q.Len() > 0 {
		first := q.turn.claims[0]
		oldest, deadline = first.Since, first.SendBy
	}
	for _, w := range q.turn.claims {
		if w.Since.Before(oldest) {
			oldest = w.Since
		}
	}
	return oldest, deadline
}

// Next returns the first n claims by turn. It looks at all.
func (q *Queue) Next(n int) []Held {
	var first []*waiting
	for _, w := range q.turn.claims {
		i, _ := slices.BinarySearchFunc(first, w, byTurn)
		first = slices.Insert(first, i, w)
		first = first[:min(len(first), n)]
	}
	next := make([]Held, len(first))
	for i, w := range first {
		next[i] = w.Held
	}
	return next
}

// GiveUpAt returns when the next claim is to be given up; zero is never.
func (q *Queue) GiveUpAt() time.Time {
	if q.Len() == 0 {
		return time.Time{}
	}
	return q.end.claims[0].giveUpAt()
}

// Canary returns the claim to send ahead, empty if none waits: one that would be given up before the next canary, which
// has nothing to lose; otherwise, as a canary may fail, one that has most retries left, and of these the one whose turn
// it is. It looks at all claims.
func (q *Queue) Canary(now time.Time) string {
	hopeless := func(w *waiting) int {
		if at := w.giveUpAt(); !at.IsZero() && at.Before(now.Add(longestTest)) {
			return 0
		}
		return 1
	}
	var best *waiting
	for _, w := range q.turn.claims {
		if best == nil || cmp.Or(cmp.Compare(hopeless(w), hopeless(best)),
			cmp.Compare(best.RetriesLeft, w.RetriesLeft), byTurn(w, best)) < 0 {
			best = w
		}
	}
	if best == nil {
		return ""
	}
	return best.Claim
}
