package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"retry-worker/bpmn"
	"retry-worker/internal/engine"
	"retry-worker/internal/worker"
)

// process is an instance of SUB_06, or of such a model that has no gate. The product is told keys of its own, by which the
// draws of one claim do not depend on what others do.
type process struct {
	claim    string
	portal   string
	key      int64 // as it is told; its jobs' keys follow
	instance int64 // the engine's
	deadline time.Time
	vars     map[string]any
	jobs     int64
	phase    string // the type of the job that it waits for, or another of these
	ended    string
	two      bool // replicas had a job of it at once
	// canary tells that its outcome is wanted, since when it is at the portal.
	canary   bool
	since    time.Time
	until    time.Time // its retry
	gateless bool
	gaveUp   bool // its model says that its claim failed
}

// The phases of a process beside its jobs.
const atPortal, atTimer, hasEnded = "submit-claim", "timer", "ended"

// latest is the key of its latest job.
func (p *process) latest() int64 { return p.key + 10*p.jobs }

// keys are those of all its jobs.
func (p *process) keys() (all []int64) {
	for n := range p.jobs {
		all = append(all, p.key+10*(n+1))
	}
	return all
}

// job is one that the engine offers until it is answered.
type job struct {
	*process
	key         int64 // as it is told
	in, element int64 // the engine's keys
	kind        string
	last        worker.Job // as it was given last
	given       int        // how often
	done        bool
	taken       answer
	// submitted is when the process says that it was submitted last; zero where it does not say.
	submitted time.Time
	// uncaught tells that the process had an incident by an error that the job was answered with, which was resolved; refused
	// that the engine takes no answer to it, so that an operator ended its process.
	uncaught, refused bool
	poorer            bool      // an answer to it was refused
	copied            bool      // it was given once more as it was answered
	changed           bool      // it asks something else than before
	unheard           bool      // nobody was told that its answer was taken
	cutOff            time.Time // until when no answer arrives
	back              string    // why it was handed back last
}

// answer is what a job was answered with.
type answer struct {
	thrown     bool
	code, vars string
}

const (
	lockTime = 10 * time.Second
	keptTime = 30 * time.Second
)

// broker is the development engine's core, with the rules of this package around it.
type broker struct {
	core      *engine.Core
	instances map[int64]*process // by the engine's keys
	offered   map[int64]*job
	elements  map[int64]*job
	starting  *process  // that is being created
	ticks     time.Time // when something is due
}

// withoutGate is a model of another author: SUB_06 without its gate.
const withoutGate = "WITHOUT_GATE"

func newBroker() broker {
	b := broker{core: engine.New(), instances: map[int64]*process{}, offered: map[int64]*job{}, elements: map[int64]*job{}}
	var all []engine.Resource
	for _, m := range bpmn.Models() {
		all = append(all, engine.Resource{Name: m.Name, Content: string(m.Content)})
		if m.ProcessID == claims {
			ungated := strings.NewReplacer(`process id="SUB_06"`, `process id="`+withoutGate+`"`, `targetRef="submission_gate"`, `targetRef="submit_claim"`)
			all = append(all, engine.Resource{Name: withoutGate, Content: ungated.Replace(string(m.Content))})
		}
	}
	if _, err := b.core.Apply(engine.Deploy{Resources: all, Tenant: engine.DefaultTenant}, time.Now()); err != nil {
		panic(err)
	}
	return b
}

// claims is the process of claims.
const claims = "SUB_06"

// apply has the engine do what it is asked for.
func (s *sim) apply(c engine.Command) ([]engine.Event, error) {
	events, err := s.core.Apply(c, time.Now())
	s.happened(events)
	if err == nil {
		return events, nil
	}
	kind := worker.Gone
	if no, ok := errors.AsType[*engine.Rejection](err); ok && no.Reason == engine.InvalidArgument {
		kind = worker.Refused
	}
	return nil, &worker.EngineError{Kind: kind, Err: err}
}

// happened goes through what the engine did, and has what is due happen in time.
func (s *sim) happened(events []engine.Event) {
	for i := range events {
		s.event(&events[i])
	}
	next, ok := s.core.NextDue()
	if !ok || !s.ticks.IsZero() && !next.Before(s.ticks) {
		return
	}
	s.ticks = next
	s.in(time.Until(next)+time.Millisecond, func() {
		s.ticks = time.Time{}
		s.happened(s.core.Tick(time.Now()))
	})
}

func (s *sim) event(e *engine.Event) {
	v, p, j := &e.Value, s.instances[e.Value.ProcessInstanceKey], s.offered[cmp.Or(e.Value.JobKey, e.Key)]
	switch e.ValueType + " " + e.Intent {
	case "PROCESS_INSTANCE ELEMENT_ACTIVATED":
		if e.Key == v.ProcessInstanceKey {
			s.starting.instance, s.instances[e.Key] = e.Key, s.starting
		}
	case "VARIABLE CREATED", "VARIABLE UPDATED":
		if v.ScopeKey == p.instance {
			p.set(v.Name, v.Value)
		}
	case "JOB CREATED":
		s.wait(p, e)
	case "JOB TIMED_OUT", "JOB RECURRED_AFTER_BACKOFF", "INCIDENT RESOLVED":
		s.offer(j)
	case "JOB FAILED":
		if v.Retries > 0 && v.RecurringTime == 0 {
			s.offer(j)
		}
	case "INCIDENT CREATED":
		s.incident(j, e)
	case "TIMER CREATED":
		p.phase, p.since, p.until = atTimer, time.Now(), time.UnixMilli(v.DueDate).UTC()
		s.say("%s waits for retry %v at %s", p.claim, p.vars["retryCount"], p.until.Sub(s.began).Truncate(time.Second))
	case "PROCESS_INSTANCE ELEMENT_COMPLETED", "PROCESS_INSTANCE ELEMENT_TERMINATED":
		if j := s.elements[e.Key]; j != nil {
			j.done = true
		} else if how := endings[v.ElementID]; how != "" {
			p.ended = how
		} else if e.Key == p.instance {
			s.end(p)
		}
	}
}

// endings are how a process ends, by its end events.
var endings = map[string]string{"submitted": "sent", "resubmission_recorded": "recovered", "discarded": "discarded"}

// set notes a variable of the process.
func (p *process) set(name, value string) {
	var v any
	_ = json.Unmarshal([]byte(value), &v) // is JSON
	switch p.vars[name] = v; name {
	case "submissionDeadline":
		p.deadline = instant(v)
	case "gateCanary":
		p.canary = v == true
	}
}

// instant is one that a variable holds, if any.
func instant(v any) time.Time {
	at, _ := time.Parse(time.RFC3339, fmt.Sprint(v))
	return at
}

// create starts a process with its variables, at an element if it is named.
func (s *sim) create(p *process, at ...string) {
	vars, err := json.Marshal(p.vars)
	if err != nil {
		panic(err)
	}
	of := engine.Create{ProcessID: claims, Version: engine.Latest, Tenant: engine.DefaultTenant, Variables: string(vars), StartAt: at}
	if p.gateless {
		of.ProcessID = withoutGate
	}
	s.starting = p
	if _, err := s.apply(of); err != nil {
		panic(err)
	}
}

// wait has the process wait for a job: the hospital's, or one of the product.
func (s *sim) wait(p *process, e *engine.Event) {
	p.phase, p.since = e.Value.Type, time.Now()
	if p.phase == atPortal {
		s.submit(p, e.Key)
		return
	}
	p.jobs++
	j := &job{process: p, key: p.latest(), in: e.Key, element: e.Value.ElementInstanceKey, kind: p.phase, submitted: instant(p.vars[wrong])}
	s.jobs[j.key], s.offered[j.in], s.elements[j.element] = j, j, j
	s.offer(j)
}

// offer has somebody ask for jobs of the type of one that waits.
func (s *sim) offer(j *job) {
	s.in(time.Duration(s.draw(fmt.Sprint("offer ", j.key)).IntN(2000))*time.Millisecond, func() { s.poll(j.kind) })
}

// offerAgain has the engine offer a job again after that long that somebody has.
func (s *sim) offerAgain(j *job, after time.Duration) {
	_, _ = s.apply(engine.UpdateTimeout{Key: j.in, Timeout: max(after, time.Millisecond)})
}

// incident is what somebody resolves after a while: he corrects what a model filled in.
func (s *sim) incident(j *job, e *engine.Event) {
	if j == nil {
		s.fail("an incident: %s", e.Value.ErrorMessage)
		return
	}
	s.in(time.Duration(1+s.draw(fmt.Sprint("incident ", j.key)).IntN(20))*time.Minute, func() {
		if !j.uncaught {
			_, _ = s.apply(engine.SetVariables{Key: j.instance, Variables: `{"` + wrong + `":null}`})
			j.submitted = time.Time{}
			_, _ = s.apply(engine.UpdateRetries{Key: j.in, Retries: 3})
		}
		_, _ = s.apply(engine.Resolve{Key: e.Key})
	})
}

// poll has a replica ask for a job of a type.
func (s *sim) poll(kind string) {
	again := func(after time.Duration) { s.in(after, func() { s.poll(kind) }) }
	up, away := s.up(), time.Until(s.away)
	switch {
	case s.ended:
		return
	case away > 0:
		again(min(away, time.Minute)) // it may be back before
		return
	case len(up) == 0:
		again(time.Second)
		return
	}
	lock := lockTime
	if kind == worker.RetryReview || kind == worker.SubmissionGate {
		lock = keptTime
	}
	events, _ := s.apply(engine.Activate{Type: kind, Worker: "sim", Timeout: lock, Max: 1, Tenants: []string{engine.DefaultTenant}})
	for i := range events {
		for _, key := range events[i].Value.JobKeys {
			s.activated(s.offered[key], events, up)
		}
	}
}

// activated gives the job to a replica, for a time; seldom to two, or to nobody.
func (s *sim) activated(j *job, events []engine.Event, up []*replica) {
	label := fmt.Sprint("job ", j.key)
	// The lock of a job that was not answered is longer than its retry; a review is begun when people have decided.
	decided := s.attempts[j.key]
	again := (j.given > 0 || j.kind == worker.RetryReview) && (s.fault(label, "offered late") || len(decided) > 0 && s.sometimes("decided, and offered late", 1, 6))
	canary := j.portal != "" && s.portals[j.portal].canary == j.key-10
	if again || j.given == 0 && j.kind == worker.AnalyzeRetry && !canary && s.sometimes("failed, and offered late", 1, 40) {
		dice := s.draw("late " + label)
		late := time.Duration(dice.IntN([]int{1, 30, 180}[dice.IntN(3)])+1) * time.Minute
		j.since = time.Now().Add(late) // nobody could know that it waits
		s.offerAgain(j, late)
		return
	}
	retried, _ := j.vars["retryCount"].(float64)
	if n := len(decided); n > 0 && (decided[n-1].ShouldRetry() || j.uncaught) && s.sometimes("variables changed", 1, 5) { // by an operator
		j.changed = true
		_, _ = s.apply(engine.SetVariables{Key: j.instance, Variables: `{"submissionError":` + strconv.Quote("connection refused, "+s.secret) + `}`})
	} else if j.kind == worker.RecordRetryOutcome && retried > 0 && !j.gaveUp && s.sometimes("the model gives "+j.claim+" up", 1, 30) {
		j.gaveUp = true
		_, _ = s.apply(engine.SetVariables{Key: j.element, Variables: `{"retryOutcome":"failure"}`})
	}
	r := s.oneOf(label, up)
	as := r.handlers.Begin(j.kind)
	of := s.core.Jobs(events, as.Variables)[0]
	j.last = worker.Job{Key: j.key, ElementInstanceKey: j.key + 1, ProcessInstanceKey: j.process.key, Type: j.kind, TenantID: of.Tenant, Retries: of.Retries,
		Headers: of.Headers, Variables: of.Variables, LockedUntil: of.Deadline}
	s.begin(r, j, as.Handler, 0)
	if s.fault(label, "given to two") {
		j.two = true
		r := s.oneOf(label, up)
		s.begin(r, j, r.handlers.Begin(j.kind).Handler, 0)
	}
}

// begin has the replica handle the job, after a while.
func (s *sim) begin(r *replica, j *job, handler worker.Handler, after time.Duration) {
	if s.fault(fmt.Sprint("job ", j.key), "store slow") {
		r.slow = time.Now().Add(time.Duration(1+s.draw(fmt.Sprint("slow ", j.key)).IntN(20)) * time.Second)
	}
	given := j.last
	given.Deadline = time.UnixMilli(given.LockedUntil).Add(-500*time.Millisecond + time.Duration(j.given))
	j.given++
	if j.kind == worker.AnalyzeRetry {
		s.trail.job(j.key, `"give"`)
	}
	r.do(r.parts[0], func(stop context.Context) {
		if after > 0 {
			r.Rest(stop, after)
		}
		r.handle(&given, handler)
	})
}
