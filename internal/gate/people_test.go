package gate_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestGivenUpInTime: while a person holds a portal nothing goes, and a claim is given to a person an hour before its
// deadline passes; the others go when the time is over.
func TestGivenUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(*world) string { return "" })
		w.start()
		defer w.stop()
		time.Sleep(2 * time.Minute)
		hold := journal.DestinationCommand{Verb: journal.HoldClaims, Until: time.Now().Add(6 * time.Hour), Reason: "manutenção", By: "ana"}
		testkit.Must(t, w.replicas[0].gates.Command(t.Context(), portal, hold))
		time.Sleep(time.Minute)
		deadline := time.Now().Add(5 * time.Hour).Truncate(time.Millisecond)
		go w.process("CLM-late-1", deadline)
		w.arrive(3, time.Second)
		for w.all() == 0 {
			time.Sleep(time.Second)
		}
		if left := time.Until(deadline); left < 59*time.Minute || left > time.Hour {
			t.Errorf("given up %s before its deadline", left)
		}
		var told struct {
			ShouldRetry                                     bool
			RetryCount                                      int
			RetryReason, ErrorClassification, OriginalError string
			RetryPolicy, DeadLetterID, ResponsibleTeam      string
		}
		testkit.Must(t, json.Unmarshal([]byte(w.ended["CLM-late-1"]), &told))
		if told.ShouldRetry || told.RetryCount != 0 || told.RetryReason != "Deadline "+decision.Instant(deadline)+" cannot be met" ||
			told.ErrorClassification != "UNKNOWN" || told.OriginalError != "" || told.RetryPolicy != decision.DefaultPolicy || told.ResponsibleTeam == "" {
			t.Errorf("the process is told %+v", told)
		}
		d, found, err := w.memory.DeadLetter(t.Context(), told.DeadLetterID)
		if err != nil || !found || d.DeadLetter.Reason != decision.ReasonDeadline || d.DeadLetter.State != journal.DeadLetterOpen {
			t.Errorf("the dead letter is %+v (%t, %v)", d, found, err)
		}
		for w.all() < 4 {
			time.Sleep(time.Second)
		}
		if w.check(4, 1); w.now() < 6*time.Hour {
			t.Errorf("they go after %s", w.now())
		}
	})
}
