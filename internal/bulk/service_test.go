package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/bulk"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
	"retry-worker/internal/testkit"
)

// TestPlan: what would be decided and what not, and why, as review.Service would find it one by one.
func TestPlan(t *testing.T) {
	alone := func(f *fixture) { f.Die(tiss, claim(0), badPassword, 0) }
	waiting := func(f *fixture) { f.die(0, 1, badPassword, 0) }
	atLimit := func(f *fixture) { f.die(0, 1, "TIMEOUT", 5) }
	busy := func(f *fixture) { f.Gather(f.begin(1, 60)) }
	gone := func(f *fixture) { // its process was away when it was decided on
		id := f.DieWaiting(tiss, claim(0), badPassword, 0)
		if _, err := f.Reviews.Retry(f.t.Context(), review.Command{ID: id, Reason: "r", By: "ana"}); err != nil {
			f.t.Fatal(err)
		}
		f.Deliver(false)
		f.SetEngineUp(time.Time{})
	}
	discard := func(c *bulk.Command) { c.Action = journal.BulkDiscard }
	for _, test := range []struct {
		name    string
		happens func(*fixture)
		after   time.Duration
		change  func(*bulk.Command)
		code    review.Code
		message string
	}{
		{name: "a process waits", happens: waiting},
		{name: "at the limit", happens: atLimit, code: review.MaxRetriesExceeded, message: "forceRetry"},
		{name: "at the limit, forced", happens: atLimit, change: func(c *bulk.Command) { c.Force = true }},
		{name: "not come, long ago", happens: alone, after: review.ExpectedFor + time.Millisecond, code: review.InvalidRetryState, message: "no process waits"},
		{name: "not come, born just now", happens: alone, after: review.ExpectedFor - time.Millisecond, code: review.InvalidRetryState, message: "not come"},
		{name: "not come, the engine is down", happens: func(f *fixture) { alone(f); f.SetEngineUp(time.Time{}) }, after: time.Hour, code: review.InvalidRetryState, message: "not come"},
		{name: "not come, the engine is just back", happens: func(f *fixture) { alone(f); f.SetEngineUp(time.Now().Add(time.Hour)) }, after: time.Hour + time.Second,
			code: review.InvalidRetryState, message: "not come"},
		{name: "gone", happens: gone, code: review.InvalidRetryState, message: "no process waits"},
		{name: "of a policy that is gone", happens: func(f *fixture) { waiting(f); f.SetPolicies(nil) }, code: review.PolicyNotFound, message: tiss},
		{name: "of a policy that is gone, now", happens: func(f *fixture) { waiting(f); f.SetPolicies(nil) }, change: func(c *bulk.Command) { c.When = review.Now }},
		{name: "in another run", happens: busy, code: bulk.InOtherRun, message: "another"},
		{name: "discarded, though nobody waits", happens: gone, change: discard},
		{name: "discarded, in another run", happens: busy, change: discard, code: bulk.InOtherRun, message: "another"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				test.happens(f)
				time.Sleep(test.after)
				c := retry(journal.DeadLetterFilter{})
				if test.change != nil {
					test.change(&c)
				}
				p := f.plan(c)
				want(f.t, "in all", p.Total, 1)
				if test.code == "" {
					want(f.t, "ready", p.Ready, 1)
					want(f.t, "refused", len(p.Refused), 0)
					return
				}
				want(f.t, "ready", p.Ready, 0)
				want(f.t, "refused", p.Refused[0].N, 1)
				want(f.t, "as", p.Refused[0].Code, test.code)
				if !strings.Contains(p.Refused[0].Message, test.message) {
					t.Errorf("because %q, want %q in it", p.Refused[0].Message, test.message)
				}
			})
		})
	}
}

// TestPlanAddsUp: sums, ages, how long it takes; the command with everything filled in; what came with it.
func TestPlanAddsUp(t *testing.T) {
	bubble(t, func(f *fixture) {
		t := f.t
		oldest := time.Now()
		f.die(0, 3, "DUPLICATE_CLAIM", 0)
		time.Sleep(time.Hour)
		f.die(3, 20, badPassword, 0)
		f.die(23, 2, badPassword, 5)
		newest := time.Now()
		p := f.plan(retry(journal.DeadLetterFilter{State: "all", Query: "  CLM- "}))
		want(t, "planned", fmt.Sprint(p.Total, p.Ready, p.Takes), fmt.Sprint(25, 23, 23*time.Second))
		want(t, "refused", fmt.Sprintf("%d %s %d", len(p.Refused), p.Refused[0].Code, p.Refused[0].N), "1 max_retries_exceeded 2")
		want(t, "tallies", fmt.Sprint(p.Tallies), fmt.Sprint([]bulk.Tally{{Policy: tiss, Team: "ti", Reason: "INVALID_CREDENTIALS", N: 20}, {Policy: tiss, Team: "faturamento", Reason: "DUPLICATE_CLAIM", N: 3}}))
		want(t, "oldest", p.Oldest.Equal(oldest), true)
		want(t, "newest", p.Newest.Equal(newest), true)
		want(t, "command", p.Command, bulk.Command{Action: journal.BulkRetry, Filter: journal.DeadLetterFilter{Query: "CLM-"}, Reason: "senha corrigida", By: "maria",
			When: review.Backoff, PerMinute: bulk.DefaultPerMinute})
		byCause := f.plan(retry(journal.DeadLetterFilter{Query: "senha"}))
		want(t, "causes", fmt.Sprint(len(byCause.Causes), byCause.Causes[0].N), "1 22")
		if p := f.plan(retry(journal.DeadLetterFilter{Since: newest})); p.Total != 22 || p.Causes != nil {
			t.Errorf("by age: %d, causes %v; want 22 and none", p.Total, p.Causes)
		}
		runs, _, err := f.Bulk.Runs(t.Context(), "", 1)
		if err != nil || len(runs) != 0 {
			t.Errorf("a plan began %v (%v)", runs, err)
		}
	})
}

// TestBadCommands: each is refused with a code of its own, by plan and start alike, before anything is read.
func TestBadCommands(t *testing.T) {
	f, now := testkit.New(t), time.Now()
	f.Memory.SetDown(true)
	for code, change := range map[review.Code][]func(*bulk.Command){
		bulk.InvalidAction: {
			func(c *bulk.Command) { c.Action = "" },
			func(c *bulk.Command) { c.Action = "burn" },
			func(c *bulk.Command) { c.Action, c.Force = journal.BulkDiscard, true },
			func(c *bulk.Command) { c.Action, c.When = journal.BulkDiscard, review.Now },
		},
		bulk.InvalidPace:     {func(c *bulk.Command) { c.PerMinute = -1 }, func(c *bulk.Command) { c.PerMinute = bulk.MostPerMinute + 1 }},
		review.InvalidWhen:   {func(c *bulk.Command) { c.When = "later" }},
		review.ForceRequired: {func(c *bulk.Command) { c.Fresh = true }},
		review.InvalidReason: {func(c *bulk.Command) { c.Filter.Reason = "BAD WEATHER" }},
		review.InvalidQuery:  {func(c *bulk.Command) { c.Filter.Query = strings.Repeat("x", 201) }},
		bulk.InvalidPeriod:   {func(c *bulk.Command) { c.Filter.Since, c.Filter.Until = now, now }},
		review.InvalidFingerprint: {
			func(c *bulk.Command) { c.Filter.Fingerprint = "abc" },
			func(c *bulk.Command) { c.Filter.Fingerprint = "0123456789ABCDEF" },
		},
	} {
		for _, wrong := range change {
			c := retry(journal.DeadLetterFilter{})
			wrong(&c)
			_, err := f.Bulk.Plan(t.Context(), c)
			refused(t, "plan", err, code)
			_, _, err = f.Bulk.Start(t.Context(), c, "")
			refused(t, "start", err, code)
		}
	}
}

// TestStart: what was planned is what is recorded; what came since is no reason to refuse.
func TestStart(t *testing.T) {
	bubble(t, func(f *fixture) {
		t := f.t
		f.die(0, 5, badPassword, 0)
		c := retry(journal.DeadLetterFilter{Team: "ti"})
		c.Force, c.Fresh, c.When, c.PerMinute = true, true, review.Now, 120
		p, through := f.plan(c), f.Memory.End().Record
		f.die(5, 3, badPassword, 0)
		c.Reason = "  senha corrigida\n"
		run, started, err := f.Bulk.Start(t.Context(), c, p.Token)
		if err != nil || !started || !review.IsID(run.ID) {
			t.Fatalf("the run is %q (%v)", run.ID, err)
		}
		want(t, "run", fmt.Sprintf("%+v", run), fmt.Sprintf("%+v", journal.BulkRun{ID: run.ID, Action: journal.BulkRetry, Filter: c.Filter, Through: through,
			Reason: "senha corrigida", By: "maria", Force: true, Fresh: true, Now: true, PerMinute: 120, State: journal.BulkPreparing, CreatedAt: run.CreatedAt, Begun: run.Begun}))
		other, _, err := f.Bulk.Start(t.Context(), c, f.plan(c).Token)
		if err != nil || other.ID <= run.ID {
			t.Errorf("another run is %q (%v), want an id that sorts behind %q", other.ID, err, run.ID)
		}
	})
}

// TestTokenIsOfItsCommand: whoever starts something else than he has seen is told.
func TestTokenIsOfItsCommand(t *testing.T) {
	bubble(t, func(f *fixture) {
		t := f.t
		f.die(0, 1, badPassword, 0)
		planned := retry(journal.DeadLetterFilter{Team: "ti"})
		p := f.plan(planned)
		for _, change := range []func(*bulk.Command){
			func(c *bulk.Command) { c.Action = journal.BulkDiscard },
			func(c *bulk.Command) { c.Filter.Team = "" },
			func(c *bulk.Command) { c.Filter.Team, c.Filter.Policy = "", "ti" },
			func(c *bulk.Command) { c.Filter.Query = "x" },
			func(c *bulk.Command) { c.Filter.Reason = decision.Reasons()[0] },
			func(c *bulk.Command) { c.Filter.Fingerprint = "0123456789abcdef" },
			func(c *bulk.Command) { c.Filter.Since = time.Now() },
			func(c *bulk.Command) { c.Filter.Until = time.Now() },
			func(c *bulk.Command) { c.Force = true },
			func(c *bulk.Command) { c.Force, c.Fresh = true, true },
			func(c *bulk.Command) { c.When = review.Now },
			func(c *bulk.Command) { c.PerMinute = 61 },
		} {
			c := planned
			change(&c)
			_, _, err := f.Bulk.Start(t.Context(), c, p.Token)
			refused(t, fmt.Sprintf("%+v", c), err, bulk.InvalidPlan)
		}
		for _, token := range []string{"", "x", p.Token + "A", p.Token[:len(p.Token)-1], strings.ToLower(p.Token), "\n" + p.Token} {
			_, _, err := f.Bulk.Start(t.Context(), planned, token)
			refused(t, token, err, bulk.InvalidPlan)
		}
		planned.Reason, planned.By, planned.PerMinute, planned.When = "outra", "jose", bulk.DefaultPerMinute, review.Backoff // the same, said otherwise
		if _, _, err := f.Bulk.Start(t.Context(), planned, p.Token); err != nil {
			t.Error(err)
		}
	})
}

// TestStartIsRefused: a plan that no longer matches, one of nothing, one that is all refusals, and no reason.
func TestStartIsRefused(t *testing.T) {
	discardFirst := func(f *fixture, _ *bulk.Command) {
		items, _, err := f.Reviews.List(f.t.Context(), journal.DeadLetterFilter{}, "", 1)
		if err == nil {
			_, err = f.Reviews.Discard(f.t.Context(), review.Command{ID: items[0].ID, Reason: "r", By: "jose"})
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name    string
		n       int
		retries int
		change  func(f *fixture, c *bulk.Command)
		code    review.Code
		message string
	}{
		{"fewer are left", 4, 0, func(f *fixture, c *bulk.Command) { discardFirst(f, c); f.die(4, 2, badPassword, 0) }, bulk.PlanOutdated,
			"4 dead letters were planned, 3 of those are open now, and 2 came since"},
		{"nothing", 0, 0, nil, bulk.NothingToDo, "no open dead letter"},
		{"all refused", 3, 5, nil, bulk.NothingToDo, "max_retries_exceeded"},
		{"no reason", 1, 0, func(_ *fixture, c *bulk.Command) { c.Reason = " \t" }, review.ReasonRequired, "reason"},
		{"a long reason", 1, 0, func(_ *fixture, c *bulk.Command) { c.Reason = strings.Repeat("ã", 501) }, review.ReasonTooLong, "500"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				f.die(0, test.n, badPassword, test.retries)
				c := retry(journal.DeadLetterFilter{})
				p := f.plan(c)
				if test.change != nil {
					test.change(f, &c)
				}
				_, _, err := f.Bulk.Start(f.t.Context(), c, p.Token)
				if message := refused(f.t, "start", err, test.code); !strings.Contains(message, test.message) {
					t.Errorf("refused with %q, want %q in it", message, test.message)
				}
			})
		})
	}
}

// TestSteps: what the run's state does not allow is told with since when, and by whom.
func TestSteps(t *testing.T) {
	bubble(t, func(f *fixture) {
		t := f.t
		run := f.begin(1, 60)
		for _, test := range []struct {
			step    func(context.Context, string, string) (journal.BulkRun, error)
			state   journal.BulkState
			refused string
		}{
			{f.Bulk.Pause, journal.BulkPaused, ""},
			{f.Bulk.Pause, "", "the run is paused since 2000-01-01T00:00:00Z by jose; pause needs one that is preparing or running"},
			{f.Bulk.Resume, journal.BulkPreparing, ""},
			{f.Bulk.Cancel, journal.BulkCancelled, ""},
			{f.Bulk.Cancel, "", "the run is cancelled since 2000-01-01T00:00:00Z by jose; cancel needs one that is preparing, running or paused"},
		} {
			done, err := test.step(t.Context(), run, "jose")
			if test.refused != "" {
				want(t, "refused", refused(t, test.refused, err, bulk.InvalidRunState), test.refused)
			} else if err != nil || done.State != test.state || done.ChangedBy != "jose" {
				t.Errorf("the run is %+v (%v), want %s", done, err, test.state)
			}
			for _, id := range []string{"", "x", "0190c7a0-0000-7000-8000-000000000002"} {
				_, err := test.step(t.Context(), id, "maria")
				refused(t, id, err, bulk.RunNotFound)
			}
		}
	})
}

func TestLists(t *testing.T) {
	bubble(t, func(f *fixture) {
		t := f.t
		run := f.begin(10, 60)
		f.Gather(run)
		for _, limit := range []int{-1, 201} {
			_, _, err := f.Bulk.Runs(t.Context(), "", limit)
			refused(t, "runs", err, review.InvalidLimit)
			_, err = f.Bulk.Items(t.Context(), run, "", 0, limit)
			refused(t, "items", err, review.InvalidLimit)
		}
		_, _, err := f.Bulk.Runs(t.Context(), "?", 1)
		refused(t, "cursor", err, review.InvalidCursor)
		items, err := f.Bulk.Items(t.Context(), run, journal.BulkPlanned, 7, 2)
		if err != nil || len(items) != 2 || items[0].Number != 8 {
			t.Errorf("items are %+v (%v)", items, err)
		}
		_, err = f.Bulk.Items(t.Context(), run, "lost", 0, 1)
		refused(t, "outcome", err, bulk.InvalidOutcome)
		_, err = f.Bulk.Items(t.Context(), run, "", -1, 1)
		refused(t, "after", err, review.InvalidCursor)
		for _, id := range []string{"", "x", "0190c7a0-0000-7000-8000-000000000002"} {
			_, err = f.Bulk.Items(t.Context(), id, "", 0, 1)
			refused(t, "items of nothing", err, bulk.RunNotFound)
			_, err = f.Bulk.Run(t.Context(), id)
			refused(t, "nothing", err, bulk.RunNotFound)
		}
	})
}

// TestStoreErrorsAreNoRefusals: what is not known is not told as if it were.
func TestStoreErrorsAreNoRefusals(t *testing.T) {
	bubble(t, func(f *fixture) {
		t := f.t
		run := f.begin(5, 60)
		p := f.plan(retry(journal.DeadLetterFilter{}))
		f.Memory.SetDown(true)
		for what, ask := range map[string]func() error{
			"plan": func() error { _, err := f.Bulk.Plan(t.Context(), retry(journal.DeadLetterFilter{})); return err },
			"start": func() error {
				_, _, err := f.Bulk.Start(t.Context(), retry(journal.DeadLetterFilter{}), p.Token)
				return err
			},
			"run":   func() error { _, err := f.Bulk.Run(t.Context(), run); return err },
			"runs":  func() error { _, _, err := f.Bulk.Runs(t.Context(), "", 1); return err },
			"items": func() error { _, err := f.Bulk.Items(t.Context(), run, "", 0, 1); return err },
		} {
			if _, ok := errors.AsType[*journal.StoreError](ask()); !ok || review.Refused(ask()) != nil {
				t.Errorf("%s: %v, want the store's error", what, ask())
			}
		}
		if _, err := f.Bulk.Pause(t.Context(), run, "maria"); !errors.Is(err, journal.ErrUnavailable) || review.Refused(err) != nil {
			t.Errorf("pause: %v, want the journal's error", err)
		}
		f.Memory.SetDown(false)
	})
}
