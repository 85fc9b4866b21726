package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"retry-worker/internal/clock"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// The job types of the contract.
const (
	AnalyzeRetry           = "analyze-retry"            // RN-BIL-005
	RetrySubmissionBackoff = "retry-submission-backoff" // RN-BIL-004
	RecordRetryOutcome     = "record-retry-outcome"
	RetryReview            = "retry-review"
	SubmissionGate         = "submission-gate"
)

// kind is how the jobs of one type are handled.
type kind struct {
	// rule is recorded with rejections; empty if the job type belongs to none.
	rule decision.BusinessRule
	// within bounds the handling of a job, including the journal (R30); 0: only the job's deadline does.
	within time.Duration
	// waits reports whether jobs wait for a person or a destination.
	waits bool
	// variables lists what handle reads, and also those whose names the contract fixes.
	variables func(decision.Policies) []string
	also      []string
	// handle returns a job's reply. After an error the job is rejected or handed back (task.refuse).
	handle func(*task, context.Context) (Reply, error)
}

var kinds = map[string]kind{
	AnalyzeRetry: {rule: decision.RNBIL005, within: 5 * time.Second, variables: decision.Policies.Variables,
		handle: (*task).analyze},
	RetrySubmissionBackoff: {rule: decision.RNBIL004, within: 2 * time.Second, variables: decision.Policies.Variables,
		handle: (*task).analyze},
	RecordRetryOutcome: {variables: decision.Policies.IDVariables, also: []string{OutcomeVariable, protocolVariable},
		handle: (*task).recordOutcome},
	RetryReview: {waits: true, variables: decision.Policies.IDVariables, also: []string{DeadLetterVariable},
		handle: (*task).awaitReview},
	SubmissionGate: {waits: true, variables: decision.Policies.GateVariables, also: []string{decision.DeadlineVariable},
		handle: (*task).passGate},
}

// Options are what Handlers work with. Those that the job types in use do not need may be left out.
type Options struct {
	// Policies returns the policies in force.
	Policies func() decision.Policies
	Memory   *journal.Journal
	// Now is the clock for received jobs.
	Now   func() time.Time
	Hooks Hooks
	Log   *zap.Logger
	// Expected returns when a destination that is down is expected back, or zero; nil if nobody knows.
	Expected func(destination string) time.Time

	// Engine keeps the jobs that wait.
	Engine Engine
	// Admit reports whether a claim of that destination and job may go; its deadline is zero if it has none.
	Admit func(destination string, jobKey int64, deadline time.Time) bool
	// Letters are the dead letters that processes wait for. Answered is called if a process arrives whose answer is
	// already pending; it must not block.
	Letters  deadletter.Reader
	Answered func()
}

// Handlers handle the jobs of the contract's types.
type Handlers struct {
	Options
	// long bounds the bytes of long jobs that are analysed at once: reading a text takes some 30 times its size.
	long   *semaphore.Weighted
	unkept sync.Map // job types whose jobs the engine does not keep
}

// NewHandlers returns Handlers.
func NewHandlers(o Options) *Handlers {
	return &Handlers{Options: o, long: semaphore.NewWeighted(2 * maxVariableBytes)}
}

// task is a job that is being handled, by the policies of its activation.
type task struct {
	*Handlers
	*Job
	kind
	policies decision.Policies
}

// Begin returns an activation under the policies in force: its variables and its handler use the same catalogue.
func (h *Handlers) Begin(jobType string) Activation {
	k, policies := kinds[jobType], h.Policies()
	variables := append(k.variables(policies), k.also...)
	return Activation{Variables: variables, Handler: func(ctx context.Context, j *Job) Reply {
		if k.within > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, k.within)
			defer cancel()
		}
		t := &task{h, j, k, policies}
		reply, err := k.handle(t, ctx)
		if err != nil {
			return t.refuse(ctx, err)
		}
		return reply
	}}
}

const (
	// waitingTime is how long a recorded job that waits stays locked before the engine offers it again (contract, job
	// types).
	waitingTime = 24 * time.Hour
	// takingTime is how long it stays locked until it is recorded. It is short, so that a job which a killed process
	// took, or which was lost on the way, comes back soon.
	takingTime = 30 * time.Second
	// takingPlaces bounds the jobs that are being recorded.
	takingPlaces = 64
	// keepingTime bounds the tries to lengthen a job's lock.
	keepingTime = 5 * time.Second
)

// Worker returns a worker for these job types. One whose jobs wait has a worker and places of its own, since people and
// destinations are slow. That keeps cfg's name, tenants, poll time-out and Await; its memory is bounded, however many
// jobs wait.
func (h *Handlers) Worker(cfg Config, jobTypes ...string) *Worker {
	hooks, subscriptions := h.Hooks, []Subscription(nil)
	for _, name := range jobTypes {
		subscriptions = append(subscriptions, Subscription{name, func() Activation { return h.Begin(name) }})
		if kinds[name].waits {
			cfg.JobTimeout, cfg.MaxJobsActive, cfg.Concurrency, cfg.Tracer = takingTime, takingPlaces, takingPlaces, nil
			hooks.EngineUp = func(bool) {} // the other loops report that
			hooks.Add = func(metric string, n float64, values ...string) {
				if metric != inFlight { // these jobs take no capacity
					h.Hooks.Add(metric, n, values...)
				}
			}
		}
	}
	return New(h.Engine, cfg, subscriptions, hooks, h.Log)
}

// keep locks the job for a day, to be answered later. It tries again while the engine is busy.
func (t *task) keep(ctx context.Context) Reply {
	within, cancel := context.WithTimeout(ctx, keepingTime)
	defer cancel()
	pauses := newBackoff(50*time.Millisecond, time.Second, uint64(t.Key))
	for within.Err() == nil {
		err := t.Engine.Hold(within, t.Job, waitingTime)
		if err == nil || kindOf(err) == Gone {
			break
		}
		if kindOf(err) == Refused {
			if _, before := t.unkept.LoadOrStore(t.Type, true); !before {
				t.Log.Warn("the engine does not keep jobs that wait for a day; they come every half minute, which costs a "+
					"little each time", zap.String("jobType", t.Type), zap.Error(err))
			}
			break
		}
		clock.Machine{}.Rest(within, pauses.draw())
	}
	return Reply{Action: held}
}

// errOutdated is the error of a job whose policy came into force after its activation.
var errOutdated = errors.New("handed back: its policy came into force after this job was activated")

// open returns the policy that the job's task names, and the job's variables. A job with errOutdated is handed back
// once; the next activation fetches the variables of its policy.
func (t *task) open() (*decision.Policy, values, error) {
	name, err := header(t.Job, PolicyHeader)
	if err != nil {
		return nil, nil, err
	}
	policy, unknown := t.policies.Find(name)
	if unknown != nil {
		if _, unknown = t.Policies().Find(name); unknown != nil {
			return nil, nil, unknown
		}
		return nil, nil, errOutdated
	}
	vs, err := t.readVariables()
	return policy, vs, err
}

// subject returns the job's subject.
func (t *task) subject(policy, id string) journal.Subject {
	return journal.Subject{Tenant: t.tenant(), Policy: policy, ID: id}
}

// tenant returns the job's tenant; an engine without tenants names none.
func (t *task) tenant() string { return cmp.Or(t.TenantID, journal.DefaultTenant) }

// maxVariableBytes bounds a job's variables; more cannot be an error text.
const maxVariableBytes = 1 << 20

// PolicyHeader is the task header that names the policy.
const PolicyHeader = "retryPolicy"

// taskHeaders names all headers together in a rejection.
const taskHeaders = "the JSON of the task's headers"

// values holds a job's variables as raw JSON.
type values map[string]json.RawMessage

// get returns the value of name; empty if it is absent.
func (vs values) get(name string) decision.Value { return decision.Value(vs[name]) }

// readVariables reads the job's variables.
func (t *task) readVariables() (vs values, err error) {
	if len(t.Variables) > maxVariableBytes {
		t.Hooks.Add(oversized, 1, t.Type)
		return nil, invalid("the size of the job's variables", strconv.Itoa(len(t.Variables))+" bytes",
			"at most "+strconv.Itoa(maxVariableBytes)+" bytes")
	}
	if err := json.Unmarshal([]byte(t.Variables), &vs); err != nil || vs == nil {
		return nil, invalid("the JSON of the job's variables", "no object", "one")
	}
	return vs, nil
}

// header returns a header of the job's task; empty if it is absent.
func header(j *Job, name string) (string, error) {
	if j.Headers == "" || j.Headers == "{}" {
		return "", nil
	}
	var headers map[string]string
	if json.Unmarshal([]byte(j.Headers), &headers) != nil {
		return "", invalid(taskHeaders, "no object of texts", "one")
	}
	return headers[name], nil
}

func invalid(variable, found, expected string) *decision.Rejection {
	return &decision.Rejection{Code: decision.InvalidVariables, Variable: variable, Found: found, Expected: expected}
}

const (
	// correctVariable and correctHeader end the rejections (R11). A job in an incident keeps its headers.
	correctVariable = "; correct the variable and resolve the incident"
	correctJournal  = "; restore the journal and resolve the incident"
	correctHeader   = "; correct the task's header in the model, deploy it and move the instance to it"
	// remembered names the fault if a subject's records cannot be read.
	remembered = "what the journal remembers of it"
)

// Why a job is handed back with its retries unchanged.
const (
	notRecorded = "handed back: the worker's journal cannot be written now; its log and /readyz say why"
	tooSlow     = "handed back: its analysis took too long, the journal included; the worker's log and /readyz say " +
		"whether the journal can be written"
	departed = "handed back: its gate let it go, or gave it up; it is told so again"
)

const (
	// slowBackoff delays a job whose analysis took too long. Its next one may take as long again, be it for a busy
	// database or for a huge text: without a pause such jobs would leave no time to others.
	slowBackoff = 5 * time.Second
	// waitPause slows down jobs that wait, cannot be recorded and come back at once.
	waitPause = 2 * time.Second
)

// refuse returns the reply to a job that was not handled. If its input is at fault, or the journal cannot hold it, that
// is recorded and the job rejected (R11). Otherwise it is handed back. It may still be recorded later; the job then
// gets that answer when it comes again.
func (t *task) refuse(ctx context.Context, err error) Reply {
	rejection, is := errors.AsType[*decision.Rejection](err)
	switch {
	case is:
	case errors.Is(err, journal.ErrInvalid) && errors.Is(err, journal.ErrUnreadable):
		rejection = invalid(remembered, err.Error(),
			"records that hold: `retry-worker audit verify` names the first that does not")
	case errors.Is(err, journal.ErrInvalid):
		rejection = invalid("the analysis", err.Error(), "one that the journal can hold")
	case errors.Is(err, errOutdated):
		return release(t.Job, err.Error())
	}
	if rejection != nil && t.Memory.Reject(ctx, &journal.RejectedJob{Subject: t.subject("", ""), Rule: t.rule,
		JobKey: t.Key, ProcessInstanceKey: t.ProcessInstanceKey, Rejection: rejection}) == nil {
		return t.reject(rejection)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Hooks.Add("retry_worker_analysis_timeouts_total", 1, t.Type)
		r := release(t.Job, tooSlow)
		r.Failure.Backoff = slowBackoff
		return r
	}
	if t.waits { // rest here, because in the engine's back-off the job could not be completed
		clock.Machine{}.Rest(ctx, waitPause)
	}
	if errors.Is(err, journal.ErrDeparted) {
		return release(t.Job, departed)
	}
	return release(t.Job, notRecorded)
}

// reject fails the job with no retries left. The engine raises an incident that says what is wrong (R11).
func (t *task) reject(r *decision.Rejection) Reply {
	message := journal.RejectionMessage(r)
	switch r.Variable {
	case PolicyHeader, taskHeaders:
		message += correctHeader
	case remembered:
		message += correctJournal
	default:
		message += correctVariable
	}
	t.Hooks.Add("retry_worker_rejected_inputs_total", 1, t.Type, string(r.Code))
	t.Log.Warn("input rejected", zap.String("event", "input_rejected"), zap.String("rejection", string(r.Code)),
		zap.String("detail", message), zap.String("jobType", t.Type), zap.Int64("jobKey", t.Key),
		zap.Int64("processInstanceKey", t.ProcessInstanceKey), zap.String("tenantId", t.TenantID))
	return Reply{Action: Failed, Failure: Failure{Retries: 0, Message: message}}
}

// OutcomeVariable says how the retried work ended: success (the default), failure or accepted. protocolVariable is the
// other side's number for what it accepted.
const (
	OutcomeVariable  = "retryOutcome"
	protocolVariable = "protocolNumber"
)

// recordOutcome is the use case of record-retry-outcome: a process reports the result of a retry. An outcome without a
// recorded failure changes nothing.
func (t *task) recordOutcome(ctx context.Context) (Reply, error) {
	policy, vs, err := t.open()
	if err != nil {
		return Reply{}, err
	}
	f, rejection := policy.Read(decision.Variables{ID: vs.get(policy.IDVariable)})
	if rejection != nil {
		return Reply{}, rejection
	}
	result, rejection := decision.ReadResult(vs.get(OutcomeVariable))
	if rejection != nil {
		return Reply{}, rejection
	}
	outcome := &journal.Outcome{
		Subject: t.subject(policy.Name, f.ID), Team: policy.LimitTeam,
		JobKey: t.Key, ElementInstanceKey: t.ElementInstanceKey, ProcessInstanceKey: t.ProcessInstanceKey,
		LockedUntil: t.LockedUntil,
	}
	outcome.Ended(result, protocolNumber(vs.get(protocolVariable)))
	concluded, err := t.Memory.Conclude(ctx, outcome)
	if err != nil {
		return Reply{}, err
	}
	if concluded.Changed {
		t.Log.Info("outcome recorded", zap.String("event", "retry_outcome_recorded"),
			SubjectField(policy, f.ID), zap.String("retryPolicy", policy.Name),
			zap.String("state", string(concluded.Episode.State)), zap.Int64("retryCount", concluded.Episode.Retries),
			zap.Int64("jobKey", t.Key), zap.Int64("processInstanceKey", t.ProcessInstanceKey))
	}
	return Reply{Action: Completed, Variables: "{}"}, nil
}

// protocolNumber reads a text or a whole number. Anything else is ignored, so that the outcome is not lost.
func protocolNumber(v decision.Value) (protocol string) {
	if json.Unmarshal([]byte(v), &protocol) != nil && strings.Trim(string(v), "0123456789") == "" {
		protocol = string(v)
	}
	if !decision.IsProtocol(protocol) {
		return ""
	}
	return protocol
}
