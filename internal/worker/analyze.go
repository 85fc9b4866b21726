package worker

import (
	"context"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
	"retry-worker/internal/text"
)

const (
	// maxErrorBytes bounds an error text that is kept or logged, redacted.
	maxErrorBytes = 1000
	// longBytes is the size of variables above which a job is long.
	longBytes = 64 << 10
	// maxContextBytes bounds one value of a claim's context.
	maxContextBytes = 200
)

// analyze is the use case of both rules: what follows a failed submission? It parses, then recalls, decides and records
// in one step of the journal, then replies.
func (t *task) analyze(ctx context.Context) (Reply, error) {
	if n := int64(min(len(t.Variables), maxVariableBytes)); n > longBytes {
		if err := t.long.Acquire(ctx, n); err != nil {
			return Reply{}, err
		}
		defer t.long.Release(n)
	}
	received, started := t.Now(), time.Now()
	policy, vs, err := t.open()
	if err != nil {
		return Reply{}, err
	}
	failure, rejection := policy.Read(policy.Variables(vs.get))
	if rejection != nil {
		return Reply{}, rejection
	}
	if policy.Stretch && t.Expected != nil {
		failure.Expected = t.Expected(failure.Destination)
	}
	analysis := t.analysis(policy, &failure, received)
	recorded, err := inJournal(ctx, t.Memory, analysis)
	switch {
	case err != nil:
		return Reply{}, err
	case recorded.How == journal.Stale:
		t.Log.Warn("the job was given to another worker while this one stood still, and was answered; nothing is recorded",
			zap.String("jobType", t.Type), zap.Int64("jobKey", t.Key))
		return Reply{Action: Superseded}, nil
	case recorded.Decision.Rejection != nil: // the journal has recorded it
		return t.reject(recorded.Decision.Rejection), nil
	}
	t.report(ctx, analysis, &recorded, time.Since(started))
	reply := replyTo(&recorded, &failure)
	reply.Taken = func() { t.Memory.Answered(&recorded) }
	return reply, nil
}

func (t *task) analysis(p *decision.Policy, f *decision.Failure, received time.Time) *journal.Analysis {
	n := &journal.Analysis{
		Subject: t.subject(p.Name, f.ID),
		JobKey:  t.Key, ElementInstanceKey: t.ElementInstanceKey, ProcessInstanceKey: t.ProcessInstanceKey,
		LockedUntil: t.LockedUntil, Rule: t.rule, Policy: p, Failure: f, Error: redact.Line(f.Error, maxErrorBytes),
		ReceivedAt: received,
	}
	f.Match.Text, f.Destination, f.Context = shownText(f, f.Match.Text, n.Error), destinationOf(f), redacted(f.Context)
	return n
}

// replyTo returns the answer that carries the recorded decision to the process.
func replyTo(r *journal.Recorded, f *decision.Failure) Reply {
	d := &r.Decision
	if d.ShouldRetry() {
		return Reply{Action: Completed, Variables: string(text.JSON(outputsOf(d, f)))}
	}
	return Reply{Action: Thrown, Error: thrown(d, f, r.Attempt.DeadLetter)}
}
