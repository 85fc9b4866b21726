package worker_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// inForce are the policies in force; a test swaps them as a reload does.
type inForce struct {
	atomic.Pointer[decision.Policies]
}

func newInForce(ps decision.Policies) *inForce {
	f := &inForce{}
	f.Store(&ps)
	return f
}

func (f *inForce) policies() decision.Policies { return *f.Load() }

func (f *inForce) reload(ps decision.Policies) { f.Store(&ps) }

// versioned are some of policies(), as the catalogue of a version has them.
func versioned(version string, names ...string) decision.Policies {
	ps := decision.Policies{}
	for name, p := range policies() {
		if slices.Contains(names, name) {
			p.Catalogue = version
			ps[name] = p
		}
	}
	return ps
}

const (
	tiss, quick = decision.DefaultPolicy, "quick"
	older       = "aaaaaaaaaaaa"
	newer       = "bbbbbbbbbbbb"
)

// ofQuick is a job that names the policy quick.
func ofQuick(jobType string) worker.Job {
	return job(jobType, `{"retryPolicy":"quick"}`, `{"messageId":"m-1","sendError":"TIMEOUT"}`)
}

// TestReloadBetweenPollAndHandling: jobs that wait in the worker's own queue while a reload comes are decided by the
// catalogue whose variables they were fetched with, one of a policy that is gone by then too; the next poll asks by the new one.
func TestReloadBetweenPollAndHandling(t *testing.T) {
	bubble(t, func(t *testing.T) {
		e, f := newEngine(), newInForce(versioned(older, tiss, quick))
		first, second := jobs(worker.AnalyzeRetry, 1, 3), jobs(worker.AnalyzeRetry, 4, 1)
		for i, j := range []*worker.Job{&first[0], &first[1], &second[0]} {
			j.Variables = fmt.Sprintf(`{"claimId":"CLM-1-%d","submissionError":"TIMEOUT"}`, i+1)
		}
		gone := ofQuick(worker.AnalyzeRetry)
		first[2].Headers, first[2].Variables = gone.Headers, gone.Variables
		e.offers(first, second)
		told := newTally()
		memory := testkit.StartJournal(t, testkit.NewMemory(), time.Now)
		handlers := worker.NewHandlers(worker.Options{Policies: f.policies, Memory: memory, Now: time.Now, Hooks: told.hooks(), Log: zap.NewNop()})
		slow := func() worker.Activation {
			a := handlers.Begin(worker.AnalyzeRetry)
			return worker.Activation{Variables: a.Variables, Handler: func(ctx context.Context, j *worker.Job) worker.Reply {
				time.Sleep(time.Second)
				return a.Handler(ctx, j)
			}}
		}
		cfg := config()
		cfg.Concurrency, cfg.MaxJobsActive = 1, 3 // so that the second poll waits for places
		r := startTelling(t, told, e, cfg, []worker.Subscription{{JobType: worker.AnalyzeRetry, Begin: slow}})
		time.Sleep(500 * time.Millisecond)
		f.reload(versioned(newer, tiss))
		time.Sleep(9 * time.Second)
		r.finish(t)
		var got []string
		for _, d := range r.decided {
			got = append(got, d.SubjectID+" "+d.Catalogue)
		}
		want := []string{"CLM-1-1 " + older, "CLM-1-2 " + older, "m-1 " + older, "CLM-1-3 " + newer}
		if !slices.Equal(got, want) {
			t.Errorf("decided %v, want %v", got, want)
		}
		if polls := e.asked(); !slices.Contains(polls[0].Variables, "messageId") || slices.Contains(polls[1].Variables, "messageId") {
			t.Errorf("asked for %v, then for %v", polls[0].Variables, polls[1].Variables)
		}
	})
}
