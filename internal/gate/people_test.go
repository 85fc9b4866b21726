package gate_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// order has a person order something about the portal, and waits for a minute.
func (w *world) order(c destination.Order) {
	c.Reason, c.By = "manutenção", "ana"
	testkit.Must(w.t, w.replicas[0].gates.Command(w.t.Context(), portal, c))
	time.Sleep(time.Minute)
}

// TestGivenUpInTime: while a person holds a portal nothing goes, and a claim is given to a person an hour before its
// deadline passes; the others go when the time is over.
func TestGivenUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(*world) string { return "" })
		w.start()
		defer w.stop()
		time.Sleep(2 * time.Minute)
		w.order(destination.Order{Verb: destination.HoldClaims, Until: time.Now().Add(6 * time.Hour)})
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

// TestCanaryOfAnotherGoesAtOnce: a replica recorded a canary and ended before it let it go. The next one does.
func TestCanaryOfAnotherGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(*world) string { return "" })
		waits := make(chan answer, 1)
		key := w.newKey(waits)
		p := testkit.NewPortal(portal, testkit.StartJournal(t, w.memory, time.Now), time.Now())
		p.Hold(t, "CLM-gate-1", key, time.Time{})
		p.Fails(t, time.Now())
		time.Sleep(time.Minute)
		p.Happens(t, time.Now(), destination.Turn{Waiting: 1, Canary: strconv.FormatInt(key, 10)})
		w.start()
		defer w.stop()
		time.Sleep(time.Minute)
		if len(waits) == 0 {
			t.Error("the canary has not gone within a minute")
		}
	})
}

// TestInstantsOfAWrongClock: a leader whose clock was a day ahead recorded a state, and ended. Nobody waits for that day.
func TestInstantsOfAWrongClock(t *testing.T) {
	test, order := destination.Turn{Waiting: 1, Canary: "9"}, destination.Order{Verb: destination.SendCanary}
	down := testkit.Failures()
	for name, events := range map[string][]destination.Event{
		"down": down, "testing": append(down, order, test),
		"ramping":          append(down, order, test, testkit.Answered("9")),
		"up, with a limit": {destination.Outcome{Tells: destination.TellsRateLimited, RetryAfter: 10 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, waits := newWorld(t, func(*world) string { return "" }), make(chan answer, 1)
				p := testkit.NewPortal(portal, testkit.StartJournal(t, w.memory, time.Now), time.Now())
				p.Hold(t, "CLM-gate-1", w.newKey(waits), time.Time{})
				p.Happens(t, time.Now().Add(24*time.Hour), events...)
				w.start()
				defer w.stop()
				time.Sleep(20 * time.Minute)
				if len(waits) == 0 {
					t.Error("the claim has not gone within 20 minutes")
				}
			})
		})
	}
}

// TestHeldJobIsNotLetThrough: a job that waits is not let through where the engine offers it again, though others that come
// go at once; it goes when its turn comes.
func TestHeldJobIsNotLetThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(*world) string { return "" })
		w.settings.Pace.Most = 1
		first, second := make(chan answer, 1), make(chan answer, 1)
		w.newKey(first)
		key := w.newKey(second)
		p := testkit.NewPortal(portal, testkit.StartJournal(t, w.memory, time.Now), time.Now())
		p.Hold(t, "CLM-gate-1", key-10, time.Time{})
		p.Hold(t, "CLM-gate-2", key, time.Time{})
		r := w.start()
		defer w.stop()
		for len(first) == 0 {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		if r.gates.Admit(portal, key, time.Time{}) || !r.gates.Admit(portal, key+10, time.Time{}) {
			t.Error("the job that waits is let through, or another one waits")
		}
		if time.Sleep(2 * time.Minute); len(second) == 0 {
			t.Error("the job that waits has not gone")
		}
	})
}
