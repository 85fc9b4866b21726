package statistics_test

import (
	"fmt"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
)

// find looks for new causes now.
func (c *clinic) find() []journal.Cause {
	c.t.Helper()
	found, err := statistics.FindNew(c.t.Context(), c.Memory, c.Now())
	testkit.Must(c.t, err)
	return found
}

// TestACauseIsNew: it is where it fails five times within an hour, in the day after it failed first, or failed again after
// 30 days.
func TestACauseIsNew(t *testing.T) {
	const minute, hour, day = time.Minute, time.Hour, 24 * time.Hour
	for name, tt := range map[string]struct {
		at  []time.Duration // failures
		new bool
	}{
		"four":                     {[]time.Duration{0, 1, 2, 3}, false},
		"five":                     {[]time.Duration{0, 1, 2, 3, 4}, true},
		"five within the hour":     {[]time.Duration{0, 15 * minute, 30 * minute, 45 * minute, hour}, true},
		"five in more":             {[]time.Duration{0, 15 * minute, 30 * minute, 45 * minute, hour + time.Second, 2 * hour}, false},
		"one, and five in a while": {[]time.Duration{0, 5 * hour, 5 * hour, 5 * hour, 5 * hour, 5 * hour}, true},
		"one, and five next day":   {[]time.Duration{0, day + hour, day + hour, day + hour, day + hour, day + hour}, false},
		"one, and five 29 days on": {[]time.Duration{0, 29 * day, 29 * day, 29 * day, 29 * day, 29 * day}, false},
		"one, and five 30 days on": {[]time.Duration{0, 30 * day, 30 * day, 30 * day, 30 * day, 30 * day}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t)
			began, found := c.Now(), []journal.Cause(nil)
			for i, at := range tt.at {
				if len(found) > 0 {
					t.Fatalf("found before the failure %d", i)
				}
				c.Set(began.Add(at))
				c.fails("setor 7 aguarda o auditor")
				found = c.find()
			}
			if (len(found) == 1) != tt.new || len(c.find()) > 0 {
				t.Errorf("found %+v, want one: %t", found, tt.new)
			}
		})
	}
}

// TestACauseThatWentQuiet: it is told of though nobody looked before it failed once more, hours later.
func TestACauseThatWentQuiet(t *testing.T) {
	c := open(t)
	for range 5 {
		c.fails("setor 7 aguarda o auditor")
	}
	c.Set(c.Now().Add(3 * time.Hour))
	c.fails("setor 7 aguarda o auditor")
	if found := c.find(); len(found) != 1 {
		t.Errorf("found %+v, want one", found)
	}
}

// TestWhatIsToldOfANewCause: how many failures of how many claims, when, where most of them were, and how it was before.
// It is told again once it was away for 30 days.
func TestWhatIsToldOfANewCause(t *testing.T) {
	const text = "setor 7 aguarda o auditor"
	c := open(t)
	fail := func(claims int, destination string) {
		for range claims {
			c.claims++
			a := c.Analysis(decision.DefaultPolicy, fmt.Sprintf("CLM-%04d-1", c.claims), text, 0)
			a.Failure.Destination = destination
			_, err := c.Journal.Analyze(t.Context(), a)
			testkit.Must(t, err)
		}
	}
	told := func() journal.News {
		t.Helper()
		found := c.find()
		if len(found) != 1 {
			t.Fatalf("found %+v", found)
		}
		return *found[0].News
	}
	first := c.Now()
	fail(2, "unimed")
	c.retried(text, false) // fails more than once
	c.Set(first.Add(2 * time.Minute))
	fail(3, "tiss")
	n := told()
	if want := (journal.News{At: c.Now(), First: first, Last: n.Last, Failures: 11, Claims: 6, Destination: "tiss"}); n != want {
		t.Errorf("told %+v, want %+v", n, want)
	}
	for range 21 {
		c.retried(text, false)
	}
	last := c.Now()
	c.Set(last.Add(400 * 24 * time.Hour))
	fail(5, "")
	n = told()
	if b := n.Before; b == nil || !b.Last.Equal(last) || b.Failures != 11+21*6 || b.Closed != 22 || b.Recovered != 0 || n.Failures != 5 {
		t.Errorf("told %+v, before %+v", n, n.Before)
	}
}
