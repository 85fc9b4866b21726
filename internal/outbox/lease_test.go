package outbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"retry-worker/internal/outbox"
)

// TestOneRelayAtATime: one that is stopped is followed at once, one that is killed when its lease is over; then what it did not
// let go of is sent again, in order.
func TestOneRelayAtATime(t *testing.T) {
	for name, test := range map[string]struct {
		end         func(*running)
		least, most time.Duration // until the second goes on
		mostTwice   int
	}{
		"stopped": {(*running).stop, 0, 6 * time.Second, 0},
		"killed":  {func(r *running) { r.kill(); <-r.done }, 5 * time.Second, 21 * time.Second, 600},
	} {
		bubble(t, func(s *stage) {
			s.sink.takes = 20 * time.Millisecond
			first := s.relay("first")
			s.within(time.Second, "the first leads", func() bool { return s.account().leases > 0 })
			s.relay("second")
			s.fill(5000, keys(200)...)
			time.Sleep(time.Second)
			test.end(first)
			stopped := s.sink.count()
			took := s.within(time.Minute, "the second goes on", func() bool { return s.sink.count() > stopped })
			if took < test.least || took > test.most {
				t.Errorf("%s: the second takes over after %s; a lease is of 15 s", name, took)
			}
			s.within(time.Minute, "all is sent", s.empty)
			s.sink.checkOrder(t, test.mostTwice > 0)
			if twice := s.sink.count() - 5000; twice < 0 || twice > test.mostTwice {
				t.Errorf("%s: %d were sent twice", name, twice)
			}
			if by := s.account().holders; by["first"] == 0 || by["second"] == 0 {
				t.Errorf("%s: sent by %v", name, by)
			}
		})
	}
}

// TestLeaseThatCannotBeRenewed: nothing is sent after its end (the sink looks), however late the store said that it is held, and all
// once it can be taken.
func TestLeaseThatCannotBeRenewed(t *testing.T) {
	bubble(t, func(s *stage) {
		s.slow, s.sink.takes = 3*time.Second, 3*time.Second
		s.fill(5000, keys(5000)...)
		s.relay("a")
		time.Sleep(4 * time.Second)
		s.set(func() { s.noLease = true })
		time.Sleep(time.Minute)
		stood := s.sink.count()
		time.Sleep(time.Minute)
		if s.sink.count() != stood || stood == 5000 {
			t.Errorf("%d sent, then %d", stood, s.sink.count())
		}
		if n := s.logs.FilterMessageSnippet("lost the lease").Len(); n != 1 {
			t.Errorf("the loss is told %d times", n)
		}
		s.set(func() { s.noLease = false })
		s.sink.set(func() { s.sink.takes = 0 })
		s.within(time.Minute, "all is sent", s.empty)
		s.sink.checkOrder(t, true)
	})
}

// TestLeaderWhoseLeaseIsGone: what it does is told to end, and begins again when the lease can be had. Stopped, it gives it back.
func TestLeaderWhoseLeaseIsGone(t *testing.T) {
	bubble(t, func(s *stage) {
		t := s.t
		var begun, ended atomic.Int32
		stopped, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			outbox.Lead(stopped, context.Background(), s.Memory, "work", "a", func(stop, hard context.Context) {
				n := begun.Add(1)
				if <-stop.Done(); n < 3 {
					<-hard.Done()
				}
				ended.Add(1)
			})
		}()
		time.Sleep(time.Second)
		s.Memory.Lease(t.Context(), "work", "a", 0)
		s.Memory.Lease(t.Context(), "work", "b", 15*time.Second)
		s.within(6*time.Second, "it ends", func() bool { return ended.Load() == 1 })
		s.within(2*time.Minute, "it begins again", func() bool { return begun.Load() == 2 })
		s.Memory.Lease(t.Context(), "work", "a", 0)
		s.Memory.Lease(t.Context(), "work", "b", 15*time.Second)
		s.within(6*time.Second, "it ends", func() bool { return ended.Load() == 2 })
		s.within(2*time.Minute, "it begins again", func() bool { return begun.Load() == 3 })
		stop()
		<-done
		if held, err := s.Memory.Lease(t.Context(), "work", "b", 15*time.Second); !held {
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
	bubble(t, func(s *stage) {
		stopped, stop := context.WithCancel(context.Background())
		kill := ended{context.Background(), make(chan struct{})}
		outbox.Lead(stopped, kill, s.Memory, "work", "a", func(ends, _ context.Context) {
			close(kill.done)
			stop()
			<-ends.Done()
		})
		if held, err := s.Memory.Lease(s.t.Context(), "work", "b", 15*time.Second); held || err != nil {
			s.t.Errorf("another has the lease: %t, %v", held, err)
		}
	})
}
