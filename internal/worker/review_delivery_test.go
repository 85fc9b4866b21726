package worker_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/worker"
)

// TestKilledBeforeItIsRecorded: the engine took decisions and their worker could not record it any more. Whoever starts
// next, by a clock that is behind, finds the jobs gone, and their processes running: they have them.
func TestKilledBeforeItIsRecorded(t *testing.T) {
	withReviews(t, func(f *reviewFixture) {
		taken, first := f.waiting()
		cancelled, second := f.waiting()
		r := f.begin("a")
		time.Sleep(time.Minute)
		f.readOnlyFor(r, func() {
			f.retry(taken)
			f.retry(cancelled)
		})
		if !f.taken(first) || !f.taken(second) || f.delivered() {
			t.Fatal("the engine has not taken both, or that is recorded")
		}
		f.cancel(second)
		f.behind = 30 * time.Second
		f.begin("b")
		f.within(time.Minute, "both are settled", f.delivered)
		f.wantItem(taken, journal.DeadLetterReprocessing, journal.DeliveryTaken, deadletter.Answered)
		f.wantItem(cancelled, journal.DeadLetterOpen, journal.DeliveryNobody, deadletter.Nobody)
	})
}

// readOnlyFor lets people decide and kills a replica that can deliver that, but record nothing.
func (f *reviewFixture) readOnlyFor(r *replica, decide func()) {
	decide()
	f.Memory.Delay(time.Second) // what is recorded from now on comes too late
	time.Sleep(600 * time.Millisecond)
	r.die()
	f.Memory.Delay(0)
}

// TestUnrecordedEnd: what the engine said is not asked again, however long it takes to record it.
func TestUnrecordedEnd(t *testing.T) {
	withReviews(t, func(f *reviewFixture) {
		id, _ := f.waiting()
		f.begin("a")
		time.Sleep(time.Minute)
		f.retry(id)
		f.readOnly(true)
		before := f.calls()
		time.Sleep(10 * time.Minute)
		if n := f.calls() - before; n != 1 || f.delivered() {
			t.Errorf("the engine was asked %d times while its word could not be recorded, want once", n)
		}
		f.readOnly(false)
		f.within(time.Minute, "it is recorded", f.delivered)
		f.wantItem(id, journal.DeadLetterReprocessing, journal.DeliveryTaken, deadletter.Answered)
		f.wantActions(f.t, map[worker.Action]int{worker.Completed: 1})
	})
}

// TestRefusedDecision: an engine that will never take it is not asked for ever, and the item says that nobody has it.
func TestRefusedDecision(t *testing.T) {
	withReviews(t, func(f *reviewFixture) {
		id, _ := f.waiting()
		f.gateway.Inject(gateway.Fault{Method: gateway.CompleteJob, Code: codes.InvalidArgument})
		f.begin("a")
		time.Sleep(time.Minute)
		f.retry(id)
		f.within(time.Minute, "it is settled", f.delivered)
		f.wantItem(id, journal.DeadLetterOpen, journal.DeliveryNobody, deadletter.Nobody)
		if n := f.logs.FilterMessageSnippet("refuses a person's decision").Len(); n != 1 {
			t.Errorf("said %d times", n)
		}
		f.wantActions(f.t, map[worker.Action]int{worker.Failed: 1})
	})
}

// TestStopWhileDelivering: what is on its way arrives and is recorded; the rest waits for the next.
func TestStopWhileDelivering(t *testing.T) {
	const decisions = 300
	withReviews(t, func(f *reviewFixture) {
		for range decisions {
			f.waiting()
		}
		r := f.begin("a")
		time.Sleep(time.Minute)
		f.Memory.Delay(20 * time.Millisecond)
		page, _, err := f.DeadLetters.List(f.t.Context(), journal.DeadLetterFilter{}, "", 200)
		testkit.Must(t, err)
		for _, item := range page {
			f.discard(item.ID)
		}
		r.stop()
		taken := 0
		for _, j := range f.gateway.Journal() {
			if j.Type == worker.RetryReview && j.State == gateway.Completed {
				taken++
			}
		}
		if left := len(f.Memory.Outbox()); taken+left != len(page) || taken == 0 {
			t.Errorf("%d were taken and %d wait, of %d", taken, left, len(page))
		}
		f.Memory.Delay(0)
		f.begin("b")
		f.within(time.Minute, "all is delivered", f.delivered)
		f.wantActions(f.t, map[worker.Action]int{worker.Completed: len(page)})
	})
}

// TestWhatWentThroughIsNotSentAgain: a person sends a claim again, and before the engine can tell its process somebody reports that
// the portal has it. The process is told that.
func TestWhatWentThroughIsNotSentAgain(t *testing.T) {
	for name, o := range map[string]journal.Outcome{"it succeeded": {Success: true}, "it was there": {Accepted: &journal.Acceptance{}}} {
		withReviews(t, func(f *reviewFixture) {
			id, job := f.waiting()
			f.begin("a")
			time.Sleep(time.Minute)
			away := f.gateway.Inject(gateway.Fault{Code: codes.Unavailable})
			f.retry(id)
			time.Sleep(time.Minute)
			o.Subject, o.By, o.DeadLetter = f.Item(id).Subject, "ana", id
			_, err := f.Journal.Conclude(f.t.Context(), &o)
			testkit.Must(t, err)
			away.Remove()
			f.within(time.Minute, "it is settled", f.delivered)
			if said := f.said(job, gateway.CompleteJob); said == nil || !strings.Contains(said.Variables, `"reviewDecision":"discard"`) {
				t.Errorf("%s: the process is told %+v", name, said)
			}
			if got := f.deliveries(id); !slices.Equal(got, []string{"taken"}) {
				t.Errorf("%s: the audit has %v of its delivery", name, got)
			}
		})
	}
}

// TestLostAnswer: a try whose answer was lost, and then the job is gone. Where the process runs on, or has reported since
// how it went, it has the decision; where it was cancelled meanwhile, nobody has.
func TestLostAnswer(t *testing.T) {
	cancelled := func(*reviewFixture, string) {}
	for name, tt := range map[string]struct {
		arrives  bool                         // the first try does
		ends     func(*reviewFixture, string) // the process, before the next one; nil: it runs on
		action   worker.Action
		state    journal.DeadLetterState
		delivery journal.Delivery
		process  deadletter.Process
	}{
		"it runs on":      {true, nil, worker.Unconfirmed, journal.DeadLetterReprocessing, journal.DeliveryTaken, deadletter.Answered},
		"it went through": {true, (*reviewFixture).reports, worker.Unconfirmed, journal.DeadLetterRecovered, journal.DeliveryTaken, deadletter.Answered},
		"it died again":   {true, (*reviewFixture).fails, worker.Unconfirmed, journal.DeadLetterSuperseded, journal.DeliveryTaken, deadletter.Answered},
		"it was ended":    {true, cancelled, worker.Superseded, journal.DeadLetterOpen, journal.DeliveryNobody, deadletter.Nobody},
		"never arrived":   {false, cancelled, worker.Superseded, journal.DeadLetterOpen, journal.DeliveryNobody, deadletter.Nobody},
	} {
		t.Run(name, func(t *testing.T) {
			withReviews(t, func(f *reviewFixture) {
				id, job := f.waiting()
				f.begin("a")
				time.Sleep(time.Minute)
				lost := gateway.Fault{Method: gateway.CompleteJob, DropAck: true, Times: 1}
				if !tt.arrives {
					lost = gateway.Fault{Code: codes.Unavailable}
				}
				fault := f.gateway.Inject(lost)
				f.retry(id)
				f.within(time.Minute, "the first try", func() bool { return !tt.arrives || f.taken(job) })
				if tt.ends != nil {
					tt.ends(f, id)
					f.cancel(job)
				}
				time.Sleep(30 * time.Second)
				fault.Remove()
				f.within(time.Minute, "it is settled", f.delivered)
				f.wantItem(id, tt.state, tt.delivery, tt.process)
				if got := f.deliveries(id); !slices.Equal(got, []string{string(tt.delivery)}) {
					t.Errorf("the audit has %v of its delivery", got)
				}
				f.wantActions(f.t, map[worker.Action]int{tt.action: 1})
			})
		})
	}
}
