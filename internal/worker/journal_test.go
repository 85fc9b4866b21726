package worker_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

const transient = `"retryCount":1,"submissionError":"TIMEOUT CPF 529.982.247-25"`

// TestSameJobSameAnswer: a job delivered again before its answer was taken gets that answer, word for word; counters count
// fresh decisions, a replay has its own counter and event. What an hour would have made late has a new time.
func TestSameJobSameAnswer(t *testing.T) {
	for _, variables := range []string{transient, `"submissionError":"DUPLICATE_CLAIM"`, `"retryCount":5,"submissionError":"TIMEOUT"`} {
		store := testkit.NewMemory()
		j := job(worker.AnalyzeRetry, "{}", claim(variables))
		first, again := handleUnanswered(store, j, analysed), handleUnanswered(store, j, analysed.Add(time.Minute))
		if a, b := first.reply, again.reply; a.Variables != b.Variables || a.Error != b.Error || a.Action != b.Action {
			t.Errorf("%s: answered %+v, then %+v", variables, a, b)
		}
		if len(again.decided) != 0 || again.replayed != 1 {
			t.Errorf("%s: %d decisions and %d replays were counted, want 0 and 1", variables, len(again.decided), again.replayed)
		}
		line := again.line()
		if line["event"] != "decision_replayed" || line["rebased"] != nil {
			t.Errorf("%s: logged %v", variables, line)
		}
		late, retried := handleUnanswered(store, j, analysed.Add(time.Hour)).line(), first.reply.Action == worker.Completed
		if late["event"] != "decision_replayed" || (late["rebased"] == true) != retried ||
			(late["nextRetryTime"] != line["nextRetryTime"]) != retried {
			t.Errorf("%s: an hour later: logged %v, a new time is wanted: %t", variables, late, retried)
		}
	}
}

// TestRetryThatCameTooLateIsCountedAsExceeded: asked again when its time can no longer be kept within 48 h, the retry
// that was scheduled is given up, once (R20).
func TestRetryThatCameTooLateIsCountedAsExceeded(t *testing.T) {
	store := testkit.NewMemory()
	j := job(worker.AnalyzeRetry, "{}", claim(transient))
	handleUnanswered(store, j, analysed)
	late := handleRemembering(store, j, analysed.Add(48*time.Hour))
	line := late.line()
	if line["event"] != "max_retries_exceeded" || line["rebased"] != true || len(late.ended) != 1 || len(late.decided) != 0 {
		t.Errorf("logged %v; %d ends and %d fresh decisions were counted, want 1 and 0", line, len(late.ended), len(late.decided))
	}
	if late.reply.Action != worker.Thrown || late.reply.Error.Code != "MAX_RETRIES_EXCEEDED" {
		t.Errorf("answered %+v", late.reply)
	}
	again := handleRemembering(store, j, analysed.Add(49*time.Hour))
	if len(again.ended) != 0 {
		t.Error("the same end was counted twice")
	}
}

// TestStaleDelivery: what was given to another while this worker stood still, and answered, is neither recorded nor answered;
// what comes later is another failure. Without the engine's deadline nobody can tell.
func TestStaleDelivery(t *testing.T) {
	for _, jobType := range []string{worker.AnalyzeRetry, worker.RetrySubmissionBackoff} {
		bubble(t, func(t *testing.T) {
			store, e := testkit.NewMemory(), newEngine()
			deliver := func(until int64) (worker.Action, int, int64) {
				answers, records := len(e.told()), store.End().Record
				j := job(jobType, "{}", claim(transient))
				j.LockedUntil, j.Deadline = until, time.Now().Add(time.Minute)
				memory := testkit.StartJournal(t, store, time.Now) // of another replica
				w := worker.New(e, config(), nil, newTally().hooks(), zap.NewNop())
				action := w.Handle(t.Context(), &j, handlerOf(jobType, memory, time.Now(), newTally().hooks(), zap.NewNop()))
				time.Sleep(2 * time.Second) // until it is marked
				return action, len(e.told()) - answers, store.End().Record - records
			}
			for _, d := range []struct {
				until  int64
				action worker.Action
				both   int // answers, and records
			}{{20, worker.Completed, 1}, {10, worker.Superseded, 0}, {20, worker.Superseded, 0}, {21, worker.Completed, 1}} {
				action, answers, records := deliver(d.until)
				if action != d.action || answers != d.both || records != int64(d.both) {
					t.Errorf("%s until %d: %s, %d answers and %d records; want %s and %d", jobType, d.until, action, answers, records, d.action, d.both)
				}
			}
		})
	}
}

// TestForgottenCountIsRaised: a model that does not carry retryCount on must not retry for ever.
func TestForgottenCountIsRaised(t *testing.T) {
	store := testkit.NewMemory()
	var reasons []string
	now := analysed
	for key := range int64(6) {
		j := job(worker.AnalyzeRetry, "{}", claim(`"retryCount":0,"submissionError":"TIMEOUT"`))
		j.Key += key
		h := handleRemembering(store, j, now)
		line := h.logs.All()[0]
		if warned := strings.Contains(fmt.Sprint(line.ContextMap()["warning"]), "raised"); warned != (key > 0) {
			t.Errorf("failure %d: logged %v", key+1, line.ContextMap())
		}
		reasons = append(reasons, line.Message)
		now = now.Add(3 * time.Hour)
	}
	want := []string{
		"Transient error, retry 1 of 5", "Transient error, retry 2 of 5", "Transient error, retry 3 of 5",
		"Transient error, retry 4 of 5", "Transient error, retry 5 of 5", "Maximum of 5 retries reached",
	}
	if !slices.Equal(reasons, want) {
		t.Errorf("decided %q, want %q", reasons, want)
	}
}

// TestJournalDown: a job goes back as it came, and nothing is said of a decision that was not recorded.
func TestJournalDown(t *testing.T) {
	for _, jobType := range []string{worker.AnalyzeRetry, worker.RetrySubmissionBackoff, worker.RecordRetryOutcome} {
		for _, variables := range []string{claim(transient), `{"claimId":7}`} {
			bubble(t, func(t *testing.T) {
				store := testkit.NewMemory()
				store.SetDown(true)
				h := handleRemembering(store, job(jobType, "{}", variables), analysed)
				if h.reply.Action != worker.Released || h.reply.Failure.Retries != 3 || h.reply.Failure.Backoff != 0 ||
					!strings.Contains(h.reply.Failure.Message, "journal") {
					t.Errorf("%s: got %+v, want it handed back with its 3 retries", jobType, h.reply)
				}
				if len(h.decided)+len(h.rejected)+h.logs.Len() != 0 {
					t.Errorf("%s: told of %v, %v, %v, which is recorded nowhere", jobType, h.decided, h.rejected, h.logs.All())
				}
			})
		}
	}
}

// TestSlowJournal: an analysis that the journal does not record in time goes back with its retries unchanged and a pause, and
// is counted (R30). If the journal did record it, the job gets that decision when it comes again.
func TestSlowJournal(t *testing.T) {
	for jobType, bound := range map[string]time.Duration{worker.AnalyzeRetry: 5 * time.Second, worker.RetrySubmissionBackoff: 2 * time.Second} {
		for variables, action := range map[string]worker.Action{
			claim(transient): worker.Completed, claim(`"submissionError":"DUPLICATE_CLAIM"`): worker.Thrown, `{"claimId":7}`: worker.Failed,
		} {
			bubble(t, func(t *testing.T) {
				store, told := testkit.NewMemory(), newTally()
				if bound > 4*time.Second { // each fault takes 2.5 s
					store.Fail(1, testkit.Fault{Hang: true})
				}
				store.Fail(1, testkit.Fault{Kind: journal.Ambiguous, After: true, Hang: true})
				handle := handlerOf(jobType, testkit.StartJournal(t, store, time.Now), time.Now(), told.hooks(), zap.NewNop())
				j, began := job(jobType, "{}", variables), time.Now()
				reply := handle(t.Context(), &j)
				if took := time.Since(began); took != bound || reply.Action != worker.Released || reply.Failure.Retries != 3 || reply.Failure.Backoff <= 0 {
					t.Errorf("%s %s: after %s %+v, want it back with its 3 retries and a pause after %s", jobType, variables, took, reply, bound)
				}
				if !slices.Equal(told.timedOut, []string{jobType}) || len(told.decided)+len(told.rejected) != 0 {
					t.Errorf("%s %s: %v timed out; told of %v and %v", jobType, variables, told.timedOut, told.decided, told.rejected)
				}
				time.Sleep(time.Minute)
				again := handle(t.Context(), &j)
				if again.Action != action || action != worker.Failed && (told.replayed != 1 || store.End().Record != 1) {
					t.Errorf("%s %s: told %+v at last; %d replays and %d records, want 1 and 1", jobType, variables, again, told.replayed, store.End().Record)
				}
			})
		}
	}
}

// TestUnstorable: what the store refuses, while it takes others, is rejected alone.
func TestUnstorable(t *testing.T) {
	j := job(worker.AnalyzeRetry, "{}", `{"claimId":"CLM-`+testkit.Unstorable+`-1",`+transient+`}`)
	h := handle(j)
	if h.reply.Action != worker.Failed || len(h.rejected) != 1 || h.rejected[0] != decision.InvalidVariables {
		t.Errorf("got %+v and %v, want a rejection", h.reply, h.rejected)
	}
	wantRejection(t, h.reply.Failure)
}

// TestOutcomeEndsTheEpisode: what a process reports is remembered, once; a failure leaves a dead letter to the team of the
// limit (R21).
func TestOutcomeEndsTheEpisode(t *testing.T) {
	for outcome, ends := range map[string]journal.State{"success": journal.Recovered, "failure": journal.Dead} {
		store := testkit.NewMemory()
		handleRemembering(store, job(worker.AnalyzeRetry, "{}", claim(`"submissionError":"TIMEOUT"`)), analysed)
		told := job(worker.RecordRetryOutcome, "{}", claim(`"retryOutcome":"`+outcome+`"`))
		for _, lines := range []int{1, 0} {
			h := handleRemembering(store, told, analysed.Add(time.Hour))
			if h.reply.Action != worker.Completed || h.logs.Len() != lines || h.logs.FilterField(zap.String("state", string(ends))).Len() != lines {
				t.Errorf("%s: got %+v and %v, want it completed and %d lines", outcome, h.reply, h.logs.All(), lines)
			}
		}
		story, _, err := store.Story(t.Context(), journal.Subject{Tenant: journal.DefaultTenant, Policy: "tiss-submission", ID: "CLM-001-123"})
		if err != nil || len(story.Episodes) != 1 || story.Episodes[0].State != ends {
			t.Fatalf("%s: remembered %+v (%v)", outcome, story.Episodes, err)
		}
		for _, d := range story.DeadLetters {
			if d.Team != "faturamento" || d.Reason != decision.ReasonReported || d.MaxRetries != 5 || d.RetryCount != 1 {
				t.Errorf("%s: got %+v", outcome, d)
			}
		}
		if dead := ends == journal.Dead; dead != (len(story.DeadLetters) == 1) {
			t.Errorf("%s: %d dead letters", outcome, len(story.DeadLetters))
		}
	}
}

// TestGate: while the journal is closed no loop asks for jobs, and at once when it is open again.
func TestGate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		open := make(chan struct{})
		cfg := config()
		cfg.Await = func(ctx context.Context) bool {
			select {
			case <-open:
				return true
			case <-ctx.Done():
				return false
			}
		}
		r := start(t, newEngine(), cfg, one(completing))
		time.Sleep(time.Minute)
		if n := len(r.asked()); n != 0 {
			t.Errorf("%d polls while the journal was closed", n)
		}
		close(open)
		time.Sleep(time.Millisecond)
		if n := len(r.asked()); n != 1 {
			t.Errorf("%d polls after it was opened, want 1", n)
		}
		r.finish(t)
	})
}
