package worker_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// TestReviewJobWaits: it is recorded, kept for a day, and not answered; a stop does not hand it back.
func TestReviewJobWaits(t *testing.T) {
	atDesk(t, func(d *desk) {
		id, job := d.waiting()
		r := d.begin("a")
		d.within(time.Second, "its process waits", func() bool { return d.item(id).Process == review.Waiting })
		if got := d.item(id).ReviewJobKey; got != job.Key {
			t.Errorf("the job's key is recorded as %d, want %d", got, job.Key)
		}
		time.Sleep(10 * time.Minute)
		r.stop()
		if j := d.of(job); j.gone || len(j.given) != 1 || j.Retries != 3 || time.Until(j.lockedUntil) < 23*time.Hour || time.Until(j.lockedUntil) > 24*time.Hour {
			t.Errorf("after ten minutes and a stop: %+v, want it locked for a day, as it was", j)
		}
		if n := d.actions(); len(n) != 0 || d.highest != 0 {
			t.Errorf("counted as %v with %d in flight, want nothing: it is not answered, and takes nobody's place", n, d.highest)
		}
		p := d.polls[0]
		if !slices.Contains(p.Variables, worker.DeadLetterVariable) || !slices.Contains(p.Variables, "claimId") || p.JobType != worker.RetryReview {
			t.Errorf("asked with %+v", p)
		}
	})
}

// TestReviewJobThatComesAgain is a heartbeat: another look, and no other record.
func TestReviewJobThatComesAgain(t *testing.T) {
	atDesk(t, func(d *desk) {
		id, job := d.waiting()
		d.begin("a")
		time.Sleep(time.Minute)
		first, head := d.item(id), headOf(d)
		d.set(func() { job.lockedUntil = time.Now() }) // the day is over
		time.Sleep(time.Minute)
		again := d.item(id)
		if n := len(d.of(job).given); n != 2 {
			t.Errorf("handed out %d times, want 2", n)
		}
		if !again.ReviewSeen.After(first.ReviewSeen.Add(50*time.Second)) || again.ReviewJobKey != job.Key || headOf(d) != head {
			t.Errorf("seen %v, then %v; head %v, then %v", first.ReviewSeen, again.ReviewSeen, head, headOf(d))
		}
	})
}

func headOf(d *desk) journal.Head {
	d.t.Helper()
	head, err := d.store.Head(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return head
}

// TestLostReviewJobComesSoon: what was activated for a process that died before it could record it is back while it is
// still expected, and not the day after.
func TestLostReviewJobComesSoon(t *testing.T) {
	atDesk(t, func(d *desk) {
		id, job := d.waiting()
		d.store.Delay(time.Second)
		r := d.begin("a")
		d.within(10*time.Second, "it is handed out", func() bool { return len(d.of(job).given) == 1 })
		r.die()
		d.store.Delay(0)
		d.begin("b")
		d.within(40*time.Second, "its process waits", func() bool { return d.item(id).Process == review.Waiting })
	})
}

// TestReviewJobsOfAnEngineThatCannotKeepThem come every half minute; that is said once.
func TestReviewJobsOfAnEngineThatCannotKeepThem(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.noHold = true
		id, job := d.waiting()
		d.waiting()
		d.begin("a")
		time.Sleep(10 * time.Minute)
		if n := len(d.of(job).given); n < 18 || n > 21 {
			t.Errorf("handed out %d times in 10 minutes, want every 30 s", n)
		}
		if n := d.logs.FilterMessageSnippet("does not keep review jobs").Len(); n != 1 {
			t.Errorf("said %d times", n)
		}
		d.retry(id)
		d.within(time.Minute, "it is delivered", d.delivered)
		d.wantItem(id, journal.DeadLetterReprocessing, journal.DeliveryTaken, review.Answered)
	})
}

// TestReviewJobsThatNameNothing become incidents that say what was expected (R11).
func TestReviewJobsThatNameNothing(t *testing.T) {
	const unknown = "11111111-2222-3333-4444-555555555555"
	atDesk(t, func(d *desk) {
		id, _ := d.dead()
		for name, variables := range map[string]string{
			"none": `{}`, "null": `{"deadLetterId":null}`, "a number": `{"deadLetterId":7}`, "an object": `{"deadLetterId":{}}`,
			"no id": `{"deadLetterId":"CLM-1-1"}`, "a hostile one": `{"deadLetterId":"x\u0000' or 1=1"}`, "unknown": `{"deadLetterId":"` + unknown + `"}`,
			"capitals": `{"deadLetterId":"` + strings.ToUpper(id) + `"}`, "another claim's": `{"claimId":"CLM-9-9","deadLetterId":"` + id + `"}`,
			"no claim's": `{"claimId":7,"deadLetterId":"` + id + `"}`, "no JSON": `{`, "too much": `{"x":"` + strings.Repeat("x", 1<<20) + `"}`,
		} {
			job := d.waits(1, variables)
			r := d.begin("a")
			d.within(10*time.Second, name, func() bool { return d.of(job).incident != "" })
			r.stop()
			message := d.of(job).incident
			if code, _, _ := strings.Cut(message, ":"); !slices.Contains(decision.RejectionCodes(), decision.RejectionCode(code)) || !strings.Contains(message, "expected") {
				t.Errorf("%s: the incident says %q", name, message)
			}
		}
		if d.item(id).ReviewJobKey != 0 {
			t.Error("one of them waits for the dead letter all the same")
		}
	})
}

// TestReviewJobOfAnotherTenant knows nothing of this one's dead letter.
func TestReviewJobOfAnotherTenant(t *testing.T) {
	atDesk(t, func(d *desk) {
		id, job := d.waiting()
		d.set(func() { job.TenantID = "hospital-b" })
		d.begin("a")
		d.within(10*time.Second, "an incident", func() bool { return d.of(job).incident != "" })
		if d.item(id).ReviewJobKey != 0 {
			t.Error("another tenant's process waits for it")
		}
	})
}

// TestReviewJobWithoutItsClaim: the dead letter's id says it all.
func TestReviewJobWithoutItsClaim(t *testing.T) {
	atDesk(t, func(d *desk) {
		id, instance := d.dead()
		d.waits(instance, `{"deadLetterId":"`+id+`"}`)
		d.begin("a")
		d.within(10*time.Second, "its process waits", func() bool { return d.item(id).Process == review.Waiting })
	})
}

// TestReviewJobsWhileTheJournalIsDown go back as they came, neither in a circle nor for good.
func TestReviewJobsWhileTheJournalIsDown(t *testing.T) {
	for name, fault := range map[string]func(d *desk, down bool){
		"down":      func(d *desk, down bool) { d.store.SetDown(down) },
		"read only": func(d *desk, down bool) { d.readOnly(down) },
	} {
		t.Run(name, func(t *testing.T) {
			atDesk(t, func(d *desk) {
				id, job := d.waiting()
				fault(d, true)
				d.begin("a")
				time.Sleep(10 * time.Minute)
				if n := len(d.of(job).given); n > 10*60/2+5 {
					t.Errorf("handed out %d times in 10 minutes", n)
				}
				fault(d, false)
				d.within(time.Minute, "its process waits", func() bool { return d.item(id).Process == review.Waiting })
				if d.of(job).Retries != 3 {
					t.Errorf("%d retries are left, want all 3", d.of(job).Retries)
				}
			})
		})
	}
}

// readOnly makes every transaction fail while reading works.
func (d *desk) readOnly(on bool) {
	d.store.Heal()
	if on {
		d.store.Fail(1<<16, testkit.Fault{})
	}
}

// TestManyReviewJobs are taken in small numbers, however many wait: none stays in the worker.
func TestManyReviewJobs(t *testing.T) {
	const many = 500
	atDesk(t, func(d *desk) {
		var ids []string
		for range many {
			id, _ := d.waiting()
			ids = append(ids, id)
		}
		d.begin("a")
		time.Sleep(time.Minute)
		if i := slices.IndexFunc(ids, func(id string) bool { return d.item(id).ReviewJobKey == 0 }); i >= 0 {
			t.Errorf("after a minute the process of dead letter %d is not known to wait", i)
		}
		jobs, most := d.all()
		if most > 64 {
			t.Errorf("%d were taken at once", most)
		}
		for _, j := range jobs {
			if len(j.given) != 1 {
				t.Fatalf("a job was handed out %d times", len(j.given))
			}
		}
	})
}

// TestDecisionReachesTheProcess with exactly the contract's variables; the job leaves as completed.
func TestDecisionReachesTheProcess(t *testing.T) {
	atDesk(t, func(d *desk) {
		again, first := d.waiting()
		away, second := d.waiting()
		d.begin("a")
		time.Sleep(time.Second)
		d.retry(again)
		d.discard(away)
		next := d.item(again).Review.NextRetryTime
		d.within(time.Second, "both are delivered", d.delivered)
		wantVariables(t, d.of(first).taken, map[string]any{"reviewDecision": "reprocess", "reviewReason": "portal de volta", "reviewedBy": "maria", "shouldRetry": true,
			"retryCount": 3.0, "nextRetryTime": decision.Instant(next), "backoffMinutes": minutes(next), "backoffDuration": fmt.Sprintf("PT%vM", minutes(next))})
		wantVariables(t, d.of(second).taken, map[string]any{"reviewDecision": "discard", "reviewReason": "duplicada", "reviewedBy": "maria"})
		d.wantItem(again, journal.DeadLetterReprocessing, journal.DeliveryTaken, review.Answered)
		d.wantItem(away, journal.DeadLetterDiscarded, journal.DeliveryTaken, review.Answered)
		if n := d.actions(); !maps.Equal(n, map[worker.Action]int{worker.Completed: 2}) {
			t.Errorf("counted as %v", n)
		}
		if got := d.deliveries(again); !slices.Equal(got, []string{"taken"}) {
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
