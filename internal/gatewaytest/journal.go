package gatewaytest

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// maxPolls bounds the journal of polls; later ones are counted only.
const maxPolls = 1_000_000

// Activation is one time a job was given to a worker.
type Activation struct {
	At, Deadline time.Time
	Worker       string
	Caller       string
	Delivered    bool // the answer went out whole; false: the engine alone locks the job
	RanOut       bool // nobody answered until the time-out
}

// Answer is one command on a job as the engine met it.
type Answer struct {
	At        time.Time
	Method    Method
	JobKey    int64
	Caller    string
	Worker    string // who sent it, as far as that can be told; see [Engine.Report]
	Variables string
	ErrorCode string
	Message   string
	Retries   int
	BackOff   time.Duration
	Timeout   time.Duration
	Local     bool
	Code      codes.Code // the engine's verdict, or what the fault answered that stood before it
	Reached   bool       // the engine saw it; false: a fault or a limit refused it before
	Settled   bool       // it ended the job's way: completed, error thrown, incident
	Acked     bool       // accepted, and the caller was told so, as far as can be told

	acked time.Time // when
}

// Accepted tells whether the command took effect.
func (a Answer) Accepted() bool { return a.Reached && a.Code == codes.OK }

// settles tells whether a worker sends it as its answer to a job.
func (a Answer) answersJob() bool {
	return a.Method == CompleteJob || a.Method == FailJob || a.Method == ThrowError
}

// JobRecord is all that happened to one job.
type JobRecord struct {
	Job
	State       State
	Incident    int64 // key of the open incident, 0 if none
	Added       time.Time
	Since       time.Time     // since when it is activatable; meaningful in that state only
	LongestWait time.Duration // longest time from becoming activatable till activated, so far
	Activations []Activation
	Answers     []Answer // in the order they were met, SetVariables on its element among them
}

// Poll is one ActivateJobs call.
type Poll struct {
	At, Ended      time.Time // Ended is zero while it waits
	Type, Worker   string
	Caller         string
	MaxJobs        int
	Timeout        time.Duration
	RequestTimeout time.Duration
	FetchVariables []string
	TenantIDs      []string
	Jobs           int // delivered
	Code           codes.Code
}

// history is a job's part of the journal; the engine's mutex guards it.
type history struct {
	added, since time.Time
	longest      time.Duration
	activations  []Activation
	answers      []*Answer
}

func newHistory(now time.Time) *history { return &history{added: now, since: now} }

// activated notes an activation and returns its place.
func (h *history) activated(j *job, caller string, now time.Time) int {
	h.longest = max(h.longest, now.Sub(h.since))
	h.activations = append(h.activations, Activation{
		At: now, Deadline: j.due, Worker: j.Worker, Caller: caller, Delivered: true,
	})
	return len(h.activations) - 1
}

// onlyWorker is the one worker that was ever given the job; "" if there were
// more.
func (h *history) onlyWorker() string {
	name := ""
	for _, a := range h.activations {
		if name != "" && a.Worker != name {
			return ""
		}
		name = a.Worker
	}
	return name
}

func (h *history) ranOut(j *job) {
	if j.state == Activated {
		h.activations[len(h.activations)-1].RanOut = true
	}
}

// note puts an answer into its job's history, if it has one.
func (e *Engine) note(j *job, a *Answer) {
	if j == nil || j.history == nil {
		return
	}
	a.Worker = e.workers[a.Caller]
	setIfEmpty(&a.Worker, j.history.onlyWorker())
	j.history.answers = append(j.history.answers, a)
}

// noteUnreached notes a command that a fault or a limit refused.
func (e *Engine) noteUnreached(a *Answer, err error) {
	if !e.kept.Load() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	a.At, a.Code = e.now(), status.Code(hideEmpty(err))
	e.note(e.jobs[a.JobKey], a)
}

// acknowledge notes that the caller was told of its success; one that has given
// up meanwhile was not.
func (e *Engine) acknowledge(ctx context.Context, a *Answer, err error) {
	if err != nil || ctx.Err() != nil || a == nil || !e.kept.Load() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, cut := e.cut[a.Caller]; a.Accepted() && !cut {
		a.Acked, a.acked = true, e.now()
		e.changed()
	}
}

// ackInDoubt is how long before its connection was cut an acknowledgement may
// have been sent and yet not have arrived.
const ackInDoubt = time.Second

// cutOff notes that connections were cut: what was acknowledged over them just
// before may not have arrived.
func (e *Engine) cutOff(callers ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range callers {
		e.cut[c] = struct{}{}
	}
	since := e.now().Add(-ackInDoubt)
	for _, j := range e.jobs {
		if j.history == nil {
			continue
		}
		for _, a := range j.history.answers {
			if _, cut := e.cut[a.Caller]; cut && a.acked.After(since) {
				a.Acked = false
			}
		}
	}
	e.changed()
}

// polled notes a poll's arrival; nil where the journal is full or the engine
// only ever counts.
func (e *Engine) polled(r ActivateRequest) *Poll {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts.Polls++
	if e.counts.Polls > maxPolls {
		return nil
	}
	p := &Poll{
		At: e.now(), Type: r.Type, Worker: r.Worker, Caller: r.Caller, MaxJobs: r.MaxJobs,
		Timeout: r.Timeout, RequestTimeout: r.RequestTimeout,
		FetchVariables: r.FetchVariables, TenantIDs: r.TenantIDs,
	}
	e.workers[r.Caller] = r.Worker
	e.polls = append(e.polls, p)
	e.changed()
	return p
}

func (e *Engine) pollEnded(p *Poll, jobs int, err error) {
	if p == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p.Ended, p.Jobs, p.Code = e.now(), jobs, status.Code(err)
	e.changed()
}

// Polls are the ActivateJobs calls for a job type in the order they arrived, of
// all types if empty; the first million are kept.
func (e *Engine) Polls(jobType string) []Poll {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.view().Polls(jobType)
}

// MostPolls is how many of the polls arrived within any one window: a bound on
// their rate.
func MostPolls(polls []Poll, window time.Duration) int {
	most, first := 0, 0
	for last := range polls {
		for polls[last].At.Sub(polls[first].At) >= window {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// Job is the record of one job; false where no such job was added, or it is an
// endless one.
func (e *Engine) Job(key int64) (JobRecord, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.view().Job(key)
}

// Journal holds the records of all jobs that were added, in the order of keys.
func (e *Engine) Journal() []JobRecord {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.view().Journal()
}

func (e *Engine) record(j *job) JobRecord {
	h := j.history
	r := JobRecord{
		Job: j.Job, State: j.state, Incident: j.incident,
		Added: h.added, Since: h.since, LongestWait: h.longest,
		Activations: slices.Clone(h.activations),
	}
	for _, a := range h.answers {
		r.Answers = append(r.Answers, *a)
	}
	return r
}

// callCounts counts per RPC without the engine's lock.
type callCounts [methods]struct {
	codes       [codes.Unauthenticated + 1]atomic.Int64
	under, most atomic.Int64 // under way now, and at most
}

func (c *callCounts) arrive(m Method) {
	under := c[m].under.Add(1)
	for most := c[m].most.Load(); under > most; most = c[m].most.Load() {
		if c[m].most.CompareAndSwap(most, under) {
			return
		}
	}
}

func (c *callCounts) leave(m Method, code codes.Code) {
	c[m].under.Add(-1)
	c[m].codes[min(code, codes.Unauthenticated)].Add(1)
}

// Calls is how many calls of m ended with one of the codes, with any if none is
// given.
func (e *Engine) Calls(m Method, of ...codes.Code) int {
	n := 0
	for code := range e.calls[m].codes {
		if len(of) == 0 || slices.Contains(of, codes.Code(code)) {
			n += int(e.calls[m].codes[code].Load())
		}
	}
	return n
}

// UnderWay is how many calls of m run now, and how many ran at once at most.
func (e *Engine) UnderWay(m Method) (now, most int) {
	return int(e.calls[m].under.Load()), int(e.calls[m].most.Load())
}
