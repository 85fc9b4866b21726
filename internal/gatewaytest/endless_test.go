package gatewaytest_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/gatewaytest"
)

func TestEndlessJobsGoThroughTheSameStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		e.SetEndless(gatewaytest.Endless{Types: []string{"work"}, Limit: 5, Job: gatewaytest.DefaultMix().Job})
		ctx := t.Context()
		jobs, err := e.Activate(ctx, ask("w1", 3, -1))
		if err != nil || len(jobs) != 3 {
			t.Fatalf("%d jobs, %v", len(jobs), err)
		}
		set := gatewaytest.SetVariablesRequest{ElementInstanceKey: jobs[1].ElementInstanceKey, Variables: `{}`}
		wantCode(t, "set variables", e.SetVariables(ctx, set), codes.OK)
		wantCode(t, "complete", e.Complete(ctx, completion("w1", jobs[0].Key)), codes.OK)
		wantCode(t, "again", e.Complete(ctx, completion("w1", jobs[0].Key)), codes.NotFound)
		wantCode(t, "throw", e.Throw(ctx, gatewaytest.ThrowRequest{JobKey: jobs[1].Key, Code: "X"}), codes.OK)
		wantCode(t, "set variables when gone", e.SetVariables(ctx, set), codes.NotFound)
		wantCode(t, "hand back", e.Fail(ctx, gatewaytest.FailRequest{JobKey: jobs[2].Key, Retries: 3}), codes.OK)
		rest, _ := e.Activate(ctx, ask("w2", 10, -1))
		if len(rest) != 3 || rest[0].Key != jobs[2].Key {
			t.Fatalf("%d jobs, want the one handed back and the last two of 5", len(rest))
		}
		time.Sleep(10 * time.Second)
		late, _ := e.Activate(ctx, ask("w1", 10, -1))
		for _, j := range late {
			wantCode(t, "fail", e.Fail(ctx, gatewaytest.FailRequest{JobKey: j.Key}), codes.OK)
		}
		c := e.Counts()
		if c.Jobs != 5 || c.HandedOut != 9 || c.TimedOut != 3 || c.HandedBack != 1 || c.Held != 0 || len(e.Journal()) != 0 {
			t.Errorf("counted %+v, %d in the journal", c, len(e.Journal()))
		}
		if c.In(gatewaytest.Completed) != 1 || c.In(gatewaytest.ErrorThrown) != 1 || c.In(gatewaytest.Incident) != 3 {
			t.Errorf("the jobs ended as %v", c)
		}
		if err := e.WaitAnswers(ctx, 5); err != nil {
			t.Error(err)
		}
	})
}

func TestWaitAnswersEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, gatewaytest.EngineOptions{})
		e.AddJob(work(1)[0])
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.WaitAnswers(ctx, 1); err == nil || !strings.Contains(err.Error(), "1 ACTIVATABLE") {
			t.Errorf("%v, want the engine's state", err)
		}
	})
}

func TestMixHoldsItsSharesInEveryHundred(t *testing.T) {
	m := gatewaytest.DefaultMix()
	for from := int64(0); from < 300; from += 100 {
		count := map[gatewaytest.Kind]int{}
		for n := from; n < from+100; n++ {
			count[m.Kind(n)]++
		}
		for k, share := range m.Shares {
			if count[gatewaytest.Kind(k)] != share {
				t.Errorf("jobs from %d on: %d of kind %v, want %d", from, count[gatewaytest.Kind(k)], gatewaytest.Kind(k), share)
			}
		}
	}
}

// TestMixMakesWhatItsKindsPromise judges the claims by the documents' words, not
// by the project's own decision.
func TestMixMakesWhatItsKindsPromise(t *testing.T) {
	m := gatewaytest.DefaultMix()
	m.At = time.Date(2026, 1, 12, 10, 0, 0, 0, time.UTC)
	id := regexp.MustCompile(`^CLM-.*-\d+$`)
	permanent := regexp.MustCompile(`INVALID_PATIENT_DATA|INSURANCE_EXPIRED|AUTHORIZATION_DENIED|DUPLICATE_CLAIM|INVALID_PROCEDURE_CODE`)
	transient := regexp.MustCompile(`(?i)TIMEOUT|CONNECTION_ERROR|SERVICE.UNAVAILABLE|NETWORK_ERROR|RATE_LIMIT|SERVER_ERROR|TEMPORARY_ERROR|\b50[34]\b`)
	for n := range int64(2000) {
		doc := m.Job(n).Variables
		var c struct {
			ClaimID, SubmissionError string
			RetryCount               int
			LastSubmissionTime       time.Time
		}
		if err := json.Unmarshal([]byte(doc), &c); err != nil {
			t.Fatalf("job %d: %v in %s", n, err, doc)
		}
		rejected := !id.MatchString(c.ClaimID) || c.RetryCount < 0 || strings.TrimSpace(c.SubmissionError) == ""
		want := gatewaytest.Transient
		switch {
		case rejected:
			want = gatewaytest.Rejected
		case c.RetryCount >= 5:
			want = gatewaytest.Exhausted
		case permanent.MatchString(c.SubmissionError):
			want = gatewaytest.Permanent
		case !transient.MatchString(c.SubmissionError):
			want = gatewaytest.Unknown
		}
		if got := m.Kind(n); got != want {
			t.Errorf("job %d is said to be %v and is %v: %s", n, got, want, doc)
		}
		if age := m.At.Sub(c.LastSubmissionTime); age < 0 || age >= time.Hour {
			t.Errorf("job %d was last submitted %v before", n, age)
		}
	}
}

func TestMixInWords(t *testing.T) {
	m := gatewaytest.DefaultMix()
	if again, err := gatewaytest.ParseMix(m.String()); err != nil || again != m {
		t.Errorf("%s became %s, %v", m, again, err)
	}
	if only, err := gatewaytest.ParseMix("permanent=100"); err != nil || only.Kind(5) != gatewaytest.Permanent {
		t.Errorf("%s, %v", only, err)
	}
	for _, bad := range []string{"", "transient", "transient=x", "soft=100", "transient=-1,unknown=101", "transient=60,transient=50"} {
		if m, err := gatewaytest.ParseMix(bad); err == nil {
			t.Errorf("%q was taken as %s", bad, m)
		}
	}
}
