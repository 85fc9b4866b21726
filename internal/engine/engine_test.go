package engine_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"retry-worker/bpmn"
	"retry-worker/internal/engine"
)

// begin of the tests' time.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a core with everybody around it.
type world struct {
	testing.TB
	*engine.Core
	now    time.Time
	events []engine.Event // all
}

func newWorld(tb testing.TB) *world { return &world{TB: tb, Core: engine.New(), now: begin} }

func (w *world) do(command engine.Command) []engine.Event {
	w.Helper()
	events, err := w.Apply(command, w.now)
	if err != nil {
		w.Fatal(err)
	}
	if w.events != nil {
		w.events = append(w.events, events...)
	}
	return events
}

func (w *world) deploy(content string) {
	w.Helper()
	w.do(engine.Deploy{Resources: []engine.Resource{{Name: "model.bpmn", Content: content}}, Tenant: engine.DefaultTenant})
}

// take activates the jobs of a type.
func (w *world) take(jobType string) []engine.Job {
	w.Helper()
	return w.Jobs(w.do(engine.Activate{Type: jobType, Worker: "test", Timeout: time.Minute, Max: 100, Tenants: []string{engine.DefaultTenant}}), nil)
}

// pass has time pass to the next thing that is due.
func (w *world) pass() {
	if next, ok := w.NextDue(); ok {
		w.now = next
		w.events = append(w.events, w.Tick(w.now)...)
	}
}

// round plays a claim through SUB_06 whose first submission fails and whose second succeeds, and returns how many jobs were answered.
func (w *world) round(n int) (jobs int) {
	w.do(engine.Create{ProcessID: "SUB_06", Version: engine.Latest, Tenant: engine.DefaultTenant, Variables: fmt.Sprintf(`{"claimId":"CLM-%d"}`, n)})
	answers := []struct{ jobType, variables, thrown string }{
		{"submission-gate", `{"gateHeld":"PT0S","gateReason":"up","gateCanary":false}`, ""},
		{"submit-claim", `{"submissionError":"TIMEOUT"}`, "SUBMISSION_FAILED"},
		{"analyze-retry", `{"shouldRetry":true,"retryCount":1,"maxRetries":5,"backoffMinutes":5,"nextRetryTime":"` +
			w.now.Add(5*time.Minute).Format(time.RFC3339) + `","retryReason":"Transient error, retry 1 of 5","errorClassification":"TRANSIENT"}`, ""},
		{"submission-gate", `{"gateHeld":"PT0S"}`, ""}, {"submit-claim", `{}`, ""}, {"record-retry-outcome", `{}`, ""},
	}
	for _, a := range answers {
		taken := w.take(a.jobType)
		if len(taken) == 0 {
			w.pass()
			taken = w.take(a.jobType)
		}
		if len(taken) != 1 {
			w.Fatalf("%d jobs of type %s, expected 1", len(taken), a.jobType)
		}
		if jobs++; a.thrown != "" {
			w.do(engine.Throw{Key: taken[0].Key, Code: a.thrown, Variables: a.variables})
		} else {
			w.do(engine.Complete{Key: taken[0].Key, Variables: a.variables})
		}
	}
	return jobs
}

func sub06(tb testing.TB) string {
	for _, m := range bpmn.Models() {
		if m.ProcessID == "SUB_06" {
			return string(m.Content)
		}
	}
	tb.Fatal("there is no SUB_06")
	return ""
}

// TestStateIsTheFoldOfEvents has a second core that only folds, by way of JSON, go on where the first stood.
func TestStateIsTheFoldOfEvents(t *testing.T) {
	w := newWorld(t)
	w.events = []engine.Event{}
	w.deploy(sub06(t))
	w.round(1)
	w.do(engine.Create{ProcessID: "SUB_06", Version: engine.Latest, Tenant: engine.DefaultTenant, Variables: `{"claimId":"CLM-2"}`})
	text, err := json.Marshal(w.events)
	if err != nil {
		t.Fatal(err)
	}
	var events []engine.Event
	if err := json.Unmarshal(text, &events); err != nil {
		t.Fatal(err)
	}
	again := newWorld(t)
	for i := range events {
		again.Fold(&events[i])
	}
	again.now = w.now
	a, b := fmt.Sprintf("%+v", w.take("submission-gate")), fmt.Sprintf("%+v", again.take("submission-gate"))
	if a != b || a == "[]" {
		t.Errorf("the core that folded gives\n%s\nthe other\n%s", b, a)
	}
	if w.Position() != again.Position() {
		t.Errorf("positions are %d and %d", w.Position(), again.Position())
	}
}

// TestTextsAreKeptWithoutNeedlessEscapes: a worker whose JSON escapes HTML does not make a text six times as long.
func TestTextsAreKeptWithoutNeedlessEscapes(t *testing.T) {
	w := newWorld(t)
	w.deploy(sub06(t))
	w.do(engine.Create{ProcessID: "SUB_06", Version: engine.Latest, Tenant: engine.DefaultTenant,
		Variables: `{"n":9007199254740993, "text":"\u003cb\u003e \"\\\n\u0001 é","list":[{"a":"\u0026"}]}`})
	const want = `{"list":[{"a":"&"}],"n":9007199254740993,"text":"<b> \"\\\n\u0001 é"}`
	if got := w.take("submission-gate"); len(got) != 1 || got[0].Variables != want {
		t.Errorf("the job has %+v, expected the variables %s", got, want)
	}
}

func BenchmarkJob(b *testing.B) {
	w := newWorld(b)
	w.deploy(sub06(b))
	jobs := 0
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		jobs += w.round(i)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(jobs), "µs/job")
}
