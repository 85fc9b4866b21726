package gate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/destination"
)

// TestReplicasShareThePace: while a portal is up, each of three replicas lets claims through at once, and what is too much
// for one goes later; what comes faster than the portal takes waits for its turn.
func TestReplicasShareThePace(t *testing.T) {
	for name, test := range map[string]struct {
		apart       time.Duration
		least, most int // that go at once
	}{
		"a sixth of the pace": {6 * time.Second, 295, 300}, "half of the pace": {2 * time.Second, 0, 200}, "twice the pace": {time.Second / 2, 0, 150},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const claims = 300
				w := newWorld(t, func(*world) string { return "" })
				for range 3 {
					w.start()
				}
				defer w.stop()
				time.Sleep(time.Minute) // for the leases
				w.arrive(claims, test.apart)
				for w.all() < claims {
					time.Sleep(time.Second)
				}
				w.check(claims, 0)
				atOnce := 0
				for _, r := range w.replicas {
					atOnce += r.admitted
					if test.least > 0 && r.admitted < test.least/6 {
						t.Errorf("one of the replicas lets %d through", r.admitted)
					}
				}
				t.Logf("%d at once, all after %s", atOnce, w.now())
				if atOnce < test.least || atOnce > test.most || w.now() > 8*time.Minute && test.apart < time.Second {
					t.Errorf("%d go at once, want %d to %d; all have gone after %s", atOnce, test.least, test.most, w.now())
				}
			})
		})
	}
}

// TestReplicasTellOfOnePortal: a portal fails one claim in three, which is less than counts as down. A replica that does not
// act hears of all failures, and of few that others let through: it tells of no outage all the same. It goes on telling while
// it takes over.
func TestReplicasTellOfOnePortal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		w := newWorld(t, func(*world) string {
			if sent++; sent%3 == 0 {
				return "Read timed out after 30000 ms"
			}
			return ""
		})
		w.start()
		time.Sleep(time.Minute)
		for range 3 {
			w.start()
		}
		defer w.stop()
		time.Sleep(time.Minute)
		w.arrive(40, 3*time.Second)
		for w.all() < 40 {
			time.Sleep(time.Minute)
		}
		for i, r := range w.replicas {
			all, err := r.gates.Destinations()
			if err != nil || len(all) != 1 || all[0].State.Phase != destination.Up || !r.gates.Expected(all[0].Name).IsZero() {
				t.Errorf("replica %d tells of %+v, %v, expected back at %s", i, all, err, r.gates.Expected(all[0].Name))
			}
		}
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
