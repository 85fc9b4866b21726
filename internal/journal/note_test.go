package journal_test

import (
	"errors"
	"testing"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestUndoIsOfItsDecision: what undoes a decision that is no more lets the one stand that somebody made since.
func TestUndoIsOfItsDecision(t *testing.T) {
	f := testkit.New(t)
	id := f.DieWaiting("tiss-submission", "CLM-1-1", "DUPLICATE_CLAIM", 0)
	note := func(n journal.Note) journal.Later {
		n.Subject, n.DeadLetter, n.By = testkit.Subject("tiss-submission", "CLM-1-1"), id, "ana"
		d, err := f.Journal.Note(t.Context(), &n)
		testkit.Must(t, err)
		return d.Later
	}
	first := note(journal.Note{Verb: journal.DiscardLater, Text: "x"})
	note(journal.Note{Verb: journal.Undo})
	second := note(journal.Note{Verb: journal.DiscardLater, Text: "x"})
	for _, undoes := range []struct{ record, stands int64 }{{first.Record, second.Record}, {second.Record, 0}} {
		if left := note(journal.Note{Verb: journal.Undo, Undoes: undoes.record}); left.Record != undoes.stands {
			t.Errorf("what undoes %d leaves %d, want %d", undoes.record, left.Record, undoes.stands)
		}
	}
}

// TestAssignmentReplacesTheOneSeen: who gives away what another has taken since is told so.
func TestAssignmentReplacesTheOneSeen(t *testing.T) {
	f := testkit.New(t)
	id := f.DieWaiting("tiss-submission", "CLM-1-1", "DUPLICATE_CLAIM", 0)
	assign := func(to string, replaces int64) (journal.Assignment, error) {
		d, err := f.Journal.Note(t.Context(), &journal.Note{Subject: testkit.Subject("tiss-submission", "CLM-1-1"), DeadLetter: id,
			Verb: journal.Assign, By: "ana", Assignee: to, Replaces: replaces})
		return d.Assigned, err
	}
	seen, err := assign("bia", 0)
	testkit.Must(t, err)
	_, err = assign("caio", 0)
	testkit.Must(t, err)
	if _, err := assign("davi", seen.Record); !errors.Is(err, journal.ErrReassigned) {
		t.Errorf("got %v, want that somebody else has it", err)
	}
}

// TestOneDecisionAtATime: who asks for the same again, as by two clicks, gets what was asked for first; who asks for something else
// meanwhile is not told that it will be so.
func TestOneDecisionAtATime(t *testing.T) {
	f := testkit.New(t)
	id, of := f.DieWaiting("tiss-submission", "CLM-1-1", "DUPLICATE_CLAIM", 0), testkit.Subject("tiss-submission", "CLM-1-1")
	retry := func(when string, deadline time.Time) (journal.Later, error) {
		r := &journal.Review{Subject: of, DeadLetter: id, RetryOptions: journal.RetryOptions{When: when, Deadline: deadline}, Reason: "x", By: "ana"}
		d, err := f.Journal.Note(t.Context(), &journal.Note{Subject: of, DeadLetter: id, Verb: journal.RetryLater, Text: "x", By: "ana", Retry: r})
		return d.Later, err
	}
	due := f.Now().Add(time.Hour)
	first, err := retry("backoff", due)
	testkit.Must(t, err)
	if again, err := retry("backoff", due); err != nil || again.Record != first.Record {
		t.Errorf("asked for again, it is %+v, %v; want the first", again, err)
	}
	for when, deadline := range map[string]time.Time{"now": due, "backoff": due.Add(time.Hour)} {
		if _, err := retry(when, deadline); journal.CodeOf(err) != journal.InvalidRetryState {
			t.Errorf("%s with the deadline %s: %v, want that another is decided", when, deadline, err)
		}
	}
}
