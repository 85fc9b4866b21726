package console_test

import (
	"fmt"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
)

// The page of what was learnt says it in words, as a picture with a table behind it, and cause by cause.
func TestWhatWasLearnt(t *testing.T) {
	w := newWorld(t, now)
	s := open(t, w)
	for n := range 60 {
		id := fmt.Sprintf("CLM-%03d-1", n)
		for count := 0; ; count++ {
			a := w.Fail(decision.DefaultPolicy, id, "setor 7 aguarda o auditor", count)
			if !a.Decision.ShouldRetry() {
				break
			}
			w.Set(a.Decision.NextRetryTime)
		}
		if n%10 == 9 {
			testkit.Must(t, w.Learner.Refresh(t.Context(), w.Policies(), w.Now()))
		}
	}
	s.hold("learning", "/learning")
}
