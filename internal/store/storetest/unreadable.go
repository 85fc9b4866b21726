package storetest

import (
	"errors"
	"strings"
	"testing"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// RunUnreadable plays a record that cannot be read, whose body is each of bodies: it is named, its subject is refused, and
// others go on.
func RunUnreadable(t *testing.T, s Store, exec func(statements ...string), bodies ...string) {
	w := newBulkWorld(t, s)
	hooks := journal.NoHooks()
	hooks.Open = func(open bool, reason error) { t.Errorf("the journal is open: %t (%v)", open, reason) }
	w.j = journal.New(s, w.Now, nil, hooks)
	testkit.RunJournal(t, w.j)
	w.die("CLM-1-1", 1)
	w.die("CLM-2-1", 2)
	for i, body := range bodies {
		exec("UPDATE records SET body = '" + body + "' WHERE record = 1")
		_, err := audit.Verify(t.Context(), s, audit.VerifyOptions{}, nil)
		if broken, ok := errors.AsType[*audit.Broken](err); !ok || broken.What != "record" || broken.Number != 1 {
			t.Errorf("%s: verify says %v", body, err)
		}
		err = transact(t.Context(), s, []journal.Lookup{{Subject: subject("CLM-2-1")}, {Subject: subject("CLM-1-1"), Identity: identity()}},
			func(*transaction) { t.Error("what cannot be read is decided on") })
		wantKind(t, err, journal.Invalid)
		for _, other := range []string{"CLM-1-1", "CLM-2-1"} {
			_, err := w.analyze(other, int64(10+i), "DUPLICATE_CLAIM", 0)
			if refused := errors.Is(err, journal.ErrInvalid) && errors.Is(err, journal.ErrUnreadable); refused != (other == "CLM-1-1") || !refused && err != nil {
				t.Errorf("%s: %s gets %v", body, other, err)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is not one line", err)
			}
		}
	}
	first, err := s.Records(t.Context(), journal.RecordFilter{Subject: subject("CLM-2-1")}, 0, 1)
	testkit.Must(t, err)
	exec("UPDATE dead_letters SET body = '7'")
	_, _, err = s.DeadLetter(t.Context(), first[0].Attempt.DeadLetter)
	if wantKind(t, err, journal.Invalid); !errors.Is(err, journal.ErrUnreadable) {
		t.Errorf("a dead letter that cannot be read: %v", err)
	}
	if all, _, err := s.DeadLetterPage(t.Context(), journal.DeadLetterFilter{}, "", 10); err == nil {
		t.Errorf("a dead letter that cannot be read is listed: %+v", all)
	}
}
