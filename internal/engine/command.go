package engine

import (
	"bytes"
	"cmp"
	"container/heap"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/engine/bpmn"
	"retry-worker/internal/engine/feel"
)

// Reason is why a command is not carried out, as Zeebe names it.
type Reason string

// The reasons of rejections.
const (
	NotFound        Reason = "NOT_FOUND"
	InvalidArgument Reason = "INVALID_ARGUMENT"
	InvalidState    Reason = "INVALID_STATE"
	AlreadyExists   Reason = "ALREADY_EXISTS"
)

// Rejection is the error of a command that is not carried out.
type Rejection struct {
	Reason  Reason
	Message string
}

func (r *Rejection) Error() string { return r.Message }

func reject(reason Reason, format string, args ...any) error {
	return &Rejection{reason, fmt.Sprintf(format, args...)}
}

// DefaultTenant owns everything where nobody names a tenant.
const DefaultTenant = "<default>"

// longestMessage is where an error message is cut, in characters.
const longestMessage = 10_000

func cut(message string) string {
	if len(message) <= longestMessage {
		return message
	}
	if runes := []rune(message); len(runes) > longestMessage {
		return string(runes[:longestMessage])
	}
	return message
}

// document reads variables: a JSON object, or nothing. Texts are kept with no escapes but those that JSON needs.
func document(text string) (scopeVariables, error) {
	if text == "" {
		return nil, nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return nil, reject(InvalidArgument, "Invalid JSON value: %v", err)
	}
	if bytes.IndexByte(compact.Bytes(), '\\') >= 0 {
		var value any
		d := json.NewDecoder(&compact)
		d.UseNumber()
		_ = d.Decode(&value) // was compacted
		e := json.NewEncoder(&compact)
		e.SetEscapeHTML(false)
		_ = e.Encode(value) // was decoded
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(compact.Bytes(), &members); err != nil {
		return nil, reject(InvalidArgument, "Property 'variables' is invalid: Expected document to be a root level object, but was '%s'",
			feel.Raw(compact.String()).Kind())
	}
	doc := make(scopeVariables, len(members))
	for name, value := range members {
		doc[name] = feel.Raw(value)
	}
	return doc, nil
}

// json returns the variables as an object.
func (v scopeVariables) json() string {
	var b strings.Builder
	b.WriteByte('{')
	for _, name := range sortedKeys(v) {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(string(feel.Text(name)))
		b.WriteByte(':')
		b.WriteString(string(v[name]))
	}
	b.WriteByte('}')
	return b.String()
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// Tick has what is due happen, some of it at a time: while NextDue is not behind now there is more.
type Tick struct{}

func (Tick) apply(c *Core) error {
	const most = 100
	for n := 0; n < most && len(c.due) > 0 && c.due[0].at <= c.now.UnixMilli(); n++ {
		switch d := c.due[0]; {
		case d.job != nil && d.job.state == Activated:
			c.emit(jobType, timedOut, d.key, d.job.value())
		case d.job != nil:
			c.emit(jobType, recurred, d.key, d.job.value())
		case d.wait != nil:
			v := d.wait.at.owned()
			v.ElementID, v.DueDate = d.wait.target.ID, d.at
			c.emit(timerType, triggered, d.key, v)
			c.caught(d.wait, nil)
		default:
			m := d.message
			c.emit(messageType, expired, d.key, Value{Name: m.of.name, CorrelationKey: m.of.key, TenantID: m.of.tenant})
		}
	}
	return nil
}

// Resource is a file to deploy.
type Resource struct{ Name, Content string }

// Deploy gives the engine models: all of them or none. A process that did not change keeps its version.
type Deploy struct {
	Resources []Resource
	Tenant    string
}

// Definition is a version of a process.
type Definition struct {
	ProcessID string
	Version   int32
	Key       int64
	Tenant    string
	Resource  string // the file's name
}

func (d Deploy) apply(c *Core) error {
	if len(d.Resources) == 0 {
		return reject(InvalidArgument, "Expected to deploy at least one resource, but none given")
	}
	var problems []string
	from := map[string]Resource{}
	for _, r := range d.Resources {
		processes, err := bpmn.Parse([]byte(r.Content))
		if err != nil {
			problems = append(problems, fmt.Sprintf("'%s': %v", r.Name, err))
		}
		for _, p := range processes {
			if other, twice := from[p.ID]; twice {
				problems = append(problems, fmt.Sprintf("Duplicated process id in resources '%s' and '%s'", other.Name, r.Name))
			}
			from[p.ID] = r
		}
	}
	if len(problems) > 0 {
		return reject(InvalidArgument, "Expected to deploy new resources, but encountered the following errors:\n%s", strings.Join(problems, "\n"))
	}
	c.emit(deploymentType, created, c.newKey(), Value{TenantID: d.Tenant})
	for _, id := range sortedKeys(from) {
		latest := c.latest(d.Tenant, id)
		if latest != nil && latest.resource == from[id].Content {
			continue
		}
		version := int32(1)
		if latest != nil {
			version = latest.version + 1
		}
		c.emit(processType, created, c.newKey(), Value{
			BPMNProcessID: id, Version: version, TenantID: d.Tenant, ResourceName: from[id].Name, Resource: from[id].Content,
		})
	}
	return nil
}

// Deployed returns the processes of a resource as they are deployed now.
func (c *Core) Deployed(tenant string, r Resource) (all []Definition) {
	processes, _ := bpmn.Parse([]byte(r.Content))
	for _, p := range processes {
		if d := c.latest(tenant, p.ID); d != nil {
			all = append(all, Definition{p.ID, d.version, d.key, tenant, r.Name})
		}
	}
	return all
}

func (c *Core) latest(tenant, id string) *definition {
	all := c.versions[processID{tenant, id}]
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// Latest asks for the newest version of a process.
const Latest = -1

// Create starts an instance of the process by its key, or else by its id in a version or the Latest.
type Create struct {
	DefinitionKey int64
	ProcessID     string
	Version       int32
	Tenant        string
	Variables     string
	StartAt       []string // elements to begin at; none: the start event
	Await         bool     // an event of type PROCESS_INSTANCE_RESULT tells the variables at the end
}

// Instance is a process instance that was started.
type Instance struct {
	Key int64
	Definition
}

// Started returns the instance that the events of a Create tell of.
func Started(events []Event) Instance {
	e := &events[0]
	return Instance{e.Key, Definition{ProcessID: e.Value.BPMNProcessID, Version: e.Value.Version, Key: e.Value.ProcessDefinitionKey, Tenant: e.Value.TenantID}}
}

func (o Create) apply(c *Core) error {
	d, err := o.definition(c)
	if err != nil {
		return err
	}
	doc, err := document(o.Variables)
	if err != nil {
		return err
	}
	starts := []*bpmn.Element{d.Start}
	if len(o.StartAt) > 0 {
		starts = nil
	}
	for _, id := range o.StartAt {
		e := d.Elements[id]
		if e == nil {
			return reject(InvalidArgument, "Expected to create instance of process with start instructions but no element found with id '%s'.", id)
		}
		if e.Kind == bpmn.StartEvent || e.Kind == bpmn.BoundaryEvent {
			return reject(InvalidArgument, "Expected to create instance of process with start instructions but the element with id '%s' targets "+
				"unsupported element type '%s'.", id, e.Kind)
		}
		starts = append(starts, e)
	}
	key := c.newKey()
	c.emit(instanceType, elementActivated, key, Value{
		ProcessInstanceKey: key, ProcessDefinitionKey: d.key, BPMNProcessID: d.ID, Version: d.version, TenantID: d.tenant,
		ElementID: d.ID, ElementType: string(bpmn.Root), Awaited: o.Await,
	})
	i := c.instances[key]
	for _, name := range sortedKeys(doc) {
		c.set(key, name, doc[name])
	}
	for _, e := range starts {
		c.pending = append(c.pending, activation{i, e})
	}
	return nil
}

func (o Create) definition(c *Core) (*definition, error) {
	if o.DefinitionKey > 0 {
		if d := c.definitions[o.DefinitionKey]; d != nil && d.tenant == o.Tenant {
			return d, nil
		}
		return nil, reject(NotFound, "Expected to find process definition with key '%d', but none found", o.DefinitionKey)
	}
	if o.ProcessID == "" {
		return nil, reject(InvalidArgument, "Expected at least a bpmnProcessId or a key greater than -1, but none given")
	}
	d := c.latest(o.Tenant, o.ProcessID)
	if d == nil {
		return nil, reject(NotFound, "Expected to find process definition with process ID '%s', but none found", o.ProcessID)
	}
	if o.Version == Latest {
		return d, nil
	}
	for _, v := range c.versions[processID{o.Tenant, o.ProcessID}] {
		if v.version == o.Version {
			return v, nil
		}
	}
	return nil, reject(NotFound, "Expected to find process definition with process ID '%s' and version '%d', but none found", o.ProcessID, o.Version)
}

// Cancel ends an instance and all that is active in it.
type Cancel struct{ Key int64 }

func (o Cancel) apply(c *Core) error {
	i := c.instances[o.Key]
	if i == nil {
		return reject(NotFound, "Expected to cancel a process instance with key '%d', but no such process was found", o.Key)
	}
	for _, key := range sortedKeys(i.elements) {
		c.terminate(i.elements[key])
	}
	c.endInstance(i, elementTerminated)
	return nil
}

// Touch does nothing to an instance, and is refused where it does not run.
type Touch struct{ Key int64 }

func (o Touch) apply(c *Core) error {
	if c.instances[o.Key] == nil {
		return reject(NotFound, "Expected to modify process instance but no process instance found with key '%d'", o.Key)
	}
	return nil
}

// Activate gives jobs of a type to a worker, the oldest first, for a time.
type Activate struct {
	Type, Worker string
	Timeout      time.Duration
	Max          int
	Tenants      []string
}

// mostBytes bounds the variables of one activation's jobs. The first comes whatever its size.
const mostBytes = 4 << 20

func (o Activate) apply(c *Core) error {
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

// longest time that a job is held.
const longest = 100 * 365 * 24 * time.Hour

// oldest returns up to n activatable jobs, in the order of their keys.
func (c *Core) oldest(id processID, n int) []*job {
	q := c.queues[id]
	if q == nil {
		return nil
	}
	var all []*job
	for len(all) < n && q.Len() > 0 {
		all = append(all, heap.Pop(q).(*job))
	}
	for _, j := range all { // they stay until they are activated
		heap.Push(q, j)
	}
	return all
}

// size is about how many bytes the variables have that the element sees.
func (e *element) size() (n int) {
	for _, scope := range []scopeVariables{e.in.variables, e.variables} {
		for name, value := range scope {
			n += len(name) + len(value) + 4
		}
	}
	return n
}

// Job is a job as a worker is given it.
type Job struct {
	Key, InstanceKey, ElementInstanceKey int64
	Type, ElementID, Worker              string
	Definition
	Headers, Variables string // JSON objects
	Retries            int32
	Deadline           int64 // milliseconds
}

// Jobs returns the jobs that the events of an Activate tell of, with the variables of those names; without names, with all.
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

// answerable returns a job that a worker may answer: one that it holds, or held while nobody else has answered.
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

// Complete answers a job.
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

// Fail gives a job back, after a back-off; without retries it is an incident.
type Fail struct {
	Key       int64
	Retries   int32
	BackOff   time.Duration
	Message   string
	Variables string // are local to the task
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
		codes = append(codes, b.Error.String()) // one that has none would have caught it
	}
	available := "No error events are available in the scope."
	if len(codes) > 0 {
		available = fmt.Sprintf("Available error events are [%s]", strings.Join(codes, ", "))
	}
	c.raise(j.of, j, "UNHANDLED_ERROR_EVENT",
		fmt.Sprintf("Expected to throw an error event with the code '%s'%s, but it was not caught. %s", o.Code, with, available), "")
	return nil
}

// SetVariables sets variables of a process instance or of an active element: in that very scope, or else where they are seen from
// there.
type SetVariables struct {
	Key       int64
	Variables string
	Local     bool
}

func (o SetVariables) apply(c *Core) error {
	i, e := c.instances[o.Key], c.elements[o.Key]
	if i == nil && e == nil {
		return reject(NotFound, "Expected to update variables for element with key '%d', but no such element was found", o.Key)
	}
	doc, err := document(o.Variables)
	if err != nil {
		return err
	}
	switch {
	case i != nil:
		for _, name := range sortedKeys(doc) {
			c.set(i.key, name, doc[name])
		}
	case o.Local:
		c.setLocal(e, doc)
	default:
		c.merge(e, doc)
	}
	return nil
}

// Resolve has an incident's element, or its job, tried again.
type Resolve struct{ Key int64 }

func (o Resolve) apply(c *Core) error {
	i := c.incidents[o.Key]
	if i == nil {
		return reject(NotFound, "Expected to resolve incident with key '%d', but no such incident was found", o.Key)
	}
	v := i.at.owned()
	if i.job != nil {
		v.JobKey = i.job.key
	}
	c.emit(incidentType, resolved, o.Key, v)
	switch {
	case i.resume == resumeActivation:
		c.begin(i.at)
	case i.resume == resumeCompletion:
		c.complete(i.at)
	case i.job.retries <= 0: // nobody gave it any
		c.raise(i.at, i.job, "JOB_NO_RETRIES", "No more retries left.", "")
	}
	return nil
}

// UpdateRetries gives a job retries.
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

// UpdateTimeout has a worker hold its job for a time from now.
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

// Publish gives a message to one instance of each process that waits for it, now or while it lives.
type Publish struct {
	Name, Key, ID string
	Tenant        string
	TimeToLive    time.Duration
	Variables     string
}

func (o Publish) apply(c *Core) error {
	if o.Name == "" {
		return reject(InvalidArgument, "Expected to publish a message with a name, but none given")
	}
	doc, err := document(o.Variables)
	if err != nil {
		return err
	}
	of := messageKey{o.Tenant, o.Name, o.Key}
	if o.ID != "" && slices.ContainsFunc(c.buffered[of], func(m *message) bool { return m.id == o.ID }) {
		return reject(AlreadyExists, "Expected to publish a new message with id '%s', but a message with that id was already published", o.ID)
	}
	key, life := c.newKey(), min(o.TimeToLive, longest)
	c.emit(messageType, published, key, Value{
		Name: o.Name, CorrelationKey: o.Key, MessageID: o.ID, TenantID: o.Tenant, TimeToLive: life.Milliseconds(), Variables: o.Variables,
		Deadline: c.now.Add(life).UnixMilli(),
	})
	taken := map[string]bool{}
	for _, w := range slices.Clone(c.subscriptions[of]) {
		if process := w.at.in.of.ID; !taken[process] && c.waits[w.key] == w {
			taken[process] = true
			c.correlate(w, key, doc)
		}
	}
	return nil
}

// Select returns the members of those names of a JSON object; without names, all.
func Select(variables string, names []string) string {
	doc, err := document(variables)
	if err != nil || len(names) == 0 {
		return variables
	}
	maps.DeleteFunc(doc, func(name string, _ feel.Raw) bool { return !slices.Contains(names, name) })
	return doc.json()
}
