package gateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"

	"retry-worker/internal/engine"
)

// Job is a job as a test adds it. Only Type is needed: Variables are "{}" if empty, Retries 3 if zero, TenantID the
// default one. It comes in a process instance of its own, or as another task of the named instance, which must have no
// task then. Its headers are Headers. The engine sets Key and ElementInstanceKey.
type Job struct {
	Key                int64
	Type               string
	Variables          string
	Retries            int
	TenantID           string
	ProcessInstanceKey int64
	ElementInstanceKey int64
}

// State is a job's state.
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
func (s State) Settled() bool {
	return s == Incident || s == Completed || s == ErrorThrown || s == Cancelled
}

// Record is all that happened to one job. Its Variables are left out.
type Record struct {
	Job
	State       State
	Output      map[string]string // the variables that the process got after the job began, as JSON
	Activations []Activation
	Answers     []Answer // in order, with SetVariables of its element and UpdateJobTimeout
}

// Activation is a worker's receipt of a job, until its deadline.
type Activation struct{ Deadline time.Time }

// Answer is a command about a job.
type Answer struct {
	Method    Method
	Variables string
	ErrorCode string
	Message   string
	Retries   int
	BackOff   time.Duration
	Code      codes.Code // the engine's, or that of the fault that stopped the command
	Reached   bool       // no fault stopped the command
	Settled   bool       // it settled the job
}

// Accepted reports whether the command took effect.
func (a *Answer) Accepted() bool { return a.Reached && a.Code == codes.OK }

// Poll is one ActivateJobs call.
type Poll struct {
	*pb.ActivateJobsRequest
	Ended time.Time // zero while it waits
}

// Counts are totals.
type Counts struct {
	HandedOut int // activations
	Settled   int // jobs that need no worker any more
	Held      int // active jobs
	Waiting   int // polls that wait for a job
}

// job is a job with its history, guarded by the gateway's mutex.
type job struct {
	Record
	answers []*Answer
}

// instance is a process instance.
type instance struct {
	own task
	job *job // its latest; nil before the first
}

// ownVariable of a process instance holds its next task.
const ownVariable = "gatewayTask"

// Headers are those of every job.
const Headers = `{"of":"gateway"}`

// model is a process of one task that comes again with each message. It catches errors.
const model = `<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0">
<process id="GATEWAY" isExecutable="true"><startEvent id="start"/><sequenceFlow id="begin" sourceRef="start" targetRef="task"/>
<serviceTask id="task"><extensionElements><zeebe:taskDefinition type="=gatewayTask.type" retries="=gatewayTask.retries"/>
<zeebe:taskHeaders><zeebe:header key="of" value="gateway"/></zeebe:taskHeaders></extensionElements></serviceTask>
<boundaryEvent id="caught" attachedToRef="task"><errorEventDefinition/></boundaryEvent>
<sequenceFlow id="done" sourceRef="task" targetRef="next"/><sequenceFlow id="thrown" sourceRef="caught" targetRef="next"/>
<intermediateCatchEvent id="next"><messageEventDefinition messageRef="message"/></intermediateCatchEvent>
<sequenceFlow id="again" sourceRef="next" targetRef="task"/></process><message id="message" name="next">
<extensionElements><zeebe:subscription correlationKey="=gatewayTask.id"/></extensionElements></message></definitions>`

// AddJob adds a job, and returns its key.
func (g *Gateway) AddJob(j Job) int64 { return g.AddJobs(j)[0] }

// AddJobs adds jobs at one instant, and returns their keys.
func (g *Gateway) AddJobs(jobs ...Job) (keys []int64) {
	g.putting.Lock()
	defer g.putting.Unlock()
	commands := make([]engine.Command, len(jobs))
	for i, j := range jobs {
		commands[i] = g.command(j)
	}
	for _, e := range g.do(commands...) {
		if e.ValueType == "JOB" {
			keys = append(keys, e.Key)
		}
	}
	if len(keys) != len(jobs) {
		panic(fmt.Sprintf("%d jobs came of %+v: an instance has a task already", len(keys), jobs))
	}
	return keys
}

// task is the value of the gateway's own variable.
type task struct {
	Type    string `json:"type"`
	Retries int    `json:"retries"`
	ID      int    `json:"id"` // of the instance
}

// command returns the command that starts an instance with the job, or continues one with it; putting is held.
func (g *Gateway) command(j Job) engine.Command {
	all, own, tenant := map[string]any{}, task{ID: g.started}, cmp.Or(j.TenantID, engine.DefaultTenant)
	read(cmp.Or(j.Variables, "{}"), &all)
	g.change(func() {
		if in := g.instances[j.ProcessInstanceKey]; in != nil {
			own = in.own
		}
	})
	own.Type, own.Retries = j.Type, cmp.Or(j.Retries, 3)
	all[ownVariable] = own
	text, _ := json.Marshal(all) // cannot fail: it comes from JSON
	if j.ProcessInstanceKey != 0 {
		return engine.Publish{Name: "next", Key: strconv.Itoa(own.ID), Tenant: tenant, Variables: string(text)}
	}
	if g.started++; !g.deployed[tenant] {
		g.deployed[tenant] = true
		g.do(engine.Deploy{Resources: []engine.Resource{{Name: "gateway.bpmn", Content: model}}, Tenant: tenant})
	}
	return engine.Create{ProcessID: "GATEWAY", Version: engine.Latest, Tenant: tenant, Variables: string(text)}
}

// read decodes JSON, and panics if it cannot.
func read(text string, to any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(to); err != nil {
		panic(fmt.Errorf("read %.60q of a job: %w", text, err))
	}
}

// happened records what the engine did, before anybody is answered.
func (g *Gateway) happened(events []engine.Event) {
	g.change(func() {
		for i := range events {
			g.record(&events[i])
		}
	})
}

func (g *Gateway) record(e *engine.Event) {
	v, j := &e.Value, g.jobs[e.Key]
	switch e.ValueType + " " + e.Intent {
	case "VARIABLE CREATED", "VARIABLE UPDATED":
		switch in := g.instances[v.ScopeKey]; {
		case in == nil: // local to an element
		case v.Name == ownVariable:
			read(v.Value, &in.own)
		case in.job != nil:
			in.job.Output[v.Name] = v.Value
		}
	case "PROCESS_INSTANCE ELEMENT_ACTIVATED":
		if e.Key == v.ProcessInstanceKey {
			g.instances[e.Key] = &instance{}
		}
	case "JOB CREATED":
		j = &job{Record: Record{Job: Job{
			Key: e.Key, Type: v.Type, Retries: int(v.Retries), TenantID: v.TenantID, ProcessInstanceKey: v.ProcessInstanceKey,
			ElementInstanceKey: v.ElementInstanceKey,
		}, Output: map[string]string{}}}
		g.jobs[e.Key], g.elements[v.ElementInstanceKey], g.instances[v.ProcessInstanceKey].job = j, e.Key, j
	case "JOB_BATCH ACTIVATED":
		for _, key := range v.JobKeys {
			j := g.jobs[key]
			j.Activations = append(j.Activations, Activation{time.UnixMilli(v.Deadline)})
			g.counts.HandedOut++
			g.move(j, Activated)
		}
	case "JOB TIMEOUT_UPDATED":
		j.Activations[len(j.Activations)-1].Deadline = time.UnixMilli(v.Deadline)
	case "JOB FAILED":
		j.Retries = int(v.Retries)
	}
	switch to := becomes[e.ValueType+" "+e.Intent]; {
	case to == BackingOff && v.RecurringTime == 0:
		g.move(j, Activatable)
	case to == Incident && v.JobKey == 0: // it belongs to an element
	case to == Incident:
		g.move(g.jobs[v.JobKey], to)
	case to != "":
		g.move(j, to)
	}
}

// becomes maps a kind of event to the state of its job.
var becomes = map[string]State{
	"JOB CREATED": Activatable, "JOB TIMED_OUT": Activatable, "JOB RECURRED_AFTER_BACKOFF": Activatable, "JOB FAILED": BackingOff,
	"JOB COMPLETED": Completed, "JOB ERROR_THROWN": ErrorThrown, "JOB CANCELED": Cancelled, "INCIDENT CREATED": Incident,
}

// move changes a job's state and the counts.
func (g *Gateway) move(j *job, to State) {
	count := map[bool]int{true: 1}
	g.counts.Held += count[to == Activated] - count[j.State == Activated]
	g.counts.Settled += count[to.Settled()] - count[j.State.Settled()]
	j.State = to
}

// told returns the job's record; the gateway's mutex is held.
func (g *Gateway) told(j *job) Record {
	r := j.Record
	r.Activations, r.Output = slices.Clone(r.Activations), maps.Clone(r.Output)
	for _, a := range j.answers {
		r.Answers = append(r.Answers, *a)
	}
	return r
}

// Job returns the record of one job; false if there is none.
func (g *Gateway) Job(key int64) (Record, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	j, known := g.jobs[key]
	if !known {
		return Record{}, false
	}
	return g.told(j), true
}

// Journal returns the records of all jobs, in the order of keys.
func (g *Gateway) Journal() (all []Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(g.jobs)) {
		all = append(all, g.told(g.jobs[key]))
	}
	return all
}

// Polls returns the ActivateJobs calls for a job type (empty: any), in the order they came.
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

// Cancel ends a process instance and its job.
func (g *Gateway) Cancel(instance int64) { g.do(engine.Cancel{Key: instance}) }
