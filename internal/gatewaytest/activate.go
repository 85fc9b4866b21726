package gatewaytest

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ActivateRequest is a poll for jobs.
type ActivateRequest struct {
	Type, Worker   string
	Timeout        time.Duration // how long the worker may hold the jobs, at least 1 ms
	MaxJobs        int           // at least 1
	FetchVariables []string      // nil: all
	RequestTimeout time.Duration // how long to wait for a job; 0: [DefaultRequestTimeout]; negative: not at all
	TenantIDs      []string
	Caller         string
}

// queue holds what waits for one job type.
type queue struct {
	ready   map[string]*jobHeap // by tenant, in the order of keys
	waiters []*waiter           // polls that found nothing, oldest first
}

// waiter is a poll that waits for a job of one of its tenants.
type waiter struct {
	tenants []string
	wake    chan struct{} // capacity 1
}

func (e *Engine) queue(jobType string) *queue {
	q := e.queues[jobType]
	if q == nil {
		q = &queue{ready: map[string]*jobHeap{}}
		e.queues[jobType] = q
	}
	return q
}

// offer makes a job available and wakes the poll that has waited longest.
func (e *Engine) offer(j *job) {
	q := e.queue(j.Type)
	h := q.ready[j.TenantID]
	if h == nil {
		h = &jobHeap{before: byKey}
		q.ready[j.TenantID] = h
	}
	h.push(j)
	if j.history != nil {
		j.history.since = e.now()
	}
	q.wakeFor(j.TenantID)
}

func (e *Engine) withdraw(j *job) { e.queue(j.Type).ready[j.TenantID].remove(j) }

func (q *queue) wakeFor(tenant string) {
	for i, w := range q.waiters {
		if slices.Contains(w.tenants, tenant) {
			q.waiters = slices.Delete(q.waiters, i, i+1)
			w.wake <- struct{}{} // never blocks: a waiter is woken once, then out of the list
			return
		}
	}
}

// wakeRest passes what is still ready on to further polls.
func (q *queue) wakeRest(tenants []string) {
	for _, tenant := range tenants {
		if h := q.ready[tenant]; h != nil && h.len() > 0 {
			q.wakeFor(tenant)
		}
	}
}

// Activate hands out up to MaxJobs jobs, waiting for the first as long as the
// request says. It returns jobs and an error together where the answer was cut
// off by a fault. Its errors carry gRPC status codes.
func (e *Engine) Activate(ctx context.Context, r ActivateRequest) ([]Job, error) {
	c := Call{Method: ActivateJobs, Caller: r.Caller, Type: r.Type, Worker: r.Worker}
	poll := e.polled(r)
	p, err := e.begin(ctx, c)
	var jobs []Job
	if err == nil {
		jobs, err = e.activate(ctx, r)
		e.prepare(jobs, r.FetchVariables, p.pad)
		jobs, err = e.deliver(ctx, p, jobs, err)
	}
	err = e.end(c, err)
	e.pollEnded(poll, len(jobs), err)
	return jobs, err
}

// prepare does to the documents what needs no lock.
func (e *Engine) prepare(jobs []Job, fetch []string, pad int) {
	for i := range jobs {
		jobs[i].Variables = fetched(jobs[i].Variables, fetch)
		if pad > 0 {
			jobs[i].Variables = padded(jobs[i].Variables, pad)
		}
	}
}

// deliver answers a poll: what a fault withholds of it stays locked until its
// time-out, as in the real engine.
func (e *Engine) deliver(ctx context.Context, p plan, jobs []Job, err error) ([]Job, error) {
	if failed := e.answer(ctx, p, err); failed != nil {
		e.Undelivered(jobs)
		return nil, failed
	}
	if err == nil && p.cut && len(jobs) > 0 {
		keep := min(p.cutAfter, len(jobs))
		e.Undelivered(jobs[keep:])
		return jobs[:keep], p.lost
	}
	return jobs, err
}

func (e *Engine) activate(ctx context.Context, r ActivateRequest) ([]Job, error) {
	tenants, err := e.tenantsOf(r)
	if err == nil {
		err = checkPoll(r)
	}
	if err != nil {
		return nil, err
	}
	return e.take(ctx, r, tenants)
}

func checkPoll(r ActivateRequest) error {
	var missing string
	switch {
	case r.Type == "":
		missing = "a job type"
	case r.Worker == "":
		missing = "a worker name"
	case r.Timeout < time.Millisecond:
		missing = "a timeout of at least 1 ms"
	case r.MaxJobs < 1:
		missing = "a number of jobs of at least 1"
	default:
		return nil
	}
	return status.Errorf(codes.InvalidArgument, "activation of jobs needs %s", missing)
}

func (e *Engine) tenantsOf(r ActivateRequest) ([]string, error) {
	if !e.options.MultiTenancy {
		for _, id := range r.TenantIDs {
			if id != DefaultTenant {
				return nil, status.Errorf(codes.InvalidArgument, "tenant %q given, but multi-tenancy is off", id)
			}
		}
		return []string{DefaultTenant}, nil
	}
	if len(r.TenantIDs) == 0 {
		return nil, status.Error(codes.InvalidArgument, "no tenant given, but multi-tenancy is on")
	}
	for _, id := range r.TenantIDs {
		if e.options.Tenants != nil && !slices.Contains(e.options.Tenants, id) {
			return nil, status.Errorf(codes.PermissionDenied, "the caller has no access to tenant %q", id)
		}
	}
	return r.TenantIDs, nil
}

// take activates what is ready, or waits for it.
func (e *Engine) take(ctx context.Context, r ActivateRequest, tenants []string) ([]Job, error) {
	if jobs := e.pick(r, tenants); len(jobs) > 0 || r.RequestTimeout < 0 || e.dismissing.Load() {
		return jobs, nil
	}
	patience := r.RequestTimeout
	if patience == 0 {
		patience = DefaultRequestTimeout
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		w := e.enqueue(r.Type, tenants)
		select {
		case <-w.wake:
		case <-limit.C:
			e.dequeue(r.Type, w)
			return e.pick(r, tenants), nil
		case <-ctx.Done():
			e.dequeue(r.Type, w)
			return nil, ended(ctx)
		}
		e.dequeue(r.Type, w)
		if jobs := e.pick(r, tenants); len(jobs) > 0 || e.dismissing.Load() {
			return jobs, nil
		}
	}
}

// dismiss answers all waiting polls, and lets none wait until dismissing is
// taken back.
func (e *Engine) dismiss() {
	e.dismissing.Store(true)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, q := range e.queues {
		for _, w := range q.waiters {
			w.wake <- struct{}{}
		}
		q.waiters = nil
	}
}

// enqueue lets a poll wait, unless a job came meanwhile: then it is woken.
func (e *Engine) enqueue(jobType string, tenants []string) *waiter {
	w := &waiter{tenants: tenants, wake: make(chan struct{}, 1)}
	e.mu.Lock()
	defer e.mu.Unlock()
	q := e.queue(jobType)
	e.waiting++
	if e.dismissing.Load() {
		w.wake <- struct{}{}
		return w
	}
	q.waiters = append(q.waiters, w)
	q.wakeRest(tenants)
	e.changed()
	return w
}

// dequeue ends the wait; a job it was woken for and does not take is for the
// next poll.
func (e *Engine) dequeue(jobType string, w *waiter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting--
	q := e.queue(jobType)
	if i := slices.Index(q.waiters, w); i >= 0 {
		q.waiters = slices.Delete(q.waiters, i, i+1)
	}
	q.wakeRest(w.tenants)
}

// pick activates ready jobs in the order of keys, then endless ones.
func (e *Engine) pick(r ActivateRequest, tenants []string) []Job {
	jobs, from, fresh := e.pickReady(r, tenants)
	if fresh > 0 {
		jobs = append(jobs, e.generate(r, from, fresh)...)
	}
	return jobs
}

// pickReady also says how many endless jobs are still wanted, and from which
// number on: they are made outside the lock.
func (e *Engine) pickReady(r ActivateRequest, tenants []string) (jobs []Job, from, fresh int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	e.expire(now)
	q, size := e.queue(r.Type), 0
	for len(jobs) < r.MaxJobs {
		h := q.first(tenants)
		if h == nil {
			from, fresh = e.source.reserve(r, tenants, r.MaxJobs-len(jobs))
			break
		}
		if size += h.top().bytes(); size > e.options.MaxBatch && len(jobs) > 0 {
			break
		}
		jobs = append(jobs, e.hand(h.top(), r, now))
	}
	if len(jobs) > 0 {
		e.changed()
	}
	return jobs, from, fresh
}

// first is the tenants' heap with the lowest key on top; nil if all are empty.
func (q *queue) first(tenants []string) *jobHeap {
	var first *jobHeap
	for _, tenant := range tenants {
		h := q.ready[tenant]
		if h != nil && h.len() > 0 && (first == nil || h.top().Key < first.top().Key) {
			first = h
		}
	}
	return first
}

// hand gives a job to a worker and returns it as the worker sees it.
func (e *Engine) hand(j *job, r ActivateRequest, now time.Time) Job {
	e.leave(j)
	e.counts.in[j.state]--
	return e.handFresh(j, r, now)
}

// handFresh is hand for a job that is in no state yet.
func (e *Engine) handFresh(j *job, r ActivateRequest, now time.Time) Job {
	j.Worker = r.Worker
	j.due = now.Add(r.Timeout)
	j.Deadline = j.due
	j.holder = e.holderOf(r.Worker)
	e.enterState(j, Activated)
	e.counts.handedOut(now)
	out := j.Job
	out.owner = j
	if j.history != nil {
		out.activation = j.history.activated(j, r.Caller, now)
	}
	return out
}

func (e *Engine) holderOf(worker string) *holder {
	h := e.holders[worker]
	if h == nil {
		h = &holder{}
		e.holders[worker] = h
	}
	return h
}

// Undelivered notes that activated jobs never reached their worker: the engine
// locks them, not the worker. The gateway calls it when an answer cannot be
// sent.
func (e *Engine) Undelivered(jobs []Job) {
	if len(jobs) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range jobs {
		e.counts.Undelivered++
		if h := jobs[i].owner.history; h != nil {
			h.activations[jobs[i].activation].Delivered = false
		}
	}
	e.changed()
}

// ended is the status of a call whose context is over.
func ended(ctx context.Context) error { return status.FromContextError(ctx.Err()).Err() }
