package worker_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zapcore"

	"retry-worker/internal/worker"
)

// What an engine may say to one try of an answer.
var (
	taken     error // nil
	ambiguous = refusal(worker.Ambiguous)
	notTaken  = refusal(worker.NotTaken)
	gone      = refusal(worker.Gone)
	refused   = refusal(worker.Refused)
	tooLarge  = refusal(worker.TooLarge)

	errUnclassified = errors.New("no engine error at all")
)

// says is an engine that answers a job's tries in order; the last thing it says it says for ever.
func says(script ...error) func(context.Context, answer) error {
	return func(_ context.Context, a answer) error { return script[min(a.try, len(script))-1] }
}

// The replies a handler may give.
var (
	completion = worker.Reply{Action: worker.Completed, Variables: `{"shouldRetry":true}`}
	bpmnError  = worker.Reply{Action: worker.Thrown, Error: worker.BPMNError{
		Code: "PERMANENT_ERROR", Message: "Permanent error, not retried", Variables: `{"shouldRetry":false}`}}
	handedBack = worker.Reply{Action: worker.Released, Failure: worker.Failure{Retries: 3, Message: "handed back: …"}}
	rejection  = worker.Reply{Action: worker.Failed, Failure: worker.Failure{Message: "INVALID_CLAIM_ID: …"}}
)

func replying(r worker.Reply) worker.Handler {
	return func(context.Context, *worker.Job) worker.Reply { return r }
}

// TestDelivery: what the engine says to the tries of one answer, and what the job is counted as.
func TestDelivery(t *testing.T) {
	tests := []struct {
		name   string
		reply  worker.Reply
		script []error
		want   worker.Action
		verbs  string // of all tries: c, t, f for Complete, Throw, Fail
	}{
		{"taken at once", completion, []error{taken}, worker.Completed, "c"},
		{"an error taken at once", bpmnError, []error{taken}, worker.Thrown, "t"},
		{"a rejection taken at once", rejection, []error{taken}, worker.Failed, "f"},
		{"busy, then taken", completion, []error{notTaken, notTaken, taken}, worker.Completed, "ccc"},
		{"an error: busy, then taken", bpmnError, []error{notTaken, taken}, worker.Thrown, "tt"},
		{"a rejection: busy, then taken", rejection, []error{notTaken, taken}, worker.Failed, "ff"},
		{"lost, then taken", completion, []error{ambiguous, taken}, worker.Completed, "cc"},
		{"somebody else was first", completion, []error{gone}, worker.Superseded, "c"},
		{"busy, then somebody else was first", completion, []error{notTaken, gone}, worker.Superseded, "cc"},
		{"too large, then somebody else was first", completion, []error{tooLarge, gone}, worker.Superseded, "cc"},
		{"lost, then gone: it may have been us", completion, []error{ambiguous, gone}, worker.Unconfirmed, "cc"},
		{"an error lost, then gone", bpmnError, []error{ambiguous, gone}, worker.Unconfirmed, "tt"},
		{"a rejection lost, then gone", rejection, []error{ambiguous, gone}, worker.Unconfirmed, "ff"},
		{"lost, busy, gone", completion, []error{ambiguous, notTaken, gone}, worker.Unconfirmed, "ccc"},
		{"unclassified, then gone", completion, []error{errUnclassified, gone}, worker.Unconfirmed, "cc"},
		{"never takes it: penalty", completion, []error{refused, taken}, worker.Failed, "cf"},
		{"never takes the error: penalty", bpmnError, []error{refused, taken}, worker.Failed, "tf"},
		{"busy, never takes it, busy, penalty", completion, []error{notTaken, refused, notTaken, taken}, worker.Failed, "ccff"},
		{"never takes it, then gone", completion, []error{refused, gone}, worker.Superseded, "cf"},
		{"never takes it, penalty lost, then gone", completion, []error{refused, ambiguous, gone}, worker.Unconfirmed, "cff"},
		{"takes neither answer nor penalty", completion, []error{refused, refused}, worker.Released, "cf"},
		{"never takes the rejection", rejection, []error{refused}, worker.Released, "f"},
		{"handed back", handedBack, []error{notTaken, taken}, worker.Released, "ff"},
		{"handed back: never taken", handedBack, []error{refused}, worker.Released, "f"},
		{"the rejection lost, then refused", rejection, []error{ambiguous, refused}, worker.Unconfirmed, "ff"},
	}
	for _, tt := range tests {
		each(t, tt.name, func(t *testing.T, e *engine) {
			e.offers(jobs(jobType, 1, 1))
			e.onAnswer = says(tt.script...)
			reply, acknowledged := tt.reply, 0
			reply.Taken = func() { acknowledged++ }
			r := start(t, e, config(), one(replying(reply)))
			time.Sleep(jobTimeout)
			r.finish(t)
			r.wantActions(t, map[worker.Action]int{tt.want: 1})
			verbs := ""
			for _, a := range e.told() {
				verbs += a.verb[:1]
				wantPayload(t, a, tt.reply)
			}
			if verbs != tt.verbs {
				t.Errorf("the engine was told %s, want %s", verbs, tt.verbs)
			}
			want := 0
			if tt.want == tt.reply.Action && tt.script[len(tt.script)-1] == nil {
				want = 1
			}
			if acknowledged != want {
				t.Errorf("the journal was told %d times that this answer was taken, want %d", acknowledged, want)
			}
		})
	}
}

// wantPayload fails unless a carries what r says, or is a penalty.
func wantPayload(t *testing.T, a answer, r worker.Reply) {
	t.Helper()
	ok := false
	switch a.verb {
	case "complete":
		ok = a.complete == r.Variables
	case "throw":
		ok = a.throw == r.Error
	case "fail":
		ok = a.fail == r.Failure || a.fail.Retries == a.job.Retries-1 && a.fail.Backoff == 10*time.Second && a.fail.Message != ""
	}
	if !ok {
		t.Errorf("the engine was told %+v for the reply %+v", a, r)
	}
}

// TestDeliveryUntilTheDeadline: the tries go on, with growing pauses, until the deadline and no further.
func TestDeliveryUntilTheDeadline(t *testing.T) {
	tests := []struct {
		name string
		says error
		want worker.Action
	}{
		{"busy all the time", notTaken, worker.Released},
		{"lost all the time", ambiguous, worker.Unconfirmed},
		{"unclassified all the time", errUnclassified, worker.Unconfirmed},
	}
	for _, tt := range tests {
		each(t, tt.name, func(t *testing.T, e *engine) {
			e.offers(jobs(jobType, 1, 1))
			e.onAnswer = says(tt.says)
			r := start(t, e, config(), one(replying(completion)))
			time.Sleep(jobTimeout - margin - time.Millisecond)
			if len(r.actions()) > 0 {
				t.Error("given up before the deadline")
			}
			time.Sleep(2 * time.Millisecond)
			synctest.Wait()
			r.wantActions(t, map[worker.Action]int{tt.want: 1})
			r.finish(t)
			told := e.told()
			for i := range len(told) - 1 {
				bound := min(20*time.Millisecond<<min(i, 10), 500*time.Millisecond)
				if gap := told[i+1].at - told[i].at; gap < bound/2 || gap >= bound {
					t.Errorf("pause %d is %s, want %s to %s", i+1, gap, bound/2, bound)
				}
			}
			last := told[len(told)-1].at
			if last < jobTimeout-margin-500*time.Millisecond || last >= jobTimeout-margin {
				t.Errorf("the last try was at %s, want it near the deadline %s", last, jobTimeout-margin)
			}
			line := r.logs.FilterMessageSnippet("not answered in time")
			if line.Len() != 1 || line.All()[0].Level != zapcore.WarnLevel || line.All()[0].ContextMap()["jobKey"] != int64(1) {
				t.Errorf("logged %v, want one warning that names the job", line.All())
			}
		})
	}
}

// TestDeadline: it is counted from the moment the jobs were asked for, however late they come, and keeps
// a margin to the time-out.
func TestDeadline(t *testing.T) {
	tests := []struct {
		name       string
		jobTimeout time.Duration
		poll       time.Duration // how long it was to be
		arrives    time.Duration // after the poll began
		deadline   time.Duration // likewise
	}{
		{"at once", 10 * time.Second, pollTimeout, 0, 9500 * time.Millisecond},
		{"during the poll", 10 * time.Second, pollTimeout, 700 * time.Millisecond, 9500 * time.Millisecond},
		{"at its end", 10 * time.Second, pollTimeout, 2 * time.Second, 9500 * time.Millisecond},
		{"late: the process was frozen, or the network slow", 10 * time.Second, pollTimeout, 7 * time.Second, 9500 * time.Millisecond},
		{"late, and the first", 10 * time.Second, firstPoll, 5 * time.Second, 9500 * time.Millisecond},
		{"a time-out so short that margin and polls shrink", time.Second, 500 * time.Millisecond, 300 * time.Millisecond, 900 * time.Millisecond},
	}
	for _, tt := range tests {
		each(t, tt.name, func(t *testing.T, e *engine) {
			e.onPoll = late(tt.poll, tt.arrives, jobs(jobType, 1, 1))
			e.onAnswer = says(notTaken)
			cfg := config()
			cfg.JobTimeout = tt.jobTimeout
			deadlines := make(chan time.Time, 1)
			r := start(t, e, cfg, one(func(_ context.Context, j *worker.Job) worker.Reply {
				deadlines <- j.Deadline
				return completion
			}))
			deadline := <-deadlines
			began := e.asked()[0].at
			if tt.poll != firstPoll {
				began = e.asked()[1].at
			}
			if got := deadline.Sub(e.began) - began; got != tt.deadline {
				t.Errorf("the deadline is %s after the poll, want %s", got, tt.deadline)
			}
			time.Sleep(20 * time.Second)
			r.finish(t)
			told := e.told()
			if last := told[len(told)-1].at - began; last >= tt.deadline || last < tt.deadline-500*time.Millisecond {
				t.Errorf("the last try was at %s, want it just before %s", last, tt.deadline)
			}
		})
	}
}

// late gives the first poll that is to wait so long a batch at an instant of its own, whatever its
// context says; otherwise the engine is idle.
func late(wait, after time.Duration, batch []worker.Job) func(context.Context, worker.ActivateRequest) ([]worker.Job, error) {
	given := false
	return func(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
		if !given && r.PollTimeout == wait {
			given = true
			time.Sleep(after)
			return batch, nil
		}
		return idle(ctx, r)
	}
}

// TestCallThatHangs: one hanging call leaves time for another, and so does that one.
func TestCallThatHangs(t *testing.T) {
	for name, tt := range map[string]struct {
		lasts       time.Duration // the job
		hang        int           // so many tries
		want        worker.Action
		least, most int // tries
	}{
		"once": {jobTimeout, 1, worker.Completed, 2, 2}, "for ever": {jobTimeout, 1000, worker.Unconfirmed, 5, 20},
		"once, of an hour": {time.Hour, 1, worker.Completed, 2, 2},
	} {
		each(t, name, func(t *testing.T, e *engine) {
			e.offers(jobs(jobType, 1, 1))
			e.onAnswer = func(ctx context.Context, a answer) error {
				if a.try > tt.hang {
					return nil
				}
				<-ctx.Done()
				return ambiguous
			}
			c := config()
			c.JobTimeout = tt.lasts
			r := start(t, e, c, one(replying(completion)))
			time.Sleep(jobTimeout)
			if n := len(e.told()); n < tt.least || n > tt.most {
				t.Errorf("%d tries within %v, want %d to %d", n, jobTimeout, tt.least, tt.most)
			}
			r.finish(t)
			r.wantActions(t, map[worker.Action]int{tt.want: 1})
		})
	}
}
