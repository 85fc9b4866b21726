package journal_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// bench is a journal on a Memory with its hooks written down, in a bubble where time is fake.
type bench struct {
	mu sync.Mutex // of committed
	*testing.T
	memory     *testkit.Memory
	journal    *journal.Journal
	stop, kill context.CancelFunc
	ran        chan struct{} // closed when Run has returned
	committed  []int         // records of each
	open       []bool
	reasons    []error
	recovered  []string // policy and state of each
	// doubted makes a call while it is not known whether its commits happen (TestUnheardCommitIsDoneOnce). meanwhile is what
	// happens then, and beside how many records of others that makes.
	doubted   func(what string, call func() error)
	meanwhile func()
	beside    int64
}

// onBench runs a test with a journal; it must leave no goroutine behind.
func onBench(t *testing.T, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, memory: testkit.NewMemory()}
		b.journal = b.replica(time.Now)
		test(t, b)
	})
}

// replica is a journal of its own on the same store, which ends with the test. stop, kill and ran are the last one's.
func (b *bench) replica(now func() time.Time) *journal.Journal {
	j := journal.New(b.memory, now, nil, journal.Hooks{
		Committed: func(records []journal.Happening, _ time.Duration) { // two replicas may both be done
			b.mu.Lock()
			defer b.mu.Unlock()
			b.committed = append(b.committed, len(records))
			for i := range records {
				if h := &records[i]; h.Recovered() {
					b.recovered = append(b.recovered, h.Subject.Policy+" "+string(h.Episode.State))
				}
			}
		},
		Open: func(open bool, reason error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.open, b.reasons = append(b.open, open), append(b.reasons, reason)
		},
	})
	var stop, kill context.Context
	stop, b.stop = context.WithCancel(context.Background())
	kill, b.kill = context.WithCancel(context.Background())
	ran := make(chan struct{})
	b.ran = ran
	go func() { j.Run(stop, kill); close(ran) }()
	end, endAtOnce := b.stop, b.kill
	b.Cleanup(func() { end(); <-ran; endAtOnce() })
	return j
}

// failure of the claim CLM-<n>-1, told by the job with that key.
func failure(id string, job int64) *journal.Analysis {
	f, rejection := tiss.Read(decision.Variables{ID: decision.Text(id), Error: `"TIMEOUT"`, RetryCount: "0"})
	if rejection != nil {
		panic(rejection)
	}
	a := &journal.Analysis{Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: tiss.Name, ID: id}, JobKey: job,
		ElementInstanceKey: job * 10, ProcessInstanceKey: 100, Rule: decision.RNBIL005, Policy: tiss, Failure: &f, Error: "TIMEOUT", ReceivedAt: time.Now()}
	return a
}

func claim(n int) string { return fmt.Sprintf("CLM-%d-1", n) }

// answer of a call that runs beside the test.
type answer struct {
	recorded journal.Recorded
	err      error
	after    time.Duration
}

// ask has the analyses asked at once, in their order, and gives what they will be answered.
func (b *bench) ask(ctx context.Context, analyses ...*journal.Analysis) []chan answer {
	var answers []chan answer
	for _, a := range analyses {
		c := make(chan answer, 1)
		began := time.Now()
		go func() {
			r, err := b.journal.Analyze(ctx, a)
			c <- answer{r, err, time.Since(began)}
		}()
		synctest.Wait()
		answers = append(answers, c)
	}
	return answers
}

// failures of n claims, the first of which is number from.
func failures(from, n int) []*journal.Analysis {
	var all []*journal.Analysis
	for i := from; i < from+n; i++ {
		all = append(all, failure(claim(i), int64(i)))
	}
	return all
}

// sizes of the transactions so far: how many subjects each looked up.
func (b *bench) sizes() []int {
	var sizes []int
	for _, t := range b.memory.Transactions() {
		sizes = append(sizes, len(t.Subjects))
	}
	return sizes
}

func (b *bench) wantSizes(want ...int) {
	b.Helper()
	if got := b.sizes(); !slices.Equal(got, want) {
		b.Errorf("transactions of %v subjects, want %v", got, want)
	}
}

// recorded waits for an answer, which must be a decision.
func (b *bench) recorded(c chan answer) answer {
	b.Helper()
	a := <-c
	if a.err != nil {
		b.Fatalf("analysis failed: %v", a.err)
	}
	return a
}

func TestWaitingCallersShareACommit(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.memory.Delay(10 * time.Millisecond)
		answers := b.ask(t.Context(), failures(0, 401)...)
		for i, c := range answers {
			want := 10 * time.Millisecond // the first alone, then 256, then the rest
			if i > 0 {
				want *= 2
			}
			if i > 256 {
				want += 10 * time.Millisecond
			}
			if a := b.recorded(c); a.after != want || a.recorded.How != journal.Fresh {
				t.Fatalf("claim %d was %s after %s, want fresh after %s", i, a.recorded.How, a.after, want)
			}
		}
		b.wantSizes(1, 256, 144)
		if want := []int{1, 256, 144}; !slices.Equal(b.committed, want) {
			t.Errorf("told of commits of %v records, want %v", b.committed, want)
		}
		testkit.Must(t, verifyLedger(b.memory))
	})
}

// TestNoDecisionBehindAPause: what a run decides in the moment in which a person pauses it is decided before, or not at all.
func TestNoDecisionBehindAPause(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		run := journal.BulkRun{ID: "run"}
		_, err := b.journal.Bulk(t.Context(), &journal.BulkStep{Verb: journal.BulkStart, Run: aRun(run.ID), By: "ana"})
		testkit.Must(t, err)
		b.memory.Delay(10 * time.Millisecond)
		b.ask(t.Context(), failure(claim(1), 1)) // the next two wait for its commit
		go func() {
			_, _ = b.journal.Bulk(t.Context(), &journal.BulkStep{Verb: journal.BulkPause, Run: run, By: "ana"})
		}()
		synctest.Wait()
		r := &journal.Review{Subject: failure(claim(2), 2).Subject, DeadLetter: "1", Run: run.ID, By: "ana", Reason: "x", Policy: tiss}
		if _, err := b.journal.Review(t.Context(), r); journal.CodeOf(err) != journal.InvalidRunState {
			t.Errorf("a decision of a run that was paused just before: %v", err)
		}
	})
}

// TestTaughtInTheSameCommit: what a person teaches holds for whatever is recorded behind it.
func TestTaughtInTheSameCommit(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		puzzle := func(n int) *journal.Analysis {
			a := failure(claim(n), int64(n))
			f, _ := tiss.Read(decision.Variables{ID: decision.Text(claim(n)), Error: `"falha XPTO"`, RetryCount: "0"})
			a.Failure, a.Error = &f, "falha XPTO"
			return a
		}
		cause := journal.CauseOf(tiss.Name, "", "falha XPTO").ID
		b.memory.Delay(10 * time.Millisecond)
		for i, class := range []decision.ErrorClassification{decision.Permanent, ""} {
			b.ask(t.Context(), failure(claim(10+i), int64(10+i))) // the next two wait for its commit
			go func() {
				testkit.Must(t, b.journal.Teach(t.Context(), tiss.Name, cause, journal.Teaching{Class: class, Reason: "so it is", By: "ana"}))
			}()
			synctest.Wait()
			got := b.recorded(b.ask(t.Context(), puzzle(1+i))[0]).recorded.Decision
			if want := cmp.Or(class, decision.Unknown); got.ErrorClassification != want {
				t.Errorf("taught %q, and the next is %s", class, got.ErrorClassification)
			}
		}
		b.wantSizes(1, 2, 1, 2)
	})
}

func TestOnlyTheBadItemIsRefused(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.memory.Delay(10 * time.Millisecond)
		bad := "CLM-" + testkit.Unstorable + "-1"
		answers := b.ask(t.Context(), failure(claim(0), 1), failure(claim(1), 2), failure(bad, 3), failure(claim(3), 4))
		for i, c := range answers {
			a := <-c
			if isBad := i == 2; errors.Is(a.err, journal.ErrInvalid) != isBad || a.err != nil != isBad {
				t.Errorf("call %d: %v", i, a.err)
			}
		}
		b.wantSizes(1, 3, 1, 1, 1)
		if !b.journal.Await(t.Context()) || len(b.open) > 0 {
			t.Errorf("the journal went down for one bad item: %v", b.open)
		}
		if n := b.memory.End().Record; n != 3 {
			t.Errorf("%d records, want those of the 3 good ones", n)
		}
	})
}

// TestMarksOfWhatAFailoverLost: the database that goes on lacks a record that was answered, and gives its number to another.
func TestMarksOfWhatAFailoverLost(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		lost := b.recorded(b.ask(t.Context(), failures(1, 2)...)[1]).recorded
		b.memory = testkit.NewMemory()
		b.journal = b.replica(time.Now)
		b.journal.Answered(&lost)
		b.ask(t.Context(), failure(claim(3), 3))
		time.Sleep(time.Second)
		b.ask(t.Context(), failure(claim(4), 4))
		if synctest.Wait(); b.memory.Answered(1) || b.memory.Answered(2) {
			t.Error("what took the number of a lost record counts as answered")
		}
	})
}

// TestCommitsAreShared by those that come close together, for a moment's wait; who comes alone waits for nobody.
func TestCommitsAreShared(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		const took = 3 * time.Millisecond
		b.memory.Delay(took)
		for n := range 20 {
			if a := b.recorded(b.ask(t.Context(), failure(claim(n), int64(n)))[0]); a.after != took {
				t.Fatalf("one that comes alone takes %s, want %s", a.after, took)
			}
		}
		var answers []chan answer
		before := len(b.memory.Transactions())
		for n := range 200 {
			answers = append(answers, b.ask(t.Context(), failure(claim(100+n), int64(100+n)))...)
			time.Sleep(2 * time.Millisecond)
		}
		for _, c := range answers {
			if a := b.recorded(c); a.after > 20*time.Millisecond {
				t.Errorf("one of many takes %s, want 20 ms at most", a.after)
			}
		}
		if n := len(b.memory.Transactions()) - before; n > 60 {
			t.Errorf("200 decisions in %d commits, want some five in each", n)
		}
	})
}

func TestRejectionsShareACommit(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.memory.Delay(10 * time.Millisecond)
		b.ask(t.Context(), failure(claim(1), 1))
		done := make(chan error, 3)
		for range 3 {
			go func() {
				done <- b.journal.Reject(t.Context(), &journal.RejectedJob{JobKey: 7, Rejection: &decision.Rejection{
					Code: decision.UnknownPolicy, Variable: "retryPolicy", Found: "CPF 123.456.789-09\x00", Expected: "one of tiss-submission"}})
			}()
		}
		for range 3 {
			testkit.Must(t, <-done)
		}
		b.wantSizes(1, 0)
		entries := b.memory.Entries()
		if len(entries) != 3 || (entries[0].Subject != journal.Subject{}) {
			t.Fatalf("%d entries, of %v", len(entries), entries[0].Subject)
		}
		if body := entries[0].Body; strings.Contains(body, "123.456") || strings.Contains(body, `\u0000`) || !strings.Contains(body, "UNKNOWN_POLICY") {
			t.Errorf("the audit has %s", body)
		}
	})
}

// TestIdleNoticesThatTheStoreIsGone: nobody asks anything of the journal, and it says within seconds that the store is
// gone, and that it is back.
func TestIdleNoticesThatTheStoreIsGone(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		time.Sleep(time.Hour)
		for _, down := range []bool{true, false} {
			before := len(b.open)
			b.memory.SetDown(down)
			time.Sleep(15 * time.Second)
			synctest.Wait()
			if len(b.open) != before+1 || b.open[before] == down {
				t.Errorf("the store is down: %t, the journal has said %v", down, b.open)
			}
		}
		if len(b.reasons) > 0 && !errors.Is(b.reasons[0], journal.ErrUnavailable) {
			t.Errorf("the reason is %v", b.reasons[0])
		}
	})
}
