package worker

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
	"retry-worker/internal/text"
)

// The job types of the contract.
const (
	AnalyzeRetry           = "analyze-retry"            // RN-BIL-005
	RetrySubmissionBackoff = "retry-submission-backoff" // RN-BIL-004
	RecordRetryOutcome     = "record-retry-outcome"
	RetryReview            = "retry-review"
	SubmissionGate         = "submission-gate"
)

const (
	// maxErrorBytes bounds an error text that is kept or logged, redacted.
	maxErrorBytes = 1000
	// longBytes is the size of variables above which a job is long.
	longBytes = 64 << 10
	// maxContextBytes bounds one value of a claim's context.
	maxContextBytes = 200
	// correctVariable and correctHeader end the rejections (R11). A job in an incident keeps its headers.
	correctVariable = "; correct the variable and resolve the incident"
	correctJournal  = "; restore the journal and resolve the incident"
	correctHeader   = "; correct the task's header in the model, deploy it and move the instance to it"
)

// Analyzer is the use case of both rules: what follows a failed submission?
type Analyzer struct {
	// Expected returns when a destination that is down is expected back, or zero; nil if nobody knows.
	Expected func(destination string) time.Time

	useCase
	now func() time.Time
	// long bounds the bytes of long jobs that are analysed at once: reading a text takes some 30 times its size.
	long *semaphore.Weighted
}

// NewAnalyzer returns the use case of rule under the policies in force. memory recalls and records; now is the clock
// for received jobs.
func NewAnalyzer(
	policies func() decision.Policies, rule decision.BusinessRule, memory *journal.Journal, now func() time.Time,
	hooks Hooks, log *zap.Logger,
) *Analyzer {
	return &Analyzer{useCase: useCase{policies, rule, memory, hooks, log}, now: now,
		long: semaphore.NewWeighted(2 * maxVariableBytes)}
}

// Begin returns an activation under the policies in force.
func (a *Analyzer) Begin() Activation { return a.begin(decision.Policies.Variables, a.handle) }

// handle answers one job: parse, then recall, decide and record in one step of the journal, then reply.
func (a *Analyzer) handle(ctx context.Context, j *Job, policies decision.Policies) Reply {
	ctx, cancel := context.WithTimeout(ctx, analysisTime[a.rule])
	defer cancel()
	if n := int64(min(len(j.Variables), maxVariableBytes)); n > longBytes {
		if a.long.Acquire(ctx, n) != nil {
			return a.unrecorded(ctx, j)
		}
		defer a.long.Release(n)
	}
	received, started := a.now(), time.Now()
	policy, vs, reply, ok := a.open(ctx, j, policies)
	if !ok {
		return reply
	}
	failure, rejection := policy.Read(policy.Variables(vs.get))
	if rejection != nil {
		return a.refuse(ctx, j, rejection)
	}
	if policy.Stretch && a.Expected != nil {
		failure.Expected = a.Expected(failure.Destination)
	}
	analysis := a.analysis(j, policy, &failure, received)
	recorded, err := inJournal(ctx, a.memory, analysis)
	switch {
	case errors.Is(err, journal.ErrInvalid):
		return a.refuse(ctx, j, unrecordable(err))
	case err != nil:
		return a.unrecorded(ctx, j)
	case recorded.How == journal.Stale:
		a.log.Warn("the job was given to another worker while this one stood still, and was answered; nothing is recorded",
			zap.String("jobType", j.Type), zap.Int64("jobKey", j.Key))
		return Reply{Action: Superseded}
	case recorded.Decision.Rejection != nil: // the journal has recorded it
		return a.rejectJob(j, recorded.Decision.Rejection)
	}
	a.report(ctx, j, analysis, &recorded, time.Since(started))
	reply = replyTo(&recorded, &failure)
	reply.Taken = func() { a.memory.Answered(&recorded) }
	return reply
}

// analysisTime bounds one analysis, including the journal (R30).
var analysisTime = map[decision.BusinessRule]time.Duration{decision.RNBIL005: 5 * time.Second,
	decision.RNBIL004: 2 * time.Second}

// Why a job is handed back with its retries unchanged.
const (
	notRecorded = "handed back: the worker's journal cannot be written now; its log and /readyz say why"
	tooSlow     = "handed back: its analysis took too long, the journal included; the worker's log and /readyz say " +
		"whether the journal can be written"
	departed = "handed back: its gate let it go, or gave it up; it is told so again"
)

// slowBackoff delays a job whose analysis took too long. Its next one may take as long again, be it for a busy database
// or for a huge text: without a pause such jobs would leave no time to others.
const slowBackoff = 5 * time.Second

// unrecorded hands a job back that the journal has not recorded in time. It may still be recorded later; the job then
// gets that answer when it comes again.
func (u *useCase) unrecorded(ctx context.Context, j *Job) Reply {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		u.hooks.TimedOut(j.Type)
		r := release(j, tooSlow)
		r.Failure.Backoff = slowBackoff
		return r
	}
	return release(j, notRecorded)
}

// remembered names the fault if a subject's records cannot be read.
const remembered = "what the journal remembers of it"

// unrecordable returns the rejection of a job that the journal cannot record while it records others.
func unrecordable(err error) *decision.Rejection {
	if errors.Is(err, journal.ErrUnreadable) {
		return &decision.Rejection{Code: decision.InvalidVariables, Variable: remembered, Found: err.Error(),
			Expected: "records that hold: `retry-worker audit verify` names the first that does not"}
	}
	return &decision.Rejection{Code: decision.InvalidVariables, Variable: "the analysis", Found: err.Error(),
		Expected: "one that the journal can hold"}
}

func (a *Analyzer) analysis(j *Job, p *decision.Policy, f *decision.Failure, received time.Time) *journal.Analysis {
	n := &journal.Analysis{
		Subject: journal.Subject{Tenant: tenant(j), Policy: p.Name, ID: f.ID},
		JobKey:  j.Key, ElementInstanceKey: j.ElementInstanceKey, ProcessInstanceKey: j.ProcessInstanceKey,
		LockedUntil: j.LockedUntil, Rule: a.rule, Policy: p, Failure: f, Error: redact.Line(f.Error, maxErrorBytes), ReceivedAt: received,
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

// useCase holds what the handlers of all job types share.
type useCase struct {
	policies func() decision.Policies // the policies in force
	// rule is recorded with rejections; empty if the job type belongs to none.
	rule   decision.BusinessRule
	memory *journal.Journal
	hooks  Hooks
	log    *zap.Logger
}

// begin returns an activation under the policies in force: its variables and its handler use the same catalogue.
func (u *useCase) begin(
	variables func(decision.Policies) []string, handle func(context.Context, *Job, decision.Policies) Reply,
) Activation {
	policies := u.policies()
	return Activation{
		Variables: variables(policies),
		Handler:   func(ctx context.Context, j *Job) Reply { return handle(ctx, j, policies) },
	}
}

// open returns the policy that the job's task names, and the job's variables. policies are those of its activation. If
// ok is false the job gets reply. A job whose policy came into force after its activation is handed back once; the next
// activation fetches the variables of that policy.
func (u *useCase) open(
	ctx context.Context, j *Job, policies decision.Policies,
) (policy *decision.Policy, vs values, reply Reply, ok bool) {
	name, rejection := header(j, PolicyHeader)
	if rejection != nil {
		return nil, nil, u.refuse(ctx, j, rejection), false
	}
	policy, unknown := policies.Find(name)
	if unknown != nil {
		if _, rejection = u.policies().Find(name); rejection != nil {
			return nil, nil, u.refuse(ctx, j, rejection), false
		}
		return nil, nil, release(j, outdated), false
	}
	if vs, rejection = u.readVariables(j); rejection != nil {
		return nil, nil, u.refuse(ctx, j, rejection), false
	}
	return policy, vs, reply, true
}

// outdated says why a job is handed back whose policy is newer than its activation.
const outdated = "handed back: its policy came into force after this job was activated"
