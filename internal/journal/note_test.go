package journal_test

import (
	"testing"

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
