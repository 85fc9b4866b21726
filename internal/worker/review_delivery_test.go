package worker_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/review"
	"retry-worker/internal/worker"
)

// TestEngineDownWhilePeopleDecide: 200 decisions wait for it, and each arrives once.
func TestEngineDownWhilePeopleDecide(t *testing.T) {
	const decisions = 200
	atDesk(t, func(d *desk) {
		var ids []string
		for range decisions {
			id, _ := d.waiting()
			ids = append(ids, id)
		}
		d.begin("a")
		time.Sleep(time.Minute)
		d.set(func() { d.down = true })
		for i, id := range ids {
			if i%2 == 0 {
				d.retry(id)
			} else {
				d.discard(id)
			}
		}
		before := d.calls()
		time.Sleep(time.Hour)
		if n := len(d.store.Outbox()); n != decisions {
			t.Errorf("%d decisions wait for the engine, want %d", n, decisions)
		}
		d.wantItem(ids[0], journal.DeadLetterReprocessing, journal.DeliveryPending, review.Waiting)
		d.set(func() { d.down = false })
		d.within(2*time.Minute, "all is delivered", d.delivered)
		for i, id := range ids {
			state := journal.DeadLetterReprocessing
			if i%2 == 1 {
				state = journal.DeadLetterDiscarded
			}
			d.wantItem(id, state, journal.DeliveryTaken, review.Answered)
		}
		if n := d.calls() - before; n != decisions {
			t.Errorf("the engine was asked %d times for %d decisions", n, decisions)
		}
	})
}

// TestInstanceCancelled: nobody takes the decision, and that is what the item says; what was sent again is open again.
func TestInstanceCancelled(t *testing.T) {
	atDesk(t, func(d *desk) {
		again, first := d.waiting()
		away, second := d.waiting()
		d.begin("a")
		time.Sleep(time.Minute)
		d.cancel(first)
		d.cancel(second)
		d.retry(again)
		d.discard(away)
		d.within(time.Minute, "both are settled", d.delivered)
		d.wantItem(again, journal.DeadLetterOpen, journal.DeliveryNobody, review.Nobody)
		d.wantItem(away, journal.DeadLetterDiscarded, journal.DeliveryNobody, review.Nobody)
		if n := d.actions(); !maps.Equal(n, map[worker.Action]int{worker.Superseded: 2}) {
			t.Errorf("counted as %v", n)
		}
		_, err := d.service.Retry(d.t.Context(), review.Command{ID: again, Reason: "r", By: "maria"})
		if r := review.Refused(err); r == nil || r.Code != review.InvalidRetryState {
			t.Errorf("retried once more: %v", err)
		}
		if got := d.deliveries(again); !slices.Equal(got, []string{"nobody"}) {
			t.Errorf("the audit has %v of its delivery", got)
		}
	})
}

// TestLostAnswer: a try whose answer was lost, and then the job is gone. Where the process runs on it has the decision;
// where it was cancelled meanwhile, nobody has.
func TestLostAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		cancelled bool
		action    worker.Action
		state     journal.DeadLetterState
		delivery  journal.Delivery
	}{
		"it runs on":    {false, worker.Unconfirmed, journal.DeadLetterReprocessing, journal.DeliveryTaken},
		"it was ended":  {true, worker.Superseded, journal.DeadLetterOpen, journal.DeliveryNobody},
		"never arrived": {true, worker.Superseded, journal.DeadLetterOpen, journal.DeliveryNobody},
	} {
		t.Run(name, func(t *testing.T) {
			atDesk(t, func(d *desk) {
				id, job := d.waiting()
				d.begin("a")
				time.Sleep(time.Minute)
				if name == "never arrived" {
					d.set(func() { d.down = true })
				} else {
					d.set(func() { d.deaf = 1 })
				}
				d.retry(id)
				d.within(time.Minute, "the first try", func() bool { return d.of(job).taken != "" || name == "never arrived" })
				if test.cancelled {
					d.cancel(job)
				}
				time.Sleep(time.Minute)
				d.set(func() { d.down = false })
				d.within(time.Minute, "it is settled", d.delivered)
				if i := d.item(id); i.State != test.state || i.Delivery != test.delivery {
					t.Errorf("it is %s, its answer %q; want %s, %q", i.State, i.Delivery, test.state, test.delivery)
				}
				if n := d.actions(); !maps.Equal(n, map[worker.Action]int{test.action: 1}) {
					t.Errorf("counted as %v, want one %s", n, test.action)
				}
			})
		})
	}
}

// TestLostAnswerOfADoneProcess: its answer was lost, and by the next try the process has ended. It had reported how.
func TestLostAnswerOfADoneProcess(t *testing.T) {
	for name, success := range map[string]bool{"well": true, "dead again": false} {
		t.Run(name, func(t *testing.T) {
			atDesk(t, func(d *desk) {
				id, job := d.waiting()
				d.begin("a")
				time.Sleep(time.Minute)
				d.set(func() { d.deaf = 1 })
				d.retry(id)
				d.within(time.Minute, "the first try", func() bool { return d.of(job).taken != "" })
				if success {
					d.reports(id)
				} else {
					d.fails(job.ProcessInstanceKey)
				}
				d.cancel(job)
				d.within(time.Minute, "it is settled", d.delivered)
				state := map[bool]journal.DeadLetterState{true: journal.DeadLetterRecovered, false: journal.DeadLetterSuperseded}[success]
				d.wantItem(id, state, journal.DeliveryTaken, review.Answered)
				if got := d.deliveries(id); !slices.Equal(got, []string{"taken"}) {
					t.Errorf("the audit has %v of its delivery", got)
				}
				if n := d.actions(); !maps.Equal(n, map[worker.Action]int{worker.Unconfirmed: 1}) {
					t.Errorf("counted as %v", n)
				}
			})
		})
	}
}

// TestKilledBeforeTheEngineIsAsked: the decision is durable, and whoever starts next delivers it.
func TestKilledBeforeTheEngineIsAsked(t *testing.T) {
	atDesk(t, func(d *desk) {
		id, job := d.waiting()
		r := d.begin("a")
		time.Sleep(time.Minute)
		r.die()
		d.retry(id) // by another replica, killed too
		time.Sleep(time.Hour)
		d.begin("b")
		d.within(time.Minute, "it is delivered", d.delivered)
		d.wantItem(id, journal.DeadLetterReprocessing, journal.DeliveryTaken, review.Answered)
		if d.of(job).taken == "" {
			t.Error("the process has not got it")
		}
	})
}

// TestKilledBeforeItIsRecorded: the engine took decisions and their worker could not record it any more. Whoever starts
// next finds the jobs gone, and their processes running: they have them.
func TestKilledBeforeItIsRecorded(t *testing.T) {
	atDesk(t, func(d *desk) {
		taken, first := d.waiting()
		cancelled, second := d.waiting()
		r := d.begin("a")
		time.Sleep(time.Minute)
		d.readOnlyFor(r, func() {
			d.retry(taken)
			d.retry(cancelled)
		})
		if d.of(first).taken == "" || d.of(second).taken == "" || d.delivered() {
			t.Fatal("the engine has not taken both, or that is recorded")
		}
		d.cancel(second)
		d.begin("b")
		d.within(time.Minute, "both are settled", d.delivered)
		d.wantItem(taken, journal.DeadLetterReprocessing, journal.DeliveryTaken, review.Answered)
		d.wantItem(cancelled, journal.DeadLetterOpen, journal.DeliveryNobody, review.Nobody)
	})
}

// readOnlyFor lets people decide and kills a replica that can deliver that, but record nothing.
func (d *desk) readOnlyFor(r *replica, decide func()) {
	decide()
	d.store.Delay(time.Second) // what is recorded from now on comes too late
	time.Sleep(600 * time.Millisecond)
	r.die()
	d.store.Delay(0)
}

// TestUnrecordedEnd: what the engine said is not asked again, however long it takes to record it.
func TestUnrecordedEnd(t *testing.T) {
	atDesk(t, func(d *desk) {
		id, _ := d.waiting()
		d.begin("a")
		time.Sleep(time.Minute)
		d.retry(id)
		d.readOnly(true)
		before := d.calls()
		time.Sleep(10 * time.Minute)
		if n := d.calls() - before; n != 1 || d.delivered() {
			t.Errorf("the engine was asked %d times while its word could not be recorded, want once", n)
		}
		d.readOnly(false)
		d.within(time.Minute, "it is recorded", d.delivered)
		d.wantItem(id, journal.DeadLetterReprocessing, journal.DeliveryTaken, review.Answered)
		if n := d.actions(); !maps.Equal(n, map[worker.Action]int{worker.Completed: 1}) {
			t.Errorf("counted as %v", n)
		}
	})
}

// TestRefusedDecision: an engine that will never take it is not asked for ever, and the item says that nobody has it.
func TestRefusedDecision(t *testing.T) {
	atDesk(t, func(d *desk) {
		d.set(func() { d.refuse = true })
		id, _ := d.waiting()
		d.begin("a")
		time.Sleep(time.Minute)
		d.retry(id)
		d.within(time.Minute, "it is settled", d.delivered)
		d.wantItem(id, journal.DeadLetterOpen, journal.DeliveryNobody, review.Nobody)
		if n := d.logs.FilterMessageSnippet("refuses a person's decision").Len(); n != 1 {
			t.Errorf("said %d times", n)
		}
		if n := d.actions(); !maps.Equal(n, map[worker.Action]int{worker.Failed: 1}) {
			t.Errorf("counted as %v", n)
		}
	})
}

// TestReplicasDeliverOnce: of two one carries, both take jobs, and when one goes the other goes on.
func TestReplicasDeliverOnce(t *testing.T) {
	const decisions = 100
	atDesk(t, func(d *desk) {
		var ids []string
		for range decisions {
			id, _ := d.waiting()
			ids = append(ids, id)
		}
		a, b := d.begin("a"), d.begin("b")
		time.Sleep(time.Minute)
		for i, id := range ids {
			if i == decisions/2 {
				a.stop()
			}
			d.retry(id)
		}
		d.within(time.Minute, "all is delivered", d.delivered)
		b.stop()
		for _, id := range ids {
			d.wantItem(id, journal.DeadLetterReprocessing, journal.DeliveryTaken, review.Answered)
		}
		if n := d.actions(); !maps.Equal(n, map[worker.Action]int{worker.Completed: decisions}) {
			t.Errorf("counted as %v", n)
		}
	})
}

// TestStopWhileDelivering: what is on its way arrives and is recorded; the rest waits for the next.
func TestStopWhileDelivering(t *testing.T) {
	const decisions = 300
	atDesk(t, func(d *desk) {
		for range decisions {
			d.waiting()
		}
		r := d.begin("a")
		time.Sleep(time.Minute)
		d.store.Delay(20 * time.Millisecond)
		page, _, err := d.service.List(d.t.Context(), journal.DeadLetterFilter{}, "", 200)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page {
			d.discard(item.ID)
		}
		r.stop()
		taken := 0
		jobs, _ := d.all()
		for _, j := range jobs {
			if j.taken != "" {
				taken++
			}
		}
		if left := len(d.store.Outbox()); taken+left != len(page) || taken == 0 {
			t.Errorf("%d were taken and %d wait, of %d", taken, left, len(page))
		}
		d.store.Delay(0)
		d.begin("b")
		d.within(time.Minute, "all is delivered", d.delivered)
		if n := d.actions(); !maps.Equal(n, map[worker.Action]int{worker.Completed: len(page)}) {
			t.Errorf("counted as %v", n)
		}
	})
}

// TestWhatNobodyDecides: a process that waits for a dead letter which settled otherwise gets an answer: it must not wait
// for ever.
func TestWhatNobodyDecides(t *testing.T) {
	atDesk(t, func(d *desk) {
		id, job := d.waiting()
		d.begin("a")
		time.Sleep(time.Minute)
		d.reports(id)
		d.within(time.Minute, "it is delivered", d.delivered)
		if d.of(job).taken == "" {
			t.Error("the process still waits")
		}
		// And one that comes to its review task only then.
		late := d.waits(job.ProcessInstanceKey, job.Variables)
		d.within(time.Minute, "the late one has its answer", func() bool { return d.of(late).taken != "" && d.delivered() })
	})
}
