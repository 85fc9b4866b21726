package main

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/store"
)

func small() settings {
	return settings{
		stores: []string{"sqlite"}, attempts: 3000, rounds: 1,
		flood: 30 * time.Millisecond, paced: 30 * time.Millisecond, replay: 500, letters: 400,
	}
}

func unprofiled(do func() error) error { return do() }

// TestMixIsTheStubGateways holds what claims fail with against the shares that the table's text names.
func TestMixIsTheStubGateways(t *testing.T) {
	got := map[decision.Outcome]float64{}
	attempts, firsts := 0.0, 20_000.0
	ids := map[string]bool{}
	for n := range int64(firsts) {
		c := claim{number: n + 1}
		ids[c.id()] = true
		for failures, _ := c.end(); c.failed < failures; c.failed++ {
			got[c.next()]++
			attempts++
		}
	}
	for outcome, want := range map[decision.Outcome]float64{decision.Retry: 77, decision.PermanentError: 15, decision.MaxRetriesExceeded: 8} {
		if share := 100 * got[outcome] / attempts; math.Abs(share-want) > 1 {
			t.Errorf("%s is %.1f %% of the failures, expected about %v", outcome, share, want)
		}
	}
	if share := 100 * firsts / attempts; math.Abs(share-firstFailures) > 1 {
		t.Errorf("%.1f %% are first failures, expected about %d", share, firstFailures)
	}
	if len(ids) != int(firsts) {
		t.Errorf("%v claims have %d ids", firsts, len(ids))
	}
}

// TestFillIsWhatTheJournalWrites fills one journal, and has another record the same failures one by one: what is
// remembered of a claim is the same in both.
func TestFillIsWhatTheJournalWrites(t *testing.T) {
	ctx := t.Context()
	filledStore, ownStore := open(t), open(t)
	portal, err := newPortal()
	if err != nil {
		t.Fatal(err)
	}
	f, err := fill(ctx, filledStore, newSource(portal, 0), 3000)
	if err != nil {
		t.Fatal(err)
	}
	if f.attempts < 3000 {
		t.Errorf("%d attempts, expected 3000 or more", f.attempts)
	}
	own := newSession(ctx, ownStore, noServer)
	defer own.end()
	dead := 0
	for n := range int64(100) {
		c := claim{number: n + 1}
		var s journal.Subject
		for ; c.failed < (claim{number: c.number}).filled(); c.failed++ {
			a, err := portal.failure(c)
			if err != nil {
				t.Fatal(err)
			}
			s = a.Subject
			if err := own.do(ctx, task{c, a}); err != nil {
				t.Fatal(err)
			}
		}
		got, want := remembered(t, filledStore, s), remembered(t, ownStore, s)
		dead += len(want.DeadLetters)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("claim %d was filled as\n%+v\nthe journal itself has\n%+v", c.number, got, want)
		}
	}
	if dead == 0 {
		t.Error("no dead letter was compared")
	}
}

func open(t *testing.T) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// remembered is what a journal has of a subject, without what differs from one time to another: instants, keys
// and what is made of them.
func remembered(t *testing.T, from store.Store, s journal.Subject) journal.Story {
	t.Helper()
	story, known, err := from.Story(t.Context(), s)
	if err != nil || !known {
		t.Fatalf("the story of %s: known %t, %v", s.ID, known, err)
	}
	var none time.Time
	for i := range story.Attempts {
		a := &story.Attempts[i]
		a.Record, a.Identity, a.JobKey, a.ElementInstanceKey, a.Took, a.ReceivedAt = 0, journal.Identity{}, 0, 0, 0, none
		a.DeadLetter = shape(a.DeadLetter)
		a.Decision.AnalysedAt, a.Decision.NextRetryTime, a.Decision.FirstFailure = none, none, none
	}
	for i := range story.Episodes {
		e := &story.Episodes[i]
		e.FirstFailure, e.OpenedAt, e.NextRetryTime, e.DeadLetter = none, none, none, shape(e.DeadLetter)
	}
	for i := range story.DeadLetters {
		d := &story.DeadLetters[i]
		d.ID, d.Record, d.CreatedAt, d.ChangedAt = shape(d.ID), 0, none, none
	}
	return story
}

// shape is a dead letter's id without its digits.
func shape(id string) string { return regexp.MustCompile(`[0-9a-f]`).ReplaceAllString(id, "x") }

// TestRunPrintsEveryFigure runs all of it, small, and looks for its files afterwards.
func TestRunPrintsEveryFigure(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out, progress strings.Builder
	if err := small().run(t.Context(), &out, &progress, unprofiled); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`\| 200 \| [\d,]+ \(`, `\| SQLite \| [\d,]+, [\d,]+, [\d,]+; `, `young journal \| 2,500 \| [\d.]+ `,
		`SQLite, CPU of the process \| \d+ µs \| \d+ µs \| \d+\.\d\d `, `\| SQLite \| [\d,]{5,} \| [\d,]+ \| [1-9]\d\d `,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no line is like %s in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "NaN") || strings.Contains(out.String(), "Inf") {
		t.Errorf("a figure is none:\n%s", &out)
	}
	leavesNothing(t)
}

// TestInterruptedRunLeavesNothing ends while the journal is filled.
func TestInterruptedRunLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	s := small()
	s.attempts = 1 << 40
	var out, progress strings.Builder
	err := s.run(ctx, &out, &progress, func(do func() error) error {
		time.AfterFunc(50*time.Millisecond, interrupt)
		return do()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted run ends with %v", err)
	}
	leavesNothing(t)
}

func leavesNothing(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}
