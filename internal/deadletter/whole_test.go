package deadletter_test

import (
	"fmt"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// TestFourHundredClaims: one cause, one decision, one by one; paused, resumed, killed in between; each verified in the end.
func TestFourHundredClaims(t *testing.T) {
	visit(t, func(c *fixture) {
		t := c.t
		c.die(0, 400, badPassword, 0)
		c.die(400, 30, "DUPLICATE_CLAIM", 0)
		groups, _, err := c.DeadLetters.Groups(t.Context(), journal.DeadLetterFilter{}, "", 0)
		if err != nil || len(groups) != 2 || groups[0].N != 400 {
			t.Fatalf("%d groups (%v): %+v", len(groups), err, groups)
		}
		command := retryAll(journal.DeadLetterFilter{Fingerprint: groups[0].Cause.ID})
		p := c.plan(command)
		want(t, "planned", fmt.Sprint(p.Total, p.Ready, len(p.Refused), p.Takes), fmt.Sprint(400, 400, 0, 400*time.Second))
		id := c.StartBulk(command)
		w := c.runner()
		c.within(2*time.Hour, "fifty", func() bool { return c.decided(id) >= 50 })
		if _, err := c.DeadLetters.Steer(t.Context(), id, journal.BulkPause, "jose"); err != nil {
			t.Fatal(err)
		}
		paused := c.decided(id)
		time.Sleep(10 * time.Minute)
		want(t, "decided while paused", c.decided(id)-paused, 0)
		w.killed()
		if _, err := c.DeadLetters.Steer(t.Context(), id, journal.BulkResume, "maria"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for range 10 {
			w := c.runner()
			time.Sleep(3700 * time.Millisecond)
			w.killed()
		}
		c.runner()
		c.within(2*time.Hour, "done", c.done(id))
		if took, should := time.Since(began), time.Duration(400-paused)*time.Second; took < should-2*time.Second || took > should*11/10 {
			t.Errorf("the rest took %s, expected about %s", took, should)
		}
		want(t, "counts", c.counts(id), "done: decided 400 ")
		c.Deliver(true)
		want(t, "counts", c.counts(id), "done: taken 400 ")
		for i := range 300 {
			c.Succeed(tiss, claim(i))
		}
		for i := 300; i < 400; i++ {
			c.Fail(tiss, claim(i), badPassword, 1)
		}
		want(t, "counts", c.counts(id), "done: recovered 300 dead_again 100 ")
	})
}

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
		if err != nil {
			t.Fatal(err)
		}
		second, _, err := c.DeadLetters.Start(t.Context(), wide, q.Token)
		if err != nil {
			t.Fatal(err)
		}
		c.runner()
		c.within(2*time.Hour, "both are done", func() bool { return c.done(first.ID)() && c.done(second.ID)() })
		one, two := c.state(first.ID), c.state(second.ID)
		want(t, "decided", one.Counts[journal.BulkDecided]+two.Counts[journal.BulkDecided], 100)
		want(t, "refused, or decided before they were gathered", one.Counts[journal.BulkRefused]+two.Counts[journal.BulkRefused], one.Total+two.Total-100)
		codes := map[string]int{}
		for _, id := range []string{first.ID, second.ID} {
			refused, err := c.DeadLetters.Items(t.Context(), id, journal.BulkRefused, 0, 200)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range refused {
				codes[i.Code]++
			}
		}
		if n := codes[string(deadletter.InOtherRun)]; n < 40 || len(codes) > 2 || int64(n+codes[string(deadletter.InvalidRetryState)]) != one.Total+two.Total-100 {
			t.Errorf("refused with %v, want most of 60 because they are in the other run", codes)
		}
		again, started, err := c.DeadLetters.Start(t.Context(), narrow, p.Token)
		if err != nil || started || again.ID != first.ID || again.State != journal.BulkDone {
			t.Errorf("once more: run %s, %s, started %t (%v), want %s as it ended", again.ID, again.State, started, err, first.ID)
		}
	})
}

// underWay has n dead letters of one cause, and a run over all that has decided on ten or more.
func (c *fixture) underWay(n int) (letters []string, id string) {
	c.t.Helper()
	letters = c.die(0, n, badPassword, 0)
	id = c.StartBulk(retryAll(journal.DeadLetterFilter{}))
	c.runner()
	c.within(2*time.Hour, "ten", func() bool { return c.decided(id) >= 10 })
	return letters, id
}

// TestPlanOfABusyRun: what another run will come to is told, and is no work.
func TestPlanOfABusyRun(t *testing.T) {
	visit(t, func(c *fixture) {
		t := c.t
		c.underWay(50)
		p := c.plan(retryAll(journal.DeadLetterFilter{}))
		want(t, "ready", p.Ready, 0)
		want(t, "refused", fmt.Sprintf("%s %d", p.Refused[0].Code, p.Refused[0].Count), fmt.Sprintf("in_other_run %d", p.Total))
		_, _, err := c.DeadLetters.Start(t.Context(), retryAll(journal.DeadLetterFilter{}), p.Token)
		if r := deadletter.RefusalOf(err); r == nil || r.Code != deadletter.NothingToDo && r.Code != deadletter.PlanOutdated {
			t.Errorf("a second run: %v", err)
		}
	})
}

// TestOthersDecideMeanwhile: what a person does alone is kept, and the run says so.
func TestOthersDecideMeanwhile(t *testing.T) {
	visit(t, func(c *fixture) {
		t := c.t
		letters, id := c.underWay(40)
		for _, letter := range letters[30:35] {
			if _, err := c.DeadLetters.Discard(t.Context(), deadletter.Command{ID: letter, Reason: "paga em mãos", By: "jose"}); err != nil {
				t.Fatal(err)
			}
		}
		c.within(2*time.Hour, "done", c.done(id))
		want(t, "counts", c.counts(id), "done: refused 5 decided 35 ")
		items, err := c.DeadLetters.Items(t.Context(), id, journal.BulkRefused, 0, 10)
		if err != nil || len(items) != 5 || items[0].Code != string(deadletter.InvalidRetryState) || items[0].Number != 31 {
			t.Errorf("refused are %+v (%v)", items, err)
		}
		d, err := c.DeadLetters.Show(t.Context(), letters[30])
		if err != nil || d.Review.By != "jose" || d.Run != "" {
			t.Errorf("what jose decided is %+v (%v)", d.Review, err)
		}
		if d, err = c.DeadLetters.Show(t.Context(), letters[36]); err != nil || d.Review.By != "maria" || d.Run != id {
			t.Errorf("what the run decided is %+v of %q (%v)", d.Review, d.Run, err)
		}
	})
}

// TestCatalogueChangesMeanwhile: a policy that is gone has no ladder to wait by; the others go on.
func TestCatalogueChangesMeanwhile(t *testing.T) {
	visit(t, func(c *fixture) {
		t := c.t
		_, id := c.underWay(20)
		time.Sleep(500 * time.Millisecond) // between two decisions
		c.SetPolicies(decision.Policies{})
		before := c.decided(id)
		c.within(2*time.Hour, "done", c.done(id))
		want(t, "decided after it", c.decided(id)-before, 0)
		items, err := c.DeadLetters.Items(t.Context(), id, journal.BulkRefused, 0, 200)
		if err != nil || int64(len(items)) != 20-before || items[0].Code != string(deadletter.PolicyNotFound) {
			t.Errorf("refused are %+v (%v)", items, err)
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
		discard := deadletter.BulkCommand{Action: journal.BulkDiscard, Reason: "prescritas", By: "maria", PerMinute: 6000}
		id = c.StartBulk(discard)
		c.within(2*time.Hour, "done", c.done(id))
		c.Deliver(true)
		want(t, "counts", c.counts(id), "done: nobody 3 discarded 7 ")
	})
}

// TestCancel: what is not decided stays as it was, and is free for another run.
func TestCancel(t *testing.T) {
	visit(t, func(c *fixture) {
		t := c.t
		_, id := c.underWay(30)
		if _, err := c.DeadLetters.Steer(t.Context(), id, journal.BulkCancel, "maria"); err != nil {
			t.Fatal(err)
		}
		decided := c.decided(id)
		time.Sleep(10 * time.Minute)
		want(t, "counts", c.counts(id), fmt.Sprintf("cancelled: planned %d decided %d ", 30-decided, decided))
		p := c.plan(retryAll(journal.DeadLetterFilter{}))
		want(t, "free again", p.Ready, 30-decided)
		_, err := c.DeadLetters.Steer(t.Context(), id, journal.BulkResume, "maria")
		refused(t, "resume", err, deadletter.InvalidRunState)
	})
}

// TestPlanIsOfWhatIsThere: what dies later is not part of it; what is decided since makes it outdated.
func TestPlanIsOfWhatIsThere(t *testing.T) {
	visit(t, func(c *fixture) {
		t := c.t
		c.die(0, 10, badPassword, 0)
		command := retryAll(journal.DeadLetterFilter{})
		p := c.plan(command)
		late := c.die(10, 5, badPassword, 0)
		run, _, err := c.DeadLetters.Start(t.Context(), command, p.Token)
		if err != nil {
			t.Fatal(err)
		}
		c.runner()
		c.within(2*time.Hour, "done", c.done(run.ID))
		want(t, "in it", c.state(run.ID).Total, 10)
		p = c.plan(command)
		want(t, "left", p.Total, 5)
		c.Deliver(true)
		c.Fail(tiss, claim(0), badPassword, 1)
		if _, err := c.DeadLetters.Discard(t.Context(), deadletter.Command{ID: late[1], Reason: "r", By: "jose"}); err != nil {
			t.Fatal(err)
		}
		_, _, err = c.DeadLetters.Start(t.Context(), command, p.Token)
		want(t, "message", refused(t, "start", err, deadletter.PlanOutdated).Message, "5 dead letters were planned, 4 of those are open now, and 1 came since; plan again")
	})
}
