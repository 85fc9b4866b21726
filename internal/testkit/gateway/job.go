package gateway

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
)

// DefaultTenant owns every job where multi-tenancy is off.
const DefaultTenant = "<default>"

// Job is a job as a test puts it in. Only Type is needed: Variables and CustomHeaders are "{}" if empty, Retries 3 if
// zero, TenantID the [DefaultTenant]; a process instance is drawn if none is given. Key and ElementInstanceKey are
// the gateway's to fill.
type Job struct {
	Key                int64
	Type               string
	Variables          string
	CustomHeaders      string
	Retries            int
	TenantID           string
	ProcessInstanceKey int64
	ElementInstanceKey int64
}

// State is where a job stands.
type State string

// The states of a job. A worker has nothing more to do with a job in one of the last four.
const (
	Activatable State = "activatable"
	Activated   State = "activated"
	BackingOff  State = "backing off"
	Incident    State = "incident"
	Completed   State = "completed"
	ErrorThrown State = "error thrown"
	Cancelled   State = "cancelled"
)

// Settled reports whether a worker has nothing more to do with the job.
func (s State) Settled() bool { return s.gone() || s == Incident }

// gone reports whether the gateway knows the job's key no more.
func (s State) gone() bool { return s == Completed || s == ErrorThrown || s == Cancelled }

// Record is all that happened to one job.
type Record struct {
	Job
	State       State
	Added       time.Time
	Output      string // the variables that the process was given last
	Activations []Activation
	Answers     []Answer // in the order they were met; SetVariables on its element and UpdateJobTimeout among them
}

// Activation is one time a job was given to a worker.
type Activation struct {
	At, Deadline time.Time
	Worker       string
	TimedOut     bool // nobody answered until the deadline
}

// Answer is a command on a job.
type Answer struct {
	At        time.Time
	Method    Method
	Worker    string // whose connection it came by, as far as known
	Variables string
	ErrorCode string
	Message   string
	Retries   int
	BackOff   time.Duration
	Code      codes.Code // the gateway's word, or that of the fault which kept the command from it
	Reached   bool       // no fault kept it from the gateway
	Settled   bool       // it settled the job
	Acked     bool       // it took effect, and the worker was told so

	caller string // the connection's name
	lease  string // that it shows
}

// Accepted reports whether the command took effect.
func (a *Answer) Accepted() bool { return a.Reached && a.Code == codes.OK }

// Poll is one ActivateJobs call.
type Poll struct {
	*pb.ActivateJobsRequest
	At, Ended time.Time // Ended is zero while it waits
}

// Counts are totals.
type Counts struct {
	HandedOut  int // activations
	TimedOut   int // activations that ran out
	HandedBack int // FailJob with retries left
	Settled    int // jobs that need nothing more of a worker
	Held       int // activated jobs
	Waiting    int // polls that wait for a job
}

// job is a job with its history; the gateway's mutex guards it.
type job struct {
	Record
	due     time.Time // end of the activation, or of the back-off
	answers []*Answer
	lease   string // of the newest activation; empty: it has none
}

func (j *job) record() Record {
	r := j.Record
	r.Activations = slices.Clone(r.Activations)
	for _, a := range j.answers {
		r.Answers = append(r.Answers, *a)
	}
	return r
}

// AddJob puts a job in, and returns its key.
func (g *Gateway) AddJob(j Job) int64 { return g.AddJobs(j)[0] }

// AddJobs puts jobs in at one instant, and returns their keys.
func (g *Gateway) AddJobs(jobs ...Job) (keys []int64) {
	g.change(func() {
		for _, j := range jobs {
			keys = append(keys, g.add(j))
		}
	})
	return keys
}

func (g *Gateway) add(values Job) int64 {
	g.lastKey += 3 // of an instance, its element and the element's job
	j := &job{Record: Record{Job: values, Added: g.now()}}
	j.Key, j.ElementInstanceKey = g.lastKey, g.lastKey-1
	j.ProcessInstanceKey = cmp.Or(j.ProcessInstanceKey, g.lastKey-2)
	j.Variables, j.CustomHeaders = cmp.Or(j.Variables, "{}"), cmp.Or(j.CustomHeaders, "{}")
	j.Retries, j.TenantID = cmp.Or(j.Retries, 3), cmp.Or(j.TenantID, DefaultTenant)
	if _, known := g.instances[j.ProcessInstanceKey]; !known {
		g.instances[j.ProcessInstanceKey] = true
	}
	g.jobs[j.Key] = j
	g.move(j, Activatable)
	return j.Key
}

// move changes a job's state, and keeps what is derived from it in step.
func (g *Gateway) move(j *job, to State) {
	if j.State == Activatable {
		g.ready[j.Type] = slices.DeleteFunc(g.ready[j.Type], func(other *job) bool { return other == j })
	}
	g.counts.Held += boolToInt(to == Activated) - boolToInt(j.State == Activated)
	g.counts.Settled += boolToInt(to.Settled()) - boolToInt(j.State.Settled())
	j.State = to
	if to == Activated || to == BackingOff {
		g.timed[j] = true
		return
	}
	delete(g.timed, j)
	if to == Activatable {
		at, _ := slices.BinarySearchFunc(g.ready[j.Type], j, func(a, b *job) int { return cmp.Compare(a.Key, b.Key) })
		g.ready[j.Type] = slices.Insert(g.ready[j.Type], at, j)
	}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// expire makes the jobs activatable whose activation ran out or whose back-off ended.
func (g *Gateway) expire() {
	for j := range g.timed {
		if j.due.After(g.now()) {
			continue
		}
		if j.State == Activated {
			g.counts.TimedOut++
			j.Activations[len(j.Activations)-1].TimedOut = true
		}
		g.move(j, Activatable)
	}
}

// untilDue returns the time until the next job is due.
func (g *Gateway) untilDue() time.Duration {
	next := time.Hour
	for j := range g.timed {
		next = min(next, j.due.Sub(g.now()))
	}
	return next
}

// Job returns the record of one job, and whether there is one.
func (g *Gateway) Job(key int64) (Record, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expire()
	j, known := g.jobs[key]
	if !known {
		return Record{}, false
	}
	return j.record(), true
}

// Journal returns the records of all jobs, in the order of keys.
func (g *Gateway) Journal() []Record {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expire()
	all := make([]Record, 0, len(g.jobs))
	for _, key := range slices.Sorted(maps.Keys(g.jobs)) {
		all = append(all, g.jobs[key].record())
	}
	return all
}

// Polls returns the ActivateJobs calls for a job type, for all if it is empty, in the order they came.
func (g *Gateway) Polls(jobType string) (all []Poll) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.polls {
		if jobType == "" || p.Type == jobType {
			all = append(all, *p)
		}
	}
	return all
}

// Cancel ends a process instance and its jobs.
func (g *Gateway) Cancel(instance int64) {
	g.change(func() {
		g.instances[instance] = false
		for _, j := range g.jobs {
			if j.ProcessInstanceKey == instance && !j.State.gone() {
				g.move(j, Cancelled)
			}
		}
	})
}

// fetched returns the named members of a JSON object; all if no names are given.
func fetched(doc string, names []string) string {
	var all map[string]json.RawMessage
	if len(names) == 0 || json.Unmarshal([]byte(doc), &all) != nil {
		return doc
	}
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return !slices.Contains(names, name) })
	text, _ := json.Marshal(all) // cannot fail: it was read from JSON
	return string(text)
}

// merged returns a JSON object with the members of another added.
func merged(doc, more string) string {
	all := map[string]json.RawMessage{}
	if json.Unmarshal([]byte(doc), &all) != nil || json.Unmarshal([]byte(more), &all) != nil {
		return doc
	}
	text, _ := json.Marshal(all) // cannot fail: it was read from JSON
	return string(text)
}
