package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	as := r.begins[j.kind]()
	of := s.core.Jobs(events, as.Variables)[0]
	j.last = worker.Job{Key: j.key, ElementInstanceKey: j.key + 1, ProcessInstanceKey: j.process.key, Type: j.kind, TenantID: of.Tenant, Retries: of.Retries,
		Headers: of.Headers, Variables: of.Variables, LockedUntil: of.Deadline}
	s.begin(r, j, as.Handler, 0)
	if s.fault(label, "given to two") {
		j.two = true
		r := s.oneOf(label, up)
		s.begin(r, j, r.begins[j.kind]().Handler, 0)
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
	if j.kind == worker.SubmissionGate {
		s.portals[j.portal].asked = append(s.portals[j.portal].asked, time.Now())
	}
	r.do(r.parts[0], func(stop context.Context) {
		if after > 0 {
			r.Rest(stop, after)
		}
		r.handle(&given, handler)
	})
}

// handed is a job in labels: each time that it is given has its own deadline.
func handed(j *worker.Job) string { return fmt.Sprint(j.Key, " until ", j.Deadline.UnixNano()) }

// handle hands a job to its handler, and what that says to the engine.
func (r *replica) handle(j *worker.Job, handler worker.Handler) {
	r.port(r.name + " begin " + handed(j))
	r.worker.Handle(r.life, j, func(ctx context.Context, j *worker.Job) worker.Reply {
		reply := handler(as(ctx, handed(j)), j)
		r.port(r.name + " has handled " + handed(j)) // several are in one commit
		twice, rests := r.begun(r.jobs[j.Key].claim) > 1, time.Since(get(&r.mu, &r.jobs[j.Key].cutOff)) < 2*time.Minute
		if !rests && (twice && r.sometimes(fmt.Sprint("duplicate cut off ", j.Key), 1, 4) || r.sim.fault(fmt.Sprint("job ", j.Key), "cut off")) { // until the job is another's
			set(&r.mu, &r.jobs[j.Key].cutOff, j.Deadline)
		}
		return reply
	})
}

// Complete implements worker.Engine.
func (r *replica) Complete(ctx context.Context, j *worker.Job, variables string) error {
	return r.answer(ctx, j, answer{vars: variables})
}

// Throw implements worker.Engine.
func (r *replica) Throw(ctx context.Context, j *worker.Job, e worker.BPMNError) error {
	return r.answer(ctx, j, answer{true, e.Code, e.Variables})
}

// Fail implements worker.Engine.
func (r *replica) Fail(_ context.Context, given *worker.Job, f worker.Failure) error {
	r.port(r.name + " fail " + handed(given))
	j := r.jobs[given.Key]
	if r.life.Err() != nil {
		return engineError(worker.Gone)
	}
	if time.Now().Before(r.away) {
		return engineError(worker.NotTaken)
	}
	_, err := r.apply(engine.Fail{Key: j.in, Retries: f.Retries, BackOff: f.Backoff, Message: f.Message})
	switch refused := f.Retries == 0 && strings.Contains(given.Variables, "yesterday"); {
	case err != nil:
	case leaks(f.Message):
		r.fail("%s: job %d is handed back with a secret: %s", j.claim, j.key, f.Message)
	case !refused && f.Retries != given.Retries && !(j.poorer && f.Retries == given.Retries-1):
		r.fail("%s: job %d is handed back with %d retries: %s", j.claim, j.key, f.Retries, f.Message)
	case j.back != f.Message: // else again
		j.back = f.Message
		r.say("%s hands %s of %s back: %s", r.name, j.kind, j.claim, f.Message)
	}
	return err
}

// Hold implements worker.KeepingEngine.
func (r *replica) Hold(_ context.Context, given *worker.Job, long time.Duration) error {
	r.port(r.name + " hold " + handed(given))
	if r.life.Err() != nil {
		return engineError(worker.Gone)
	}
	_, err := r.apply(engine.UpdateTimeout{Key: r.jobs[given.Key].in, Timeout: long})
	return err
}

// Runs implements worker.Waiters.
func (r *replica) Runs(_ context.Context, key int64) (bool, error) {
	r.port(fmt.Sprint(r.name, " runs ", key))
	return slices.ContainsFunc(r.processes, func(p *process) bool {
		_, err := r.core.Apply(engine.SetVariables{Key: p.instance}, time.Now())
		return p.key == key && err == nil
	}), nil
}

// Activate implements worker.Engine.
func (*replica) Activate(context.Context, worker.ActivateRequest) ([]worker.Job, error) {
	return nil, nil
}

func engineError(k worker.ErrorKind) error {
	return &worker.EngineError{Kind: k, Err: errors.New("a fault of the engine")}
}

// answer takes an answer, with faults.
func (r *replica) answer(ctx context.Context, given *worker.Job, a answer) error {
	key := given.Key
	r.port(r.name + " answer " + handed(given))
	j := r.jobs[key]
	r.sent(j, a)
	r.traceAnswer("tell", j, a)
	killed := j.kind == worker.RetryReview && !j.done && !r.calm && !r.steady && r.sometimes("killed as it tells a decision", 1, 10)
	switch {
	case r.life.Err() != nil, !r.calm && time.Now().Before(get(&r.mu, &j.cutOff)), r.mute && time.Now().Before(r.away), r.fault("answer lost"):
		return engineError(worker.Ambiguous)
	case time.Now().Before(r.away), r.fault("engine busy"):
		return engineError(worker.NotTaken)
	case r.fault("answer late"):
		late := time.Duration(r.draw(fmt.Sprint("late ", key)).IntN(12_000)) * time.Millisecond
		j.unheard = true
		r.in(late, func() { _ = r.take(j, a) })
		return engineError(worker.Ambiguous)
	case j.refused, !a.thrown && !j.done && !r.left[key].at.IsZero() && r.sometimes("answer refused", 1, 100):
		if !j.refused {
			j.refused = true
			_, _ = r.apply(engine.Cancel{Key: j.instance})
		}
		return engineError(worker.Refused)
	case j.kind == worker.AnalyzeRetry && !j.done && r.sometimes("answer refused once", 1, 200):
		j.poorer = true
		return engineError(worker.Refused)
	case a.thrown && !j.done && r.fault("error not thrown"): // its variables are set before
		r.write(j, a)
		return engineError(worker.Ambiguous)
	case a.thrown && !j.done && j.kind == worker.AnalyzeRetry && r.fault("error not caught"):
		r.write(j, a)
		_, err := r.apply(engine.Throw{Key: j.in, Code: "NOBODY_CATCHES"})
		j.uncaught = j.uncaught || err == nil
		return err
	case killed, r.fault("acknowledgement lost"):
		if j.unheard = true; killed { // and its lease ends just then
			r.die()
			_, _ = r.memory.Lease(context.Background(), answersLease, r.holders[answersLease], 0)
		}
		_ = r.take(j, a)
		return engineError(worker.Ambiguous)
	case r.fault("answer hangs"):
		<-ctx.Done()
		r.port(r.name + " gives up " + handed(given)) // several may at one instant
		return engineError(worker.Ambiguous)
	}
	err := r.take(j, a)
	if err == nil && j.kind == worker.AnalyzeRetry && r.begun(j.claim) == 1 { // a duplicate may be told what another process was (R18)
		r.marks[key] = mark{time.Now(), r}
	}
	return err
}

// write sets the variables of an error, before it is thrown.
func (s *sim) write(j *job, a answer) {
	_, _ = s.apply(engine.SetVariables{Key: j.element, Variables: a.vars})
	s.traceAnswer("write", j, a)
}

// take tells the engine an answer.
func (s *sim) take(j *job, a answer) (err error) {
	marked, waited := !j.uncaught && s.isMarked(j.key), *j.process
	if a.thrown {
		_, _ = s.apply(engine.SetVariables{Key: j.element, Variables: a.vars})
		_, err = s.apply(engine.Throw{Key: j.in, Code: a.code, Variables: a.vars})
	} else {
		_, err = s.apply(engine.Complete{Key: j.in, Variables: a.vars})
	}
	if err != nil {
		return err
	}
	if j.taken = a; marked {
		s.fail("%s: job %d is answered, and that was recorded before", j.claim, j.key)
	}
	told := map[string]any{}
	if json.Unmarshal([]byte(a.vars), &told) != nil {
		s.fail("%s: job %d is answered with no JSON object", j.claim, j.key)
	}
	if s.taken(j, told); s.failed != "" {
		return nil
	}
	s.traceAnswer("take", j, a)
	switch up := s.up(); {
	case a.thrown:
		s.say("%s is given up: %v after %v", j.claim, told["retryReason"], told["retryCount"])
	case j.kind == worker.SubmissionGate && time.Since(s.away) > lateness: // else it was let go before, and the engine was told now
		s.inTime(&waited, "goes", lateness)
	case j.kind == worker.RetryReview && len(up) > 0 && s.sometimes("given as it is answered", 1, 6):
		j.copied = true
		r := s.oneOf("given", up)
		j.last.LockedUntil = time.Now().Add(keptTime).UnixMilli()
		s.begin(r, j, r.begins[j.kind]().Handler, time.Duration(s.draw("given").IntN(20_000))*time.Millisecond+time.Microsecond)
	case j.kind == worker.RetryReview && told["reviewDecision"] == "reprocess" && s.begun(j.claim) == 1 && s.sometimes("moved back", 1, 10):
		s.in(time.Duration(s.draw("when moved back").Int64N(int64(max(time.Until(j.until), 0))+1)), func() {
			if id := fmt.Sprint(j.vars["deadLetterId"]); j.phase == atTimer && j.process.latest() == j.key && s.letter(id).ID != "" { // else purged
				s.toReview(j.process)
			}
		})
	}
	return nil
}

// toReview has an operator end a process, and begin another at the review of its claim.
func (s *sim) toReview(p *process) {
	s.say("%s is moved back to its review", p.claim)
	s.stop(p, "cancelled")
	q := &process{claim: p.claim, portal: p.portal, key: p.key + elsewhere, deadline: p.deadline, vars: maps.Clone(p.vars), gateless: p.gateless}
	s.processes = append(s.processes, q)
	s.create(q, "retry_review")
}

// stop ends a process.
func (s *sim) stop(p *process, how string) {
	p.ended = how
	_, _ = s.apply(engine.Cancel{Key: p.instance})
}

// end notes that a process has ended.
func (s *sim) end(p *process) {
	p.ended = cmp.Or(p.ended, "cancelled")
	if p.ended == "recovered" && p.gaveUp {
		p.ended = "gave up"
	}
	p.phase, p.since = hasEnded, time.Now()
	told, _, _ := s.memory.Story(context.Background(), subjectOf(p.claim))
	if n := len(told.Episodes) - 1; n >= 0 && told.Episodes[n].State.Open() && s.begun(p.claim) == 1 && !p.two &&
		!slices.Contains([]string{"cancelled", "wiped", "gave up"}, p.ended) {
		s.fail("%s is %s, and its episode %s", p.claim, p.ended, told.Episodes[n].State)
	}
	through := p.latest() - 10 // the task before the outcome is the gate
	if l := s.left[through]; p.ended == "recovered" && p.canary && !s.reported[through] && s.begun(p.claim) == 1 && !p.two && time.Since(l.at) < atOnce {
		s.fail("%s went through its gate as job %d and succeeded, and nobody is told that %s answers", p.claim, through, p.portal)
	}
	s.say("%s is %s", p.claim, p.ended)
}

// cancel has an operator end those of a claim's processes that wait for a job of that type.
func (s *sim) cancel(claim, kind string) {
	for _, p := range s.processes {
		if p.claim == claim && p.phase == kind {
			if n := s.trail.claims[p.latest()]; n > 0 {
				s.trail.gate(p.portal, `"end", %d`, n)
			}
			s.stop(p, "cancelled")
		}
	}
}

// wrong is a variable that a model may fill with what it may not hold.
const wrong = "lastSubmissionTime"

// What a portal says that refuses a claim: whatever is sent, of its patient, perhaps for a while only, and nobody knows why.
const permanentError, ofPatient, presumedError, unknownError = "AUTHORIZATION_DENIED", "INVALID_PATIENT_DATA", "HTTP 404", "falha XPTO"

// submit has the hospital's worker send the claim to its portal, and tell the engine how that went.
func (s *sim) submit(p *process, job int64) {
	dice := s.draw(fmt.Sprint("submit ", p.key))
	s.in(time.Second+time.Duration(dice.IntN(1000*s.portals[p.portal].slowest))*time.Millisecond, func() {
		problem := s.portals[p.portal].problem(s, dice)
		switch odd := dice.IntN(100); {
		case odd >= 4 && odd < 30 && s.puzzling:
			problem = unknownError
		case odd < 4:
			problem = []string{permanentError, ofPatient, presumedError, unknownError}[dice.IntN(4)]
		}
		if problem == "" {
			_, _ = s.apply(engine.Complete{Key: job})
			return
		}
		s.say("%s fails at %s: %s", p.claim, p.portal, problem)
		failed := map[string]any{"submissionError": problem + " " + s.secret}
		if !s.calm && dice.IntN(40) == 0 {
			failed[wrong] = "yesterday, " + s.secret
		} else if dice.IntN(10) == 0 {
			failed[wrong] = time.Now().Add(time.Duration(dice.IntN(40)-30) * time.Minute).UTC().Truncate(time.Second)
		}
		vars, _ := json.Marshal(failed)
		_, _ = s.apply(engine.Throw{Key: job, Code: "SUBMISSION_FAILED", Variables: string(vars)})
	})
}
