package journal_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

func aRun(id string) journal.BulkRun {
	return journal.BulkRun{ID: id, Through: 7, BulkCommand: journal.BulkCommand{Action: journal.BulkRetry,
		Filter: journal.DeadLetterFilter{Team: "ti", Query: "CPF 529.982.247-25 expirada"}, Reason: "credencial de 529.982.247-25 corrigida", Force: true, PerMinute: 60}}
}

func (c *clinic) step(verb journal.BulkVerb, r journal.BulkRun) (journal.BulkRun, error) {
	c.now = c.now.Add(time.Minute)
	return c.j.Bulk(c.t.Context(), &journal.BulkStep{Verb: verb, Run: r, Items: testkit.Open(c.t, c.store, r.Filter, r.Through), By: "ana"})
}

// TestBulkSteps: which step is possible in which state, and what it leads to.
func TestBulkSteps(t *testing.T) {
	const refused = journal.BulkState("")
	ways := map[journal.BulkState][]journal.BulkVerb{
		journal.BulkRunning: {}, journal.BulkPaused: {journal.BulkPause}, journal.BulkCancelled: {journal.BulkCancel}, journal.BulkDone: {journal.BulkFinish},
	}
	for _, tt := range []struct {
		state                         journal.BulkState
		pause, resume, cancel, finish journal.BulkState
	}{
		{journal.BulkRunning, journal.BulkPaused, refused, journal.BulkCancelled, journal.BulkDone},
		{journal.BulkPaused, refused, journal.BulkRunning, journal.BulkCancelled, refused},
		{journal.BulkCancelled, refused, refused, refused, refused},
		{journal.BulkDone, refused, refused, refused, refused},
	} {
		for verb, want := range map[journal.BulkVerb]journal.BulkState{journal.BulkPause: tt.pause, journal.BulkResume: tt.resume,
			journal.BulkCancel: tt.cancel, journal.BulkFinish: tt.finish, journal.BulkStart: refused} {
			c := openClinic(t)
			_, err := c.step(journal.BulkStart, aRun("run"))
			testkit.Must(t, err)
			for _, v := range ways[tt.state] {
				_, err := c.step(v, journal.BulkRun{ID: "run"})
				testkit.Must(t, err)
			}
			before, _, _ := c.store.BulkRun(t.Context(), "run")
			if before.State != tt.state {
				t.Fatalf("the run is %s, want %s", before.State, tt.state)
			}
			run := journal.BulkRun{ID: "run"}
			if verb == journal.BulkStart {
				run = aRun("run")
			}
			got, err := c.step(verb, run)
			kept, _, _ := c.store.BulkRun(t.Context(), "run")
			switch {
			case want != refused && (err != nil || got.State != want || kept.State != want):
				t.Errorf("%s of a run that is %s: %s, kept %s (%v), want %s", verb, tt.state, got.State, kept.State, err, want)
			case want == refused && (journal.CodeOf(err) != journal.InvalidRunState || kept.State != tt.state || !strings.Contains(err.Error(), string(tt.state))):
				t.Errorf("%s of a run that is %s: %s (%v)", verb, tt.state, kept.State, err)
			case want == journal.BulkCancelled || want == journal.BulkDone:
				if !kept.EndedAt.Equal(c.now) {
					t.Errorf("%s: it ended at %s, want %s", verb, kept.EndedAt, c.now)
				}
			}
		}
	}
}

// TestBulkAudit: each step is one entry that says who did what, with nothing personal in it and of no subject.
func TestBulkAudit(t *testing.T) {
	c := openClinic(t)
	started, err := c.step(journal.BulkStart, aRun("run"))
	if err != nil || strings.Contains(started.Reason, "529") || started.By != "ana" || !started.CreatedAt.Equal(c.now) {
		t.Fatalf("%+v (%v)", started, err)
	}
	_, err = c.step(journal.BulkPause, journal.BulkRun{ID: "run"})
	testkit.Must(t, err)
	entries := c.store.Entries()
	if len(entries) != 2 {
		t.Fatalf("%d entries were made, want 2", len(entries))
	}
	for i, verb := range []string{"start", "pause"} {
		e := entries[i]
		var body map[string]any
		testkit.Must(t, json.Unmarshal([]byte(e.Body), &body))
		if e.Kind != journal.BulkEntry || e.Subject != (journal.Subject{}) || body["bulkRun"] != "run" || body["verb"] != verb || body["by"] != "ana" || strings.Contains(e.Body, "529") {
			t.Errorf("the entry of a %s is %s of %+v: %s", verb, e.Kind, e.Subject, e.Body)
		}
	}
	for _, want := range []string{`"team":"ti"`, `"perMinute":60`, `"forceRetry":true`, `corrigida`, `"through":7`} {
		if !strings.Contains(entries[0].Body, want) {
			t.Errorf("the start does not say %s: %s", want, entries[0].Body)
		}
	}
}

// TestBulkOutcomes: what becomes of a run's dead letter, and how it is counted.
func TestBulkOutcomes(t *testing.T) {
	const id = "CLM-a-1"
	answer := func(taken bool) func(c *clinic) {
		return func(c *clinic) {
			testkit.Must(c.t, c.j.Delivered(c.t.Context(), onlyAnswer(c.t, c.store), taken))
		}
	}
	fails := func(text string, after time.Duration) func(c *clinic) {
		return func(c *clinic) { c.now = c.now.Add(after); c.fails(id, text, 1) }
	}
	again := func(c *clinic) { c.waits(id, onlyLetter(c, id).ID) }
	type counts = map[journal.DeadLetterState]int64
	const open, reprocessing, discarded, superseded = journal.DeadLetterOpen, journal.DeadLetterReprocessing,
		journal.DeadLetterDiscarded, journal.DeadLetterSuperseded
	for _, tt := range []struct {
		action journal.BulkAction
		steps  []func(c *clinic)
		want   journal.BulkOutcome
		counts counts
	}{
		{journal.BulkRetry, nil, journal.BulkDecided, counts{reprocessing: 1}},
		{journal.BulkRetry, []func(c *clinic){answer(true)}, journal.BulkTaken, counts{reprocessing: 1}},
		{journal.BulkRetry, []func(c *clinic){answer(false)}, journal.BulkNobody, counts{open: 1}},
		{journal.BulkRetry, []func(c *clinic){answer(false), again}, journal.BulkNobody, counts{open: 1}},
		{journal.BulkRetry, []func(c *clinic){fails("TIMEOUT", 0)}, journal.BulkTaken, counts{reprocessing: 1}},
		{journal.BulkRetry, []func(c *clinic){fails("DUPLICATE_CLAIM", 0)}, journal.BulkDeadAgain, counts{superseded: 1, open: 1}},
		{journal.BulkRetry, []func(c *clinic){fails("TIMEOUT", 99*time.Hour)}, journal.BulkSuperseded, counts{superseded: 1}},
		{journal.BulkRetry, []func(c *clinic){answer(true), func(c *clinic) { c.succeeds(id) }}, journal.BulkRecovered,
			counts{journal.DeadLetterRecovered: 1}},
		{journal.BulkDiscard, nil, journal.BulkDecided, counts{discarded: 1}},
		{journal.BulkDiscard, []func(c *clinic){answer(true)}, journal.BulkDiscarded, counts{discarded: 1}},
		{journal.BulkDiscard, []func(c *clinic){answer(false)}, journal.BulkNobody, counts{discarded: 1}},
	} {
		c := openClinic(t)
		c.fails(id, "DUPLICATE_CLAIM", 0)
		letter := onlyLetter(c, id).ID
		c.waits(id, letter)
		run := journal.BulkRun{ID: "run", Through: 99, BulkCommand: journal.BulkCommand{Action: tt.action, Reason: "r", PerMinute: 60}}
		_, err := c.step(journal.BulkStart, run)
		testkit.Must(t, err)
		review := journal.Review{Subject: c.subject(id), DeadLetter: letter, Discard: tt.action == journal.BulkDiscard, Reason: "r", By: "ana", Run: run.ID}
		_, err = c.j.Review(t.Context(), &review)
		testkit.Must(t, err)
		if note := onlyLetter(c, id).Review; note.Discard != review.Discard {
			t.Errorf("noted is %+v", note)
		}
		for _, step := range tt.steps {
			step(c)
		}
		items, err := c.store.BulkItems(t.Context(), run.ID, "", 0, 10)
		testkit.Must(t, err)
		if len(items) != 1 || items[0].Outcome != tt.want {
			t.Errorf("%s, want %s: %+v", tt.action, tt.want, items)
		}
		c.wantDeadLetters(tt.counts)
		closed := map[journal.SumName]int64{}
		for _, sum := range c.sums() {
			closed[sum.Name] += sum.N
		}
		if closed[journal.SumClosed] != 1 || closed[journal.SumExhausted] != 0 {
			t.Errorf("%s, %s: an episode that had died ended %d times", tt.action, tt.want, closed[journal.SumClosed])
		}
	}
}

// onlyLetter is the dead letter of a claim that has one.
func onlyLetter(c *clinic, id string) *journal.DeadLetter {
	story, _, err := c.store.Story(c.t.Context(), c.subject(id))
	if err != nil || len(story.DeadLetters) != 1 {
		c.t.Fatalf("%+v (%v)", story.DeadLetters, err)
	}
	return &story.DeadLetters[0]
}
