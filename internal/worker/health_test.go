package worker_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zapcore"

	"retry-worker/internal/worker"
)

// weather says which job types the engine serves now.
type weather struct {
	mu   sync.Mutex
	down map[string]bool
}

func (w *weather) set(jobType string, down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down[jobType] = down
}

func (w *weather) isDown(jobType string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.down[jobType]
}

func (w *weather) onPoll(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
	if w.isDown(r.JobType) {
		return nil, refusal(worker.Ambiguous)
	}
	return idle(ctx, r)
}

// TestEngineUpAndDown: the engine is up as long as one loop is served, and only changes are told.
func TestEngineUpAndDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEngine()
		w := &weather{down: map[string]bool{"one": true, "two": true}}
		e.onPoll = w.onPoll
		r := start(t, e, config(), []worker.Subscription{
			{JobType: "one", Begin: worker.Always(completing, "a")},
			{JobType: "two", Begin: worker.Always(completing, "a")},
		})
		steps := []struct {
			what    string
			jobType string
			down    bool
			ups     []bool // told so far
			lines   int    // logged so far
			level   zapcore.Level
		}{
			{"both are refused from the start", "one", true, []bool{false}, 2, zapcore.WarnLevel},
			{"one is served", "one", false, []bool{false, true}, 3, zapcore.InfoLevel},
			{"both are served", "two", false, []bool{false, true}, 4, zapcore.InfoLevel},
			{"one fails, the other is served", "one", true, []bool{false, true}, 5, zapcore.WarnLevel},
			{"both fail", "two", true, []bool{false, true, false}, 6, zapcore.WarnLevel},
			{"the other is served again", "two", false, []bool{false, true, false, true}, 7, zapcore.InfoLevel},
		}
		for _, s := range steps {
			w.set(s.jobType, s.down)
			time.Sleep(time.Minute) // many polls, of which one changes something
			synctest.Wait()
			if ups := r.upDown(); !slices.Equal(ups, s.ups) {
				t.Errorf("%s: the engine was said to be %v, want %v", s.what, ups, s.ups)
			}
			lines := r.logs.FilterMessageSnippet("polls").All()
			if len(lines) != s.lines {
				t.Fatalf("%s: %d log lines, want %d: %v", s.what, len(lines), s.lines, lines)
			}
			if last := lines[s.lines-1]; last.Level != s.level {
				t.Errorf("%s: said as %s, want %s", s.what, last.Level, s.level)
			}
		}
		line := r.logs.FilterMessageSnippet("polls").All()[4]
		if line.ContextMap()["jobType"] != "one" {
			t.Errorf("the line of the loop that fails names %v", line.ContextMap())
		}
		r.finish(t)
	})
}

// TestRecovery: once the engine is back, its jobs are taken within the longest pause.
func TestRecovery(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e := newEngine()
		w := &weather{down: map[string]bool{jobType: true}}
		e.onPoll = func(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
			if w.isDown(jobType) {
				return nil, refusal(worker.NotTaken)
			}
			if e.activated() == 0 {
				return jobs(r.JobType, 1, 10), nil
			}
			return idle(ctx, r)
		}
		r := start(t, e, config(), one(completing))
		time.Sleep(10 * time.Minute)
		w.set(jobType, false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r.wantActions(t, map[worker.Action]int{worker.Completed: 10})
		r.finish(t)
	})
}
