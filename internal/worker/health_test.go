package worker_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zapcore"

	"retry-worker/internal/worker"
)

// TestEngineUpAndDown: the engine is up as long as one loop is served, and only changes are told.
func TestEngineUpAndDown(t *testing.T) {
	onEngine(t, func(t *testing.T, e *engine) {
		down := map[string]bool{"one": true, "two": true} // e.mu is held
		e.onPoll = func(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
			e.mu.Lock()
			refused := down[r.JobType]
			e.mu.Unlock()
			if refused {
				return nil, ambiguous
			}
			return idle(ctx, r)
		}
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
			e.mu.Lock()
			down[s.jobType] = s.down
			e.mu.Unlock()
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
