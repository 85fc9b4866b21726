package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/engine"
	"retry-worker/internal/worker"
)

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

// Hold implements worker.Engine.
func (r *replica) Hold(_ context.Context, given *worker.Job, long time.Duration) error {
	r.port(r.name + " hold " + handed(given))
	if r.life.Err() != nil {
		return engineError(worker.Gone)
	}
	_, err := r.apply(engine.UpdateTimeout{Key: r.jobs[given.Key].in, Timeout: long})
	return err
}

// Ended implements worker.Engine.
func (r *replica) Ended(_ context.Context, key int64) bool {
	r.port(fmt.Sprint(r.name, " runs ", key))
	return !slices.ContainsFunc(r.processes, func(p *process) bool {
		_, err := r.core.Apply(engine.SetVariables{Key: p.instance}, time.Now())
		return p.key == key && err == nil
	})
}

// Runs implements worker.Engine.
func (r *replica) Runs(ctx context.Context, key int64) (bool, error) { return !r.Ended(ctx, key), nil }

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
	return r.take(j, a)
}

// write sets the variables of an error, before it is thrown.
func (s *sim) write(j *job, a answer) {
	_, _ = s.apply(engine.SetVariables{Key: j.element, Variables: a.vars})
	s.traceAnswer("write", j, a)
}

// take tells the engine an answer.
func (s *sim) take(j *job, a answer) (err error) {
	marked := !j.uncaught && s.isMarked(j.key)
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
	case j.kind == worker.RetryReview && len(up) > 0 && s.sometimes("given as it is answered", 1, 6):
		j.copied = true
		r := s.oneOf("given", up)
		j.last.LockedUntil = time.Now().Add(keptTime).UnixMilli()
		s.begin(r, j, r.handlers.Begin(j.kind).Handler, time.Duration(s.draw("given").IntN(20_000))*time.Millisecond+time.Microsecond)
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
