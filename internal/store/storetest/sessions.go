package storetest

import (
	"testing"

	"retry-worker/internal/testkit"
)

// testSessions: a session that has ended stays ended until it expires; ending it again is no error.
func testSessions(t *testing.T, s Store) {
	a, b := [32]byte{1}, [32]byte{2}
	for _, step := range []struct {
		id         [32]byte
		until, now int64
		a, b       bool
	}{{a, 100, 0, true, false}, {a, 100, 10, true, false}, {b, 200, 99, true, true}, {b, 200, 100, false, true}} {
		testkit.Must(t, s.EndSession(t.Context(), step.id, at(step.until), at(step.now)))
		for id, want := range map[[32]byte]bool{a: step.a, b: step.b, {3}: false} {
			if got, err := s.SessionEnded(t.Context(), id); err != nil || got != want {
				t.Errorf("at %d: session %d has ended: %t (%v), want %t", step.now, id[0], got, err, want)
			}
		}
	}
}
