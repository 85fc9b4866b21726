package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/bulk"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
)

// TestPlan: what would be decided and what not, and why, as review.Service would find it one by one.
func TestPlan(t *testing.T) {
	waits := journal.DeadLetterTally{Policy: tiss, Team: "ti", Reason: "INVALID_CREDENTIALS", Waits: true, N: 5}
	with := func(change func(*journal.DeadLetterTally)) journal.DeadLetterTally {
		t := waits
		change(&t)
		return t
	}
	for _, test := range []struct {
		name    string
		tally   journal.DeadLetterTally
		change  func(*bulk.Command)
		engine  time.Duration
		code    review.Code
		message string
	}{
		{name: "a process waits", tally: waits},
		{name: "at the limit", tally: with(func(t *journal.DeadLetterTally) { t.AtLimit = true }), code: review.MaxRetriesExceeded, message: "forceRetry"},
		{name: "at the limit, forced", tally: with(func(t *journal.DeadLetterTally) { t.AtLimit = true }), change: func(c *bulk.Command) { c.Force = true }},
		{name: "not come, long ago", tally: with(func(t *journal.DeadLetterTally) { t.Waits = false }), code: review.InvalidRetryState, message: "no process waits"},
		{name: "not come, born just now", tally: with(func(t *journal.DeadLetterTally) { t.Waits, t.Recent = false, true }), code: review.InvalidRetryState, message: "not come"},
		{name: "not come, the engine is down", tally: with(func(t *journal.DeadLetterTally) { t.Waits = false }), engine: -1, code: review.InvalidRetryState, message: "not come"},
		{name: "not come, the engine is just back", tally: with(func(t *journal.DeadLetterTally) { t.Waits = false }), engine: time.Second, code: review.InvalidRetryState, message: "not come"},
		{name: "gone", tally: with(func(t *journal.DeadLetterTally) { t.Waits, t.Gone = false, true }), engine: -1, code: review.InvalidRetryState, message: "no process waits"},
		{name: "of a policy that is gone", tally: with(func(t *journal.DeadLetterTally) { t.Policy = "old" }), code: review.PolicyNotFound, message: "old"},
		{name: "of a policy that is gone, now", tally: with(func(t *journal.DeadLetterTally) { t.Policy = "old" }), change: func(c *bulk.Command) { c.When = review.Now }},
		{name: "in another run", tally: with(func(t *journal.DeadLetterTally) { t.Busy = true }), code: bulk.InOtherRun, message: "another"},
		{name: "discarded, though nobody waits", tally: with(func(t *journal.DeadLetterTally) { t.Waits, t.Gone, t.AtLimit = false, true, true }),
			change: func(c *bulk.Command) { c.Action = journal.BulkDiscard }},
		{name: "discarded, in another run", tally: with(func(t *journal.DeadLetterTally) { t.Busy = true }),
			change: func(c *bulk.Command) { c.Action = journal.BulkDiscard }, code: bulk.InOtherRun, message: "another"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := retry(journal.DeadLetterFilter{})
			if test.change != nil {
				test.change(&c)
			}
			if test.engine == 0 {
				test.engine = time.Hour
			}
			p, err := (&shelf{tallies: []journal.DeadLetterTally{test.tally}}).service(test.engine).Plan(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			want(t, "in all", p.Total, 5)
			if test.code == "" {
				want(t, "ready", p.Ready, 5)
				want(t, "refused", len(p.Refused), 0)
				return
			}
			want(t, "ready", p.Ready, 0)
			want(t, "refused", p.Refused[0].N, 5)
			want(t, "as", p.Refused[0].Code, test.code)
			if !strings.Contains(p.Refused[0].Message, test.message) {
				t.Errorf("because %q, want %q in it", p.Refused[0].Message, test.message)
			}
		})
	}
}

// TestPlanAddsUp: sums, ages, how long it takes; the command with everything filled in; what came with it.
func TestPlanAddsUp(t *testing.T) {
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	s := &shelf{tallies: []journal.DeadLetterTally{
		{Policy: tiss, Team: "ti", Reason: "A", Waits: true, N: 100, Oldest: day.Add(time.Hour), Newest: day.Add(9 * time.Hour), Sum: 7},
		{Policy: tiss, Team: "ti", Reason: "A", Waits: true, Recent: true, N: 20, Oldest: day.Add(5 * time.Hour), Newest: day.Add(8 * time.Hour), Sum: 8},
		{Policy: tiss, Team: "ti", Reason: "B", Waits: true, N: 200, Oldest: day, Newest: day, Sum: 9},
		{Policy: tiss, Team: "ti", Reason: "B", Waits: true, AtLimit: true, N: 30, Oldest: day, Newest: day.Add(10 * time.Hour), Sum: 10},
		{Policy: tiss, Team: "ti", Reason: "C", Waits: true, AtLimit: true, N: 3, Oldest: day, Newest: day, Sum: 11},
		{Policy: tiss, Team: "ti", Reason: "C", Busy: true, N: 40, Oldest: day, Newest: day, Sum: 12},
	}}
	p, err := s.service(time.Hour).Plan(t.Context(), retry(journal.DeadLetterFilter{State: "all", Query: "  senha "}))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "in all", p.Total, 393)
	want(t, "ready", p.Ready, 320)
	want(t, "refused", fmt.Sprintf("%d %s %d %s %d", len(p.Refused), p.Refused[0].Code, p.Refused[0].N, p.Refused[1].Code, p.Refused[1].N), "2 in_other_run 40 max_retries_exceeded 33")
	want(t, "tallies", fmt.Sprint(p.Tallies), fmt.Sprint([]bulk.Tally{{Policy: tiss, Team: "ti", Reason: "B", N: 200}, {Policy: tiss, Team: "ti", Reason: "A", N: 120}}))
	want(t, "oldest", p.Oldest, day)
	want(t, "newest", p.Newest, day.Add(10*time.Hour))
	want(t, "takes", p.Takes, 320*time.Second)
	want(t, "pace", p.Command.PerMinute, bulk.DefaultPerMinute)
	want(t, "when", p.Command.When, review.Backoff)
	want(t, "filter", p.Command.Filter, journal.DeadLetterFilter{Query: "senha"})
	want(t, "filter asked for", s.asked[0], journal.DeadLetterFilter{Query: "senha"})
	want(t, "causes", p.Causes[0].N, 7)
	want(t, "steps", len(s.steps), 0)
	s.groups = fmt.Errorf("%w: not by age", journal.ErrBadFilter)
	if p, err = s.service(time.Hour).Plan(t.Context(), retry(journal.DeadLetterFilter{Since: day})); err != nil || p.Causes != nil {
		t.Errorf("by age: %v, causes %v; want none and no error", err, p.Causes)
	}
}

// TestRecentIsAsProcessesAreWaitedFor: the instant that is asked for is review's.
func TestRecentIsAsProcessesAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		if _, err := s.service(time.Hour).Plan(t.Context(), retry(journal.DeadLetterFilter{})); err != nil {
			t.Fatal(err)
		}
		for _, born := range []time.Duration{0, time.Nanosecond} {
			d := &journal.DeadLetter{State: journal.DeadLetterOpen, CreatedAt: s.recent.Add(born)}
			expected := review.ProcessOf(d, time.Now(), time.Now().Add(-time.Hour)) == review.Expected
			want(t, fmt.Sprintf("born %s after it", born), expected, born > 0)
		}
	})
}

// TestBadCommands: each is refused with a code of its own, by plan and start alike, before anything is read.
func TestBadCommands(t *testing.T) {
	now := time.Now()
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
			s := &shelf{}
			c := retry(journal.DeadLetterFilter{})
			wrong(&c)
			_, err := s.service(time.Hour).Plan(t.Context(), c)
			refused(t, "plan", err, code)
			_, err = s.service(time.Hour).Start(t.Context(), c, "")
			refused(t, "start", err, code)
			want(t, "asked", len(s.asked)+len(s.steps), 0)
		}
	}
}

// TestStart: what was planned is what is recorded.
func TestStart(t *testing.T) {
	s := &shelf{tallies: []journal.DeadLetterTally{{Policy: tiss, Waits: true, N: 5, Sum: 1 << 62}, {Policy: tiss, Waits: true, N: 5, Sum: 1 << 62}}}
	c := retry(journal.DeadLetterFilter{Team: "ti", Fingerprint: "0123456789abcdef"})
	c.Force, c.Fresh, c.When, c.PerMinute = true, true, review.Now, 120
	p, err := s.service(time.Hour).Plan(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	s.later = []journal.DeadLetterTally{{Policy: tiss, Waits: true, N: 3, Sum: 5}} // is no reason to refuse
	c.Reason = "  senha corrigida\n"
	run, err := s.service(time.Hour).Start(t.Context(), c, p.Token)
	if err != nil {
		t.Fatal(err)
	}
	if !review.IsID(run.ID) || run.ID != s.steps[0].Run.ID {
		t.Errorf("the run is %q", run.ID)
	}
	want(t, "by", s.steps[0].By, "maria")
	recorded := s.steps[0].Run
	recorded.ID = ""
	want(t, "run", fmt.Sprintf("%+v", recorded), fmt.Sprintf("%+v", journal.BulkRun{Action: journal.BulkRetry, Filter: c.Filter, Through: 100,
		Reason: "senha corrigida", By: "maria", Force: true, Fresh: true, Now: true, PerMinute: 120}))
	again, err := s.service(time.Hour).Start(t.Context(), c, p.Token)
	if err != nil || again.ID <= run.ID {
		t.Errorf("another run is %q (%v), want an id that sorts behind %q", again.ID, err, run.ID)
	}
}

// TestTokenIsOfItsCommand: whoever starts something else than he has seen is told.
func TestTokenIsOfItsCommand(t *testing.T) {
	s := &shelf{tallies: []journal.DeadLetterTally{{Policy: tiss, Waits: true, N: 5, Sum: 9}}}
	planned := retry(journal.DeadLetterFilter{Team: "ti"})
	p, err := s.service(time.Hour).Plan(t.Context(), planned)
	if err != nil {
		t.Fatal(err)
	}
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
		_, err := s.service(time.Hour).Start(t.Context(), c, p.Token)
		refused(t, fmt.Sprintf("%+v", c), err, bulk.InvalidPlan)
	}
	for _, token := range []string{"", "x", p.Token + "A", p.Token[:len(p.Token)-1], strings.ToLower(p.Token), "\n" + p.Token} {
		_, err := s.service(time.Hour).Start(t.Context(), planned, token)
		refused(t, token, err, bulk.InvalidPlan)
	}
	planned.Reason, planned.By, planned.PerMinute, planned.When = "outra", "jose", bulk.DefaultPerMinute, review.Backoff // the same, said otherwise
	if _, err := s.service(time.Hour).Start(t.Context(), planned, p.Token); err != nil {
		t.Error(err)
	}
}

// TestStartIsRefused: a plan that no longer matches, one of nothing, one that is all refusals, and no reason.
func TestStartIsRefused(t *testing.T) {
	waiting := []journal.DeadLetterTally{{Policy: tiss, Waits: true, N: 400, Sum: 9000}}
	for _, test := range []struct {
		name    string
		planned []journal.DeadLetterTally
		change  func(s *shelf, c *bulk.Command)
		code    review.Code
		message string
	}{
		{"fewer are left", waiting, func(s *shelf, _ *bulk.Command) {
			s.tallies = []journal.DeadLetterTally{{Policy: tiss, Waits: true, N: 388, Sum: 8000}}
			s.later = []journal.DeadLetterTally{{Policy: tiss, Waits: true, N: 3, Sum: 5}}
		}, bulk.PlanOutdated, "400 dead letters were planned, 388 of those are open now, and 3 came since"},
		{"others are there", waiting, func(s *shelf, _ *bulk.Command) {
			s.tallies = []journal.DeadLetterTally{{Policy: tiss, Waits: true, N: 400, Sum: 9001}}
		}, bulk.PlanOutdated, "not the same"},
		{"nothing", nil, nil, bulk.NothingToDo, "no open dead letter"},
		{"all refused", []journal.DeadLetterTally{{Policy: tiss, Waits: true, AtLimit: true, N: 7, Sum: 1}}, nil, bulk.NothingToDo, "max_retries_exceeded"},
		{"no reason", waiting, func(_ *shelf, c *bulk.Command) { c.Reason = " \t" }, review.ReasonRequired, "reason"},
		{"a long reason", waiting, func(_ *shelf, c *bulk.Command) { c.Reason = strings.Repeat("ã", 501) }, review.ReasonTooLong, "500"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &shelf{tallies: test.planned}
			c := retry(journal.DeadLetterFilter{})
			p, err := s.service(time.Hour).Plan(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if test.change != nil {
				test.change(s, &c)
			}
			_, err = s.service(time.Hour).Start(t.Context(), c, p.Token)
			if message := refused(t, "start", err, test.code); !strings.Contains(message, test.message) {
				t.Errorf("refused with %q, want %q in it", message, test.message)
			}
			want(t, "steps", len(s.steps), 0)
		})
	}
}

// TestSteps: each goes to the journal with who asked for it; what the run's state does not allow is told with since when.
func TestSteps(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name    string
		run     journal.BulkRun
		step    func(*bulk.Service, context.Context, string, string) (journal.BulkRun, error)
		verb    journal.BulkVerb
		refused string
	}{
		{"pause", journal.BulkRun{State: journal.BulkRunning}, (*bulk.Service).Pause, journal.BulkPause, ""},
		{"resume", journal.BulkRun{State: journal.BulkPaused}, (*bulk.Service).Resume, journal.BulkResume, ""},
		{"cancel", journal.BulkRun{State: journal.BulkPaused}, (*bulk.Service).Cancel, journal.BulkCancel, ""},
		{"pause twice", journal.BulkRun{State: journal.BulkPaused, ChangedBy: "jose", ChangedAt: at}, (*bulk.Service).Pause, journal.BulkPause,
			"the run is paused since 2026-03-01T12:00:00Z by jose; pause needs one that is preparing or running"},
		{"too late", journal.BulkRun{State: journal.BulkDone, EndedAt: at}, (*bulk.Service).Cancel, journal.BulkCancel,
			"the run is done since 2026-03-01T12:00:00Z; cancel needs one that is preparing, running or paused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run.ID = runID
			s := &shelf{run: &test.run}
			run, err := test.step(s.service(time.Hour), t.Context(), runID, "maria")
			want(t, "steps", fmt.Sprintf("%+v", s.steps), fmt.Sprintf("%+v", []journal.BulkStep{{Verb: test.verb, Run: journal.BulkRun{ID: runID}, By: "maria"}}))
			if test.refused != "" {
				want(t, "refused", refused(t, test.name, err, bulk.InvalidRunState), test.refused)
				return
			}
			if err != nil || run.ID != runID {
				t.Errorf("the run is %+v (%v)", run, err)
			}
			for _, id := range []string{"", "x", "0190c7a0-0000-7000-8000-000000000002"} {
				_, err := test.step(s.service(time.Hour), t.Context(), id, "maria")
				refused(t, id, err, bulk.RunNotFound)
			}
		})
	}
}

func TestLists(t *testing.T) {
	s := &shelf{run: &journal.BulkRun{ID: runID}}
	service := s.service(time.Hour)
	runs, next, err := service.Runs(t.Context(), "", 0)
	if err != nil || len(runs) != review.DefaultItems || next != "more" {
		t.Errorf("%d runs, then %q (%v)", len(runs), next, err)
	}
	for _, limit := range []int{-1, 201} {
		_, _, err = service.Runs(t.Context(), "", limit)
		refused(t, "runs", err, review.InvalidLimit)
		_, err = service.Items(t.Context(), runID, "", 0, limit)
		refused(t, "items", err, review.InvalidLimit)
	}
	_, _, err = service.Runs(t.Context(), "?", 1)
	refused(t, "cursor", err, review.InvalidCursor)
	items, err := service.Items(t.Context(), runID, journal.BulkRecovered, 7, 3)
	if err != nil || items[0].Number != 10 {
		t.Errorf("items are %+v (%v)", items, err)
	}
	_, err = service.Items(t.Context(), runID, "lost", 0, 1)
	refused(t, "outcome", err, bulk.InvalidOutcome)
	_, err = service.Items(t.Context(), runID, "", -1, 1)
	refused(t, "after", err, review.InvalidCursor)
	for _, id := range []string{"", "x", "0190c7a0-0000-7000-8000-000000000002"} {
		_, err = service.Items(t.Context(), id, "", 0, 1)
		refused(t, "items of nothing", err, bulk.RunNotFound)
		_, err = service.Run(t.Context(), id)
		refused(t, "nothing", err, bulk.RunNotFound)
	}
}

// TestStoreErrorsAreNoRefusals: what is not known is not told as if it were.
func TestStoreErrorsAreNoRefusals(t *testing.T) {
	good := &shelf{tallies: []journal.DeadLetterTally{{Policy: tiss, Waits: true, N: 5}}}
	p, err := good.service(time.Hour).Plan(t.Context(), retry(journal.DeadLetterFilter{}))
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{run: &journal.BulkRun{ID: runID}, err: &journal.StoreError{Kind: journal.Unavailable, Err: errors.New("no connection")}}
	service := s.service(time.Hour)
	for what, ask := range map[string]func() error{
		"plan": func() error { _, err := service.Plan(t.Context(), retry(journal.DeadLetterFilter{})); return err },
		"start": func() error {
			_, err := service.Start(t.Context(), retry(journal.DeadLetterFilter{}), p.Token)
			return err
		},
		"pause": func() error { _, err := service.Pause(t.Context(), runID, "maria"); return err },
		"run":   func() error { _, err := service.Run(t.Context(), runID); return err },
		"runs":  func() error { _, _, err := service.Runs(t.Context(), "", 1); return err },
		"items": func() error { _, err := service.Items(t.Context(), runID, "", 0, 1); return err },
	} {
		if _, ok := errors.AsType[*journal.StoreError](ask()); !ok || review.Refused(ask()) != nil {
			t.Errorf("%s: %v, want the store's error", what, ask())
		}
	}
}
