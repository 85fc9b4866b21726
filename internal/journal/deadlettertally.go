package journal

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// DeadLetterSums add dead letters up to tallies. The keys are tallies with nothing in N, Oldest, Newest and Sum.
type DeadLetterSums map[DeadLetterTally]*DeadLetterTally

// Add counts n dead letters that are alike in key: oldest and newest are the ends of when they were born, sum that of their
// records.
func (s DeadLetterSums) Add(key DeadLetterTally, n int64, oldest, newest time.Time, sum int64) {
	t := s[key]
	if t == nil {
		t = new(key)
		t.Oldest, t.Newest = oldest, newest
		s[key] = t
	}
	t.N += n
	t.Sum = (t.Sum + sum) & math.MaxInt64
	if Milli(oldest) < Milli(t.Oldest) {
		t.Oldest = oldest
	}
	if Milli(newest) > Milli(t.Newest) {
		t.Newest = newest
	}
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
func (t *DeadLetterTally) fate() int64 {
	return truth(t.AtLimit)<<4 | truth(t.Waits)<<3 | truth(t.Gone)<<2 | truth(t.Recent)<<1 | truth(t.Busy)
}

// Tally is the key that a dead letter is counted by, but for Busy. recent is as DeadLetterTallies has it.
func (d *DeadLetter) Tally(policy string, recent time.Time) DeadLetterTally {
	return DeadLetterTally{Policy: policy, Team: d.Team, Reason: d.Reason, AtLimit: d.RetryCount >= d.MaxRetries, Waits: d.waits(),
		Gone: d.Delivery == DeliveryNobody, Recent: recent.IsZero() || Milli(d.CreatedAt) >= ceiling(recent)}
}
