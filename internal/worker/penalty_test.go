package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"retry-worker/internal/worker"
)

// TestPenalty: an answer that the engine never takes costs one retry, never more than there are.
func TestPenalty(t *testing.T) {
	for before, after := range map[int32]int32{3: 2, 1: 0, 0: 0} {
		each(t, fmt.Sprintf("%d retries", before), func(t *testing.T, e *engine) {
			batch := jobs(jobType, 1, 1)
			batch[0].Retries = before
			e.offers(batch)
			e.onAnswer = says(&worker.EngineError{Kind: worker.Refused,
				Err: errors.New("bad document:\n{\"patient\":\"529.982.247-25\"} at column 1")}, taken)
			r := start(t, e, config(), one(replying(bpmnError)))
			time.Sleep(time.Second)
			r.finish(t)
			told := e.told()
			fail := told[len(told)-1].fail
			if fail.Retries != after || fail.Backoff != 10*time.Second {
				t.Errorf("given back with %d retries after %s, want %d after 10s", fail.Retries, fail.Backoff, after)
			}
			wantLine(t, fail.Message, "refused the worker's answer", "bad document", "at column 1")
			wantNoPersonalData(t, r, fail.Message, "529.982.247-25")
			if n := r.logs.FilterLevelExact(zapcore.ErrorLevel).Len(); n != 1 {
				t.Errorf("%d errors logged, want one", n)
			}
		})
	}
}

// TestPanic: a handler that panics costs its job a retry and nobody else anything.
func TestPanic(t *testing.T) {
	const cpf = "529.982.247-25"
	panics := map[string]func(){
		"text":          func() { panic("patient " + cpf) },
		"error":         func() { panic(errors.New("patient " + cpf)) },
		"runtime error": func() { _ = []byte(cpf)[len(cpf):][0] },
		"nil":           func() { panic(nil) },
	}
	for name, broken := range panics {
		each(t, name, func(t *testing.T, e *engine) {
			batch := jobs(jobType, 1, 20)
			batch[6].Variables = `{"submissionError":"` + cpf + `"}`
			e.offers(batch)
			cfg := config()
			cfg.Concurrency = 1
			r := start(t, e, cfg, one(func(_ context.Context, j *worker.Job) worker.Reply {
				if j.Key == 7 {
					broken()
				}
				return completion
			}))
			time.Sleep(time.Second)
			r.finish(t)
			r.wantActions(t, map[worker.Action]int{worker.Completed: 19, worker.Failed: 1})
			told := slices.DeleteFunc(e.told(), func(a answer) bool { return a.job.Key != 7 })
			if len(told) != 1 || told[0].fail.Retries != 2 || told[0].fail.Backoff != 10*time.Second {
				t.Fatalf("the job was answered by %+v, want one retry less and a back-off", told)
			}
			wantLine(t, told[0].fail.Message, "failed on this job")
			if r.panicked != 1 {
				t.Errorf("%d panics were counted, want 1", r.panicked)
			}
			lines := r.logs.FilterMessageSnippet("panicked").All()
			if len(lines) != 1 || lines[0].Level != zapcore.ErrorLevel || lines[0].ContextMap()["jobKey"] != int64(7) {
				t.Fatalf("logged %v, want one error that names the job", lines)
			}
			if stack := fmt.Sprint(lines[0].ContextMap()["stack"]); !strings.Contains(stack, "TestPanic") {
				t.Errorf("the log does not show where it panicked: %s", stack)
			}
			wantNoPersonalData(t, r, told[0].fail.Message, cpf)
		})
	}
}

// wantLine fails unless s is one line that holds all parts.
func wantLine(t *testing.T, s string, parts ...string) {
	t.Helper()
	if strings.ContainsAny(s, "\n\r") {
		t.Errorf("more than one line: %q", s)
	}
	for _, part := range parts {
		if !strings.Contains(s, part) {
			t.Errorf("%q does not say %q", s, part)
		}
	}
}

// wantNoPersonalData fails if the message to the engine or a log line holds the number, with its dots
// or without.
func wantNoPersonalData(t *testing.T, r *running, message, number string) {
	t.Helper()
	texts := []string{message}
	for _, line := range r.logs.All() {
		texts = append(texts, line.Message+" "+fmt.Sprint(line.ContextMap()))
	}
	digits := strings.NewReplacer(".", "", "-", "")
	if i := slices.IndexFunc(texts, func(s string) bool {
		return strings.Contains(digits.Replace(s), digits.Replace(number))
	}); i >= 0 {
		t.Errorf("%s is in %q", number, texts[i])
	}
}
