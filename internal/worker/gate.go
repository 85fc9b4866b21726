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

// passGate is the use case of submission-gate: may this claim be sent to its destination now? If not, it is recorded
// and its job kept until its turn comes (AnswerGate), even across restarts.
func (t *task) passGate(ctx context.Context) (Reply, error) {
	p, vs, err := t.open()
	if err != nil {
		return Reply{}, err
	}
	v := decision.Variables{ID: vs.get(p.IDVariable), Deadline: vs.get(decision.DeadlineVariable),
		Context: p.ContextValues(vs.get)}
	if p.Destination != nil {
		v.Destination = vs.get(p.Destination.Variable)
	}
	f, rejection := p.Read(v)
	if rejection != nil {
		return Reply{}, rejection
	}
	destination, passes := destinationOf(&f), ""
	switch {
	case destination == "":
		passes = "no destination is named"
	case t.Admit(destination, t.Key, f.Deadline):
		passes = destination + " up"
	}
	if passes != "" {
		return Reply{Action: Completed, Variables: gateOutputs(0, passes, false)}, nil
	}
	err = t.Memory.Hold(ctx, &journal.Arrival{Subject: t.subject(p.Name, f.ID), JobKey: t.Key,
		ProcessInstanceKey: t.ProcessInstanceKey, ElementInstanceKey: t.ElementInstanceKey, Destination: destination,
		Deadline: f.Deadline, Context: redacted(f.Context), Policy: p})
	if err != nil {
		return Reply{}, err
	}
	return t.keep(ctx), nil
}

// redacted removes personal data from a claim's context.
func redacted(c decision.Context) decision.Context {
	for i := range c {
		if c[i].Type == decision.ContextText {
			c[i].Value = redact.Line(c[i].Value, maxContextBytes)
		}
	}
	return c
}

// destinationOf returns the redacted name of a failure's destination.
func destinationOf(f *decision.Failure) string { return redact.Line(f.Destination, maxErrorBytes) }

// gateOutputs returns the contract's outputs of a gate.
func gateOutputs(held time.Duration, reason string, canary bool) string {
	return string(text.JSON(map[string]any{"gateHeld": text.ISODuration(held), "gateReason": reason, "gateCanary": canary}))
}

// AnswerGate answers once a process that waits at a gate. policy is its claim's; nil if it is gone. The result Released
// means: try again.
func AnswerGate(ctx context.Context, engine Engine, a *journal.GateAnswer, policy *decision.Policy, log *zap.Logger) Action {
	reply := Reply{Action: Completed, Variables: gateOutputs(a.At.Sub(a.Since), a.Reason, a.Kind.Wanted())}
	if a.Action == journal.GateGivenUp {
		reply = Reply{Action: Thrown, Error: givenUp(a)}
	}
	action, err := sendLater(ctx, engine, &Job{Key: a.JobKey, ElementInstanceKey: a.ElementInstanceKey,
		ProcessInstanceKey: a.ProcessInstanceKey, Type: SubmissionGate, TenantID: a.Subject.Tenant}, reply)
	switch action {
	case Thrown:
		log.Error(reply.Error.Message, zap.String("event", "max_retries_exceeded"),
			SubjectField(policy, a.Subject.ID), zap.String("retryPolicy", a.Subject.Policy),
			zap.Int64("retryCount", a.Retries), zap.Int64("maxRetries", a.MaxRetries), zap.String("submissionError", ""),
			zap.String("errorClassification", string(decision.Unknown)), zap.String("responsibleTeam", string(a.Team)),
			zap.String("deadLetterId", a.DeadLetter), zap.Int64("jobKey", a.JobKey),
			zap.Int64("processInstanceKey", a.ProcessInstanceKey))
	case Failed:
		log.Error("the engine refuses the answer of a gate, so its claim does not go", zap.Int64("jobKey", a.JobKey),
			zap.String("error", redact.Line(err.Error(), maxErrorBytes)))
	}
	return action
}

// givenUp returns the BPMN error of a claim that cannot be sent in time.
func givenUp(a *journal.GateAnswer) BPMNError {
	last, what := a.Deadline, "Deadline"
	if a.GiveUp == decision.ReasonTimeLimit {
		last, what = a.Limit, "Time limit"
	}
	d := decision.Decision{Outcome: decision.MaxRetriesExceeded, RetryCount: a.Retries, MaxRetries: a.MaxRetries,
		Policy: a.Subject.Policy, Team: a.Team, ErrorClassification: decision.Unknown,
		RetryReason: what + " " + decision.Instant(last) + " cannot be met", PossiblyAccepted: a.PossiblyAccepted}
	return thrown(&d, &decision.Failure{OriginalError: `""`}, a.DeadLetter)
}
