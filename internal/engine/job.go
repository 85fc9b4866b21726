package engine

import (
	"cmp"
	"container/heap"
	"fmt"
	"strings"
	"time"
)

// Activate locks the oldest jobs of a type for a worker, for a time.
type Activate struct {
	Type, Worker string
	Timeout      time.Duration
	Max          int
	Tenants      []string
}

// mostBytes bounds a variable that a mapping sets, and the variables of one activation. The first job is activated
// whatever its size.
const mostBytes = 4 << 20

func (o Activate) apply(c *Core) error {
	switch {
	case o.Type == "":
		return reject(InvalidArgument, "Expected to activate jobs with type to be present, but it was blank")
	case o.Timeout <= 0:
		return reject(InvalidArgument, "Expected to activate jobs with timeout to be greater than zero, but it was %d", o.Timeout.Milliseconds())
	case o.Max < 1:
		return reject(InvalidArgument, "Expected to activate jobs with maxJobsToActivate to be greater than zero, but it was %d", o.Max)
	}
	size := 0
	for _, tenant := range o.Tenants {
		var keys []int64
		for _, j := range c.oldest(processID{tenant, o.Type}, o.Max) {
			if size += j.of.size(); size > mostBytes && size > j.of.size() {
				break
			}
			keys = append(keys, j.key)
		}
		if len(keys) > 0 {
			o.Max -= len(keys)
			deadline := c.now.Add(min(o.Timeout, longest)).UnixMilli()
			c.emit(batchType, activated, c.newKey(), Value{Type: o.Type, Worker: cut(o.Worker), TenantID: tenant, JobKeys: keys, Deadline: deadline})
		}
	}
	return nil
}

// longest is the longest time that a job is locked.
const longest = 100 * 365 * 24 * time.Hour

// oldest returns up to n activatable jobs, by key.
func (c *Core) oldest(id processID, n int) []*job {
	q := c.queues[id]
	if q == nil {
		return nil
	}
	var all []*job
	for len(all) < n && q.Len() > 0 {
		all = append(all, heap.Pop(q).(*job))
	}
	for _, j := range all { // they leave the queue only when activated
		heap.Push(q, j)
	}
	return all
}

// size returns roughly the bytes of the variables that the element sees.
func (e *element) size() (n int) {
	for _, scope := range []scopeVariables{e.in.variables, e.variables} {
		for name, value := range scope {
			n += len(name) + len(value) + 4
		}
	}
	return n
}

// Job is a job as workers get it.
type Job struct {
	Key, InstanceKey, ElementInstanceKey int64
	Type, ElementID, Worker              string
	Definition
	Headers, Variables string // JSON objects
	Retries            int32
	Deadline           int64 // milliseconds
}

// Jobs returns the jobs that an Activate's events activated, with the named variables; with all if there are no names.
func (c *Core) Jobs(events []Event, variables []string) (all []Job) {
	for i := range events {
		for _, key := range events[i].Value.JobKeys {
			j := c.jobs[key]
			d := j.of.in.of
			all = append(all, Job{
				Key: key, InstanceKey: j.of.in.key, ElementInstanceKey: j.of.key, Type: j.kind, ElementID: j.of.of.ID, Worker: j.worker,
				Definition: Definition{ProcessID: d.ID, Version: d.version, Key: d.key, Tenant: d.tenant}, Headers: j.of.of.Task.Headers,
				Variables: j.of.visible(variables).json(), Retries: j.retries, Deadline: j.deadline,
			})
		}
	}
	return all
}

func (j *job) value() Value {
	v := j.of.owned()
	v.Type, v.Worker, v.Retries = j.kind, j.worker, j.retries
	return v
}

// answerable returns a job that may be answered: a locked one, or one whose lock ended without another answer.
func (c *Core) answerable(key int64, verb string) (*job, error) {
	j := c.jobs[key]
	if j == nil {
		return nil, reject(NotFound, "Expected to %s job with key '%d', but no such job was found", verb, key)
	}
	if j.state != Activated && j.state != Activatable {
		return nil, reject(InvalidState, "Expected to %s job with key '%d', but it is in state '%s'", verb, key, j.state)
	}
	return j, nil
}

// Complete completes a job.
type Complete struct {
	Key       int64
	Variables string
}

func (o Complete) apply(c *Core) error {
	j, err := c.answerable(o.Key, "complete")
	if err != nil {
		return err
	}
	doc, err := document(o.Variables)
	if err != nil {
		return err
	}
	e := j.of
	c.emit(jobType, completed, j.key, j.value())
	c.finish(e, doc)
	return nil
}

// Fail gives a job back after a back-off. Without retries it becomes an incident.
type Fail struct {
	Key       int64
	Retries   int32
	BackOff   time.Duration
	Message   string
	Variables string // local to the task
}

func (o Fail) apply(c *Core) error {
	j, err := c.answerable(o.Key, "fail")
	if err != nil {
		return err
	}
	doc, err := document(o.Variables)
	if err != nil {
		return err
	}
	v := j.value()
	v.Retries, v.ErrorMessage = o.Retries, cut(o.Message)
	if o.BackOff > 0 && o.Retries > 0 {
		v.RecurringTime = c.now.Add(min(o.BackOff, longest)).UnixMilli()
	}
	c.setLocal(j.of, doc)
	c.emit(jobType, failed, j.key, v)
	if o.Retries <= 0 {
		c.raise(j.of, j, "JOB_NO_RETRIES", cmp.Or(v.ErrorMessage, "No more retries left."), "")
	}
	return nil
}

// Throw answers a job with a BPMN error.
type Throw struct {
	Key           int64
	Code, Message string
	Variables     string
}

func (o Throw) apply(c *Core) error {
	j, err := c.answerable(o.Key, "throw an error for")
	if err != nil {
		return err
	}
	if o.Code == "" {
		return reject(InvalidArgument, "Expected to throw an error for job with key '%d' with an error code, but none given", o.Key)
	}
	doc, err := document(o.Variables)
	if err != nil {
		return err
	}
	v := j.value()
	v.ErrorCode, v.ErrorMessage = o.Code, cut(o.Message)
	c.emit(jobType, errorThrown, j.key, v)
	if c.throw(j.of, o.Code, doc) {
		return nil
	}
	with := ""
	if o.Message != "" {
		with = fmt.Sprintf(" with message '%s'", cut(o.Message))
	}
	codes := make([]string, 0, len(j.of.of.Boundary))
	for _, b := range j.of.of.Boundary {
		codes = append(codes, b.Error.String()) // an event for any code would have caught it
	}
	available := "No error events are available in the scope."
	if len(codes) > 0 {
		available = fmt.Sprintf("Available error events are [%s]", strings.Join(codes, ", "))
	}
	c.raise(j.of, j, "UNHANDLED_ERROR_EVENT",
		fmt.Sprintf("Expected to throw an error event with the code '%s'%s, but it was not caught. %s", o.Code, with, available), "")
	return nil
}

// UpdateRetries sets a job's retries.
type UpdateRetries struct {
	Key     int64
	Retries int32
}

func (o UpdateRetries) apply(c *Core) error {
	j := c.jobs[o.Key]
	if o.Retries < 1 {
		return reject(InvalidArgument, "Expected to update retries for job with key '%d' with a positive amount of retries, but the amount given "+
			"was '%d'", o.Key, o.Retries)
	}
	if j == nil {
		return reject(NotFound, "Expected to update retries for job with key '%d', but no such job was found", o.Key)
	}
	v := j.value()
	v.Retries = o.Retries
	c.emit(jobType, retriesUpdated, o.Key, v)
	return nil
}

// UpdateTimeout sets a lock's time, from now.
type UpdateTimeout struct {
	Key     int64
	Timeout time.Duration
}

func (o UpdateTimeout) apply(c *Core) error {
	j := c.jobs[o.Key]
	switch {
	case j == nil:
		return reject(NotFound, "Expected to update job timeout for job with key '%d', but no such job was found", o.Key)
	case j.state != Activated:
		return reject(InvalidState, "Expected to update job timeout for job with key '%d', but it is not active", o.Key)
	}
	v := j.value()
	v.Deadline = c.now.Add(min(o.Timeout, longest)).UnixMilli()
	c.emit(jobType, timeoutUpdated, o.Key, v)
	return nil
}
