package outbox_test

import (
	"testing"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/outbox"
)

// patient is how notices are sent.
var patient = outbox.Patience{Message: time.Minute, Hold: 15 * time.Minute, Apart: true}

// TestKeysApart: a receiver that fails for a day, even where all do, is tried ever more seldom, to every 15 minutes, holds no other up,
// and is no failure of the sink.
func TestKeysApart(t *testing.T) {
	bubble(t, func(s *stage) {
		s.patience = patient
		s.sink.answer = func(m *journal.Message) error {
			if m.Key == "ti/webhook" {
				return errRefused
			}
			return nil
		}
		s.relay("a")
		s.fill(1, "ti/webhook")
		time.Sleep(24 * time.Hour)
		all := s.sink.triesOf("ti/webhook")
		if len(all) < 90 || len(all) > 120 {
			t.Errorf("tried %d times in a day", len(all))
		}
		for i := 1; i < len(all); i++ {
			if gap := all[i].Sub(all[i-1]); gap > 15*time.Minute+10*time.Second || i > 12 && gap < 14*time.Minute {
				t.Fatalf("try %d comes %s after the one before", i+1, gap)
			}
		}
		if states := s.account().states; len(states) != 0 {
			t.Errorf("the sink was told to be %v", states)
		}
		s.fill(3, "ti/email", "cadastro/email", "faturamento/webhook")
		took := s.within(10*time.Second, "the others are sent", func() bool { return len(s.Outbox()) == 1 })
		t.Logf("%d tries, the others after %s", len(all), took)
		s.sink.set(func() { s.sink.answer = nil })
		s.within(16*time.Minute, "it is sent when the receiver takes it", s.empty)
	})
}

// later knows after how long it is worth trying again.
type later struct{ error }

func (later) Pause() time.Duration { return 5 * time.Minute }

// TestFailureAsksForTime: not before that, and ever more seldom all the same, as far as the relay holds.
func TestFailureAsksForTime(t *testing.T) {
	bubble(t, func(s *stage) {
		s.patience = patient
		s.sink.answer = func(*journal.Message) error { return later{errRefused} }
		s.relay("a")
		s.fill(1, "ti/webhook")
		time.Sleep(3 * time.Hour)
		all := s.sink.triesOf("ti/webhook")
		if len(all) < 15 || len(all) > 25 {
			t.Errorf("tried %d times in three hours", len(all))
		}
		if gap := all[1].Sub(all[0]); gap < 5*time.Minute || gap > 5*time.Minute+10*time.Second {
			t.Errorf("the second try comes after %s", gap)
		}
	})
}

// TestSlowMessage has its time, and no more; a stop gives it a moment.
func TestSlowMessage(t *testing.T) {
	bubble(t, func(s *stage) {
		s.patience = patient
		s.sink.takes = 50 * time.Second
		r := s.relay("a")
		s.fill(1, "ti/email")
		took := s.within(time.Minute, "it is sent", s.empty)
		if took < 50*time.Second {
			t.Errorf("it took %s", took)
		}
		s.sink.set(func() { s.sink.hang = true })
		s.fill(1, "ti/email")
		time.Sleep(30 * time.Second)
		began := time.Now()
		r.stop()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("a stop takes %s", took)
		}
		if s.empty() {
			t.Error("what hangs was let go of")
		}
	})
}
