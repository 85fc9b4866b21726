package deadletter_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestPlan: what would be decided and what not, and why, as deadletter.Service would find it one by one.
func TestPlan(t *testing.T) {
	alone := func(f *fixture) { f.Die(tiss, claim(0), badPassword, 0) }
	waiting := func(f *fixture) { f.die(0, 1, badPassword, 0) }
	atLimit := func(f *fixture) { f.die(0, 1, "TIMEOUT", 5) }
	late := func(f *fixture) { f.Due = time.Now().Add(time.Second); waiting(f) }
	gone := func(f *fixture) { // its process was away when it was decided on
		id := f.DieWaiting(tiss, claim(0), badPassword, 0)
		_, err := f.DeadLetters.Decide(f.t.Context(), deadletter.Command{Action: journal.BulkRetry, ID: id, Reason: "r", By: "ana"})
		testkit.Must(f.t, err)
		f.Deliver(false)
		f.SetEngineUp(time.Time{})
	}
	discard := func(c *journal.BulkCommand) { c.Action = journal.BulkDiscard }
	for _, test := range []struct {
		name    string
		happens func(*fixture)
		after   time.Duration
		change  func(*journal.BulkCommand)
		code    journal.Code
		message string
	}{
		{name: "a process waits", happens: waiting},
		{name: "at the limit", happens: atLimit, code: journal.MaxRetriesExceeded, message: "forceRetry"},
		{name: "at the limit, forced", happens: atLimit, change: func(c *journal.BulkCommand) { c.Force = true }},
		{name: "late", happens: late, after: time.Second, code: journal.DeadlineMissed, message: "forceRetry"},
		{name: "late, forced", happens: late, after: time.Second, change: func(c *journal.BulkCommand) { c.Force = true }},
		{name: "not come, long ago", happens: alone, after: deadletter.ExpectedFor + time.Millisecond, code: journal.InvalidRetryState, message: "no process waits"},
		{name: "not come, born just now", happens: alone, after: deadletter.ExpectedFor - time.Millisecond, code: journal.InvalidRetryState, message: "not come"},
		{name: "not come, the engine is down", happens: func(f *fixture) { alone(f); f.SetEngineUp(time.Time{}) }, after: time.Hour, code: journal.InvalidRetryState, message: "not come"},
		{name: "not come, the engine is just back", happens: func(f *fixture) { alone(f); f.SetEngineUp(time.Now().Add(time.Hour)) }, after: time.Hour + time.Second,
			code: journal.InvalidRetryState, message: "not come"},
		{name: "gone", happens: gone, code: journal.InvalidRetryState, message: "no process waits"},
		{name: "of a policy that is gone", happens: func(f *fixture) { waiting(f); f.SetPolicies(nil) }, code: deadletter.PolicyNotFound, message: tiss},
		{name: "of a policy that is gone, now", happens: func(f *fixture) { waiting(f); f.SetPolicies(nil) }, change: func(c *journal.BulkCommand) { c.When = deadletter.Now }},
		{name: "discarded, though nobody waits", happens: gone, change: discard},
		{name: "accepted, and nobody waits", happens: gone, change: func(c *journal.BulkCommand) { c.Action = journal.BulkAccept },
			code: journal.InvalidRetryState, message: "no process waits"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				test.happens(f)
				time.Sleep(test.after)
				c := retryAll(journal.DeadLetterFilter{})
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
				want(f.t, "refused", p.Refused[0].Count, 1)
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
		later := time.Now()
		f.die(3, 20, badPassword, 0)
		f.die(23, 2, badPassword, 5)
		newest := time.Now()
		p := f.plan(retryAll(journal.DeadLetterFilter{State: "all", Query: "  CLM- "}))
		want(t, "planned", fmt.Sprint(p.Total, p.Ready, p.Takes), fmt.Sprint(25, 23, 23*time.Second))
		want(t, "refused", fmt.Sprintf("%d %s %d", len(p.Refused), p.Refused[0].Code, p.Refused[0].Count), "1 max_retries_exceeded 2")
		want(t, "tallies", fmt.Sprint(p.Tallies), fmt.Sprint([]deadletter.ReadyCount{{Policy: tiss, Team: "ti", Reason: "INVALID_CREDENTIALS", Count: 20}, {Policy: tiss, Team: "faturamento", Reason: "DUPLICATE_CLAIM", Count: 3}}))
		want(t, "oldest", p.Oldest.Equal(oldest), true)
		want(t, "newest", p.Newest.Equal(newest), true)
		want(t, "command", p.Command, journal.BulkCommand{Action: journal.BulkRetry, Filter: journal.DeadLetterFilter{Query: "CLM-"}, Reason: "senha corrigida", By: "maria",
			When: deadletter.Backoff, PerMinute: deadletter.DefaultPerMinute})
		byCause := f.plan(retryAll(journal.DeadLetterFilter{Query: "senha"}))
		want(t, "causes", fmt.Sprint(len(byCause.Causes), byCause.Causes[0].N), "1 22")
		if p := f.plan(retryAll(journal.DeadLetterFilter{Since: later})); p.Total != 22 || len(p.Causes) != 1 || p.Causes[0].N != 22 {
			t.Errorf("by age: %d, causes %v; want 22 of one", p.Total, p.Causes)
		}
		runs, _, err := f.DeadLetters.Runs(t.Context(), "", 1)
		if err != nil || len(runs) != 0 {
			t.Errorf("a plan began %v (%v)", runs, err)
		}
	})
}

// TestBadCommands: each is refused with a code of its own, by plan and start alike, before anything is read.
func TestBadCommands(t *testing.T) {
	f := testkit.New(t)
	f.Memory.SetDown(true)
	for code, change := range map[journal.Code][]func(*journal.BulkCommand){
		deadletter.InvalidAction: {
			func(c *journal.BulkCommand) { c.Action = "" },
			func(c *journal.BulkCommand) { c.Action = "burn" },
			func(c *journal.BulkCommand) { c.Action, c.Force = journal.BulkDiscard, true },
			func(c *journal.BulkCommand) { c.Action, c.When = journal.BulkDiscard, deadletter.Now },
		},
		deadletter.InvalidPace:   {func(c *journal.BulkCommand) { c.PerMinute = -1 }, func(c *journal.BulkCommand) { c.PerMinute = journal.MaxPerMinute + 1 }},
		deadletter.InvalidWhen:   {func(c *journal.BulkCommand) { c.When = "later" }},
		deadletter.ForceRequired: {func(c *journal.BulkCommand) { c.Fresh = true }},
		deadletter.InvalidReason: {func(c *journal.BulkCommand) { c.Filter.Reason = "BAD WEATHER" }}, // as TestBadFilters has them
	} {
		for _, wrong := range change {
			c := retryAll(journal.DeadLetterFilter{})
			wrong(&c)
			_, err := f.DeadLetters.Plan(t.Context(), c)
			refused(t, "plan", err, code)
			_, _, err = f.DeadLetters.Start(t.Context(), c, "")
			refused(t, "start", err, code)
		}
	}
}

// TestStart: what was planned is what is recorded; what came since is no reason to refuse.
func TestStart(t *testing.T) {
	bubble(t, func(f *fixture) {
		t := f.t
		f.die(0, 5, badPassword, 0)
		c := retryAll(journal.DeadLetterFilter{Team: "ti"})
		c.Force, c.Fresh, c.When, c.PerMinute = true, true, deadletter.Now, 120
		p, through := f.plan(c), f.Memory.End().Record
		f.die(5, 3, badPassword, 0)
		c.Reason = "  senha corrigida\n"
		run, started, err := f.DeadLetters.Start(t.Context(), c, p.Token)
		if err != nil || !started || !deadletter.IsID(run.ID) {
			t.Fatalf("the run is %q (%v)", run.ID, err)
		}
		want(t, "run", fmt.Sprintf("%+v", run), fmt.Sprintf("%+v", journal.BulkRun{ID: run.ID, Through: through, BulkCommand: journal.BulkCommand{Action: journal.BulkRetry, Filter: c.Filter,
			Reason: "senha corrigida", By: "maria", Force: true, Fresh: true, When: deadletter.Now, PerMinute: 120}, State: journal.BulkRunning, CreatedAt: run.CreatedAt, Begun: run.Begun,
			Total: 5, Counts: map[journal.BulkOutcome]int64{journal.BulkPlanned: 5}}))
		other, _, err := f.DeadLetters.Start(t.Context(), c, f.plan(c).Token)
		if err != nil || other.ID <= run.ID {
			t.Errorf("another run is %q (%v), want an id that sorts behind %q", other.ID, err, run.ID)
		}
	})
}

// TestTooManyForOneRun: a plan of more than a run may have is refused.
func TestTooManyForOneRun(t *testing.T) {
	bubble(t, func(f *fixture) {
		s := deadletter.New(crowded{f.Store}, f.Journal, func() decision.Policies { return nil }, time.Now, f.EngineUp)
		_, err := s.Plan(f.t.Context(), retryAll(journal.DeadLetterFilter{}))
		if r := refused(f.t, "a plan", err, deadletter.InvalidFilter); !strings.Contains(r.Message, "more than 10000") {
			f.t.Error(r)
		}
	})
}

// crowded is a store with more dead letters than a run may have.
type crowded struct{ deadletter.Store }

func (crowded) DeadLettersOpen(_ context.Context, _ journal.DeadLetterFilter, _ int64, limit int) ([]deadletter.Item, int64, error) {
	return make([]deadletter.Item, min(limit, 20_000)), 1, nil
}

// TestTokenIsOfItsCommand: whoever starts something else than he has seen is told.
func TestTokenIsOfItsCommand(t *testing.T) {
	bubble(t, func(f *fixture) {
		t := f.t
		f.die(0, 1, badPassword, 0)
		planned := retryAll(journal.DeadLetterFilter{Team: "ti"})
		p := f.plan(planned)
		for _, change := range []func(*journal.BulkCommand){
			func(c *journal.BulkCommand) { c.Action = journal.BulkDiscard },
			func(c *journal.BulkCommand) { c.Filter.Team = "" },
			func(c *journal.BulkCommand) { c.Filter.Team, c.Filter.Policy = "", "ti" },
			func(c *journal.BulkCommand) { c.Filter.Query = "x" },
			func(c *journal.BulkCommand) { c.Filter.Reason = decision.Reasons()[0] },
			func(c *journal.BulkCommand) { c.Filter.Fingerprint = "0123456789abcdef" },
			func(c *journal.BulkCommand) { c.Filter.Since = time.Now() },
			func(c *journal.BulkCommand) { c.Filter.Until = time.Now() },
			func(c *journal.BulkCommand) { c.Force = true },
			func(c *journal.BulkCommand) { c.Force, c.Fresh = true, true },
			func(c *journal.BulkCommand) { c.When = deadletter.Now },
			func(c *journal.BulkCommand) { c.PerMinute = 61 },
		} {
			c := planned
			change(&c)
			_, _, err := f.DeadLetters.Start(t.Context(), c, p.Token)
			refused(t, fmt.Sprintf("%+v", c), err, deadletter.InvalidPlan)
		}
		for _, token := range []string{"", "x", p.Token + "A", p.Token[:len(p.Token)-1], strings.ToLower(p.Token), "\n" + p.Token} {
			_, _, err := f.DeadLetters.Start(t.Context(), planned, token)
			refused(t, token, err, deadletter.InvalidPlan)
		}
		planned.Reason, planned.By, planned.PerMinute, planned.When = "outra", "jose", deadletter.DefaultPerMinute, deadletter.Backoff // the same, said otherwise
		if _, _, err := f.DeadLetters.Start(t.Context(), planned, p.Token); err != nil {
			t.Error(err)
		}
	})
}

// TestRunTakesTheMostUrgentFirst: what is due within a day, then within three, then the rest.
func TestRunTakesTheMostUrgentFirst(t *testing.T) {
	visit(t, func(f *fixture) {
		for i, hours := range []time.Duration{300, 9, 60, 5} {
			a := f.Analysis(tiss, claim(i), badPassword, 0)
			a.Failure.Deadline = f.Now().Add(hours * time.Hour)
			_, err := f.Journal.Analyze(f.t.Context(), a)
			testkit.Must(f.t, err)
		}
		c := retryAll(journal.DeadLetterFilter{})
		c.Action = journal.BulkDiscard
		items, err := f.DeadLetters.Items(f.t.Context(), f.StartBulk(c), "", 0, 9)
		testkit.Must(f.t, err)
		var got []string
		for _, i := range items {
			got = append(got, i.Subject.ID)
		}
		want(f.t, "order", fmt.Sprint(got), fmt.Sprint([]string{claim(1), claim(3), claim(2), claim(0)}))
	})
}

// TestStartOnOthersIsRefused: as many are left as were planned, but not the same.
func TestStartOnOthersIsRefused(t *testing.T) {
	bubble(t, func(f *fixture) {
		letters := f.die(0, 2, badPassword, 0)
		assign := func(id, to string) {
			_, err := f.DeadLetters.Assign(f.t.Context(), id, journal.Assignment{Assignee: to, Mark: journal.Mark{By: "maria"}})
			testkit.Must(f.t, err)
		}
		assign(letters[0], "ana")
		c := retryAll(journal.DeadLetterFilter{Assignee: "ana"})
		p := f.plan(c)
		assign(letters[0], "")
		assign(letters[1], "ana")
		_, _, err := f.DeadLetters.Start(f.t.Context(), c, p.Token)
		refused(f.t, "start", err, deadletter.PlanOutdated)
	})
}

// TestStartIsRefused: a plan that no longer matches, one of nothing, one that is all refusals, and no reason.
func TestStartIsRefused(t *testing.T) {
	discardFirst := func(f *fixture, _ *journal.BulkCommand) {
		items, _, err := f.DeadLetters.List(f.t.Context(), journal.DeadLetterFilter{}, "", 1)
		if err == nil {
			_, err = f.DeadLetters.Decide(f.t.Context(), deadletter.Command{Action: journal.BulkDiscard, ID: items[0].ID, Reason: "r", By: "jose"})
		}
		testkit.Must(f.t, err)
	}
	for _, test := range []struct {
		name    string
		n       int
		retries int
		change  func(f *fixture, c *journal.BulkCommand)
		code    journal.Code
		message string
	}{
		{"fewer are left", 4, 0, func(f *fixture, c *journal.BulkCommand) { discardFirst(f, c); f.die(4, 2, badPassword, 0) }, deadletter.PlanOutdated,
			"4 dead letters were planned, 3 of those are open now"},
		{"nothing", 0, 0, nil, deadletter.NothingToDo, "no open dead letter"},
		{"all refused", 3, 5, nil, deadletter.NothingToDo, "max_retries_exceeded"},
		{"no reason", 1, 0, func(_ *fixture, c *journal.BulkCommand) { c.Reason = " \t" }, deadletter.ReasonRequired, "reason"},
		{"a long reason", 1, 0, func(_ *fixture, c *journal.BulkCommand) { c.Reason = strings.Repeat("ã", 501) }, deadletter.ReasonTooLong, "500"},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(f *fixture) {
				f.die(0, test.n, badPassword, test.retries)
				c := retryAll(journal.DeadLetterFilter{})
				p := f.plan(c)
				if test.change != nil {
					test.change(f, &c)
				}
				_, _, err := f.DeadLetters.Start(f.t.Context(), c, p.Token)
				if message := refused(f.t, "start", err, test.code).Message; !strings.Contains(message, test.message) {
					t.Errorf("refused with %q, want %q in it", message, test.message)
				}
			})
		})
	}
}

// TestSteps: what the run's state does not allow is told with what would be needed.
func TestSteps(t *testing.T) {
	bubble(t, func(f *fixture) {
		t := f.t
		run := f.begin(1, 60)
		for _, test := range []struct {
			verb    journal.BulkVerb
			state   journal.BulkState
			refused string
		}{
			{journal.BulkPause, journal.BulkPaused, ""},
			{journal.BulkPause, "", "the run is paused; pause needs one that is running"},
			{journal.BulkResume, journal.BulkRunning, ""},
			{journal.BulkCancel, journal.BulkCancelled, ""},
			{journal.BulkCancel, "", "the run is cancelled; cancel needs one that is running or paused"},
		} {
			done, err := f.DeadLetters.Steer(t.Context(), run, test.verb, "jose")
			if test.refused != "" {
				want(t, "refused", refused(t, test.refused, err, journal.InvalidRunState).Message, test.refused)
			} else if err != nil || done.State != test.state || done.ChangedBy != "jose" {
				t.Errorf("the run is %+v (%v), want %s", done, err, test.state)
			}
		}
	})
}
