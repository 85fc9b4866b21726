package guard_test

import (
	"context"
	"errors"
	"testing"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
)

// letters takes notes, and counts them.
type letters struct {
	guard.DeadLetters
	n int
}

func (*letters) Show(context.Context, string) (i deadletter.Item, err error) { return i, nil }
func (l *letters) Note(context.Context, deadletter.Command, journal.NoteVerb) (i deadletter.Item, err error) {
	l.n++
	return i, nil
}

// TestNoteTakesWhatItsDecisionTakes: a ladder begins anew by an admin alone, though the decision can be undone. The pages ask that
// before, too: no request finds out that the guard does not.
func TestNoteTakesWhatItsDecisionTakes(t *testing.T) {
	for _, tt := range []struct {
		role  access.Role
		verb  journal.NoteVerb
		fresh bool
		takes int
	}{
		{access.Operator, journal.RetryLater, false, 1},
		{access.Operator, journal.RetryLater, true, 0},
		{access.Admin, journal.RetryLater, true, 1},
		{access.Viewer, journal.Comment, false, 0},
	} {
		l := &letters{}
		g := guard.New(guard.Services{DeadLetters: l})
		ctx := access.Within(t.Context(), access.Identity{Name: "ana", Role: tt.role})
		_, err := g.Note(ctx, deadletter.Command{RetryOptions: journal.RetryOptions{Fresh: tt.fresh}}, tt.verb)
		if _, refused := errors.AsType[*access.Refusal](err); l.n != tt.takes || refused != (tt.takes == 0) {
			t.Errorf("a note to %s (fresh: %t) of the role %s is taken %d times (%v)", tt.verb, tt.fresh, tt.role, l.n, err)
		}
	}
}
