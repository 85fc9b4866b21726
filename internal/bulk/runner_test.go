package bulk_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/bulk"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
)

// TestPace: ten thousand take as long as they should within 5 %, however long each decision takes, and no second and no
// minute sees more than its share.
func TestPace(t *testing.T) {
	for _, perMinute := range []int64{1, 7, 60, 600, 6000} {
		t.Run(fmt.Sprint(perMinute), func(t *testing.T) {
			play(t, func(d *desk) {
				n := min(10_000, 40*perMinute+160)
				interval := time.Minute / time.Duration(perMinute)
				draw := newDraw(1, uint64(perMinute))
				d.takes = func() time.Duration { return time.Duration(draw(int64(200 * time.Millisecond))) }
				d.run("a", int(n), perMinute)
				d.runner()
				d.within(time.Duration(n+60)*2*interval+time.Minute, "done", d.ended("a"))
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
	play(t, func(d *desk) {
		for _, id := range []string{"retry", "now", "discard"} {
			d.run(id, 2, 6000)
		}
		d.runs["now"].Force, d.runs["now"].Fresh, d.runs["now"].Now = true, true, true
		d.runs["discard"].Action = journal.BulkDiscard
		d.runner()
		for _, id := range []string{"retry", "now", "discard"} {
			d.within(time.Minute, id, d.ended(id))
		}
		for _, m := range d.decisions() {
			c := review.Command{ID: m.id, Reason: "senha corrigida", By: "maria", Run: m.run}
			switch m.run {
			case "retry":
				c.When = review.Backoff
			case "now":
				c.Force, c.Fresh, c.When = true, true, review.Now
			}
			want(t, m.id, m.command, c)
			want(t, m.id+" is let go", m.discards, m.run == "discard")
		}
	})
}

// TestStallMakesNoHerd: half a minute in which every decision hangs is not made up for.
func TestStallMakesNoHerd(t *testing.T) {
	play(t, func(d *desk) {
		from := time.Now().Add(10 * time.Second)
		d.takes = func() time.Duration {
			if in := time.Since(from); in >= 0 && in < 30*time.Second {
				return 30*time.Second - in
			}
			return time.Millisecond
		}
		d.run("a", 1000, 600)
		d.runner()
		d.within(time.Hour, "done", d.ended("a"))
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
	play(t, func(d *desk) {
		d.run("a", 400, 60)
		d.runner()
		d.within(3*time.Minute, "a hundred", func() bool { return len(d.decisions()) >= 100 })
		d.set(func() { d.up = time.Time{} })
		d.within(3*time.Second, "held", func() bool { return d.state("a").Hold == bulk.HoldEngine })
		before, since := len(d.decisions()), d.state("a").HeldAt
		time.Sleep(time.Hour)
		want(t, "decided without an engine", len(d.decisions())-before, 0)
		want(t, "held since", d.state("a").HeldAt, since)
		d.set(func() { d.up = time.Now() })
		d.within(3*time.Second, "goes on", func() bool { return d.state("a").Hold == "" })
		d.within(6*time.Minute, "done", d.ended("a"))
		time.Sleep(time.Second) // and told
		all := d.decisions()
		want(t, "decided", len(all), 400)
		if got := most(all, time.Minute); got > 61 {
			t.Errorf("%d in a minute, expected 60", got)
		}
		want(t, "holds", fmt.Sprint(d.holds), fmt.Sprint([]string{bulk.HoldEngine, ""}))
		for event, n := range map[string]int{"bulk_run_started": 1, "bulk_run_held": 1, "bulk_run_goes_on": 1, "bulk_run_done": 1} {
			want(t, event, d.said(event), n)
		}
	})
}

func (d *desk) said(event string) (n int) {
	for _, l := range d.logs.All() {
		if l.ContextMap()["event"] == event {
			n++
		}
	}
	return n
}

// TestEngineNotSeenYet: a worker that has just begun says nothing of an engine that answers a moment later.
func TestEngineNotSeenYet(t *testing.T) {
	play(t, func(d *desk) {
		d.up = time.Time{}
		d.run("a", 3, 6000)
		d.runner()
		time.Sleep(3 * time.Second)
		want(t, "decided", len(d.decisions()), 0)
		d.set(func() { d.up = time.Now() })
		d.within(3*time.Second, "done", d.ended("a"))
		want(t, "held", d.said("bulk_run_held"), 0)
	})
}

// TestJournalDown: in the middle of everything the store fails for ten minutes; it goes on where it was, and what was
// recorded all the same is not decided again.
func TestJournalDown(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		t.Run(fmt.Sprintf("recorded %v", recorded), func(t *testing.T) {
			play(t, func(d *desk) {
				d.run("a", 600, 600)
				d.fault = func(string) fault {
					if len(d.made) == 49 && !d.noStore { // once: with the next the store is gone
						d.noStore = !recorded
						d.fault = nil
						return fault{fmt.Errorf("record the decision: %w", journal.ErrUnavailable), recorded}
					}
					return fault{}
				}
				d.runner()
				if !recorded {
					d.within(time.Minute, "held", func() bool { return d.said("bulk_run_held") == 1 })
					time.Sleep(10 * time.Minute)
					want(t, "decided", len(d.decisions()), 49)
					d.set(func() { d.noStore = false })
				}
				d.within(5*time.Minute, "done", d.ended("a"))
				want(t, "decided", len(d.decisions()), 600)
				want(t, "counted as decided", d.state("a").Counts[journal.BulkDecided], 600)
				want(t, "held in the end", d.state("a").Hold, "")
				want(t, "told", d.said("bulk_run_held"), 1)
				next := slices.IndexFunc(d.decisions(), func(m made) bool { return m.id == "a/00050" })
				if next > 60 {
					t.Errorf("what was on its way when the store failed is decided as number %d", next+1)
				}
				d.once()
			})
		})
	}
}

// TestStoreDownWhileGathering: the run begins when the store is back.
func TestStoreDownWhileGathering(t *testing.T) {
	play(t, func(d *desk) {
		d.run("a", 1200, 6000)
		d.runner()
		d.within(time.Minute, "some are gathered", func() bool { return d.state("a").Total > 0 })
		d.set(func() { d.noStore = true })
		time.Sleep(time.Minute)
		d.set(func() { d.noStore = false })
		d.within(time.Minute, "done", d.ended("a"))
		want(t, "decided", len(d.decisions()), 1200)
	})
}

// TestSteering: a run that somebody pauses or cancels, by whichever replica, decides nothing more from that moment on.
func TestSteering(t *testing.T) {
	play(t, func(d *desk) {
		d.run("a", 300, 60)
		d.runner()
		d.within(2*time.Minute, "some", func() bool { return len(d.decisions()) >= 20 })
		d.set(func() { d.runs["a"].State = journal.BulkPaused })
		paused := len(d.decisions())
		time.Sleep(time.Hour)
		want(t, "decided while paused", len(d.decisions())-paused, 0)
		want(t, "told", d.said("bulk_run_stopped"), 1)
		d.set(func() { d.runs["a"].State = journal.BulkRunning })
		d.within(3*time.Second, "goes on", func() bool { return len(d.decisions()) > paused })
		time.Sleep(time.Minute)
		if got := most(d.decisions(), time.Minute); got > 61 {
			t.Errorf("%d in a minute after a pause, expected 60", got)
		}
		d.set(func() { d.runs["a"].State = journal.BulkCancelled })
		cancelled := len(d.decisions())
		time.Sleep(time.Hour)
		want(t, "decided after the end", len(d.decisions())-cancelled, 0)
		want(t, "left as they are", d.state("a").Counts[journal.BulkPlanned], 300-int64(cancelled))
	})
}

// TestStopOfAFastRunIsToldOnce: many decisions are on their way then.
func TestStopOfAFastRunIsToldOnce(t *testing.T) {
	play(t, func(d *desk) {
		d.takes = func() time.Duration { return 150 * time.Millisecond }
		d.run("a", 3000, 6000)
		d.runner()
		d.within(time.Minute, "some", func() bool { return len(d.decisions()) >= 500 })
		d.set(func() { d.runs["a"].State = journal.BulkPaused })
		paused := len(d.decisions())
		time.Sleep(time.Minute)
		want(t, "decided while paused", len(d.decisions())-paused, 0)
		want(t, "told", d.said("bulk_run_stopped"), 1)
		d.set(func() { d.runs["a"].State = journal.BulkRunning })
		d.within(time.Minute, "done", d.ended("a"))
		want(t, "decided", len(d.decisions()), 3000)
		d.once()
	})
}

// TestPauseAndResumeDoNotHurry: whoever presses both again and again gets nothing faster.
func TestPauseAndResumeDoNotHurry(t *testing.T) {
	play(t, func(d *desk) {
		d.run("a", 100, 2)
		d.runner()
		for range 100 {
			time.Sleep(2 * time.Second)
			d.set(func() { d.runs["a"].State = journal.BulkPaused })
			time.Sleep(2 * time.Second)
			d.set(func() { d.runs["a"].State = journal.BulkRunning })
		}
		if got := most(d.decisions(), time.Minute-time.Millisecond); got > 2 || len(d.decisions()) < 5 {
			t.Errorf("%d in a minute, of %d, expected 2", got, len(d.decisions()))
		}
	})
}

// TestPausedWhileGathering: it is gathered to the end and waits.
func TestPausedWhileGathering(t *testing.T) {
	play(t, func(d *desk) {
		d.run("a", 20_000, 6000)
		d.runner()
		d.within(time.Minute, "some are gathered", func() bool { return d.state("a").Total > 0 })
		d.set(func() { d.runs["a"].State = journal.BulkPaused })
		time.Sleep(time.Minute)
		want(t, "gathered", d.state("a").Total, 20_000)
		want(t, "decided", len(d.decisions()), 0)
		d.set(func() { d.runs["a"].State = journal.BulkRunning })
		d.within(4*time.Minute, "done", d.ended("a"))
	})
}

// TestDecidedByOthers: what somebody decided meanwhile is refused, with the code, and takes no turn.
func TestDecidedByOthers(t *testing.T) {
	play(t, func(d *desk) {
		d.run("a", 400, 60)
		for n := range 400 {
			if n%4 > 0 {
				d.others[fmt.Sprintf("a/%05d", n+1)] = true
			}
		}
		d.fault = func(id string) fault {
			if id == "a/00001" {
				return fault{err: fmt.Errorf("record the decision: %w", journal.ErrInvalid)}
			}
			return fault{}
		}
		d.runner()
		took := d.within(5*time.Minute, "done", d.ended("a"))
		counts := d.state("a").Counts
		want(t, "decided", counts[journal.BulkDecided], 99)
		want(t, "refused", counts[journal.BulkRefused], 301)
		want(t, "counted", d.counted, struct{ decided, refused int }{99, 301})
		want(t, "why", d.items["a"][1].Code, string(review.InvalidRetryState))
		want(t, "why", d.items["a"][0].Code, string(bulk.NotRecordable))
		if took > 105*time.Second {
			t.Errorf("took %s for 99 at 60 a minute: refusals took turns", took)
		}
	})
}

// TestSeveralRuns: each at its own pace, beside the others.
func TestSeveralRuns(t *testing.T) {
	play(t, func(d *desk) {
		for id, perMinute := range map[string]int64{"slow": 6, "normal": 60, "fast": 6000} {
			d.run(id, int(perMinute)*3, perMinute)
		}
		d.runner()
		for _, id := range []string{"slow", "normal", "fast"} {
			d.within(4*time.Minute, id, d.ended(id))
		}
		for id, perMinute := range map[string]int64{"slow": 6, "normal": 60, "fast": 6000} {
			var own []made
			for _, m := range d.decisions() {
				if m.run == id {
					own = append(own, m)
				}
			}
			took, should := own[len(own)-1].at.Sub(own[0].at), time.Duration(3*perMinute-1)*time.Minute/time.Duration(perMinute)
			if off := took - should; off < -should/20 || off > should/20 {
				t.Errorf("%s took %s, should take %s", id, took, should)
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
	for seed := range uint64(20) {
		play(t, func(d *desk) {
			draw := newDraw(seed, 2)
			d.takes = func() time.Duration { return time.Duration(1+draw(400)) * time.Millisecond }
			d.fault = func(string) fault {
				if draw(20) == 0 {
					return fault{errors.New("who knows"), draw(2) == 0}
				}
				return fault{}
			}
			d.run("a", 700, 120)
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
			d.within(time.Hour, "done", d.ended("a"))
			want(t, "decided", len(d.decisions()), 700)
			want(t, "counted as decided", d.state("a").Counts[journal.BulkDecided], 700)
			if got := most(d.decisions(), time.Minute); got > 122 {
				t.Errorf("seed %d: %d in a minute, expected 120", seed, got)
			}
			d.once()
		})
	}
}

// TestStopAwaitsWhatHasBegun: and begins nothing more.
func TestStopAwaitsWhatHasBegun(t *testing.T) {
	play(t, func(d *desk) {
		d.takes = func() time.Duration { return 3 * time.Second }
		d.run("a", 100, 1200) // 20 are on their way at once
		r := d.runner()
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		began := time.Now()
		r.stop()
		<-r.done
		want(t, "decided", len(d.decisions()), 20)
		want(t, "counted", d.counted.decided, 20)
		if took := time.Since(began); took == 0 || took > 3*time.Second {
			t.Errorf("the stop took %s, expected the rest of a decision of 3 s", took)
		}
	})
}

// TestSecondRunner: two at once, as after a machine that stood still, decide nothing twice and keep each outcome.
func TestSecondRunner(t *testing.T) {
	play(t, func(d *desk) {
		d.takes = func() time.Duration { return 5 * time.Millisecond }
		d.run("a", 1000, 6000)
		d.runner()
		d.runner()
		d.within(time.Minute, "done", d.ended("a"))
		want(t, "decided", len(d.decisions()), 1000)
		want(t, "counted as decided", d.state("a").Counts[journal.BulkDecided], 1000)
	})
}
