package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"retry-worker/internal/engine"
	"retry-worker/internal/worker"
)

func at(e *engine.Event) time.Time { return time.UnixMilli(e.Timestamp) }

// mostActivations of a job are endless ones: in a bubble no time-out ends what happens at one instant for ever.
const mostActivations = 1000

// job is what the engine did with one job.
type job struct {
	key         int64
	kept        bool   // its time-out was put off: it waits for a person
	kind        string // its type
	instance    int64
	created     time.Time
	activations []time.Time
	timeouts    []time.Time
	failures    []answer
	answers     []answer // COMPLETED, ERROR_THROWN or CANCELED: at most one
}

type answer struct {
	intent, worker, code, message string
	retries                       int
	at                            time.Time
}

// open tells whether somebody is to answer the job; not where it is an incident.
func (j *job) open() bool {
	n := len(j.failures)
	return len(j.answers) == 0 && (n == 0 || j.failures[n-1].retries > 0)
}

type timer struct {
	key                     int64
	due, created, triggered time.Time         // on the engine's clock
	canceled                bool              // what it waited with came first
	known                   map[string]string // the process's variables when it was made
}

type incident struct {
	key, jobKey   int64
	kind, message string
	resolved      bool
}

// instance is one process instance as the engine has it.
type instance struct {
	key       int64
	process   string
	ended     time.Time // zero while it runs
	completed bool      // it was not cancelled
	endedBy   string    // the id of the last end event
	caught    int       // timers that fired, and messages that came
	variables map[string]string
	states    []string            // the values of jobStatus (UC-004), one after the other
	reviews   []map[string]string // what the job of each review was to know
	timers    []*timer
	incidents []*incident
	jobs      []*job
}

// waiting tells whether the newest timer has not fired.
func (i *instance) waiting() bool {
	n := len(i.timers)
	return n > 0 && i.timers[n-1].triggered.IsZero() && !i.timers[n-1].canceled
}

func (i *instance) over() bool { return !i.ended.IsZero() }

// atRest tells whether nothing happens to the instance before time passes or the test does something: it waits for a timer
// that is not due, for a review that is left to the test, or for an incident's resolution.
func (i *instance) atRest() bool {
	const dueAtOnce = 500 * time.Millisecond
	if i.waiting() {
		x := i.timers[len(i.timers)-1]
		return x.due.Sub(x.created) > dueAtOnce
	}
	// Between one job's answer and the next job there is none, and yet no rest.
	kept := false
	for _, j := range i.jobs {
		if j.open() && !(j.kept && (j.kind == worker.SubmissionGate || i.left())) {
			return false
		}
		kept = kept || j.open()
	}
	return kept || slices.ContainsFunc(i.incidents, func(x *incident) bool { return !x.resolved })
}

// left tells whether the reviews of the instance are the test's own.
func (i *instance) left() bool {
	var c claim
	_ = json.Unmarshal([]byte(i.variables["scenario"]), &c) // which others have none of
	return c.Review.Left
}

func (i *instance) of(jobType string) []*job {
	return slices.Collect(func(yield func(*job) bool) {
		for _, j := range i.jobs {
			if j.kind == jobType && !yield(j) {
				return
			}
		}
	})
}

// clone is the instance as it stands.
func (i *instance) clone() instance {
	c := *i
	c.variables = maps.Clone(i.variables)
	c.states, c.reviews, c.timers, c.incidents, c.jobs = slices.Clone(i.states), slices.Clone(i.reviews), nil, nil, nil
	for _, x := range i.timers {
		now := *x
		c.timers = append(c.timers, &now)
	}
	for _, x := range i.incidents {
		now := *x
		c.incidents = append(c.incidents, &now)
	}
	for _, j := range i.jobs {
		now := *j
		now.activations, now.timeouts, now.failures, now.answers = slices.Clone(j.activations), slices.Clone(j.timeouts), slices.Clone(j.failures), slices.Clone(j.answers)
		c.jobs = append(c.jobs, &now)
	}
	return c
}

// history is what the engine did, over all its restarts.
type history struct {
	sync.Mutex
	instances map[int64]*instance
	jobs      map[int64]*job
	locals    map[int64]map[string]string // variables of tasks, by the scope's key
}

// take takes events of the engine.
func (h *history) take(events []engine.Event) {
	h.look(func() {
		for i := range events {
			h.read(&events[i])
		}
	})
}

// look calls f while nothing changes otherwise.
func (h *history) look(f func()) {
	h.Lock()
	defer h.Unlock()
	f()
}

func (h *history) read(r *engine.Event) {
	switch {
	case r.ValueType == "PROCESS_INSTANCE":
		h.element(r)
	case r.ValueType == "VARIABLE" && r.Value.ScopeKey == r.Value.ProcessInstanceKey:
		h.of(r).set(r.Value.Name, r.Value.Value)
	case r.ValueType == "VARIABLE":
		if h.locals[r.Value.ScopeKey] == nil {
			h.locals[r.Value.ScopeKey] = make(map[string]string)
		}
		h.locals[r.Value.ScopeKey][r.Value.Name] = r.Value.Value
	case r.ValueType == "JOB":
		h.job(r)
	case r.ValueType == "JOB_BATCH" && r.Intent == "ACTIVATED":
		for _, key := range r.Value.JobKeys {
			if j := h.jobs[key]; j != nil {
				j.activations = append(j.activations, at(r))
				if len(j.activations) > mostActivations {
					panic(h.instances[j.instance].describe())
				}
			}
		}
	case r.ValueType == "TIMER":
		h.timer(r)
	case r.ValueType == "INCIDENT":
		h.incident(r)
	}
}

// of is the instance that a record is about.
func (h *history) of(r *engine.Event) *instance {
	key := r.Value.ProcessInstanceKey
	if h.instances[key] == nil {
		h.instances[key] = &instance{key: key, process: r.Value.BPMNProcessID, variables: make(map[string]string)}
	}
	return h.instances[key]
}

func (i *instance) set(variable, value string) {
	if variable == "jobStatus" {
		i.states = append(i.states, strings.Trim(value, `"`))
	}
	i.variables[variable] = value
}

func (h *history) element(r *engine.Event) {
	i := h.of(r)
	switch over := r.Intent == "ELEMENT_COMPLETED" || r.Intent == "ELEMENT_TERMINATED"; {
	case over && r.Value.ElementType == "END_EVENT":
		i.endedBy = r.Value.ElementID
	case over && r.Value.ElementType == "PROCESS":
		i.ended, i.completed = at(r), r.Intent == "ELEMENT_COMPLETED"
	case r.Intent == "ELEMENT_COMPLETED" && r.Value.ElementType == "INTERMEDIATE_CATCH_EVENT":
		i.caught++
	}
}

func (h *history) job(r *engine.Event) {
	j := h.jobs[r.Key]
	if j == nil {
		j = &job{key: r.Key, kind: r.Value.Type, instance: r.Value.ProcessInstanceKey, created: at(r)}
		h.jobs[r.Key] = j
		i := h.of(r)
		i.jobs = append(i.jobs, j)
		if j.kind == worker.RetryReview {
			known := maps.Clone(i.variables)
			maps.Copy(known, h.locals[r.Value.ElementInstanceKey])
			i.reviews = append(i.reviews, known)
		}
	}
	a := answer{r.Intent, r.Value.Worker, r.Value.ErrorCode, r.Value.ErrorMessage, int(r.Value.Retries), at(r)}
	switch r.Intent {
	case "COMPLETED", "ERROR_THROWN", "CANCELED":
		j.answers = append(j.answers, a)
	case "FAILED":
		j.failures = append(j.failures, a)
	case "TIMEOUT_UPDATED":
		j.kept = true
	case "TIMED_OUT":
		j.kept = false
		j.timeouts = append(j.timeouts, at(r))
	}
}

func (h *history) timer(r *engine.Event) {
	i := h.of(r)
	switch r.Intent {
	case "CREATED":
		i.timers = append(i.timers, &timer{key: r.Key, due: time.UnixMilli(r.Value.DueDate), created: at(r), known: maps.Clone(i.variables)})
	case "TRIGGERED", "CANCELED":
		for _, x := range i.timers {
			switch {
			case x.key != r.Key:
			case r.Intent == "CANCELED":
				x.canceled = true
			default:
				x.triggered = at(r)
			}
		}
	}
}

func (h *history) incident(r *engine.Event) {
	i := h.of(r)
	switch r.Intent {
	case "CREATED":
		i.incidents = append(i.incidents, &incident{key: r.Key, jobKey: r.Value.JobKey, kind: r.Value.ErrorType, message: r.Value.ErrorMessage})
	case "RESOLVED":
		for _, x := range i.incidents {
			if x.key == r.Key {
				x.resolved = true
			}
		}
	}
}

// describe says where an instance stands, for who waits in vain.
func (i *instance) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d: ended %v (%s), timers %d, variables %v", i.process, i.key, i.over(), i.endedBy, len(i.timers), slices.Sorted(maps.Keys(i.variables)))
	for _, x := range i.incidents {
		fmt.Fprintf(&b, "\n  incident %s (resolved %v): %s", x.kind, x.resolved, x.message)
	}
	for _, j := range i.jobs {
		fmt.Fprintf(&b, "\n  job %d %s: created %s", j.key, j.kind, timeOf(j.created))
		for _, at := range j.activations {
			fmt.Fprintf(&b, ", activated %s", timeOf(at))
		}
		for _, at := range j.timeouts {
			fmt.Fprintf(&b, ", timed out %s", timeOf(at))
		}
		for _, a := range append(slices.Clone(j.failures), j.answers...) {
			fmt.Fprintf(&b, ", %s %s by %s (%d retries) %s", a.intent, timeOf(a.at), a.worker, a.retries, a.message)
		}
	}
	return b.String()
}

func timeOf(t time.Time) string { return t.UTC().Format("15:04:05.000") }
