package journal_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

func TestStopFlushes(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		first := b.recorded(b.ask(t.Context(), failure(claim(0), 1))[0]).recorded
		b.memory.Delay(time.Second)
		answers := b.ask(t.Context(), append(failures(1, 300), failure(claim(1), 999))...)
		b.journal.Answered(&first)
		b.stop()
		for _, c := range answers {
			b.recorded(c)
		}
		<-b.ran
		if !b.memory.Answered(1) {
			t.Error("the last mark is lost")
		}
		for i, c := range b.ask(t.Context(), failures(1000, 100)...) {
			if a := <-c; !errors.Is(a.err, journal.ErrUnavailable) || a.after != 0 {
				t.Fatalf("call %d after the end: %v after %s, want unavailable at once", i, a.err, a.after)
			}
		}
	})
}

func TestEndWhileDown(t *testing.T) {
	for most, end := range map[time.Duration]func(b *bench){
		time.Second: func(b *bench) { b.stop() },
		0:           func(b *bench) { b.kill() },
	} {
		onBench(t, func(t *testing.T, b *bench) {
			b.memory.SetDown(true)
			<-b.ask(t.Context(), failure(claim(1), 1))[0]
			began := time.Now()
			end(b)
			<-b.ran
			if took := time.Since(began); took > most {
				t.Errorf("ended after %s, want at most %s", took, most)
			}
			if !slices.Equal(b.open, []bool{false}) {
				t.Errorf("told %v", b.open)
			}
		})
	}
}

// TestStopWithHangingStore: three tries, and then nobody waits for three more.
func TestStopWithHangingStore(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.memory.Fail(1000, testkit.Fault{Hang: true})
		answers := b.ask(t.Context(), failures(0, 300)...)
		b.stop()
		for i, c := range answers {
			if a := <-c; !errors.Is(a.err, journal.ErrUnavailable) || a.after > 10*time.Second {
				t.Fatalf("call %d: %v after %s", i, a.err, a.after)
			}
		}
		<-b.ran
	})
}

func TestKillReturnsAtOnce(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.memory.Fail(1, testkit.Fault{Hang: true})
		answers := b.ask(t.Context(), failures(1, 1100)...) // the queue holds 1,024: some wait to be let in
		began := time.Now()
		b.kill()
		for _, c := range answers {
			if a := <-c; !errors.Is(a.err, journal.ErrUnavailable) {
				t.Fatalf("%v, want unavailable", a.err)
			}
		}
		if <-b.ran; time.Since(began) > 0 {
			t.Errorf("ended %s after the kill", time.Since(began))
		}
	})
}

func TestCallersLeave(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.memory.Delay(time.Minute) // beyond the bound: nothing is ever committed
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		// The queue holds 1,024; who comes later waits to be let in, and leaves as well.
		for i, c := range b.ask(ctx, failures(0, 1100)...) {
			if a := <-c; !errors.Is(a.err, context.DeadlineExceeded) || a.after != 100*time.Millisecond {
				t.Fatalf("call %d: %v after %s", i, a.err, a.after)
			}
		}
		if err := b.journal.Reject(ctx, &journal.RejectedJob{Rejection: &decision.Rejection{}}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, err := b.journal.Conclude(ctx, &journal.Outcome{Subject: failure(claim(1), 1).Subject}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
