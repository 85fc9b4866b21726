package worker

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
	"retry-worker/internal/text"
)

// Gate is the use case of submission-gate: may this claim be sent to its destination now? If not, it is recorded and
// its job kept until its turn comes (AnswerGate), even across restarts.
type Gate struct {
	holder
	admit func(destination string, jobKey int64, deadline time.Time) bool
}

// NewGate returns the use case; memory records claims that must wait. admit reports whether a claim of that destination
// and job may go; its deadline is zero if it has none.
func NewGate(
	engine HoldingEngine, admit func(destination string, jobKey int64, deadline time.Time) bool,
	policies func() decision.Policies, memory *journal.Journal, hooks Hooks, log *zap.Logger,
) *Gate {
	return &Gate{holder{useCase: useCase{policies, "", memory, hooks, log}, engine: engine}, admit}
}

// Worker returns a worker for gate jobs with places of its own. It keeps of cfg what Reviews.Worker keeps.
func (g *Gate) Worker(cfg Config) *Worker {
	return g.worker(cfg, SubmissionGate, g.Begin)
}

// Begin returns an activation under the policies in force.
func (g *Gate) Begin() Activation {
	return g.begin(func(ps decision.Policies) []string {
		return append(ps.GateVariables(), decision.DeadlineVariable)
	}, g.handle)
}

func (g *Gate) handle(ctx context.Context, j *Job, policies decision.Policies) Reply {
	policy, vs, reply, ok := g.open(ctx, j, policies)
	if !ok {
		return reply
	}
	arrival, rejection := readArrival(j, policy, vs)
	if rejection != nil {
		return g.refuse(ctx, j, rejection)
	}
	if arrival.Destination == "" {
		return Reply{Action: Completed, Variables: gateOutputs(0, "no destination is named", false)}
	}
	if g.admit(arrival.Destination, j.Key, arrival.Deadline) {
		return Reply{Action: Completed, Variables: gateOutputs(0, arrival.Destination+" up", false)}
	}
	switch err := g.memory.Hold(ctx, arrival); {
	case errors.Is(err, journal.ErrInvalid):
		return g.refuse(ctx, j, unrecordable(err))
	case err != nil:
		clock.Machine{}.Rest(ctx, reviewPause) // here, because in the engine's back-off the job could not be completed
		if errors.Is(err, journal.ErrDeparted) {
			return release(j, departed)
		}
		return release(j, notRecorded)
	}
	return g.hold(ctx, j)
}

// readArrival reads which claim asks to go to which destination.
func readArrival(j *Job, p *decision.Policy, vs values) (*journal.Arrival, *decision.Rejection) {
	v := decision.Variables{ID: vs.get(p.IDVariable), Deadline: vs.get(decision.DeadlineVariable)}
	if p.Destination != nil {
		v.Destination = vs.get(p.Destination.Variable)
	}
	v.Context = p.ContextValues(vs.get)
	f, rejection := p.Read(v)
	return &journal.Arrival{
		Subject: journal.Subject{Tenant: tenant(j), Policy: p.Name, ID: f.ID}, JobKey: j.Key,
		ProcessInstanceKey: j.ProcessInstanceKey,
		ElementInstanceKey: j.ElementInstanceKey, Destination: destinationOf(&f), Deadline: f.Deadline,
		Context: redacted(f.Context), Policy: p,
	}, rejection
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

// GateEngine is the part of an engine that answers processes at a gate. Its errors hold an *EngineError.
type GateEngine interface {
	Complete(ctx context.Context, j *Job, variables string) error
	Throw(ctx context.Context, j *Job, e BPMNError) error
	// Ended is ReviewEngine's.
	Ended(ctx context.Context, processInstanceKey int64) bool
}

// AnswerGate answers once a process that waits at a gate. policy is its claim's; nil if it is gone. The result Released
// means: try again.
func AnswerGate(ctx context.Context, engine GateEngine, a *journal.GateAnswer, policy *decision.Policy, log *zap.Logger) Action {
	j, action := &Job{Key: a.JobKey, ElementInstanceKey: a.ElementInstanceKey, ProcessInstanceKey: a.ProcessInstanceKey,
		Type: SubmissionGate, TenantID: a.Subject.Tenant}, Completed
	if engine.Ended(ctx, a.ProcessInstanceKey) {
		return Superseded
	}
	var err error
	var e BPMNError
	if a.Action == journal.GateGivenUp {
		action, e = Thrown, givenUp(a)
		err = engine.Throw(ctx, j, e)
	} else {
		err = engine.Complete(ctx, j, gateOutputs(a.At.Sub(a.Since), a.Reason, a.Kind.Wanted()))
	}
	switch {
	case err == nil && action == Thrown:
		log.Error(e.Message, zap.String("event", "max_retries_exceeded"),
			SubjectField(policy, a.Subject.ID),
			zap.String("retryPolicy", a.Subject.Policy), zap.Int64("retryCount", a.Retries),
			zap.Int64("maxRetries", a.MaxRetries), zap.String("submissionError", ""),
			zap.String("errorClassification", string(decision.Unknown)),
			zap.String("responsibleTeam", string(a.Team)),
			zap.String("deadLetterId", a.DeadLetter), zap.Int64("jobKey", a.JobKey),
			zap.Int64("processInstanceKey", a.ProcessInstanceKey))
		return Thrown
	case err == nil:
		return Completed
	case kindOf(err) == Gone:
		return Superseded
	case kindOf(err) == Refused: // it never will
		log.Error("the engine refuses the answer of a gate, so its claim does not go", zap.Int64("jobKey", a.JobKey),
			zap.String("error", redact.Line(err.Error(), maxErrorBytes)))
		return Failed
	}
	return Released
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
