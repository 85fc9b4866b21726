package outbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/outbox"
	"retry-worker/internal/testkit"
)

// bubble runs a test in fake time.
func bubble(t *testing.T, test func(t *testing.T, m *testkit.Memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, testkit.NewMemory()) })
}

// TestLeaderWhoseLeaseIsGone: what it does is told to end, and begins again when the lease can be had. Stopped, it gives it back.
func TestLeaderWhoseLeaseIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, m *testkit.Memory) {
		var begun, ended atomic.Int32
		stopped, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			outbox.Lead(stopped, context.Background(), m, "work", "a", func(stop, hard context.Context) {
				n := begun.Add(1)
				if <-stop.Done(); n < 3 {
					<-hard.Done()
				}
				ended.Add(1)
			})
		}()
		within := func(long time.Duration, want int32, is *atomic.Int32) {
			t.Helper()
			if time.Sleep(long); is.Load() != want {
				t.Fatalf("begun %d times, ended %d times", begun.Load(), ended.Load())
			}
		}
		time.Sleep(time.Second)
		m.Lease(t.Context(), "work", "a", 0)
		m.Lease(t.Context(), "work", "b", 15*time.Second)
		within(6*time.Second, 1, &ended)
		within(2*time.Minute, 2, &begun)
		m.Lease(t.Context(), "work", "a", 0)
		m.Lease(t.Context(), "work", "b", 15*time.Second)
		within(6*time.Second, 2, &ended)
		within(2*time.Minute, 3, &begun)
		stop()
		<-done
		if held, err := m.Lease(t.Context(), "work", "b", 15*time.Second); !held {
			t.Errorf("the lease was not given back: %v", err)
		}
	})
}

// ended is a context that has ended when its channel is closed, of which those that were made of it did not hear yet.
type ended struct {
	context.Context
	done chan struct{}
}

func (e ended) Done() <-chan struct{} { return e.done }

func (e ended) Err() error {
	select {
	case <-e.done:
		return context.Canceled
	default:
		return nil
	}
}

// AfterFunc has the context package tell the others by it, and tells none.
func (ended) AfterFunc(func()) (stop func() bool) { return func() bool { return true } }

// TestKilledLeaderGivesNothingBack: not where its work heard of the stop that comes with a kill before it heard of that, either.
func TestKilledLeaderGivesNothingBack(t *testing.T) {
	bubble(t, func(t *testing.T, m *testkit.Memory) {
		stopped, stop := context.WithCancel(context.Background())
		kill := ended{context.Background(), make(chan struct{})}
		outbox.Lead(stopped, kill, m, "work", "a", func(ends, _ context.Context) {
			close(kill.done)
			stop()
			<-ends.Done()
		})
		if held, err := m.Lease(t.Context(), "work", "b", 15*time.Second); held || err != nil {
			t.Errorf("another has the lease: %t, %v", held, err)
		}
	})
}
