package deadletter_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestPace: many take as long as they should within 5 %, however long each decision takes, and no second and no
// minute sees more than its share.
func TestPace(t *testing.T) {
	for _, perMinute := range []int64{1, 7, 60, 600, 6000} {
		t.Run(fmt.Sprint(perMinute), func(t *testing.T) {
			bubble(t, func(d *fixture) {
				n := min(500, 40*perMinute+160)
				interval := time.Minute / time.Duration(perMinute)
				draw := newDraw(1, uint64(perMinute))
				d.takes = func() time.Duration { return time.Duration(draw(int64(200 * time.Millisecond))) }
				run := d.begin(int(n), perMinute)
				d.runner()
				d.within(time.Duration(n+60)*2*interval+time.Minute, "done", d.done(run))
				all := d.decisions()
				want(t, "decided", int64(len(all)), n)
				took, should := all[n-1].at.Sub(all[0].at), time.Duration(n-1)*interval
				if off := float64(took-should) / float64(should); off < -0.05 || off > 0.05 {
					t.Errorf("took %s, should take %s: %.1f %% off", took, should, 100*off)
				}
				if got := most(all, time.Minute); got > int(perMinute)+1+int(perMinute/60) {
					t.Errorf("%d in a minute, expected %d", got, perMinute)
				}
				if got := most(all, time.Second); got > 2*int(perMinute/60)+2 {
					t.Errorf("%d in a second, expected %d", got, perMinute/60)
				}
				d.once()
			})
		})
	}
}

// TestCommand: what was asked for is what each is decided by.
func TestCommand(t *testing.T) {
	bubble(t, func(d *fixture) {
		runs := map[string]string{}
		for n, name := range []string{"retry", "now", "discard"} {
			c := retryAll(journal.DeadLetterFilter{})
			switch name {
			case "now":
				c.Force, c.Fresh, c.When = true, true, deadletter.Now
			case "discard":
				c.Action = journal.BulkDiscard
			}
			c.Filter.Query, c.PerMinute = claim(n), 6000
			d.die(n, 1, badPassword, 0)
			runs[d.StartBulk(c)] = name
		}
		d.runner()
		for run := range runs {
			d.within(time.Minute, runs[run], d.done(run))
		}
		want(t, "decided", len(d.decisions()), 3)
		for _, m := range d.decisions() {
			c := deadletter.Command{ID: m.command.ID, Action: journal.BulkRetry, RetryOptions: journal.RetryOptions{When: deadletter.Backoff}, Reason: "senha corrigida", By: "maria", Run: m.command.Run}
			switch runs[m.command.Run] {
			case "now":
				c.Force, c.Fresh, c.When = true, true, deadletter.Now
			case "discard":
				c.Action = journal.BulkDiscard
			}
			want(t, runs[c.Run], m.command, c)
		}
	})
}

// TestAcceptMany: what the other side has is closed, one by one, where the process takes that; the others are left open and
// said so before and after (R33).
func TestAcceptMany(t *testing.T) {
	bubble(t, func(d *fixture) {
		letters := d.die(0, 3, badPassword, 0)
		old := d.Item(letters[2]) // whose process came by an older model
		_, err := d.Journal.ReviewSeen(d.t.Context(), &journal.ReviewJob{Subject: old.Subject, DeadLetter: old.ID, JobKey: 9})
		testkit.Must(d.t, err)
		c := retryAll(journal.DeadLetterFilter{})
		c.Action = journal.BulkAccept
		p := d.plan(c)
		want(d.t, "ready", p.Ready, 2)
		want(d.t, "refused", p.Refused[0].Count, 1)
		run := d.StartBulk(c)
		d.runner()
		d.within(time.Minute, "done", d.done(run))
		d.Deliver(true)
		counts := d.state(run).Counts
		want(d.t, "accepted", counts[journal.BulkAccepted], 2)
		want(d.t, "refused", counts[journal.BulkRefused], 1)
		for n, state := range []journal.DeadLetterState{journal.DeadLetterAccepted, journal.DeadLetterAccepted, journal.DeadLetterOpen} {
			want(d.t, letters[n], d.Item(letters[n]).State, state)
		}
	})
}

// TestStallIsNotMadeUpFor: half a minute in which every decision hangs is not made up for.
func TestStallIsNotMadeUpFor(t *testing.T) {
	bubble(t, func(d *fixture) {
		run := d.begin(1000, 600)
		from := time.Now().Add(10 * time.Second) // of the run: to begin it takes a while, too
		d.takes = func() time.Duration {
			if in := time.Since(from); in >= 0 && in < 30*time.Second {
				return 30*time.Second - in
			}
			return time.Millisecond
		}
		d.runner()
		d.within(time.Hour, "done", d.done(run))
		all := d.decisions()
		if got := most(all, time.Second); got > 21 {
			t.Errorf("%d in a second after a stall, expected 10, and 10 more to catch up at most", got)
		}
		if took := all[999].at.Sub(all[0].at); took < 125*time.Second {
			t.Errorf("all took %s: the 30 s of the stall were made up for", took)
		}
	})
}

// TestEngineDown: nothing is decided for an hour, the run says why, and goes on by itself at its pace.
func TestEngineDown(t *testing.T) {
	bubble(t, func(d *fixture) {
		run := d.begin(400, 60)
		d.runner()
		d.within(3*time.Minute, "a hundred", func() bool { return len(d.decisions()) >= 100 })
		d.SetEngineUp(time.Time{})
		d.within(3*time.Second, "held", func() bool { return d.said("bulk_run_held") == 1 })
		before := len(d.decisions())
		time.Sleep(time.Hour)
		want(t, "decided without an engine", len(d.decisions())-before, 0)
		want(t, "seen as held", d.state(run).Held, true)
		d.SetEngineUp(time.Now())
		want(t, "seen as held once it is back", d.state(run).Held, false)
		d.within(6*time.Minute, "done", d.done(run))
		time.Sleep(time.Second) // and told
		all := d.decisions()
		want(t, "decided", len(all), 400)
		if got := most(all, time.Minute); got > 61 {
			t.Errorf("%d in a minute, expected 60", got)
		}
		for event, n := range map[string]int{"bulk_run_started": 1, "bulk_run_held": 1, "bulk_run_goes_on": 1, "bulk_run_done": 1} {
			want(t, event, d.said(event), n)
		}
	})
}

// TestEngineNotSeenYet: a worker that has just begun says nothing of an engine that answers a moment later.
func TestEngineNotSeenYet(t *testing.T) {
	bubble(t, func(d *fixture) {
		d.SetEngineUp(time.Time{})
		run := d.begin(3, 6000)
		d.runner()
		time.Sleep(3 * time.Second)
		want(t, "decided", len(d.decisions()), 0)
		d.SetEngineUp(time.Now())
		d.within(3*time.Second, "done", d.done(run))
		want(t, "held", d.said("bulk_run_held"), 0)
	})
}

// TestJournalDown: in the middle of everything the store fails for ten minutes; it goes on where it was, and what was
// recorded all the same is not decided again.
func TestRunWhileTheJournalIsDown(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		t.Run(fmt.Sprintf("recorded %v", recorded), func(t *testing.T) {
			bubble(t, func(d *fixture) {
				run := d.begin(600, 600)
				d.fault = func(string) fault {
					if len(d.made) < 49 {
						return fault{}
					}
					d.fault = nil // once: with the next the store is gone
					d.Memory.SetDown(!recorded)
					return fault{fmt.Errorf("record the decision: %w", journal.ErrUnavailable), recorded}
				}
				d.runner()
				if !recorded {
					d.within(time.Minute, "held", func() bool { return d.said("bulk_run_held") == 1 })
					time.Sleep(10 * time.Minute)
					want(t, "decided", len(d.decisions()), 49)
					d.Memory.SetDown(false)
				}
				d.within(5*time.Minute, "done", d.done(run))
				want(t, "decided", len(d.decisions()), 600)
				want(t, "counted as decided", d.state(run).Counts[journal.BulkDecided], 600)
				want(t, "told", d.said("bulk_run_held"), 1)
				items, err := d.DeadLetters.Items(d.t.Context(), run, "", 49, 1)
				testkit.Must(t, err)
				next := slices.IndexFunc(d.decisions(), func(m made) bool { return m.command.ID == items[0].DeadLetter })
				if next > 60 {
					t.Errorf("what was on its way when the store failed is decided as number %d", next+1)
				}
				d.once()
			})
		})
	}
}

// TestSteering: a run that somebody pauses or cancels, by whichever replica, decides nothing more from that moment on, and
// says so once, however many decisions are on their way then.
func TestSteering(t *testing.T) {
	for perMinute, takes := range map[int64]time.Duration{60: 0, 6000: 150 * time.Millisecond} {
		bubble(t, func(d *fixture) {
			d.takes = func() time.Duration { return takes }
			n := 5 * min(perMinute, 180)
			run := d.begin(int(n), perMinute)
			d.runner()
			d.within(2*time.Minute, "some", func() bool { return len(d.decisions()) >= int(n)/15 })
			d.steer(journal.BulkPause, run)
			synctest.Wait()
			paused := len(d.decisions())
			time.Sleep(time.Hour)
			want(t, "decided while paused", len(d.decisions())-paused, 0)
			want(t, "told", d.said("bulk_run_stopped"), 1)
			d.steer(journal.BulkResume, run)
			d.within(3*time.Second, "goes on", func() bool { return len(d.decisions()) > paused })
			time.Sleep(time.Second)
			if got := most(d.decisions(), time.Minute); got > int(perMinute)+1 {
				t.Errorf("%d in a minute after a pause, expected %d", got, perMinute)
			}
			d.steer(journal.BulkCancel, run)
			synctest.Wait()
			cancelled := len(d.decisions())
			time.Sleep(time.Hour)
			want(t, "decided after the end", len(d.decisions())-cancelled, 0)
			want(t, "left as they are", d.state(run).Counts[journal.BulkPlanned], n-int64(cancelled))
			d.once()
		})
	}
}

// TestDecidedByOthers: what somebody decided meanwhile is refused, with the code, and takes no turn.
func TestDecidedByOthers(t *testing.T) {
	bubble(t, func(d *fixture) {
		run := d.begin(200, 60)
		items, err := d.DeadLetters.Items(d.t.Context(), run, "", 0, 200)
		testkit.Must(t, err)
		for n, i := range items {
			if n%4 > 0 {
				_, err := d.DeadLetters.Decide(d.t.Context(), deadletter.Command{Action: journal.BulkDiscard, ID: i.DeadLetter, Reason: "paga em mãos", By: "jose"})
				testkit.Must(t, err)
			}
		}
		d.fault = func(id string) fault {
			if id == items[0].DeadLetter {
				return fault{err: fmt.Errorf("record the decision: %w", journal.ErrInvalid)}
			}
			return fault{}
		}
		d.runner()
		took := d.within(5*time.Minute, "done", d.done(run))
		counts := d.state(run).Counts
		want(t, "decided", counts[journal.BulkDecided], 49)
		want(t, "refused", counts[journal.BulkRefused], 151)
		items, err = d.DeadLetters.Items(d.t.Context(), run, "", 0, 2)
		testkit.Must(t, err)
		want(t, "why", items[1].Code, string(journal.InvalidRetryState))
		want(t, "why", items[0].Code, string(deadletter.NotRecordable))
		if took > 55*time.Second {
			t.Errorf("took %s for 49 at 60 a minute: refusals took turns", took)
		}
	})
}

// TestSeveralRuns: each at its own pace, beside the others.
func TestSeveralRuns(t *testing.T) {
	bubble(t, func(d *fixture) {
		runs, n := map[string]int64{}, 0
		for portal, perMinute := range map[string]int64{"norte": 6, "sul": 60, "leste": 300} {
			text := "LoginInvalido: senha incorreta no portal " + portal
			d.die(n, int(perMinute)*3, text, 0)
			n += int(perMinute) * 3
			c := retryAll(journal.DeadLetterFilter{})
			for _, cause := range d.plan(c).Causes {
				if strings.HasSuffix(cause.Sample.Error, text) {
					c.Filter.Fingerprint = cause.Cause.ID
				}
			}
			c.PerMinute = perMinute
			runs[d.StartBulk(c)] = perMinute
		}
		d.runner()
		for run, perMinute := range runs {
			d.within(4*time.Minute, fmt.Sprint(perMinute), d.done(run))
		}
		for run, perMinute := range runs {
			var own []made
			for _, m := range d.decisions() {
				if m.command.Run == run {
					own = append(own, m)
				}
			}
			took, should := own[len(own)-1].at.Sub(own[0].at), time.Duration(len(own)-1)*time.Minute/time.Duration(perMinute)
			if off := took - should; off < -should/20 || off > should/20 {
				t.Errorf("%d at %d a minute took %s, should take %s", len(own), perMinute, took, should)
			}
		}
	})
}

// newDraw gives numbers from 0 up to below n. Decisions are on their way together: it is safe for concurrent use.
func newDraw(seed, stream uint64) func(n int64) int64 {
	var one sync.Mutex
	source := rand.New(rand.NewPCG(seed, stream))
	return func(n int64) int64 {
		one.Lock()
		defer one.Unlock()
		return source.Int64N(n)
	}
}

// TestKilledAtAnyMoment: whatever was on its way, nothing is decided twice, nothing is forgotten, and nothing hurried.
func TestKilledAtAnyMoment(t *testing.T) {
	for seed := range uint64(8) {
		bubble(t, func(d *fixture) {
			draw := newDraw(seed, 2)
			d.takes = func() time.Duration { return time.Duration(1+draw(400)) * time.Millisecond }
			d.fault = func(string) fault {
				if draw(20) == 0 {
					return fault{errors.New("who knows"), draw(2) == 0}
				}
				return fault{}
			}
			run := d.begin(400, 120)
			own := rand.New(rand.NewPCG(seed, 3)) // the other is the runner's
			for range 30 {
				r := d.runner()
				time.Sleep(time.Duration(own.Int64N(int64(20 * time.Second))))
				if own.IntN(2) == 0 {
					r.stop()
				}
				r.kill()
				<-r.done
			}
			d.runner()
			d.within(time.Hour, "done", d.done(run))
			want(t, "decided", len(d.decisions()), 400)
			want(t, "counted as decided", d.state(run).Counts[journal.BulkDecided], 400)
			if got := most(d.decisions(), time.Minute); got > 122 {
				t.Errorf("seed %d: %d in a minute, expected 120", seed, got)
			}
			d.once()
		})
	}
}

// TestStopAwaitsWhatHasBegun: and begins nothing more.
func TestStopAwaitsWhatHasBegun(t *testing.T) {
	bubble(t, func(d *fixture) {
		d.takes = func() time.Duration { return 3 * time.Second }
		d.begin(100, 600)
		r := d.runner()
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		began := time.Now()
		r.stop()
		<-r.done
		want(t, "decided", len(d.decisions()), 1)
		if took := time.Since(began); took == 0 || took > 3*time.Second {
			t.Errorf("the stop took %s, expected the rest of a decision of 3 s", took)
		}
	})
}

// TestSecondRunner: two at once, as after a machine that stood still, decide nothing twice and keep each outcome.
func TestSecondRunner(t *testing.T) {
	bubble(t, func(d *fixture) {
		d.takes = func() time.Duration { return 5 * time.Millisecond }
		run := d.begin(1000, 6000)
		d.runner()
		d.runner()
		d.within(time.Minute, "done", d.done(run))
		want(t, "decided", len(d.decisions()), 1000)
		want(t, "counted as decided", d.state(run).Counts[journal.BulkDecided], 1000)
	})
}
