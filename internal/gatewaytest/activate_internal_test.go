package gatewaytest

import (
	"context"
	"testing"
)

// The tests here play the instants between a poll's steps, which no test from
// outside can hit at will.

func engineWithJob(t *testing.T) *Engine {
	e := NewEngine(EngineOptions{})
	t.Cleanup(e.Close)
	return e
}

func woken(w *waiter) bool {
	select {
	case <-w.wake:
		return true
	default:
		return false
	}
}

func TestAJobThatComesBeforeThePollWaitsWakesIt(t *testing.T) {
	e := engineWithJob(t)
	e.AddJob(Job{Type: "work"}) // after the poll found nothing, before it waits
	if w := e.enqueue("work", []string{DefaultTenant}); !woken(w) {
		t.Error("the poll sleeps beside a job")
	}
}

func TestAPollThatLeavesWithoutItsJobWakesTheNext(t *testing.T) {
	e := engineWithJob(t)
	first := e.enqueue("work", []string{DefaultTenant})
	second := e.enqueue("work", []string{DefaultTenant})
	e.AddJob(Job{Type: "work"})
	if !woken(first) || woken(second) {
		t.Fatal("one job must wake the oldest poll only")
	}
	e.dequeue("work", first) // its caller gave up at this instant
	if !woken(second) {
		t.Error("the second poll sleeps beside a job")
	}
}

func TestAPollThatWaitsWhileTheGatewayLeavesIsDismissed(t *testing.T) {
	e := engineWithJob(t)
	before := e.enqueue("work", []string{DefaultTenant})
	e.dismiss()
	if after := e.enqueue("work", []string{DefaultTenant}); !woken(before) || !woken(after) {
		t.Error("a poll waits on though the gateway leaves")
	}
}

func TestAnAcknowledgementOverACutConnectionIsNone(t *testing.T) {
	for name, cutFirst := range map[string]bool{"cut, then acknowledged": true, "acknowledged, then cut": false} {
		e := engineWithJob(t)
		key := e.AddJob(Job{Type: "work"})
		a := &Answer{Method: CompleteJob, JobKey: key, Caller: "c"}
		if err := e.apply(a, func(a *Answer, j *job) error { e.settle(j, a, Completed); return nil }); err != nil {
			t.Fatal(err)
		}
		if cutFirst {
			e.cutOff("c")
		}
		e.acknowledge(context.Background(), a, nil)
		if !cutFirst {
			if !a.Acked {
				t.Fatal("not acknowledged at all")
			}
			e.cutOff("c")
		}
		if a.Acked {
			t.Errorf("%s: it counts as acknowledged", name)
		}
	}
}

// TestAcknowledgementNobodyWaitsFor: a caller whose time was up was told nothing.
func TestAcknowledgementNobodyWaitsFor(t *testing.T) {
	e := engineWithJob(t)
	a := &Answer{Method: CompleteJob, JobKey: e.AddJob(Job{Type: "work"}), Caller: "c"}
	if err := e.apply(a, func(a *Answer, j *job) error { e.settle(j, a, Completed); return nil }); err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(context.Background())
	leave()
	e.acknowledge(gone, a, nil)
	if a.Acked {
		t.Error("it counts as acknowledged")
	}
}
