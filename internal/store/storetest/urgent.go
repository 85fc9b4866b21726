package storetest

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// urgentCase is a dead letter with what decides its place in the list.
type urgentCase struct {
	id       string
	deadline time.Time // the zero time for none
	cents    int64
	chance   string // a decimal number; empty where nothing is known
}

// class says whether the deadline has passed, is within a day, within three, or later or never.
func (c *urgentCase) class(now time.Time) int {
	left := c.deadline.Sub(now)
	switch {
	case c.deadline.IsZero(), left > 72*time.Hour:
		return 4
	case left > 24*time.Hour:
		return 3
	case left > 0:
		return 2
	}
	return 1
}

// worth returns the expected gain of a retry: half of the amount if the chance is not known.
func (c *urgentCase) worth() *big.Rat {
	chance := big.NewRat(1, 2)
	if c.chance != "" {
		chance.SetString(c.chance)
	}
	return chance.Mul(chance, big.NewRat(c.cents, 100))
}

// testUrgent compares the default order of the list, and that of a bulk run, with the rule for 10,000 cases. It is
// the order of the first page's instant, while the clock goes on.
func testUrgent(t *testing.T, d *Database) {
	s := d.opened(t)
	ctx, now, random := t.Context(), at(0).Add(100*time.Hour), rand.New(rand.NewPCG(70, 3))
	near := []time.Duration{0, 24 * time.Hour, 72 * time.Hour}
	destinations, chances := []string{"", "unimed", "tiss"}, map[[2]string]string{}
	var cases []urgentCase
	for len(cases) < 10_000 {
		var lookups []journal.Lookup
		var attempts []journal.Attempt
		for range 250 {
			n := len(cases)
			of, a := letterNumber(n, n)
			c := urgentCase{id: a.DeadLetter}
			switch random.IntN(4) {
			case 0:
				c.deadline = now.Add(near[random.IntN(3)] + time.Duration(random.IntN(3)-1)*time.Millisecond)
			case 1, 2:
				c.deadline = now.Add(time.Duration(random.IntN(240)-120) * time.Hour)
			}
			c.cents = []int64{0, 1, int64(random.IntN(2000)), random.Int64N(1e13)}[random.IntN(4)]
			a.Deadline, a.Destination, a.Error = c.deadline, destinations[random.IntN(3)], letterErrors[random.IntN(4)]
			a.Context = decision.Context{{Variable: "amount", Type: decision.ContextMoney, Value: decision.Amount(c.cents)}}
			a.Fingerprint = journal.CauseOf(of.Policy, a.MatchedRule, a.Error).ID
			key := [2]string{a.Fingerprint, a.Destination}
			if _, known := chances[key]; !known {
				chances[key] = []string{"", "0.001", "0.083", "0.5", "0.999"}[random.IntN(5)]
			}
			c.chance = chances[key]
			cases, lookups, attempts = append(cases, c), append(lookups, journal.Lookup{Subject: of}), append(attempts, a)
		}
		must(t, s, lookups, func(x *transaction) {
			for i, a := range attempts {
				a.Number = 1
				x.attempt(i, a)
			}
		})
	}
	for of, chance := range chances {
		known, _ := strconv.ParseFloat(chance, 64) // nothing known is 0
		d.exec(t, fmt.Sprintf("UPDATE dead_letters SET chance = %d WHERE fingerprint = '%s' AND record IN "+
			"(SELECT record FROM records WHERE coalesce(body ->> 'dest', '') = '%s')", journal.ChanceOf(known), of[0], of[1]))
	}
	slices.SortStableFunc(cases, func(a, b urgentCase) int {
		if n := a.class(now) - b.class(now); n != 0 {
			return n
		}
		return b.worth().Cmp(a.worth())
	})
	n, cursor := 0, ""
	for later := now; ; later = later.Add(time.Hour) {
		page, next, err := s.DeadLetterPage(ctx, journal.DeadLetterFilter{Now: later}, cursor, 173)
		testkit.Must(t, err)
		for i := range page {
			if page[i].ID != cases[n].id {
				t.Fatalf("number %d is %+v with the chance %d, want %+v", n, page[i].DeadLetter, page[i].Chance, cases[n])
			}
			n++
		}
		if cursor = next; cursor == "" {
			break
		}
	}
	if n != len(cases) {
		t.Errorf("%d of %d are listed", n, len(cases))
	}
}
