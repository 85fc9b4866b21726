package demo

import (
	"context"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/worker"
)

// publisher notes the messages that are published.
type publisher struct {
	Engine
	sent []string
}

func (p *publisher) Publish(_ context.Context, name, key string, _ time.Duration) error {
	p.sent = append(p.sent, name+" "+key)
	return nil
}

// TestDependenciesAreResolvedOneByOne: each look finds one less, and the engine hears of it unless the sample is silent.
func TestDependenciesAreResolvedOneByOne(t *testing.T) {
	for _, silent := range []bool{false, true} {
		x := &Sample{ID: "QUEUE-1", Open: 2, Silent: silent}
		processes := []*Process{queuedJobs()}
		processes[0].Samples = []*Sample{x}
		engine := &publisher{}
		p := newPlayers(t.Context(), &Options{Engine: engine}, newStory(&strings.Builder{}, processes))
		check := p.answer(processes[0], func(g *progress) worker.Reply { return checkDependencies(p, g) })
		for look, want := range []string{`{"openDependencies":2}`, `{"openDependencies":1}`, `{"openDependencies":0}`} {
			job := &worker.Job{Key: int64(look), Variables: `{"jobId":"QUEUE-1"}`}
			r := check(t.Context(), job)
			if again := check(t.Context(), job); r.Variables != want || again.Variables != want {
				t.Errorf("look %d says %s, and %s when it is asked again, want %s", look+1, r.Variables, again.Variables, want)
			}
			if r.Taken != nil {
				r.Taken()
			}
		}
		want := "dependency-resolved QUEUE-1, dependency-resolved QUEUE-1"
		if silent {
			want = ""
		}
		if got := strings.Join(engine.sent, ", "); got != want {
			t.Errorf("silent %v: published %q, want %q", silent, got, want)
		}
	}
}

// TestStrangersKeepTheirJobs: the demo may run beside other instances of the same processes.
func TestStrangersKeepTheirJobs(t *testing.T) {
	processes := Processes(1)
	p := newPlayers(t.Context(), &Options{}, newStory(&strings.Builder{}, processes))
	r := p.answer(processes[0], p.try)(t.Context(), &worker.Job{Retries: 1, Variables: `{"claimId":"CLM-001-1"}`})
	if r.Action != worker.Failed || r.Failure.Retries != 1 || r.Failure.Backoff == 0 {
		t.Errorf("got %+v, want the job given back as it was, with a back-off", r)
	}
}

func TestWaitIsToldAsItIs(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for want, l := range map[string]logLine{
		"25 s":  {BackoffMinutes: 1, Timestamp: at, NextRetryTime: "2026-01-01T12:00:24.8Z"},
		"1.5 s": {BackoffMinutes: 1, Timestamp: at, NextRetryTime: "2026-01-01T12:00:01.4Z"},
		"1 min": {BackoffMinutes: 1, Timestamp: at, NextRetryTime: "2026-01-01T12:00:59.99Z"},
		"5 min": {BackoffMinutes: 5, Timestamp: at, NextRetryTime: "2026-01-01T12:05:00Z"},
	} {
		if got := l.wait(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
