// Package engine is a small process engine for development and tests, never for production. It supports the part of
// BPMN and of Zeebe's protocol that this project's processes need, with the semantics observed on Zeebe 8.5.8 and
// 8.6.0.
//
// It is pure: no goroutine, no clock, no I/O. Package server wraps it.
package engine

import (
	"fmt"
	"time"

	"retry-worker/internal/engine/bpmn"
)

// Core is the state of an engine with one partition. It is not safe for concurrent use.
type Core struct {
	position, lastKey int64
	definitions       map[int64]*definition
	versions          map[processID][]*definition
	instances         map[int64]*instance
	elements          map[int64]*element
	jobs              map[int64]*job
	queues            map[processID]*queue[*job] // activatable jobs by tenant and type
	woken             map[processID]bool         // queues that got jobs
	waits             map[int64]*wait
	subscriptions     map[messageKey][]*wait
	messages          map[int64]*message
	buffered          map[messageKey][]*message
	incidents         map[int64]*incident
	due               queue[*due]
	counts            Counts

	// Of the command in progress:
	now     time.Time
	batch   []Event
	pending []activation
}

// activation is an element to be activated.
type activation struct {
	in *instance
	of *bpmn.Element
}

// New returns an empty engine.
func New() *Core {
	c := &Core{
		lastKey: firstKey, definitions: map[int64]*definition{}, versions: map[processID][]*definition{}, instances: map[int64]*instance{},
		elements: map[int64]*element{}, jobs: map[int64]*job{}, queues: map[processID]*queue[*job]{}, woken: map[processID]bool{},
		waits: map[int64]*wait{}, subscriptions: map[messageKey][]*wait{}, messages: map[int64]*message{},
		buffered: map[messageKey][]*message{}, incidents: map[int64]*incident{},
	}
	c.ResetCounts()
	return c
}

// A Command is a request to the engine.
type Command interface {
	apply(*Core) error
}

// Apply carries out a command at an instant, and returns its events. After an error, which is a *Rejection, nothing has
// happened.
func (c *Core) Apply(command Command, now time.Time) ([]Event, error) {
	c.begins(now)
	err := command.apply(c)
	c.proceed()
	return c.batch, err
}

func (c *Core) begins(now time.Time) { c.now, c.batch = now.Truncate(time.Millisecond), nil }

// Tick carries out a part of what is due. There is more while NextDue is not after now.
func (c *Core) Tick(now time.Time) []Event {
	const most = 100
	c.begins(now)
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
	c.proceed()
	return c.batch
}

// NextDue returns when something happens next by itself; ok is false if nothing will.
func (c *Core) NextDue() (_ time.Time, ok bool) {
	if len(c.due) == 0 {
		return time.Time{}, false
	}
	return time.UnixMilli(c.due[0].at), true
}

// NextTimer returns when the next timer of a process fires; ok is false if there is none.
func (c *Core) NextTimer() (next time.Time, ok bool) {
	for _, d := range c.due {
		if at := time.UnixMilli(d.at); d.wait != nil && (!ok || at.Before(next)) {
			next, ok = at, true
		}
	}
	return next, ok
}

// Position returns the position of the last event.
func (c *Core) Position() int64 { return c.position }

// Woken returns, with their tenants, the job types that got an activatable job since the last call.
func (c *Core) Woken() (all [][2]string) {
	for id := range c.woken {
		all = append(all, [2]string{id.tenant, id.id})
	}
	clear(c.woken)
	return all
}

// emit adds an event and applies it to the state.
func (c *Core) emit(valueType, intent string, key int64, v Value) {
	c.batch = append(c.batch, Event{
		Position: c.position + 1, Timestamp: c.now.UnixMilli(), Key: key, RecordType: eventRecord, ValueType: valueType, Intent: intent, Value: v,
	})
	_ = c.Fold(&c.batch[len(c.batch)-1]) // cannot fail: Deploy has read the model
}

func (c *Core) newKey() int64 { return c.lastKey + 1 }

// value returns what all events of an element have in common.
func (e *element) value() Value {
	d := e.in.of
	return Value{
		ProcessInstanceKey: e.in.key, ProcessDefinitionKey: d.key, BPMNProcessID: d.ID, Version: d.version, TenantID: d.tenant,
		ElementID: e.of.ID, ElementType: string(e.of.Kind),
	}
}

// owned returns what all events of an element's job, timer or incident have in common.
func (e *element) owned() Value {
	v := e.value()
	v.ElementInstanceKey, v.ElementType = e.key, ""
	return v
}

// mostSteps bounds the elements that one command activates, to stop a process that loops without waiting.
const mostSteps = 1000

// proceed activates what is pending, and ends instances without active elements.
func (c *Core) proceed() {
	var touched []*instance
	steps := map[*instance]int{}
	for len(c.pending) > 0 {
		next := c.pending[0]
		c.pending = c.pending[1:]
		if steps[next.in]++; steps[next.in] == 1 {
			touched = append(touched, next.in)
		}
		if next.of != nil {
			c.activate(next.in, next.of, steps[next.in] > mostSteps)
		}
	}
	c.pending = nil
	for _, i := range touched {
		if len(i.elements) == 0 && c.instances[i.key] == i {
			c.endInstance(i, elementCompleted)
		}
	}
}

func (c *Core) endInstance(i *instance, how string) {
	d := i.of
	v := Value{ProcessInstanceKey: i.key, ProcessDefinitionKey: d.key, BPMNProcessID: d.ID, Version: d.version, TenantID: d.tenant}
	if i.awaited && how == elementCompleted {
		v.Variables = i.variables.json()
		c.emit(resultType, completed, i.key, v)
		v.Variables = ""
	}
	v.ElementID, v.ElementType = d.ID, string(bpmn.Root)
	c.emit(instanceType, how, i.key, v)
}

// activate activates an element.
func (c *Core) activate(i *instance, of *bpmn.Element, endless bool) {
	e := &element{key: c.newKey(), of: of, in: i}
	c.emit(instanceType, elementActivated, e.key, e.value())
	e = c.elements[e.key]
	if endless {
		c.raise(e, nil, "UNKNOWN", fmt.Sprintf("the process went through %d elements without waiting; the development engine stops it here",
			mostSteps), resumeActivation)
		return
	}
	c.begin(e)
}

// begin does the first work of an active element.
func (c *Core) begin(e *element) {
	if !c.mapped(e, e.key, e.of.Inputs, resumeActivation) {
		return
	}
	var err error
	switch e.of.Kind {
	case bpmn.ServiceTask:
		err = c.createJob(e)
	case bpmn.CatchEvent:
		err = c.await(e, e.of)
	case bpmn.EventBasedGateway:
		for _, f := range e.of.Outgoing {
			if err == nil && c.elements[e.key] == e { // a buffered message may have ended it
				err = c.await(e, f.Target)
			}
		}
	case bpmn.EndEvent:
		if e.of.Error != nil {
			c.throwEnd(e)
			return
		}
		c.complete(e)
	default:
		c.complete(e)
	}
	if err != nil {
		c.cancelWaits(e)
		c.raise(e, nil, "EXTRACT_VALUE_ERROR", err.Error(), resumeActivation)
	}
}

// complete completes an element: its outputs, then the flows after it.
func (c *Core) complete(e *element) {
	if !c.mapped(e, e.in.key, e.of.Outputs, resumeCompletion) {
		return
	}
	following := e.of.Outgoing
	switch {
	case e.of.Kind == bpmn.ExclusiveGateway && len(following) > 0:
		f, kind, err := choose(e)
		if err != nil {
			c.raise(e, nil, kind, err.Error(), resumeCompletion)
			return
		}
		following = []*bpmn.Flow{f}
	case e.of.Kind == bpmn.EventBasedGateway:
		following = nil // the flow continues at the event
	}
	c.emit(instanceType, elementCompleted, e.key, e.value())
	c.pending = append(c.pending, activation{e.in, nil})
	for _, f := range following {
		c.pending = append(c.pending, activation{e.in, f.Target})
	}
}

// choose returns the flow that an exclusive gateway takes, or its incident's type and error.
func choose(e *element) (_ *bpmn.Flow, errorType string, _ error) {
	for _, f := range e.of.Outgoing {
		if f == e.of.Default {
			continue
		}
		if f.Condition == nil {
			return f, "", nil
		}
		switch value := f.Condition.Eval(e.lookup); {
		case value.Kind() != "BOOLEAN":
			return nil, "EXTRACT_VALUE_ERROR", fmt.Errorf("Expected result of the expression '%s' to be 'BOOLEAN', but was '%s'.", f.Condition, value.Kind())
		case value == "true":
			return f, "", nil
		}
	}
	if e.of.Default == nil {
		return nil, "CONDITION_ERROR", fmt.Errorf("Expected at least one condition to evaluate to true, or to have a default flow")
	}
	return e.of.Default, "", nil
}

func (c *Core) createJob(e *element) error {
	kind := e.of.Task.Type.Eval(e.lookup)
	if kind.Kind() != "STRING" {
		return fmt.Errorf("Expected result of the expression '%s' to be 'STRING', but was '%s'.", e.of.Task.Type.String(), kind.Kind())
	}
	retries, err := e.of.Task.Count(e.lookup)
	if err != nil {
		return err
	}
	v := e.owned()
	v.Type, v.Retries = kind.String(), retries
	c.emit(jobType, created, c.newKey(), v)
	return nil
}

// await opens the timer or the subscription of a catch event, for the event itself or for the gateway before it.
func (c *Core) await(e *element, event *bpmn.Element) error {
	v := e.owned()
	v.ElementID = event.ID
	if event.Timer != nil {
		instant, err := event.Timer.Due(event.Timer.Value.Eval(e.lookup), c.now)
		if err != nil {
			return err
		}
		v.DueDate = instant.UnixMilli()
		c.emit(timerType, created, c.newKey(), v)
		return nil
	}
	name, key := event.Message.Name.Eval(e.lookup), event.Message.Key.Eval(e.lookup)
	if name.Kind() != "STRING" {
		return fmt.Errorf("Expected result of the expression '%s' to be 'STRING', but was '%s'.", event.Message.Name.String(), name.Kind())
	}
	if kind := key.Kind(); kind != "STRING" && kind != "NUMBER" {
		return fmt.Errorf("Failed to extract the correlation key for '%s': The value must be either a string or a number, but was '%s'.",
			event.Message.Key.String(), kind)
	}
	v.Name, v.CorrelationKey = name.String(), key.String()
	subscription := c.newKey()
	c.emit(subscriptionType, created, subscription, v)
	for _, m := range c.buffered[messageKey{v.TenantID, v.Name, v.CorrelationKey}] {
		if !m.correlated[e.in.of.ID] {
			c.correlate(c.waits[subscription], m.key, m.variables)
			break
		}
	}
	return nil
}

// cancelWaits closes the timers and subscriptions of an element.
func (c *Core) cancelWaits(e *element) {
	for _, key := range sortedKeys(e.waits) {
		v := e.owned()
		v.ElementID = e.waits[key].target.ID
		if e.waits[key].due != nil {
			c.emit(timerType, canceled, key, v)
		} else {
			c.emit(subscriptionType, deleted, key, v)
		}
	}
}

// correlate delivers a message to a subscription.
func (c *Core) correlate(w *wait, key int64, doc scopeVariables) {
	v := w.at.owned()
	v.ElementID, v.Name, v.CorrelationKey, v.MessageKey = w.target.ID, w.awaits.name, w.awaits.key, key
	c.emit(subscriptionType, correlated, w.key, v)
	c.caught(w, doc)
}

// caught completes the catch event of a wait.
func (c *Core) caught(w *wait, doc scopeVariables) {
	e := w.at
	if w.target != e.of {
		c.cancelWaits(e)
		c.complete(e)
		next := &element{key: c.newKey(), of: w.target, in: e.in}
		c.emit(instanceType, elementActivated, next.key, next.value())
		e = c.elements[next.key]
	}
	c.finish(e, doc)
}

// finish completes an element with variables from outside. If it has outputs, the variables are local and the outputs
// map them; otherwise see merge.
func (c *Core) finish(e *element, doc scopeVariables) {
	if len(e.of.Outputs) > 0 {
		c.setLocal(e, doc)
	} else {
		c.merge(e, doc)
	}
	c.complete(e)
}

// raise opens an incident for an element, or for its job.
func (c *Core) raise(e *element, j *job, errorType, message, resume string) {
	v := e.owned()
	v.ErrorType, v.ErrorMessage, v.Resume = errorType, message, resume
	if j != nil {
		v.JobKey = j.key
	}
	c.emit(incidentType, created, c.newKey(), v)
}

// terminate ends an element without completing it.
func (c *Core) terminate(e *element) {
	if j := e.job; j != nil && j.state != ErrorThrown {
		c.emit(jobType, canceled, j.key, j.value())
	}
	c.cancelWaits(e)
	if e.incident != nil {
		v := e.owned()
		if e.incident.job != nil {
			v.JobKey = e.incident.job.key
		}
		c.emit(incidentType, resolved, e.incident.key, v)
	}
	c.emit(instanceType, elementTerminated, e.key, e.value())
}

// throw ends an element with a BPMN error, if a boundary event catches it, and reports whether one did.
func (c *Core) throw(e *element, code string, doc scopeVariables) bool {
	boundary := e.of.Catches(code)
	if boundary == nil {
		return false
	}
	i := e.in
	c.terminate(e)
	b := &element{key: c.newKey(), of: boundary, in: i}
	c.emit(instanceType, elementActivated, b.key, b.value())
	b = c.elements[b.key]
	c.setLocal(b, doc) // without outputs they end with the event
	c.complete(b)
	return true
}

func (c *Core) throwEnd(e *element) {
	code := e.of.Error.Eval(e.lookup)
	c.raise(e, nil, "UNHANDLED_ERROR_EVENT", fmt.Sprintf(
		"Expected to throw an error event with the code '%s', but it was not caught. No error events are available in the scope.", code), resumeActivation)
}
