package gate_test

import (
	"testing"
	"time"

	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

// TestCanaryOfAnotherGoesAtOnce: a replica recorded a canary and ended before it let it go. The next one does, whether it
// starts then or leads before it has heard of that.
func TestCanaryOfAnotherGoesAtOnce(t *testing.T) {
	for _, follows := range []bool{false, true} {
		inBubble(t, nothing, func(w *world) {
			key, told := w.waiting()
			p := w.portal()
			p.Hold(t, "CLM-gate-1", key, time.Time{})
			p.Fails(t, time.Now().Add(-time.Minute))
			if follows {
				_, _ = w.memory.Lease(t.Context(), gate.Lease, "another", 15*time.Second)
				w.start()
				time.Sleep(5 * time.Second)
			}
			p.Happens(t, time.Now(), destination.Turn{Waiting: 1, Canary: key})
			if follows {
				r := w.replicas[0]
				r.running.Go(func() { r.gates.Lead(r.ctx, r.ctx) })
			} else {
				w.start()
			}
			time.Sleep(5 * time.Second)
			if len(told) == 0 {
				t.Errorf("the canary has not gone within 5 s; its replica followed before: %t", follows)
			}
		})
	}
}

// TestOutcomesCountOnce: a new leader reads again what came of a canary, but counts no other outcome that the recorded
// State includes.
func TestOutcomesCountOnce(t *testing.T) {
	inBubble(t, nothing, func(w *world) {
		r := w.start()
		w.job(worker.AnalyzeRetry, "CLM-1-1", w.newKey(nil), map[string]any{"submissionError": "HTTP 429 Too Many Requests"})
		r.kill()
		r.running.Wait()
		p := w.portal()
		p.Fails(t, time.Now().Add(-time.Minute))
		p.Happens(t, time.Now(), destination.Turn{Waiting: 1, Canary: 9})
		r = w.start()
		time.Sleep(20 * time.Second) // for the lease
		if d, _, err := r.gates.Destination(portal); err != nil || d.State.Phase != destination.Testing || !d.State.Flow.LimitAt.IsZero() {
			t.Errorf("it is %s, with a limit at %s (%v)", d.State.Phase, d.State.Flow.LimitAt, err)
		}
	})
}

// TestReplicasLetThrough: while a portal is up and has no pace of its own, each of three replicas lets claims through at
// once and records none of it; what they let through adds up, the last minute once it is over.
func TestReplicasLetThrough(t *testing.T) {
	const claims = 300
	inBubble(t, nothing, func(w *world) {
		w.recorded = func(records []journal.Happening) { t.Errorf("recorded are %v", records) }
		for range 3 {
			w.start()
		}
		time.Sleep(time.Minute) // for the lease
		w.arrive(claims, time.Second/2)
		time.Sleep(time.Minute + 2*time.Second)
		for _, r := range w.replicas {
			if r.admitted < claims/6 {
				t.Errorf("one of the replicas lets %d through", r.admitted)
			}
		}
		all, err := w.memory.Admissions(t.Context(), 0)
		n := 0
		for _, a := range all {
			n += a.Count
		}
		if w.all() != claims || n != claims || err != nil {
			t.Errorf("%d go of %d, %d are counted (%v)", w.all(), claims, n, err)
		}
	})
}

// TestOneReplicaKeepsThePace: where the policies set a pace, one of three replicas lets all claims through: in no 10 s more
// than at that pace, and none later than that needs.
func TestOneReplicaKeepsThePace(t *testing.T) {
	for name, test := range map[string]struct {
		apart  time.Duration
		within time.Duration
	}{
		"a sixth of the pace": {6 * time.Second, 31 * time.Minute}, "twice the pace": {time.Second / 2, 7 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nothing, func(w *world) {
				const claims = 300
				w.settings.Pace.Limited = true
				for range 3 {
					w.start()
				}
				time.Sleep(time.Minute) // for the lease
				w.arrive(claims, test.apart)
				for w.all() < claims && w.now() < time.Hour {
					time.Sleep(time.Second)
				}
				if w.check(claims, 0); w.now() > test.within+time.Minute {
					t.Errorf("all have gone after %s", w.now())
				}
				leading := 0
				for _, r := range w.replicas {
					if r.admitted > 0 {
						leading++
					}
				}
				if leading > 1 || leading == 0 && test.apart > time.Second { // where all wait, none goes at once
					t.Errorf("%d replicas let claims through at once", leading)
				}
			})
		})
	}
}

// TestFailuresAgainstAdmissions: a portal fails one claim in three, which is less than counts as down. The one of four
// replicas that acts hears of all failures, and in time of what the others let through: nobody takes the portal for down.
// The others go on telling while one takes over.
func TestFailuresAgainstAdmissions(t *testing.T) {
	sent := 0
	inBubble(t, func(*world) string {
		if sent++; sent%3 == 0 {
			return "Read timed out after 30000 ms"
		}
		return ""
	}, func(w *world) {
		w.start()
		time.Sleep(time.Minute)
		for range 3 {
			w.start()
		}
		time.Sleep(time.Minute)
		w.recorded = func(records []journal.Happening) {
			for _, r := range records {
				if r.Attempt == nil && r.Kind == journal.DestinationEntry {
					t.Errorf("recorded is %s", r.Body)
				}
			}
		}
		go w.arrive(400, time.Second)
		for w.all() < 400 {
			time.Sleep(time.Second)
			for i, r := range w.replicas {
				all, err := r.gates.Destinations()
				if err != nil || len(all) != 1 || all[0].State.Phase != destination.Up || !r.gates.Expected(all[0].Name).IsZero() {
					t.Fatalf("replica %d tells of %+v, %v, expected back at %s", i, all, err, r.gates.Expected(all[0].Name))
				}
			}
		}
		w.recorded = func([]journal.Happening) {}
		w.replicas[0].kill()
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			for i, r := range w.replicas[1:] {
				if _, err := r.gates.Destinations(); err != nil {
					t.Fatalf("replica %d tells nothing: %v", i+1, err)
				}
			}
		}
	})
}
