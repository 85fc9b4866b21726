package gate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// TestOutage: of a portal that is down for three hours, one replica, two of which one is killed again and again, each claim is sent
// once it is up, and few find it down. Other ways of being down are played in e2e/scenarios.
func TestOutage(t *testing.T) {
	for name, test := range map[string]struct{ replicas, kills, mostWasted int }{
		"one replica":                                              {1, 0, 60},
		"one replica, killed 20 times":                             {1, 20, 80},
		"two replicas, one killed 20 times":                        {2, 20, 80},
		"two replicas at a pace of their own, one killed 20 times": {2, 20, 80},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, down(30*time.Minute, 210*time.Minute), func(w *world) {
				const claims = 200
				w.settings.Pace.Limited = strings.Contains(name, "pace of their own")
				for range test.replicas {
					w.start()
				}
				time.Sleep(20 * time.Second) // for the lease
				go w.arrive(claims, time.Minute)
				for range test.kills {
					time.Sleep(11*time.Minute + 7*time.Second)
					w.replace(0)
				}
				for end := time.Now().Add(24 * time.Hour); w.all() < claims && time.Now().Before(end); {
					time.Sleep(time.Minute)
				}
				w.check(claims, 0)
				t.Logf("%d wasted, done after %s", w.wasted(), w.now())
				if wasted := w.wasted(); wasted > test.mostWasted {
					t.Errorf("%d submissions failed, at most %d may", wasted, test.mostWasted)
				}
			})
		})
	}
}

// TestCanaryHeardBeforeAFailure: what came of a canary is known where the store failed before the portal's state was
// recorded: the next goes as if it had not.
func TestCanaryHeardBeforeAFailure(t *testing.T) {
	const outage, claims = 30 * time.Minute, 30
	inBubble(t, down(0, outage), func(w *world) {
		w.recorded = func(records []journal.Happening) {
			for _, r := range records {
				if r.Attempt != nil && r.Attempt.Sent.JobKey != 0 && w.now() < outage {
					w.memory.Fail(80, testkit.Fault{Kind: journal.Unavailable})
				}
			}
		}
		w.start()
		go w.arrive(claims, time.Second)
		for w.all() < claims && w.now() < 12*time.Hour {
			time.Sleep(time.Minute)
		}
		var canaries []time.Duration
		for _, s := range w.sent {
			if s.canary && s.at < outage {
				canaries = append(canaries, s.at.Truncate(time.Minute))
			}
		}
		if len(canaries) < 5 {
			t.Errorf("in half an hour canaries went after %s, expected one every 5 minutes", canaries)
		}
	})
}

// TestGivenUpInTime: while a person holds a portal nothing goes, and a claim is given to a person an hour before its
// deadline passes; that an earlier submission of it was not answered is not forgotten. The others go when the time is over.
func TestGivenUpInTime(t *testing.T) {
	inBubble(t, nothing, func(w *world) {
		w.start()
		w.job(worker.AnalyzeRetry, "CLM-late-1", w.newKey(nil), map[string]any{"submissionError": "Read timed out"})
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
			ShouldRetry, PossiblyAccepted                   bool
			RetryCount                                      int
			RetryReason, ErrorClassification, OriginalError string
			RetryPolicy, DeadLetterID, ResponsibleTeam      string
		}
		testkit.Must(t, json.Unmarshal([]byte(w.ended["CLM-late-1"]), &told))
		if told.ShouldRetry || !told.PossiblyAccepted || told.RetryCount != 1 || told.RetryReason != "Deadline "+decision.Instant(deadline)+" cannot be met" ||
			told.ErrorClassification != "UNKNOWN" || told.OriginalError != "" || told.RetryPolicy != decision.DefaultPolicy || told.ResponsibleTeam == "" {
			t.Errorf("the process is told %+v", told)
		}
		d, found, err := w.memory.DeadLetter(t.Context(), told.DeadLetterID)
		if err != nil || !found || d.DeadLetter.Reason != decision.ReasonDeadline || d.DeadLetter.State != journal.DeadLetterOpen || !d.DeadLetter.PossiblyAccepted {
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

// TestInstantsOfAWrongClock: a leader whose clock was a day ahead recorded a state, and ended. Nobody waits for that day,
// though the next leader has so many claims to read that it takes 20 s.
func TestInstantsOfAWrongClock(t *testing.T) {
	test, order := destination.Turn{Waiting: 1, Canary: 9}, destination.Order{Verb: destination.SendCanary}
	down := testkit.Failures()
	for name, events := range map[string][]destination.Event{
		"down": down, "testing": append(down, order, test),
		"ramping":          append(down, order, test, testkit.Answered(9)),
		"up, with a limit": {destination.Outcome{Tells: destination.TellsRateLimited, RetryAfter: 10 * time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nothing, func(w *world) {
				w.listing = 20 * time.Second
				key, told := w.waiting()
				p := w.portal()
				p.Hold(t, "CLM-gate-1", key, time.Time{})
				p.Happens(t, time.Now().Add(24*time.Hour), events...)
				w.start()
				time.Sleep(20 * time.Minute)
				if len(told) == 0 {
					t.Error("the claim has not gone within 20 minutes")
				}
			})
		})
	}
}

// TestHeldJobIsNotLetThrough: a job that waits is not let through where the engine offers it again, though others that come
// go at once; it goes when its turn comes, and not once more: the engine may hear of that late, others leave meanwhile.
func TestHeldJobIsNotLetThrough(t *testing.T) {
	inBubble(t, nothing, func(w *world) {
		w.settings.Pace.Most = 1
		before, first := w.waiting()
		key, second := w.waiting()
		p := w.portal()
		p.Hold(t, "CLM-gate-1", before, time.Time{})
		p.Hold(t, "CLM-gate-2", key, time.Time{})
		r := w.start()
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
		time.Sleep(6 * time.Minute)
		later, third := w.waiting()
		p.Hold(t, "CLM-gate-3", later, time.Time{})
		for len(third) == 0 {
			time.Sleep(time.Second)
		}
		if r.gates.Admit(portal, key, time.Time{}) {
			t.Error("the job that left is let through again")
		}
	})
}

// TestReloadWhileProbing takes other settings over while the URL of those before is asked: the race detector finds what
// both use.
func TestReloadWhileProbing(t *testing.T) {
	inBubble(t, nothing, func(w *world) {
		w.settings.Probe.URL = "https://portal.example/status"
		w.probe = func() bool {
			time.Sleep(time.Minute)
			return true
		}
		w.start()
		for range 100 {
			w.version.Add(1)
			time.Sleep(2 * time.Second)
		}
		w.stop()
		time.Sleep(2 * time.Minute) // the URL may still be asked
	})
}

// TestOrderIsOver: no replica shows a person's order that is over, whether anything has happened since or not.
func TestOrderIsOver(t *testing.T) {
	for _, verb := range []destination.Verb{destination.TreatAsUp, destination.HoldClaims} {
		inBubble(t, nothing, func(w *world) {
			for range 2 {
				w.start()
			}
			time.Sleep(time.Minute) // for the lease
			until := time.Now().Add(10 * time.Minute)
			w.order(destination.Order{Verb: verb, Until: until})
			for _, over := range []bool{false, true} {
				for n, r := range w.replicas {
					d, _, err := r.gates.Destination(portal)
					if s := d.State; err != nil || (s.UpUntil.IsZero() && s.HeldUntil.IsZero()) != over {
						t.Errorf("%s: replica %d shows that it is held until %s, up until %s (%v)", verb, n, s.HeldUntil, s.UpUntil, err)
					}
				}
				time.Sleep(time.Until(until))
			}
		})
	}
}

// TestAnswerThatIsNeverTaken: a job of a partition that is gone holds up no other claim for longer than a canary would.
func TestAnswerThatIsNeverTaken(t *testing.T) {
	inBubble(t, nothing, func(w *world) {
		const claims = 30
		w.never = 10 // the first
		w.start()
		time.Sleep(time.Minute) // for the lease
		w.order(destination.Order{Verb: destination.HoldClaims, Until: time.Now().Add(10 * time.Minute)})
		w.arrive(claims, time.Second)
		time.Sleep(time.Hour)
		if w.all() != claims-1 {
			t.Errorf("%d of %d claims have gone", w.all(), claims-1)
		}
		w.mu.Lock()
		w.never = 0
		w.mu.Unlock()
		time.Sleep(10 * time.Minute)
		w.check(claims, 0)
	})
}

// TestSuccessWithoutAGate: claims of a model that has no gate take a portal down, and one that succeeds then takes it up.
func TestSuccessWithoutAGate(t *testing.T) {
	inBubble(t, down(0, 0), func(w *world) {
		w.start()
		time.Sleep(time.Minute)
		for i := range 5 {
			w.job(worker.AnalyzeRetry, fmt.Sprintf("CLM-%d-1", i), w.newKey(nil), map[string]any{"submissionError": "TIMEOUT"})
		}
		for _, phase := range []destination.Phase{destination.Down, destination.Up} {
			time.Sleep(10 * time.Minute)
			if all, err := w.replicas[0].gates.Destinations(); err != nil || len(all) != 1 || all[0].State.Phase != phase {
				t.Errorf("told is %+v, %v, want %s", all, err, phase)
			}
			w.job(worker.RecordRetryOutcome, "CLM-0-1", w.newKey(nil), map[string]any{})
		}
	})
}

// TestPortalShuts: a portal takes claims until 18:00, and is down from 13:00 to 16:00. Claims that must go that day go
// before the others; what cannot go is given to a person an hour before the portal shuts; the others go when it opens on
// the next day, and none while it is shut.
func TestPortalShuts(t *testing.T) {
	const claims = 200
	hour := func(n int) time.Time { return time.Date(2000, 1, 1, n, 0, 0, 0, time.UTC) }
	inBubble(t, func(*world) string {
		if now := time.Now(); now.After(hour(13)) && now.Before(hour(16)) {
			return "Read timed out after 30000 ms"
		}
		return ""
	}, func(w *world) {
		var err error
		w.settings.Calendar, err = calendar.New(time.UTC, []calendar.Window{{Hours: "06:00-18:00"}}, nil)
		testkit.Must(t, err)
		w.settings.Pace.Most = 1
		w.start()
		time.Sleep(time.Until(hour(13).Add(time.Minute)))
		for i := range claims {
			deadline := time.Time{}
			if i%2 == 0 {
				deadline = hour(24)
			}
			go w.process(fmt.Sprintf("CLM-%d-1", i), deadline)
			time.Sleep(30 * time.Second)
		}
		for end := hour(24 + 18); w.all() < claims && time.Now().Before(end); {
			time.Sleep(time.Minute)
		}
		var urgent, early, givenUp, later int
		for i := range claims {
			claim := fmt.Sprintf("CLM-%d-1", i)
			n := slices.IndexFunc(w.sent, func(s sending) bool { return s.claim == claim && s.ok })
			switch {
			case n < 0 && i%2 == 0 && strings.Contains(w.ended[claim], "cannot be met"):
				givenUp++
			case n < 0:
				t.Errorf("%s is not sent: %s", claim, w.ended[claim])
			case w.began.Add(w.sent[n].at).After(hour(18)):
				later++
			case i%2 == 0:
				urgent++
			case w.began.Add(w.sent[n].at).Before(hour(17)):
				early++
			}
		}
		for _, s := range w.sent {
			if at := w.began.Add(s.at); !w.settings.Calendar.IsOpen(at) {
				t.Errorf("%s is sent at %s", s.claim, at)
			}
		}
		const canaries = 2
		if urgent < 40 || urgent+givenUp != claims/2 || early > canaries || later == 0 {
			t.Errorf("of those that must go that day %d go and %d are given up; of the others %d go before, and %d on the next day",
				urgent, givenUp, early, later)
		}
	})
}
