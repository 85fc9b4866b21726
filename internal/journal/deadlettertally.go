package journal

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// DeadLetterSums add dead letters up to tallies. The keys are tallies with nothing in N, Oldest, Newest and Sum.
type DeadLetterSums map[DeadLetterTally]*DeadLetterTally

// Add counts a dead letter. recent is as DeadLetterTallies has it; busy tells that it is in another bulk run that has not come
// to it yet.
func (s DeadLetterSums) Add(d *DeadLetter, policy string, recent time.Time, busy bool) {
	key := DeadLetterTally{Policy: policy, Team: d.Team, Reason: d.Reason, AtLimit: d.RetryCount >= d.MaxRetries, Waits: d.waits(),
		Gone: d.Delivery == DeliveryNobody, Recent: recent.IsZero() || Milli(d.CreatedAt) >= ceiling(recent), Busy: busy}
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
func (s DeadLetterSums) Tallies() []DeadLetterTally {
	all := make([]DeadLetterTally, 0, len(s))
	for _, t := range s {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b DeadLetterTally) int {
		return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Team, b.Team), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.fate(), b.fate()))
	})
	return all
}

// fate orders what would become of them.
func (t *DeadLetterTally) fate() (bits int) {
	for _, is := range [...]bool{t.AtLimit, t.Waits, t.Gone, t.Recent, t.Busy} {
		if bits *= 2; is {
			bits++
		}
	}
	return bits
}
