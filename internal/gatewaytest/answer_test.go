package gatewaytest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/gatewaytest"
)

func TestLateAnswers(t *testing.T) {
	late := func(t *testing.T) (*gatewaytest.Engine, int64) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		key := e.AddJob(work(1)[0])
		grab(t, e, "a")
		time.Sleep(11 * time.Second)
		return e, key
	}
	t.Run("accepted while nobody else holds it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, key := late(t)
			wantCode(t, "late", e.Complete(t.Context(), completion("a", key)), codes.OK)
			if jobs, _ := e.Activate(t.Context(), ask("b", 1, -1)); len(jobs) != 0 {
				t.Error("a completed job was handed out")
			}
		})
	})
	t.Run("accepted while another holds it, whose answer is then NOT_FOUND", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, key := late(t)
			grab(t, e, "b")
			wantCode(t, "a, late", e.Complete(t.Context(), completion("a", key)), codes.OK)
			wantCode(t, "b", e.Complete(t.Context(), completion("b", key)), codes.NotFound)
			if e.Counts().Held != 0 {
				t.Errorf("%d still held", e.Counts().Held)
			}
		})
	})
}

func TestFailJob(t *testing.T) {
	for name, tt := range map[string]struct {
		retries int
		backOff time.Duration
	}{
		"retries left, no back-off": {3, 0},
		"retries left, back-off":    {2, 7 * time.Second},
		"no retries: incident":      {0, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEngine(t, gatewaytest.EngineOptions{})
				key := e.AddJob(work(1)[0])
				grab(t, e, "w1")
				long := "x" + strings.Repeat("é", 6000)
				err := e.Fail(t.Context(), gatewaytest.FailRequest{
					JobKey: key, Retries: tt.retries, BackOff: tt.backOff, Message: long, Variables: `{"note":1}`, Caller: "w1",
				})
				wantCode(t, "fail", err, codes.OK)
				if m := record(t, e, key).Answers[0].Message; m != long[:9_999] {
					t.Errorf("message kept with %d bytes, want the 9,999 of whole letters below 10,000", len(m))
				}
				begin := time.Now()
				jobs, _ := e.Activate(t.Context(), ask("w2", 1, time.Minute))
				if tt.retries == 0 {
					if len(jobs) != 0 || record(t, e, key).State != gatewaytest.Incident {
						t.Errorf("%d jobs in state %v, want an incident", len(jobs), record(t, e, key).State)
					}
					return
				}
				if len(jobs) != 1 || time.Since(begin) != tt.backOff {
					t.Fatalf("%d jobs after %v, want one after %v", len(jobs), time.Since(begin), tt.backOff)
				}
				if jobs[0].Retries != tt.retries || !strings.Contains(jobs[0].Variables, `"note":1`) {
					t.Errorf("handed out with %d retries and %s", jobs[0].Retries, jobs[0].Variables)
				}
			})
		})
	}
}

func TestAnswersDuringBackOffIncidentAndUncaughtError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{UncaughtErrors: []string{"NOBODY"}})
		ctx := t.Context()
		keys := e.AddJobs(work(3)...)
		if jobs, _ := e.Activate(ctx, ask("w1", 3, -1)); len(jobs) != 3 {
			t.Fatalf("%d jobs", len(jobs))
		}
		wantCode(t, "back-off", e.Fail(ctx, gatewaytest.FailRequest{JobKey: keys[0], Retries: 2, BackOff: time.Second}), codes.OK)
		wantCode(t, "incident", e.Fail(ctx, gatewaytest.FailRequest{JobKey: keys[1]}), codes.OK)
		wantCode(t, "uncaught", e.Throw(ctx, gatewaytest.ThrowRequest{JobKey: keys[2], Code: "NOBODY"}), codes.OK)
		for _, key := range keys {
			wantCode(t, "complete", e.Complete(ctx, completion("w1", key)), codes.FailedPrecondition)
			wantCode(t, "fail", e.Fail(ctx, gatewaytest.FailRequest{JobKey: key}), codes.FailedPrecondition)
			wantCode(t, "throw", e.Throw(ctx, gatewaytest.ThrowRequest{JobKey: key}), codes.FailedPrecondition)
		}
		time.Sleep(time.Second)
		wantCode(t, "after the back-off", e.Complete(ctx, completion("w1", keys[0])), codes.OK)
	})
}

func TestResolvingAnIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		ctx := t.Context()
		key := e.AddJob(work(1)[0])
		grab(t, e, "w1")
		wantCode(t, "fail", e.Fail(ctx, gatewaytest.FailRequest{JobKey: key}), codes.OK)
		incident := record(t, e, key).Incident
		wantCode(t, "no retries yet", e.Resolve(ctx, "", incident), codes.FailedPrecondition)
		wantCode(t, "0 retries", e.UpdateRetries(ctx, "", key, 0), codes.InvalidArgument)
		wantCode(t, "1 retry", e.UpdateRetries(ctx, "", key, 1), codes.OK)
		set := gatewaytest.SetVariablesRequest{ElementInstanceKey: record(t, e, key).ElementInstanceKey, Variables: `{"claimId":"CLM-T-2"}`}
		wantCode(t, "correct the variable", e.SetVariables(ctx, set), codes.OK)
		wantCode(t, "resolve", e.Resolve(ctx, "", incident), codes.OK)
		wantCode(t, "resolve again", e.Resolve(ctx, "", incident), codes.NotFound)
		if j := grab(t, e, "w1"); j.Key != key || !strings.Contains(j.Variables, "CLM-T-2") {
			t.Errorf("handed out %d with %s, want the same key and the corrected variable", j.Key, j.Variables)
		}
	})
}

func TestUpdateTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		key := e.AddJob(work(1)[0])
		wantCode(t, "nobody holds it", e.UpdateTimeout(t.Context(), "", key, time.Second), codes.FailedPrecondition)
		wantCode(t, "unknown", e.UpdateTimeout(t.Context(), "", 1, time.Second), codes.NotFound)
		grab(t, e, "w1")
		wantCode(t, "shorten", e.UpdateTimeout(t.Context(), "", key, time.Millisecond), codes.OK)
		begin := time.Now()
		jobs, _ := e.Activate(t.Context(), ask("w2", 1, time.Minute))
		if len(jobs) != 1 || time.Since(begin) != time.Millisecond {
			t.Errorf("%d jobs after %v, want one after 1ms", len(jobs), time.Since(begin))
		}
	})
}

func TestVariablesOfAThrownErrorReachTheProcessOnlyByMappingOrSetVariables(t *testing.T) {
	throw := func(t *testing.T, o gatewaytest.EngineOptions, set, local bool) string {
		e := newEngine(t, o)
		key := e.AddJob(work(1)[0])
		j := grab(t, e, "w1")
		if set {
			r := gatewaytest.SetVariablesRequest{ElementInstanceKey: j.ElementInstanceKey, Variables: `{"shouldRetry":false}`, Local: local}
			wantCode(t, "set", e.SetVariables(t.Context(), r), codes.OK)
		}
		wantCode(t, "throw", e.Throw(t.Context(), gatewaytest.ThrowRequest{JobKey: key, Code: "X", Variables: `{"shouldRetry":false}`}), codes.OK)
		return string(e.ProcessVariables(j.ProcessInstanceKey)["shouldRetry"])
	}
	for name, tt := range map[string]struct {
		o          gatewaytest.EngineOptions
		set, local bool
		want       string
	}{
		"thrown":              {want: ""},
		"thrown and mapped":   {o: gatewaytest.EngineOptions{MapErrorVariables: true}, want: "false"},
		"set, then thrown":    {set: true, want: "false"},
		"set local, and then": {set: true, local: true, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := throw(t, tt.o, tt.set, tt.local); got != tt.want {
					t.Errorf("the process sees shouldRetry %q, want %q", got, tt.want)
				}
			})
		})
	}
}

func TestCompletionPropagatesAndRefusesWhatIsNoObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		key := e.AddJob(work(1)[0])
		j := grab(t, e, "w1")
		for _, bad := range []string{`[1]`, `{"a":`, `null`, `7`} {
			err := e.Complete(t.Context(), gatewaytest.CompleteRequest{JobKey: key, Variables: bad})
			wantCode(t, bad, err, codes.InvalidArgument)
		}
		err := e.Complete(t.Context(), gatewaytest.CompleteRequest{JobKey: key, Variables: ` {"retryCount":2,"text":"<a>"}`})
		wantCode(t, "complete", err, codes.OK)
		seen := e.ProcessVariables(j.ProcessInstanceKey)
		if string(seen["retryCount"]) != "2" || string(seen["text"]) != `"<a>"` || string(seen["claimId"]) != `"CLM-T-1"` {
			t.Errorf("the process sees %s", seen)
		}
		wantCode(t, "again", e.Complete(t.Context(), completion("w1", key)), codes.NotFound)
	})
}

func TestScopesOfSetVariables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		e.AddJob(gatewaytest.Job{Type: "work", ProcessInstanceKey: 100, ElementInstanceKey: 200})
		set := func(scope int64, doc string) error {
			return e.SetVariables(t.Context(), gatewaytest.SetVariablesRequest{ElementInstanceKey: scope, Variables: doc})
		}
		wantCode(t, "process instance", set(100, `{"a":1}`), codes.OK)
		wantCode(t, "element instance", set(200, `{"b":2}`), codes.OK)
		wantCode(t, "unknown scope", set(300, `{}`), codes.NotFound)
		wantCode(t, "no object", set(100, `[]`), codes.InvalidArgument)
		if seen := e.ProcessVariables(100); string(seen["a"]) != "1" || string(seen["b"]) != "2" {
			t.Errorf("the process sees %s", seen)
		}
		if e.ProcessVariables(7) != nil {
			t.Error("an unknown instance has variables")
		}
		wantCode(t, "cancel", e.Cancel(t.Context(), "", 100), codes.OK)
		wantCode(t, "cancel again", e.Cancel(t.Context(), "", 100), codes.NotFound)
		wantCode(t, "scope of a cancelled instance", set(100, `{}`), codes.NotFound)
		wantCode(t, "its element", set(200, `{}`), codes.NotFound)
	})
}
