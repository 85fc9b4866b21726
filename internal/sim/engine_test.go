package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/worker"
)

// process is an instance of the model with a gate: gate, submission, analysis, review and outcome, again and again.
type process struct {
	claim    string
	portal   string
	key      int64 // of the instance; its jobs' keys follow
	deadline time.Time
	vars     map[string]any
	jobs     int64
	phase    string
	ended    string
	two      bool // replicas had a job of it at once
	// canary tells that its outcome is wanted, since when it is at the portal.
	canary bool
	since  time.Time
	until  time.Time // its retry
	// submitted is when it says that it was submitted last; zero where it does not say.
	submitted time.Time
	// gateless: the model has no gate before its submission.
	gateless bool
}

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
	key    int64
	kind   string
	locked time.Time
	offers int
	given  int // how often
	done   bool
	taken  answer
	// uncaught tells that the process had an incident by an error that the job was answered with, which was resolved; refused
	// that the engine takes no answer to it, so that an operator ended its process.
	uncaught, refused bool
	poorer            bool      // an answer to it was refused
	copied            bool      // it was given once more as it was answered
	changed           bool      // it asks something else than before
	unheard           bool      // nobody was told that its answer was taken
	cutOff            time.Time // until when no answer arrives
	stuck             time.Time // until when it has an incident, in which it takes no answer
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

// wait has the process wait for a job of that type.
func (s *sim) wait(p *process, kind string) {
	p.jobs++
	p.phase, p.since = kind, time.Now()
	j := &job{process: p, key: p.latest(), kind: kind}
	s.jobs[j.key] = j
	s.offer(j, time.Duration(s.draw(fmt.Sprint("offer ", j.key)).IntN(2000))*time.Millisecond)
}

// offer offers the job after that long, and not when it was to be offered before.
func (s *sim) offer(j *job, after time.Duration) {
	j.offers++
	this := j.offers
	s.in(after, func() {
		if this == j.offers {
			s.activate(j)
		}
	})
}

// lock has nobody get the job for so long.
func (s *sim) lock(j *job, long time.Duration) {
	j.locked = time.Now().Add(long)
	s.offer(j, long+time.Millisecond)
}

// incident is what somebody resolves after a while.
func (s *sim) incident(j *job) {
	long := time.Duration(1+s.draw(fmt.Sprint("incident ", j.key)).IntN(20)) * time.Minute
	j.stuck = time.Now().Add(long)
	s.lock(j, long)
}

// gone reports whether the engine takes no answer to the job: it has one, or an incident.
func (j *job) gone() bool { return j.done || time.Now().Before(j.stuck) }

// activate gives the job to a replica, for a time; seldom to two.
func (s *sim) activate(j *job) {
	if j.done || s.ended {
		return
	}
	label := fmt.Sprint("job ", j.key)
	up := s.up()
	if time.Now().Before(j.locked) {
		return // it is offered again when its lock ends
	}
	if away := time.Until(s.away); away > 0 {
		s.offer(j, min(away, time.Minute)) // it may be back before
		return
	}
	if len(up) == 0 {
		s.offer(j, time.Second)
		return
	}
	// The lock of a job that was not answered is longer than its retry; a review is begun when people have decided.
	decided := s.attempts[j.key]
	again := (j.given > 0 || j.kind == worker.RetryReview) && (s.fault(label, "offered late") || len(decided) > 0 && s.sometimes("decided, and offered late", 1, 6))
	canary := j.process.portal != "" && s.portals[j.process.portal].canary == j.key-10
	if again || j.given == 0 && j.kind == worker.AnalyzeRetry && !canary && s.sometimes("failed, and offered late", 1, 40) {
		dice := s.draw("late " + label)
		late := time.Duration(dice.IntN([]int{1, 30, 180}[dice.IntN(3)])+1) * time.Minute
		j.since = time.Now().Add(late) // nobody could know that it waits
		s.offer(j, late)
		return
	}
	if n := len(decided); n > 0 && (decided[n-1].ShouldRetry() || j.uncaught) && s.sometimes("variables changed", 1, 5) { // by an operator
		j.changed, j.vars["submissionError"] = true, "connection refused, "+s.secret
	}
	lock := lockTime
	if j.kind == worker.RetryReview || j.kind == worker.SubmissionGate {
		lock = keptTime
	}
	s.lock(j, lock)
	r := s.oneOf(label, up)
	s.begin(r, j, lock, 0)
	if s.fault(label, "given to two") {
		j.two = true
		s.begin(s.oneOf(label, up), j, lock, 0)
	}
}

// begin has the replica handle the job, after a while.
func (s *sim) begin(r *replica, j *job, lock, after time.Duration) {
	vars, err := json.Marshal(j.vars)
	if err != nil {
		panic(err)
	}
	if s.fault(fmt.Sprint("job ", j.key), "store slow") {
		r.slow = time.Now().Add(time.Duration(1+s.draw(fmt.Sprint("slow ", j.key)).IntN(20)) * time.Second)
	}
	given := &worker.Job{Key: j.key, ElementInstanceKey: j.key + 1, ProcessInstanceKey: j.process.key, Type: j.kind, Variables: string(vars), Retries: 3, Deadline: time.Now().Add(lock - 500*time.Millisecond + time.Duration(j.given)),
		LockedUntil: time.Now().Add(lock).UnixMilli()}
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
		r.handle(given)
	})
}

// handed is a job in labels: each time that it is given has its own deadline.
func handed(j *worker.Job) string { return fmt.Sprint(j.Key, " until ", j.Deadline.UnixNano()) }

// handle hands a job to its handler, and what that says to the engine.
func (r *replica) handle(j *worker.Job) {
	r.port(r.name + " begin " + handed(j))
	r.worker.Handle(r.life, j, func(ctx context.Context, j *worker.Job) worker.Reply {
		reply := r.handlers[j.Type]()(as(ctx, handed(j)), j)
		r.port(r.name + " has handled " + handed(j)) // several are in one commit
		twice, rests := r.begun(r.jobs[j.Key].claim) > 1, time.Since(get(&r.mu, &r.jobs[j.Key].cutOff)) < 2*time.Minute
		if !rests && (twice && r.sometimes(fmt.Sprint("duplicate cut off ", j.Key), 1, 4) || r.sim.fault(fmt.Sprint("job ", j.Key), "cut off")) { // until the job is another's
			set(&r.mu, &r.jobs[j.Key].cutOff, j.Deadline)
		}
		return reply
	})
}

// The engine: a job is answered once.

func (r *replica) Complete(ctx context.Context, j *worker.Job, variables string) error {
	return r.answer(ctx, j, answer{vars: variables})
}

func (r *replica) Throw(ctx context.Context, j *worker.Job, e worker.BPMNError) error {
	return r.answer(ctx, j, answer{true, e.Code, e.Variables})
}

func (r *replica) Fail(_ context.Context, given *worker.Job, f worker.Failure) error {
	r.port(r.name + " fail " + handed(given))
	j := r.jobs[given.Key]
	if j.gone() || r.life.Err() != nil {
		return engineError(worker.Gone)
	}
	if time.Now().Before(r.away) {
		return engineError(worker.NotTaken)
	}
	if leaks(f.Message) {
		r.fail("%s: job %d is handed back with a secret: %s", j.claim, j.key, f.Message)
	}
	if f.Retries == 0 && strings.Contains(given.Variables, "yesterday") { // it is an incident, until somebody corrects that
		r.say("%s has an incident: %s", j.claim, f.Message)
		delete(j.vars, wrong)
		j.submitted = time.Time{}
		r.incident(j)
		return nil
	}
	if f.Retries != given.Retries && !(j.poorer && f.Retries == given.Retries-1) {
		r.fail("%s: job %d is handed back with %d retries: %s", j.claim, j.key, f.Retries, f.Message)
	}
	if j.back != f.Message { // else again
		j.back = f.Message
		r.say("%s hands %s of %s back: %s", r.name, j.kind, j.claim, f.Message)
	}
	j.locked = time.Time{}
	r.offer(j, max(f.Backoff, 100*time.Millisecond))
	return nil
}

func (r *replica) Hold(_ context.Context, given *worker.Job, long time.Duration) error {
	r.port(r.name + " hold " + handed(given))
	switch j := r.jobs[given.Key]; {
	case j.done, r.life.Err() != nil:
		return engineError(worker.Gone)
	case j.gone():
		return engineError(worker.Refused)
	default:
		r.lock(j, long)
		return nil
	}
}

func (r *replica) Runs(_ context.Context, key int64) (bool, error) {
	r.port(fmt.Sprint(r.name, " runs ", key))
	for _, p := range r.processes {
		if p.key == key && p.ended == "" {
			return true, nil
		}
	}
	return false, nil
}

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
	case time.Now().Before(j.stuck):
		return engineError(worker.Gone)
	case j.refused, !a.thrown && !j.done && !r.left[key].at.IsZero() && r.sometimes("answer refused", 1, 100):
		if !j.refused {
			j.refused, j.done = true, true
			r.end(j.process, "cancelled")
		}
		return engineError(worker.Refused)
	case j.kind == worker.AnalyzeRetry && !j.done && r.sometimes("answer refused once", 1, 200):
		j.poorer = true
		return engineError(worker.Refused)
	case a.thrown && !j.done && r.fault("error not thrown"): // its variables are set before
		_ = json.Unmarshal([]byte(a.vars), &j.vars)
		r.traceAnswer("write", j, a)
		return engineError(worker.Ambiguous)
	case a.thrown && !j.done && j.kind == worker.AnalyzeRetry && r.fault("error not caught"):
		_ = json.Unmarshal([]byte(a.vars), &j.vars)
		r.traceAnswer("write", j, a)
		j.uncaught = true
		r.incident(j)
		return nil
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

// take ends the job, and its process goes on.
func (s *sim) take(j *job, a answer) error {
	if j.gone() {
		return engineError(worker.Gone)
	}
	if !j.uncaught && s.isMarked(j.key) {
		s.fail("%s: job %d is answered, and that was recorded before", j.claim, j.key)
	}
	j.done, j.taken = true, a
	told := map[string]any{}
	if json.Unmarshal([]byte(a.vars), &told) != nil {
		s.fail("%s: job %d is answered with no JSON object", j.claim, j.key)
	}
	if s.taken(j, told); s.failed != "" {
		return nil
	}
	s.traceAnswer("take", j, a)
	if up := s.up(); j.kind == worker.RetryReview && len(up) > 0 && s.sometimes("given as it is answered", 1, 6) {
		j.copied = true
		s.begin(s.oneOf("given", up), j, keptTime, time.Duration(s.draw("given").IntN(20_000))*time.Millisecond+time.Microsecond)
	}
	for name, v := range told {
		j.vars[name] = v
	}
	s.goOn(j, told)
	return nil
}

// goOn is the model.
func (s *sim) goOn(j *job, told map[string]any) {
	p := j.process
	switch {
	case j.taken.thrown:
		s.say("%s is given up: %v after %v", p.claim, told["retryReason"], told["retryCount"])
		s.wait(p, worker.RetryReview)
	case j.kind == worker.SubmissionGate:
		if time.Since(s.away) > lateness { // else it was let go before, and the engine was told now
			s.inTime(p, "goes", lateness)
		}
		p.canary, _ = told["gateCanary"].(bool)
		s.submit(p)
	case j.kind == worker.AnalyzeRetry, j.kind == worker.RetryReview && told["reviewDecision"] == "reprocess":
		at, err := time.Parse(time.RFC3339, fmt.Sprint(told["nextRetryTime"]))
		if err != nil {
			s.fail("%s: nextRetryTime is %v", p.claim, told["nextRetryTime"])
		}
		if until, err := time.Parse(time.RFC3339, fmt.Sprint(told["submissionDeadline"])); err == nil {
			p.deadline = until
		}
		s.say("%s waits for retry %v at %s", p.claim, told["retryCount"], at.Sub(s.began).Truncate(time.Second))
		p.phase, p.since, p.until = "timer", time.Now(), at
		wait, jobs := max(time.Until(at), 0), p.jobs
		waits := func() bool { return p.phase == "timer" && p.jobs == jobs }
		s.in(wait, func() {
			if waits() {
				s.ask(p)
			}
		})
		if j.kind == worker.RetryReview && !j.copied && s.sometimes("moved back", 1, 10) { // by an operator, to the review
			s.in(time.Duration(s.draw("when moved back").Int64N(int64(wait)+1)), func() {
				if waits() && s.letter(fmt.Sprint(p.vars["deadLetterId"])).ID != "" { // else purged
					s.say("%s is moved back to its review", p.claim)
					s.wait(p, worker.RetryReview)
				}
			})
		}
	case j.kind == worker.RetryReview:
		s.end(p, "discarded")
	case p.vars["retryOutcome"] == "failure":
		s.end(p, "gave up")
	default:
		through := p.latest() - 10 // the task before is the gate
		if l := s.left[through]; p.canary && !s.reported[through] && s.begun(p.claim) == 1 && !p.two && time.Since(l.at) < atOnce {
			s.fail("%s went through its gate as job %d and succeeded, and nobody is told that %s answers", p.claim, through, p.portal)
		}
		s.end(p, "recovered")
	}
}

func (s *sim) end(p *process, how string) {
	p.phase, p.ended, p.since = "ended", how, time.Now()
	told, _, _ := s.memory.Story(context.Background(), subjectOf(p.claim))
	if n := len(told.Episodes) - 1; n >= 0 && told.Episodes[n].State.Open() && s.begun(p.claim) == 1 && !p.two &&
		!slices.Contains([]string{"cancelled", "wiped", "gave up"}, how) {
		s.fail("%s is %s, and its episode %s", p.claim, how, told.Episodes[n].State)
	}
	s.say("%s is %s", p.claim, how)
}

// cancel has an operator end those of a claim's processes that wait for a job of that type.
func (s *sim) cancel(claim, kind string) {
	for _, p := range s.processes {
		if p.claim == claim && p.phase == kind {
			s.jobs[p.latest()].done = true
			if n := s.trail.claims[p.latest()]; n > 0 {
				s.trail.gate(p.portal, `"end", %d`, n)
			}
			s.end(p, "cancelled")
		}
	}
}

// wrong is a variable that a model may fill with what it may not hold.
const wrong = "lastSubmissionTime"

// What a portal says that refuses a claim: whatever is sent, of its patient, perhaps for a while only, and nobody knows why.
const permanentError, ofPatient, presumedError, unknownError = "AUTHORIZATION_DENIED", "INVALID_PATIENT_DATA", "HTTP 404", "falha XPTO"

// ask has the process come to its gate, if it has one.
func (s *sim) ask(p *process) {
	if p.gateless {
		s.submit(p)
		return
	}
	s.wait(p, worker.SubmissionGate)
}

// submit sends the claim to its portal.
func (s *sim) submit(p *process) {
	dice := s.draw(fmt.Sprint("submit ", p.key))
	p.phase, p.since = "portal", time.Now()
	s.in(time.Second+time.Duration(dice.IntN(1000*s.portals[p.portal].slowest))*time.Millisecond, func() {
		problem := s.portals[p.portal].problem(s, dice)
		switch odd := dice.IntN(100); {
		case s.isLost(p.claim), odd >= 4 && odd < 30 && s.puzzling:
			problem = unknownError
		case odd < 4:
			problem = []string{permanentError, ofPatient, presumedError, unknownError}[dice.IntN(4)]
		}
		if problem != "" {
			s.say("%s fails at %s: %s", p.claim, p.portal, problem)
			p.vars["submissionError"] = problem + " " + s.secret
			if !s.calm && dice.IntN(40) == 0 {
				p.vars[wrong] = "yesterday, " + s.secret
			} else if p.submitted.IsZero() && dice.IntN(10) == 0 {
				p.submitted = time.Now().Add(time.Duration(dice.IntN(40)-30) * time.Minute).UTC().Truncate(time.Second)
				p.vars[wrong] = p.submitted
			}
			s.wait(p, worker.AnalyzeRetry)
			return
		}
		n, _ := p.vars["retryCount"].(float64)
		if n > 0 && !s.calm && dice.IntN(30) == 0 { // its model gives it up by itself
			p.vars["retryOutcome"] = "failure"
		}
		if n > 0 || p.vars["reviewDecision"] == "reprocess" || p.canary { // as in SUB_06
			s.wait(p, worker.RecordRetryOutcome)
			return
		}
		s.end(p, "sent")
	})
}
