package destination

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestQueue holds a queue against a list that is sorted for each question.
func TestQueue(t *testing.T) {
	dice := rand.New(rand.NewPCG(3, 4))
	hours := func(n int) time.Time { return start.Add(time.Duration(dice.IntN(n)) * time.Hour) }
	var q Queue
	held := map[string]Held{}
	for range 3000 {
		h := Held{Claim: fmt.Sprint(dice.IntN(9)), Since: hours(3), Cents: dice.Int64N(3), RetriesLeft: dice.Int64N(3)}
		if dice.IntN(3) > 0 {
			h.SendBy = hours(9)
		}
		_, waits := held[h.Claim]
		if dice.IntN(2) == 0 {
			q.Add(h)
			held[h.Claim] = h
		} else {
			if _, removed := q.Remove(h.Claim); removed != waits {
				t.Fatalf("%s is removed: %t", h.Claim, removed)
			}
			delete(held, h.Claim)
		}
		list := slices.SortedFunc(maps.Values(held), func(a, b Held) int {
			return cmp.Or(earlier(a.SendBy, b.SendBy), cmp.Compare(b.Cents, a.Cents), a.Since.Compare(b.Since), cmp.Compare(a.Claim, b.Claim))
		})
		n, now := dice.IntN(9), hours(9)
		if next := q.Next(n); !slices.Equal(next, list[:min(n, len(list))]) {
			t.Fatalf("the next %d are %v of %v", n, next, list)
		}
		hopeless := func(h Held) int {
			if at := h.giveUpAt(); !at.IsZero() && at.Before(now.Add(longestTest)) {
				return 1
			}
			return 0
		}
		var oldest, first, canary Held
		if len(list) > 0 {
			first = list[0]
			oldest = slices.MinFunc(list, func(a, b Held) int { return a.Since.Compare(b.Since) })
			canary = slices.MinFunc(list, func(a, b Held) int {
				return cmp.Or(hopeless(b)-hopeless(a), cmp.Compare(b.RetriesLeft, a.RetriesLeft))
			})
		}
		if since, deadline := q.Bounds(); since != oldest.Since || deadline != first.SendBy || q.Canary(now) != canary.Claim {
			t.Fatalf("the bounds are %s and %s, the canary is %q of %v", since, deadline, q.Canary(now), list)
		}
	}
}
