package gatewaytest

import "slices"

// Endless makes an engine that always has jobs, for benchmarks. They are made
// when a poll asks for them, go through the same states as others, and leave no
// history: when one is settled, its key is forgotten.
type Endless struct {
	Types []string // job types that never run dry; they share Limit
	Limit int64    // how many jobs there are in all; 0: without end
	// Job gives the n-th job, n from 0 on; its Type, Key and TenantID are not
	// used. It is called outside the engine's lock, concurrently.
	Job func(n int64) Job
}

// endlessSource is Endless at work; the engine's mutex guards next.
type endlessSource struct {
	Endless
	next int64
}

// SetEndless makes the engine have endless jobs, beside those added. It must be
// called before the first poll.
func (e *Engine) SetEndless(s Endless) {
	if s.Job == nil || len(s.Types) == 0 {
		panic("gatewaytest: endless jobs need types and a template")
	}
	e.source = &endlessSource{Endless: s}
}

// reserve takes the next numbers for a poll that could hold want more jobs.
func (s *endlessSource) reserve(r ActivateRequest, tenants []string, want int) (from, n int64) {
	if s == nil || !slices.Contains(s.Types, r.Type) || !slices.Contains(tenants, DefaultTenant) {
		return 0, 0
	}
	from, n = s.next, int64(want)
	if s.Limit > 0 {
		n = min(n, s.Limit-s.next)
	}
	s.next += n
	return from, n
}

// generate makes n jobs from the given number on and hands them out.
func (e *Engine) generate(r ActivateRequest, from, n int64) []Job {
	records := make([]job, n) // one piece of memory for a whole poll
	for i := range records {
		j := &records[i]
		j.index = -1
		j.Job = e.source.Job(from + int64(i))
		j.Type, j.TenantID = r.Type, ""
		j.setDefaults()
	}
	return e.handAll(records, r)
}

func (e *Engine) handAll(records []job, r ActivateRequest) []Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	out := make([]Job, len(records))
	for i := range records {
		j := &records[i]
		e.drawKeys(&j.Job)
		e.jobs[j.Key] = j
		e.counts.Jobs++
		out[i] = e.handFresh(j, r, now)
	}
	e.changed()
	return out
}
