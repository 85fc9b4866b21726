package deadletter_test

import (
	"fmt"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestOverlappingRuns: two people, one filter in another; each dead letter is decided on once.
func TestOverlappingRuns(t *testing.T) {
	visit(t, func(c *fixture) {
		t := c.t
		c.die(0, 60, badPassword, 0)
		c.die(60, 40, "DUPLICATE_CLAIM", 0)
		narrow := retryAll(journal.DeadLetterFilter{Reason: "INVALID_CREDENTIALS"})
		wide := retryAll(journal.DeadLetterFilter{})
		wide.By, wide.PerMinute, narrow.PerMinute = "jose", 600, 600
		p, q := c.plan(narrow), c.plan(wide)
		first, _, err := c.DeadLetters.Start(t.Context(), narrow, p.Token)
		testkit.Must(t, err)
		second, _, err := c.DeadLetters.Start(t.Context(), wide, q.Token)
		testkit.Must(t, err)
		c.runner()
		c.within(2*time.Hour, "both are done", func() bool { return c.done(first.ID)() && c.done(second.ID)() })
		one, two := c.state(first.ID), c.state(second.ID)
		want(t, "decided", one.Counts[journal.BulkDecided]+two.Counts[journal.BulkDecided], 100)
		want(t, "refused", one.Counts[journal.BulkRefused]+two.Counts[journal.BulkRefused], one.Total+two.Total-100)
		codes := map[string]int{}
		for _, id := range []string{first.ID, second.ID} {
			refused, err := c.DeadLetters.Items(t.Context(), id, journal.BulkRefused, 0, 200)
			testkit.Must(t, err)
			for _, i := range refused {
				codes[i.Code]++
			}
		}
		want(t, "refused because the other run has decided on them", codes, map[string]int{string(deadletter.InvalidRetryState): 60})
		again, started, err := c.DeadLetters.Start(t.Context(), narrow, p.Token)
		if err != nil || started || again.ID != first.ID || again.State != journal.BulkDone {
			t.Errorf("once more: run %s, %s, started %t (%v), want %s as it ended", again.ID, again.State, started, err, first.ID)
		}
	})
}

// TestRefusedInAdvance: the plan's numbers are the run's.
func TestRefusedInAdvance(t *testing.T) {
	visit(t, func(c *fixture) {
		t := c.t
		c.die(0, 10, badPassword, 0)
		c.die(10, 7, "TIMEOUT", 5)
		for i := 17; i < 20; i++ {
			c.Fail(tiss, claim(i), badPassword, 0) // no process comes
		}
		time.Sleep(2 * time.Minute)
		command := retryAll(journal.DeadLetterFilter{})
		p := c.plan(command)
		want(t, "planned", fmt.Sprintf("%d %d %s %d %s %d", p.Total, p.Ready, p.Refused[0].Code, p.Refused[0].Count, p.Refused[1].Code, p.Refused[1].Count),
			"20 10 max_retries_exceeded 7 invalid_retry_state 3")
		id := c.StartBulk(command)
		c.runner()
		c.within(2*time.Hour, "done", c.done(id))
		want(t, "counts", c.counts(id), "done: refused 10 decided 10 ")
		discard := journal.BulkCommand{Action: journal.BulkDiscard, Reason: "prescritas", By: "maria", PerMinute: 6000}
		id = c.StartBulk(discard)
		c.within(2*time.Hour, "done", c.done(id))
		c.Deliver(true)
		want(t, "counts", c.counts(id), "done: nobody 3 discarded 7 ")
	})
}
