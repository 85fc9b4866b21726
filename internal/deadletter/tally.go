package deadletter

import (
	"cmp"
	"math"
	"slices"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Tally is how many open dead letters of a plan are alike in all that decides what would become of them.
type Tally struct {
	Policy string
	Team   decision.Team
	Reason decision.Reason
	// AtLimit: their retries are used up, so that one more must be forced.
	AtLimit bool
	// Waits: a process waits for a decision, as far as is known. Gone: none does any more (DeliveryNobody).
	// Where neither is true no review job came yet.
	Waits, Gone bool
	// Recent: born at or after the instant that was asked for.
	Recent bool
	// Busy: they are in another bulk run that has not come to them yet.
	Busy bool
	N    int64
	// Oldest and Newest of their births.
	Oldest, Newest time.Time
	// Sum of their records, modulo 2⁶³: with N it tells whether a plan still matches what is there.
	Sum int64
}

// Sums add dead letters up to tallies. The keys are tallies with nothing in N, Oldest, Newest and Sum.
type Sums map[Tally]*Tally

// Add counts a dead letter. recent is as DeadLetterTallies has it; busy tells that it is in another bulk run that has not come
// to it yet.
func (s Sums) Add(d *journal.DeadLetter, policy string, recent time.Time, busy bool) {
	key := Tally{Policy: policy, Team: d.Team, Reason: d.Reason, AtLimit: d.RetryCount >= d.MaxRetries, Waits: d.Waits(),
		Gone: d.Delivery == journal.DeliveryNobody, Recent: recent.IsZero() || journal.Milli(d.CreatedAt) >= journal.CeilMilli(recent), Busy: busy}
	t := s[key]
	if t == nil {
		t = new(key)
		t.Oldest, t.Newest = d.CreatedAt, d.CreatedAt
		s[key] = t
	}
	t.N++
	t.Sum = (t.Sum + d.Record) & math.MaxInt64
	t.Oldest = slices.MinFunc([]time.Time{t.Oldest, d.CreatedAt}, time.Time.Compare)
	t.Newest = slices.MaxFunc([]time.Time{t.Newest, d.CreatedAt}, time.Time.Compare)
}

// Tallies are all sums, in the order of policy, team, reason and what would become of them.
func (s Sums) Tallies() []Tally {
	all := make([]Tally, 0, len(s))
	for _, t := range s {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Team, b.Team), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.fate(), b.fate()))
	})
	return all
}

// fate orders what would become of them.
func (t *Tally) fate() (bits int) {
	for _, is := range [...]bool{t.AtLimit, t.Waits, t.Gone, t.Recent, t.Busy} {
		if bits *= 2; is {
			bits++
		}
	}
	return bits
}
