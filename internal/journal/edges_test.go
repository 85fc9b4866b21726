package journal_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// analyze asks for the analysis and gives what was recorded.
func (b *bench) analyze(a *journal.Analysis) journal.Recorded {
	b.Helper()
	return b.recorded(b.ask(b.Context(), a)[0]).recorded
}

// TestEveryStoreTakesTheError: no NUL, no broken UTF-8, whatever a system said.
func TestEveryStoreTakesTheError(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		a := failure(claim(1), 1)
		a.Error = "TIMEOUT\x00 \xff end"
		if got := b.analyze(a).Attempt.Error; got != "TIMEOUT\uFFFD \uFFFD end" {
			t.Errorf("kept as %q", got)
		}
	})
}

// TestMatchedTextIsBounded: whatever a pattern matched, and never half a character.
func TestMatchedTextIsBounded(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		for i, test := range []struct{ matched, want string }{
			{"", ""},
			{"TIMEOUT", "TIMEOUT"},
			{"TIME\x00OUT \xff", "TIME\uFFFDOUT \uFFFD"},
			{strings.Repeat("x", 200), strings.Repeat("x", 200)},
			{strings.Repeat("x", 201), strings.Repeat("x", 200)},
			{"x" + strings.Repeat("é", 300), "x" + strings.Repeat("é", 99)},
			{strings.Repeat("x", 198) + "🏥", strings.Repeat("x", 198)},
			{strings.Repeat("\x00", 100), strings.Repeat("\uFFFD", 66)},
		} {
			a := failure(claim(i), int64(i))
			a.Failure.Match.Text = test.matched
			r := b.analyze(a)
			if r.Attempt.Decision.MatchedText != test.want || r.Decision.MatchedText != test.want {
				t.Errorf("%q is kept as %q and answered as %q, want %q", test.matched, r.Attempt.Decision.MatchedText, r.Decision.MatchedText, test.want)
			}
		}
	})
}

// TestClockThatWasSetBack: an analysis never took less than no time.
func TestClockThatWasSetBack(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		early, late := failure(claim(1), 1), failure(claim(2), 2)
		early.ReceivedAt, late.ReceivedAt = time.Now().Add(-1500*time.Microsecond), time.Now().Add(time.Hour)
		if took := b.analyze(early).Attempt.Took; took != 1500*time.Microsecond {
			t.Errorf("took %s", took)
		}
		if took := b.analyze(late).Attempt.Took; took != 0 {
			t.Errorf("took %s", took)
		}
	})
}

// TestAnotherReplicaWasFirst: what this one tried was not committed, and the other recorded the same meanwhile.
func TestAnotherReplicaWasFirst(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		one, two := b.journal, b.replica(func() time.Time { return time.Now().Add(10 * time.Second) })
		b.memory.Fail(1, testkit.Fault{Kind: journal.Ambiguous})
		b.journal = one
		mine := b.ask(t.Context(), failure(claim(1), 1))[0]
		theirs, err := two.Analyze(t.Context(), failure(claim(1), 1))
		testkit.Must(t, err)
		if r := b.recorded(mine).recorded; r.How != journal.Replayed || !r.Decision.NextRetryTime.Equal(theirs.Decision.NextRetryTime) {
			t.Errorf("this replica answers %s, %s; the other %s", r.How, r.Decision.NextRetryTime, theirs.Decision.NextRetryTime)
		}
	})
}

// TestWhoWaitsForHisTurnIsToldToo: the second call of a subject was put back when the transaction failed.
func TestWhoWaitsForHisTurnIsToldToo(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.memory.Delay(10 * time.Millisecond)
		b.memory.Fail(1, testkit.Fault{Twice: true}) // the first transaction passes
		b.memory.Fail(3, testkit.Fault{})
		answers := b.ask(t.Context(), failure(claim(0), 1), failure(claim(1), 2), failure(claim(1), 3))
		b.recorded(answers[0])
		for _, c := range answers[1:] {
			if a := <-c; !errors.Is(a.err, journal.ErrUnavailable) {
				t.Errorf("%v, want unavailable", a.err)
			}
		}
		if !b.journal.Await(t.Context()) {
			t.Fatal("the gate stays closed")
		}
		b.recorded(b.ask(t.Context(), failure(claim(1), 2))[0])
		b.wantSizes(1, 1, 1, 1, 1)
	})
}

// TestRecoveryIsToldOnce: not a failure, and not what was told before.
func TestRecoveryIsToldOnce(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		a := failure(claim(1), 1)
		b.analyze(a)
		time.Sleep(time.Hour)
		for _, success := range []bool{false, true, true, false} {
			_, err := b.journal.Conclude(t.Context(), &journal.Outcome{Subject: a.Subject, Success: success})
			testkit.Must(t, err)
		}
		if want := []string{"tiss-submission recovered"}; !slices.Equal(b.recovered, want) {
			t.Errorf("told of %v, want %v", b.recovered, want)
		}
	})
}

// TestSumsBoundWhatAProcessClaims: a count and a time that a process made up leave room in the sums for the other claims:
// a sum that overflowed could be recorded no more, and with it no success of the policy.
func TestSumsBoundWhatAProcessClaims(t *testing.T) {
	f := testkit.New(t, testkit.At(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)))
	for n := range 3 {
		a := f.Analysis(decision.DefaultPolicy, fmt.Sprintf("CLM-%d-1", n), "TIMEOUT", math.MaxInt64)
		a.Failure.LastSubmission = time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)
		_, err := f.Journal.Analyze(t.Context(), a)
		testkit.Must(t, err)
		f.Succeed(decision.DefaultPolicy, fmt.Sprintf("CLM-%d-1", n))
	}
	all, err := f.Store.Sums(t.Context(), 0)
	testkit.Must(t, err)
	for _, s := range all {
		if s.N < 0 || s.N > math.MaxInt64/1_000_000 || s.Bucket < 0 {
			t.Errorf("%s of %d comes to %d", s.Name, s.Bucket, s.N)
		}
	}
}
