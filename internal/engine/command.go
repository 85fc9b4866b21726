package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/engine/bpmn"
	"retry-worker/internal/engine/feel"
)

// Reason says why a command is rejected, as Zeebe names it.
type Reason string

// The reasons of rejections.
const (
	NotFound        Reason = "NOT_FOUND"
	InvalidArgument Reason = "INVALID_ARGUMENT"
	InvalidState    Reason = "INVALID_STATE"
	AlreadyExists   Reason = "ALREADY_EXISTS"
)

// Rejection is the error of a rejected command.
type Rejection struct {
	Reason  Reason
	Message string
}

func (r *Rejection) Error() string { return r.Message }

func reject(reason Reason, format string, args ...any) error {
	return &Rejection{reason, fmt.Sprintf(format, args...)}
}

// DefaultTenant owns everything without a tenant.
const DefaultTenant = "<default>"

// longestMessage is the longest error message, in characters; the rest is cut off.
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

// document parses variables: a JSON object or an empty text. It removes escapes that JSON does not need, and replaces
// invalid UTF-8, which gRPC could not send.
func document(text string) (scopeVariables, error) {
	if text == "" {
		return nil, nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(strings.ToValidUTF8(text, "\ufffd"))); err != nil {
		return nil, reject(InvalidArgument, "Invalid JSON value: %v", err)
	}
	if bytes.IndexByte(compact.Bytes(), '\\') >= 0 {
		var value any
		d := json.NewDecoder(&compact)
		d.UseNumber()
		_ = d.Decode(&value) // cannot fail: it was compacted
		e := json.NewEncoder(&compact)
		e.SetEscapeHTML(false)
		_ = e.Encode(value) // cannot fail: it was decoded
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

// json encodes the variables as an object.
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

// Resource is a file to deploy.
type Resource struct{ Name, Content string }

// Deploy deploys all its models or none. An unchanged process keeps its version.
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

// Deployed returns the current definitions of a resource's processes.
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

// Latest stands for the newest version of a process.
const Latest = -1

// Create starts an instance of the process with that key, or of the process with that id in a version or the Latest.
type Create struct {
	DefinitionKey int64
	ProcessID     string
	Version       int32
	Tenant        string
	Variables     string
	StartAt       []string // elements to begin at; none: at the start event
	Await         bool     // a PROCESS_INSTANCE_RESULT event will hold the variables at the end
}

// Instance is a started process instance.
type Instance struct {
	Key int64
	Definition
}

// Started returns the instance that a Create's events started.
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

// Cancel ends an instance and all its active elements.
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

// Touch changes nothing; it is rejected unless the instance runs.
type Touch struct{ Key int64 }

func (o Touch) apply(c *Core) error {
	if c.instances[o.Key] == nil {
		return reject(NotFound, "Expected to modify process instance but no process instance found with key '%d'", o.Key)
	}
	return nil
}

// SetVariables sets variables of a process instance or an active element: if Local in that scope itself, otherwise in
// the scopes that hold them (see merge).
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

// Resolve retries what an incident stopped: an element or a job.
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
	case i.job.retries <= 0: // it still has none
		c.raise(i.at, i.job, "JOB_NO_RETRIES", "No more retries left.", "")
	}
	return nil
}

// Publish delivers a message to one instance of each process that waits for it, now or during its life.
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

// Select returns the named members of a JSON object; all if there are no names.
func Select(variables string, names []string) string {
	doc, err := document(variables)
	if err != nil || len(names) == 0 {
		return variables
	}
	maps.DeleteFunc(doc, func(name string, _ feel.Raw) bool { return !slices.Contains(names, name) })
	return doc.json()
}
