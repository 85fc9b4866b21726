package engine

import (
	"container/heap"
	"fmt"
	"maps"
	"slices"

	"retry-worker/internal/engine/bpmn"
	"retry-worker/internal/engine/feel"
)

// scopeVariables holds the variables of a process instance or of one element.
type scopeVariables map[string]feel.Raw

// definition is one version of a process.
type definition struct {
	*bpmn.Process
	key      int64
	version  int32
	tenant   string
	resource string // its file's name
}

type processID struct{ tenant, id string }

// instance is a running process instance.
type instance struct {
	key       int64
	of        *definition
	variables scopeVariables
	elements  map[int64]*element // active elements
	awaited   bool
}

// element is an active element.
type element struct {
	key       int64
	of        *bpmn.Element
	in        *instance
	variables scopeVariables // local ones
	job       *job
	incident  *incident
	waits     map[int64]*wait // timers and message subscriptions
}

// lookup finds a variable as the element sees it.
func (e *element) lookup(name string) (feel.Raw, bool) {
	v, there := e.variables[name]
	if !there {
		v, there = e.in.variables[name]
	}
	return v, there
}

// visible returns the named variables that the element sees; all if there are no names.
func (e *element) visible(names []string) scopeVariables {
	if len(names) == 0 {
		all := maps.Clone(e.in.variables)
		maps.Copy(all, e.variables)
		return all
	}
	all := make(scopeVariables, len(names))
	for _, name := range names {
		if value, there := e.lookup(name); there {
			all[name] = value
		}
	}
	return all
}

// JobState is where a job stands.
type JobState string

// The states of a job. Jobs with an incident have Failed or ErrorThrown.
const (
	Activatable JobState = "ACTIVATABLE"
	Activated   JobState = "ACTIVATED"
	Failed      JobState = "FAILED"
	ErrorThrown JobState = "ERROR_THROWN"
)

type job struct {
	key      int64
	kind     string // its type
	of       *element
	state    JobState
	retries  int32
	worker   string
	deadline int64
	at       int // in its queue; -1: in none
	due      *due
}

// wait is a timer or a message subscription of a catch event, or of the event-based gateway before it.
type wait struct {
	key    int64
	at     *element
	target *bpmn.Element // the catch event
	due    *due          // of a timer
	awaits messageKey    // of a subscription
}

// incident is a problem that somebody must resolve.
type incident struct {
	key    int64
	at     *element
	job    *job   // nil: the incident is the element's
	resume string // what to retry: the element's activation or completion; empty: the job
}

const (
	resumeActivation = "activation"
	resumeCompletion = "completion"
)

type messageKey struct{ tenant, name, key string }

// message is a published message that is kept for later subscriptions.
type message struct {
	key        int64
	of         messageKey
	id         string
	variables  scopeVariables
	correlated map[string]bool // processes that got it
	due        *due
}

// due is an instant at which something happens by itself.
type due struct {
	at      int64 // milliseconds
	key     int64
	job     *job
	wait    *wait
	message *message
	index   int
}

func (d *due) before(other *due) bool {
	return d.at < other.at || d.at == other.at && d.key < other.key
}
func (d *due) place() *int { return &d.index }

func (j *job) before(other *job) bool { return j.key < other.key }
func (j *job) place() *int            { return &j.at }

// ordered is an item of a queue. place is its index there, -1 if it is in none.
type ordered[T any] interface {
	before(other T) bool
	place() *int
}

var (
	_ ordered[*due] = (*due)(nil)
	_ ordered[*job] = (*job)(nil)
)

// queue is a heap.
type queue[T ordered[T]] []T

func (q queue[T]) Len() int           { return len(q) }
func (q queue[T]) Less(i, j int) bool { return q[i].before(q[j]) }
func (q queue[T]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	*q[i].place(), *q[j].place() = i, j
}
func (q *queue[T]) Push(x any) {
	*x.(T).place() = len(*q)
	*q = append(*q, x.(T))
}
func (q *queue[T]) Pop() any {
	last := (*q)[len(*q)-1]
	clear((*q)[len(*q)-1:])
	*q = (*q)[:len(*q)-1]
	*last.place() = -1
	return last
}

// schedule replaces old by d, each of which may be nil, and returns d.
func (c *Core) schedule(old, d *due) *due {
	if old != nil {
		heap.Remove(&c.due, old.index)
	}
	if d != nil {
		heap.Push(&c.due, d)
	}
	return d
}

// move changes a job's state, its queue and its schedule. d is when the new state ends by itself.
func (c *Core) move(j *job, to JobState, d int64) {
	id := processID{j.of.in.of.tenant, j.kind}
	q := c.queues[id]
	if q == nil {
		q = &queue[*job]{}
		c.queues[id] = q
	}
	if j.at >= 0 {
		heap.Remove(q, j.at)
	}
	j.state = to
	if to == Activatable {
		heap.Push(q, j)
		c.woken[id] = true
	}
	if q.Len() == 0 {
		delete(c.queues, id)
	}
	var next *due
	if d > 0 {
		next = &due{at: d, key: j.key, job: j}
	}
	j.due = c.schedule(j.due, next)
}

// drop forgets a job, if it is known.
func (c *Core) drop(j *job) {
	if j == nil || c.jobs[j.key] == nil {
		return
	}
	c.move(j, ErrorThrown, 0) // so that it leaves its queue
	delete(c.jobs, j.key)
	j.of.job = nil
}

// Fold applies an event to the state. It takes the events that [Core.Apply] returned, in order of position. After an
// error, which says that another version took a model that this one refuses, the core is of no use.
func (c *Core) Fold(e *Event) error {
	c.position = e.Position
	v := &e.Value
	if e.Key > c.lastKey {
		c.lastKey = e.Key
	}
	switch e.ValueType {
	case processType:
		return c.foldProcess(e)
	case instanceType:
		c.foldElement(e)
	case variableType:
		c.variablesOf(v.ScopeKey)[v.Name] = feel.Raw(v.Value)
	case jobType:
		c.foldJob(e)
	case batchType:
		for _, key := range v.JobKeys {
			j := c.jobs[key]
			j.worker, j.deadline = v.Worker, v.Deadline
			c.move(j, Activated, v.Deadline)
			c.counts.job(j.kind, "activated")
		}
	case timerType, subscriptionType:
		c.foldWait(e)
	case incidentType:
		c.foldIncident(e)
	case messageType:
		c.foldMessage(e)
	}
	return nil
}

func (c *Core) foldProcess(e *Event) error {
	processes, err := bpmn.Parse([]byte(e.Value.Resource))
	if err != nil {
		return fmt.Errorf("another version took the model of the process %q, which this one refuses", e.Value.BPMNProcessID)
	}
	for _, p := range processes {
		if p.ID == e.Value.BPMNProcessID {
			d := &definition{p, e.Key, e.Value.Version, e.Value.TenantID, e.Value.Resource}
			c.definitions[e.Key] = d
			id := processID{d.tenant, p.ID}
			c.versions[id] = append(c.versions[id], d)
		}
	}
	return nil
}

// variablesOf returns the variables of a process instance or an element; an unattached map if there is neither.
func (c *Core) variablesOf(scope int64) scopeVariables {
	if i := c.instances[scope]; i != nil {
		return i.variables
	}
	if e := c.elements[scope]; e != nil {
		if e.variables == nil {
			e.variables = scopeVariables{}
		}
		return e.variables
	}
	return scopeVariables{}
}

func (c *Core) foldElement(e *Event) {
	v := &e.Value
	kind := bpmn.Kind(v.ElementType)
	switch {
	case e.Intent == elementActivated && kind == bpmn.Root:
		c.instances[e.Key] = &instance{e.Key, c.definitions[v.ProcessDefinitionKey], scopeVariables{}, map[int64]*element{}, v.Awaited}
	case e.Intent == elementActivated:
		i := c.instances[v.ProcessInstanceKey]
		x := &element{key: e.Key, of: i.of.Elements[v.ElementID], in: i}
		c.elements[e.Key], i.elements[e.Key] = x, x
	case kind == bpmn.Root:
		delete(c.instances, e.Key)
	default:
		x := c.elements[e.Key]
		c.drop(x.job)
		delete(c.elements, e.Key)
		delete(x.in.elements, e.Key)
	}
	c.counts.element(v.ElementType, elementActions[e.Intent])
}

func (c *Core) foldJob(e *Event) {
	v := &e.Value
	if e.Intent == created {
		x := c.elements[v.ElementInstanceKey]
		x.job = &job{key: e.Key, kind: v.Type, of: x, retries: v.Retries, at: -1}
		c.jobs[e.Key] = x.job
		c.move(x.job, Activatable, 0)
	}
	j := c.jobs[e.Key]
	c.counts.job(j.kind, jobActions[e.Intent])
	switch e.Intent {
	case completed, canceled:
		c.drop(j)
	case failed:
		j.retries = v.Retries
		switch {
		case v.Retries > 0 && v.RecurringTime == 0:
			c.move(j, Activatable, 0)
		default:
			c.move(j, Failed, v.RecurringTime)
		}
	case errorThrown:
		c.move(j, ErrorThrown, 0)
	case timedOut, recurred:
		c.move(j, Activatable, 0)
	case timeoutUpdated:
		j.deadline = v.Deadline
		c.move(j, Activated, v.Deadline)
	case retriesUpdated:
		j.retries = v.Retries
	}
}

func (c *Core) foldWait(e *Event) {
	v := &e.Value
	if e.Intent == created {
		x := c.elements[v.ElementInstanceKey]
		w := &wait{key: e.Key, at: x, target: x.in.of.Elements[v.ElementID]}
		if x.waits == nil {
			x.waits = map[int64]*wait{}
		}
		c.waits[e.Key], x.waits[e.Key] = w, w
		if e.ValueType == timerType {
			w.due = c.schedule(nil, &due{at: v.DueDate, key: e.Key, wait: w})
		} else {
			w.awaits = messageKey{v.TenantID, v.Name, v.CorrelationKey}
			c.subscriptions[w.awaits] = append(c.subscriptions[w.awaits], w)
		}
		return
	}
	w := c.waits[e.Key]
	delete(c.waits, e.Key)
	delete(w.at.waits, e.Key)
	w.due = c.schedule(w.due, nil)
	if w.awaits != (messageKey{}) {
		c.subscriptions[w.awaits] = slices.DeleteFunc(c.subscriptions[w.awaits], func(other *wait) bool { return other == w })
		if len(c.subscriptions[w.awaits]) == 0 {
			delete(c.subscriptions, w.awaits)
		}
	}
	if m := c.messages[v.MessageKey]; m != nil {
		m.correlated[w.at.in.of.ID] = true
	}
}

func (c *Core) foldIncident(e *Event) {
	v := &e.Value
	if e.Intent == created {
		x := c.elements[v.ElementInstanceKey]
		x.incident = &incident{e.Key, x, c.jobs[v.JobKey], v.Resume}
		c.incidents[e.Key] = x.incident
		return
	}
	i := c.incidents[e.Key]
	delete(c.incidents, e.Key)
	i.at.incident = nil
	if j := i.job; j != nil && c.jobs[j.key] == j && j.retries > 0 {
		c.move(j, Activatable, 0)
	}
}

func (c *Core) foldMessage(e *Event) {
	v := &e.Value
	if e.Intent == expired {
		m := c.messages[e.Key]
		c.schedule(m.due, nil)
		delete(c.messages, e.Key)
		c.buffered[m.of] = slices.DeleteFunc(c.buffered[m.of], func(other *message) bool { return other == m })
		if len(c.buffered[m.of]) == 0 {
			delete(c.buffered, m.of)
		}
		return
	}
	if v.TimeToLive <= 0 {
		return
	}
	m := &message{key: e.Key, of: messageKey{v.TenantID, v.Name, v.CorrelationKey}, id: v.MessageID,
		correlated: map[string]bool{}}
	m.variables, _ = document(v.Variables) // cannot fail: it was read before
	m.due = c.schedule(nil, &due{at: v.Deadline, key: e.Key, message: m})
	c.messages[e.Key] = m
	c.buffered[m.of] = append(c.buffered[m.of], m)
}

// Counts holds how often things happened to jobs and to elements, by type and action, since the core was made or reset.
type Counts struct {
	Jobs, Elements map[[2]string]int64
}

// elementActions maps intents to the actions of Zeebe's element counters.
var elementActions = map[string]string{
	elementActivated: "activated", elementCompleted: "completed", elementTerminated: "terminated",
}

// jobActions maps intents to the actions of Zeebe's job counters.
var jobActions = map[string]string{
	created: "created", completed: "completed", failed: "failed", errorThrown: "error thrown", timedOut: "timed out",
	timeoutUpdated: "timeout updated", retriesUpdated: "retries updated", canceled: "canceled", recurred: "recurred",
}

func (c *Counts) job(kind, action string)     { c.Jobs[[2]string{kind, action}]++ }
func (c *Counts) element(kind, action string) { c.Elements[[2]string{kind, action}]++ }

// Counts returns the counts since the last ResetCounts. They belong to the core; do not keep them.
func (c *Core) Counts() Counts { return c.counts }

// ResetCounts sets all counts to zero.
func (c *Core) ResetCounts() {
	c.counts = Counts{map[[2]string]int64{}, map[[2]string]int64{}}
}

// Incidents returns the number of open incidents.
func (c *Core) Incidents() int { return len(c.incidents) }
