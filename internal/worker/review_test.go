package worker_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/worker"
)

// TestReviewJobWaits: it is recorded, kept for a day, by an engine that is busy at first, too, and not answered; a stop does
// not hand it back.
func TestReviewJobWaits(t *testing.T) {
	withReviews(t, func(f *reviewFixture) {
		f.gateway.Inject(gateway.Fault{Method: gateway.UpdateJobTimeout, Code: codes.ResourceExhausted, Times: 2})
		id, job := f.waiting()
		r := f.begin("a")
		f.within(time.Second, "its process waits", func() bool { return f.Item(id).Process == deadletter.Waiting })
		if got := f.Item(id).ReviewJobKey; got != job {
			t.Errorf("the job's key is recorded as %d, want %d", got, job)
		}
		time.Sleep(10 * time.Minute)
		r.stop()
		j := f.job(job)
		if long := time.Until(j.Activations[0].Deadline); j.State != gateway.Activated || len(j.Activations) != 1 || j.Retries != 3 || long < 23*time.Hour || long > 24*time.Hour {
			t.Errorf("after ten minutes and a stop: %+v, want it locked for a day, as it was", j)
		}
		if n := f.actions(); len(n) != 0 || f.highest != 0 {
			t.Errorf("counted as %v with %d in flight, want nothing: it is not answered, and takes nobody's place", n, f.highest)
		}
		p := f.gateway.Polls(worker.RetryReview)[0]
		if !slices.Contains(p.FetchVariable, worker.DeadLetterVariable) || !slices.Contains(p.FetchVariable, "claimId") {
			t.Errorf("asked with %v", p.ActivateJobsRequest)
		}
	})
}

// TestReviewJobThatComesAgain is known: it is held again, and nothing is recorded. The dead letter's id says it all.
func TestReviewJobThatComesAgain(t *testing.T) {
	withReviews(t, func(f *reviewFixture) {
		id, _, instance := f.dead()
		job := f.waits(instance, `{"deadLetterId":"`+id+`"}`)
		f.begin("a")
		time.Sleep(time.Minute)
		head := headOf(f)
		f.gateway.Advance(24 * time.Hour)
		time.Sleep(time.Minute)
		again := f.Item(id)
		if n := f.given(job); n != 2 {
			t.Errorf("handed out %d times, want 2", n)
		}
		if again.ReviewJobKey != job || headOf(f) != head {
			t.Errorf("job %d; head %v, then %v", again.ReviewJobKey, head, headOf(f))
		}
	})
}

func headOf(f *reviewFixture) journal.Head {
	f.t.Helper()
	head, err := f.Memory.Head(f.t.Context())
	testkit.Must(f.t, err)
	return head
}

// TestLostReviewJobComesSoon: what was activated for a process that died before it could record it is back while it is
// still expected, and not the day after.
func TestLostReviewJobComesSoon(t *testing.T) {
	withReviews(t, func(f *reviewFixture) {
		id, job := f.waiting()
		f.Memory.Delay(time.Second)
		r := f.begin("a")
		f.within(10*time.Second, "it is handed out", func() bool { return f.given(job) == 1 })
		r.die()
		f.Memory.Delay(0)
		f.begin("b")
		f.within(40*time.Second, "its process waits", func() bool { return f.Item(id).Process == deadletter.Waiting })
	})
}

// TestReviewJobsOfAnEngineThatCannotKeepThem come every half minute; that is said once.
func TestReviewJobsOfAnEngineThatCannotKeepThem(t *testing.T) {
	withReviews(t, func(f *reviewFixture) {
		f.gateway.Inject(gateway.Fault{Method: gateway.UpdateJobTimeout, Code: codes.Unimplemented})
		id, job := f.waiting()
		f.waiting()
		f.begin("a")
		time.Sleep(10 * time.Minute)
		if n := f.given(job); n < 18 || n > 21 {
			t.Errorf("handed out %d times in 10 minutes, want every 30 s", n)
		}
		if n := f.logs.FilterMessageSnippet("does not keep jobs that wait").Len(); n != 1 {
			t.Errorf("said %d times", n)
		}
		f.retry(id)
		f.within(time.Minute, "it is delivered", f.delivered)
		f.wantItem(id, journal.DeadLetterReprocessing, journal.DeliveryTaken, deadletter.Answered)
	})
}

// TestReviewJobsThatNameNothing become incidents that say what was expected (R11).
func TestReviewJobsThatNameNothing(t *testing.T) {
	const unknown, anotherTenants = "11111111-2222-3333-4444-555555555555", "another tenant's"
	withReviews(t, func(f *reviewFixture) {
		id, _, _ := f.dead()
		for name, variables := range map[string]string{
			"none": `{}`, "null": `{"deadLetterId":null}`, "a number": `{"deadLetterId":7}`, "an object": `{"deadLetterId":{}}`,
			"no id": `{"deadLetterId":"CLM-1-1"}`, "a hostile one": `{"deadLetterId":"x\u0000' or 1=1"}`, "unknown": `{"deadLetterId":"` + unknown + `"}`,
			"capitals": `{"deadLetterId":"` + strings.ToUpper(id) + `"}`, "another claim's": `{"claimId":"CLM-9-9","deadLetterId":"` + id + `"}`,
			anotherTenants: `{"deadLetterId":"` + id + `"}`,
			"no claim's":   `{"claimId":7,"deadLetterId":"` + id + `"}`, "too much": `{"x":"` + strings.Repeat("x", 1<<20) + `"}`,
		} {
			of := gateway.Job{Type: worker.RetryReview, Variables: variables}
			if name == anotherTenants {
				of.TenantID = anotherTenant
			}
			job := f.gateway.AddJob(of)
			r := f.begin("a")
			f.within(10*time.Second, name, func() bool { return f.job(job).State == gateway.Incident })
			r.stop()
			message := f.said(job, gateway.FailJob).Message
			if code, _, _ := strings.Cut(message, ":"); !slices.Contains(decision.RejectionCodes(), decision.RejectionCode(code)) || !strings.Contains(message, "expected") {
				t.Errorf("%s: the incident says %q", name, message)
			}
		}
		if f.Item(id).ReviewJobKey != 0 {
			t.Error("one of them waits for the dead letter all the same")
		}
	})
}

// TestReviewJobsWhileTheJournalIsDown go back as they came, neither in a circle nor for good.
func TestReviewJobsWhileTheJournalIsDown(t *testing.T) {
	for name, fault := range map[string]func(f *reviewFixture, down bool){
		"down":      func(f *reviewFixture, down bool) { f.Memory.SetDown(down) },
		"read only": func(f *reviewFixture, down bool) { f.readOnly(down) },
	} {
		t.Run(name, func(t *testing.T) {
			withReviews(t, func(f *reviewFixture) {
				id, job := f.waiting()
				fault(f, true)
				f.begin("a")
				time.Sleep(10 * time.Minute)
				if n := f.given(job); n > 10*60/2+5 {
					t.Errorf("handed out %d times in 10 minutes", n)
				}
				fault(f, false)
				f.within(time.Minute, "its process waits", func() bool { return f.Item(id).Process == deadletter.Waiting })
				if n := f.job(job).Retries; n != 3 {
					t.Errorf("%d retries are left, want all 3", n)
				}
			})
		})
	}
}

// readOnly makes every transaction fail while reading works.
func (f *reviewFixture) readOnly(on bool) {
	f.Memory.Heal()
	if on {
		f.Memory.Fail(1<<16, testkit.Fault{})
	}
}

// TestManyReviewJobs are taken in small numbers, however many wait: none stays in the worker.
func TestManyReviewJobs(t *testing.T) {
	const many = 500
	withReviews(t, func(f *reviewFixture) {
		var ids []string
		for range many {
			id, _ := f.waiting()
			ids = append(ids, id)
		}
		f.begin("a")
		time.Sleep(time.Minute)
		if i := slices.IndexFunc(ids, func(id string) bool { return f.Item(id).ReviewJobKey == 0 }); i >= 0 {
			t.Errorf("after a minute the process of dead letter %d is not known to wait", i)
		}
		for _, p := range f.gateway.Polls(worker.RetryReview) {
			if p.MaxJobsToActivate > 64 {
				t.Errorf("%d are taken at once", p.MaxJobsToActivate)
			}
		}
		if given := f.gateway.Counts().HandedOut; given != many {
			t.Fatalf("%d jobs were handed out %d times", many, given)
		}
	})
}

// TestDecisionReachesTheProcess with exactly the contract's variables; the job leaves as completed.
func TestDecisionReachesTheProcess(t *testing.T) {
	withReviews(t, func(f *reviewFixture) {
		again, first := f.waiting()
		away, second := f.waiting()
		f.begin("a")
		time.Sleep(time.Second)
		f.retry(again)
		f.discard(away)
		next := f.Item(again).Review.NextRetryTime
		f.within(time.Second, "both are delivered", f.delivered)
		wantVariables(t, f.said(first, gateway.CompleteJob).Variables, map[string]any{"reviewDecision": "reprocess", "reviewReason": "portal de volta", "reviewedBy": "maria", "shouldRetry": true,
			"retryCount": 3.0, "nextRetryTime": decision.Instant(next), "backoffMinutes": minutes(next), "backoffDuration": fmt.Sprintf("PT%vM", minutes(next))})
		wantVariables(t, f.said(second, gateway.CompleteJob).Variables, map[string]any{"reviewDecision": "discard", "reviewReason": "duplicada", "reviewedBy": "maria"})
		f.wantItem(again, journal.DeadLetterReprocessing, journal.DeliveryTaken, deadletter.Answered)
		f.wantItem(away, journal.DeadLetterDiscarded, journal.DeliveryTaken, deadletter.Answered)
		f.wantActions(f.t, map[worker.Action]int{worker.Completed: 2})
		if got := f.deliveries(again); !slices.Equal(got, []string{"taken"}) {
			t.Errorf("the audit has %v of its delivery", got)
		}
	})
}

// minutes from now to next, which lies as many whole minutes ahead.
func minutes(next time.Time) float64 { return time.Until(next).Round(time.Minute).Minutes() }

func wantVariables(t *testing.T, text string, want map[string]any) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil || !maps.Equal(got, want) {
		t.Errorf("completed with %s (%v), want %v", text, err, want)
	}
}
