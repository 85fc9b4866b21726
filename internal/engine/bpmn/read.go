package bpmn

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/engine/feel"
)

const (
	bpmnSpace  = "http://www.omg.org/spec/BPMN/20100524/MODEL"
	zeebeSpace = "http://camunda.org/schema/zeebe/1.0"
	// mostProcesses bounds those of one file.
	mostProcesses = 20
)

// reader of one file.
type reader struct {
	problems []string
	errors   map[string]*node // root elements by id
	messages map[string]*node
	unknown  map[string]bool // ids of unsupported elements, whose flows are not reported
}

// Refused holds all problems of a model.
type Refused []string

func (r Refused) Error() string { return strings.Join(r, "\n") }

// Parse reads the executable processes of a file. The error is a Refused.
func Parse(content []byte) ([]*Process, error) {
	definitions, err := parseXML(content)
	if err != nil {
		return nil, Refused{fmt.Sprintf("- ERROR: %v", err)}
	}
	r := &reader{errors: map[string]*node{}, messages: map[string]*node{}, unknown: map[string]bool{}}
	for _, n := range definitions.all(bpmnSpace, "error") {
		r.errors[n.attribute("id")] = n
	}
	for _, n := range definitions.all(bpmnSpace, "message") {
		r.messages[n.attribute("id")] = n
	}
	all := definitions.all(bpmnSpace, "process")
	if len(all) > mostProcesses {
		r.refuse(definitions.attribute("id"), "The development engine takes at most %d processes in a file, but found %d", mostProcesses, len(all))
		return nil, Refused(r.problems)
	}
	var processes []*Process
	for _, n := range all {
		if n.attribute("isExecutable") != "true" {
			continue
		}
		p := r.process(n)
		if slices.ContainsFunc(processes, func(other *Process) bool { return other.ID == p.ID }) {
			r.refuse(p.ID, "Duplicated process id '%s'", p.ID)
		}
		processes = append(processes, p)
	}
	if len(processes) == 0 {
		r.refuse(definitions.attribute("id"), "Must contain at least one executable process")
	}
	if len(r.problems) > 0 {
		return nil, Refused(r.problems)
	}
	return processes, nil
}

// refuse notes what is wrong with an element.
func (r *reader) refuse(element, format string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf("- Element: %s\n    - ERROR: %s", element, fmt.Sprintf(format, args...)))
}

// flowNodes maps the supported elements to their kinds.
var flowNodes = map[string]Kind{
	"startEvent": StartEvent, "endEvent": EndEvent, "serviceTask": ServiceTask, "exclusiveGateway": ExclusiveGateway,
	"eventBasedGateway": EventBasedGateway, "intermediateCatchEvent": CatchEvent, "intermediateThrowEvent": ThrowEvent,
	"boundaryEvent": BoundaryEvent,
}

// meaningless elements do not affect how a process runs.
var meaningless = []string{"documentation", "extensionElements", "incoming", "outgoing", "textAnnotation", "association", "group", "laneSet"}

// attributes lists those that a flow node, a sequence flow or a process may have.
var attributes = []string{"id", "name", "isExecutable", "isClosed", "processType", "default", "attachedToRef", "cancelActivity", "sourceRef",
	"targetRef", "gatewayDirection", "implementation", "completionQuantity", "startQuantity", "isForCompensation", "isInterrupting",
	"parallelMultiple", "instantiate", "eventGatewayType", "isImmediate"}

// zeebeAttributes are notes of the Modeler.
var zeebeAttributes = []string{"modelerTemplate", "modelerTemplateVersion", "modelerTemplateIcon"}

// known refuses attributes and children of an element that the engine does not support.
func (r *reader) known(n *node, children ...string) {
	id := n.attribute("id")
	for _, a := range n.attributes {
		if a.Name.Space == "" && !slices.Contains(attributes, a.Name.Local) ||
			a.Name.Space == zeebeSpace && !slices.Contains(zeebeAttributes, a.Name.Local) {
			r.refuse(id, "Attribute '%s' is not supported by the development engine", a.Name.Local)
		}
	}
	if n.attribute("isForCompensation") == "true" || n.attribute("cancelActivity") == "false" || n.attribute("instantiate") == "true" {
		r.refuse(id, "Compensation, non-interrupting boundary events and instantiating gateways are not supported by the development engine")
	}
	for _, c := range n.children {
		if c.Space == bpmnSpace && !slices.Contains(meaningless, c.Local) && !slices.Contains(children, c.Local) {
			at := c.attribute("id")
			if at == "" {
				at = id
			}
			r.unknown[c.attribute("id")] = true
			r.refuse(at, "Elements of type <%s> are not supported by the development engine here", c.Local)
		}
	}
}

func (r *reader) process(n *node) *Process {
	p := &Process{ID: n.attribute("id"), Elements: map[string]*Element{}}
	r.known(n, append(slices.Collect(maps.Keys(flowNodes)), "sequenceFlow")...)
	r.extensions(n, nil)
	var ids []string // in the file's order
	for _, c := range n.children {
		kind, is := flowNodes[c.Local]
		if c.Space != bpmnSpace || !is {
			continue
		}
		e := r.element(c, kind)
		if _, twice := p.Elements[e.ID]; twice || e.ID == "" {
			r.refuse(e.ID, "Elements must have an id, and each its own")
		}
		p.Elements[e.ID] = e
		ids = append(ids, e.ID)
	}
	for _, c := range n.all(bpmnSpace, "sequenceFlow") {
		r.flow(c, p)
	}
	for _, c := range n.children {
		if by := c.attribute("default"); c.Space == bpmnSpace && by != "" {
			r.defaultFlow(p.Elements[c.attribute("id")], by)
		}
	}
	for _, id := range ids {
		r.check(p, p.Elements[id])
	}
	if p.Start == nil && len(ids) > 0 || len(ids) == 0 {
		r.refuse(p.ID, "Must have exactly one none start event")
	}
	return p
}

func (r *reader) element(n *node, kind Kind) *Element {
	e := &Element{ID: n.attribute("id"), Kind: kind, attachedTo: n.attribute("attachedToRef")}
	events := map[Kind][]string{
		CatchEvent: {"timerEventDefinition", "messageEventDefinition"}, BoundaryEvent: {"errorEventDefinition"}, EndEvent: {"errorEventDefinition"},
	}[kind]
	r.known(n, events...)
	r.extensions(n, e)
	definitions := n.all(bpmnSpace, events...)
	if len(definitions) > 1 || len(definitions) == 0 && (kind == CatchEvent || kind == BoundaryEvent) {
		r.refuse(e.ID, "Must have exactly one event definition, a timer or a message")
		return e
	}
	for _, d := range definitions {
		switch d.Local {
		case "timerEventDefinition":
			r.timer(e, d)
		case "messageEventDefinition":
			r.message(e, d)
		default:
			r.error(e, d)
		}
	}
	if kind == ServiceTask && e.Task == nil {
		r.refuse(e.ID, "Must have exactly one 'zeebe:taskDefinition' extension element")
	}
	return e
}

// value reads a literal, or an expression if it begins with =.
func (r *reader) value(element, text string) Value {
	expression, is := strings.CutPrefix(strings.TrimSpace(text), "=")
	if !is {
		return Value{literal: feel.Text(text)}
	}
	parsed, err := feel.Parse(expression)
	if err != nil {
		r.refuse(element, "failed to parse expression '%s': %v", strings.TrimSpace(expression), err)
	}
	return Value{expression: parsed}
}

// extensions reads Zeebe's own elements; e is nil for a process.
func (r *reader) extensions(n *node, e *Element) {
	id := n.attribute("id")
	for _, extensions := range n.all(bpmnSpace, "extensionElements") {
		for _, x := range extensions.children {
			switch {
			case x.Space != zeebeSpace || x.Local == "properties" || x.Local == "versionTag":
			case e != nil && x.Local == "ioMapping" && e.Kind != ExclusiveGateway && e.Kind != EventBasedGateway:
				e.Inputs, e.Outputs = r.mappings(id, x, "input"), r.mappings(id, x, "output")
			case e != nil && x.Local == "taskDefinition" && e.Kind == ServiceTask:
				r.task(e, x)
			case e != nil && x.Local == "taskHeaders" && e.Kind == ServiceTask: // read with the definition
			default:
				r.refuse(id, "Extension elements of type 'zeebe:%s' are not supported by the development engine here", x.Local)
			}
		}
		if e != nil && e.Task != nil {
			e.Task.Headers = headers(extensions)
		}
	}
}

func (r *reader) mappings(id string, x *node, local string) (all []Mapping) {
	for _, m := range x.all(zeebeSpace, local) {
		target := strings.Split(m.attribute("target"), ".")
		if slices.Contains(target, "") {
			r.refuse(id, "Attribute 'target' must be a variable's name or a path, but was '%s'", m.attribute("target"))
		}
		source := m.attribute("source")
		if source == "" {
			r.refuse(id, "Attribute 'source' must be present and not empty")
		}
		all = append(all, Mapping{r.value(id, source), target})
	}
	return all
}

func (r *reader) task(e *Element, x *node) {
	for _, a := range x.attributes {
		if a.Name.Space == "" && a.Name.Local != "type" && a.Name.Local != "retries" {
			r.refuse(e.ID, "Attribute '%s' of 'zeebe:taskDefinition' is not supported by the development engine", a.Name.Local)
		}
	}
	if e.Task != nil || x.attribute("type") == "" {
		r.refuse(e.ID, "Must have exactly one 'zeebe:taskDefinition' extension element, with a type")
	}
	retries := x.attribute("retries")
	if retries == "" {
		retries = "3"
	}
	e.Task = &Task{Type: r.value(e.ID, x.attribute("type")), Retries: r.value(e.ID, retries), Headers: "{}"}
	if _, err := e.Task.Count(func(string) (feel.Raw, bool) { return "", false }); err != nil && e.Task.Retries.IsLiteral() {
		r.refuse(e.ID, "%v", err)
	}
}

func headers(extensions *node) string {
	all := map[string]string{}
	for _, h := range extensions.all(zeebeSpace, "taskHeaders") {
		for _, header := range h.all(zeebeSpace, "header") {
			all[header.attribute("key")] = header.attribute("value")
		}
	}
	text, _ := json.Marshal(all) // cannot fail for texts
	return string(text)
}

func (r *reader) timer(e *Element, d *node) {
	times := d.all(bpmnSpace, "timeDate", "timeDuration", "timeCycle")
	if len(times) != 1 || times[0].Local == "timeCycle" {
		r.refuse(e.ID, "A timer must have exactly one of timeDate and timeDuration; timeCycle is not supported by the development engine here")
		return
	}
	e.Timer = &Timer{times[0].Local == "timeDate", r.value(e.ID, strings.TrimSpace(times[0].text.String()))}
	if v := &e.Timer.Value; v.IsLiteral() {
		if _, err := e.Timer.Due(v.literal, time.Unix(0, 0)); err != nil {
			r.refuse(e.ID, "Invalid timer: %v", err)
		}
	}
}

func (r *reader) message(e *Element, d *node) {
	n, there := r.messages[d.attribute("messageRef")]
	if !there || n.attribute("name") == "" {
		r.refuse(e.ID, "Must reference a message that has a name")
		return
	}
	e.Message = &Message{Name: r.value(e.ID, n.attribute("name"))}
	for _, x := range n.all(bpmnSpace, "extensionElements") {
		for _, s := range x.all(zeebeSpace, "subscription") {
			e.Message.Key = r.value(e.ID, s.attribute("correlationKey"))
		}
	}
	if e.Message.Key == (Value{}) || e.Message.Key.IsLiteral() {
		r.refuse(n.attribute("id"), "Must have exactly one 'zeebe:subscription' extension element, whose correlationKey is an expression")
	}
}

func (r *reader) error(e *Element, d *node) {
	ref := d.attribute("errorRef")
	n, there := r.errors[ref]
	switch {
	case ref == "" && e.Kind == BoundaryEvent, there && n.attribute("errorCode") == "" && e.Kind == BoundaryEvent: // any code
	case !there || n.attribute("errorCode") == "":
		r.refuse(e.ID, "Must reference an error that has an errorCode")
	default:
		code := r.value(e.ID, n.attribute("errorCode"))
		if !code.IsLiteral() && e.Kind == BoundaryEvent {
			r.refuse(e.ID, "The errorCode of an error catch event must not be an expression")
		}
		e.Error = &code
	}
}

func (r *reader) flow(n *node, p *Process) {
	r.known(n, "conditionExpression")
	source, target := p.Elements[n.attribute("sourceRef")], p.Elements[n.attribute("targetRef")]
	id := n.attribute("id")
	if source == nil || target == nil {
		if r.unknown[n.attribute("sourceRef")] || r.unknown[n.attribute("targetRef")] {
			return
		}
		r.refuse(id, "Must have a sourceRef and a targetRef among the elements of its process")
		return
	}
	f := &Flow{ID: id, Target: target}
	for _, c := range n.all(bpmnSpace, "conditionExpression") {
		v := r.value(id, c.text.String())
		if v.IsLiteral() || source.Kind != ExclusiveGateway {
			r.refuse(id, "A condition must be an expression, and behind an exclusive gateway")
		}
		f.Condition = v.expression
	}
	source.Outgoing = append(source.Outgoing, f)
	target.incoming++
}

func (r *reader) defaultFlow(e *Element, id string) {
	if e == nil {
		return
	}
	for _, f := range e.Outgoing {
		if f.ID == id {
			e.Default = f
		}
	}
	if e.Default == nil || e.Default.Condition != nil || e.Kind != ExclusiveGateway {
		r.refuse(e.ID, "Default flow must start at an exclusive gateway and have no condition")
	}
}

// check checks an element against the others of its process.
func (r *reader) check(p *Process, e *Element) {
	switch e.Kind {
	case StartEvent:
		if p.Start != nil {
			r.refuse(p.ID, "Multiple none start events are not allowed")
		}
		p.Start = e
		if e.incoming > 0 || len(e.Outgoing) == 0 {
			r.refuse(e.ID, "Must have outgoing and no incoming sequence flows")
		}
	case EndEvent:
		if len(e.Outgoing) > 0 {
			r.refuse(e.ID, "End event must not have outgoing sequence flows")
		}
	case ExclusiveGateway:
		for _, f := range e.Outgoing {
			if f.Condition == nil && f != e.Default && len(e.Outgoing) > 1 {
				r.refuse(f.ID, "Must have a condition or be default flow")
			}
		}
	case EventBasedGateway:
		if len(e.Outgoing) < 2 {
			r.refuse(e.ID, "Event-based gateway must have at least 2 outgoing sequence flows")
		}
		for _, f := range e.Outgoing {
			if f.Target.Kind != CatchEvent || f.Target.incoming > 1 {
				r.refuse(e.ID, "Event-based gateway must be followed by catch events that have no other incoming sequence flow")
			}
		}
	case BoundaryEvent:
		r.attach(p, e)
	}
}

func (r *reader) attach(p *Process, e *Element) {
	to := p.Elements[e.attachedTo]
	if to == nil || to.Kind != ServiceTask || e.incoming > 0 {
		r.refuse(e.ID, "Must be attached to a service task and have no incoming sequence flow")
		return
	}
	if slices.ContainsFunc(to.Boundary, func(other *Element) bool {
		return (other.Error == nil) == (e.Error == nil) && (e.Error == nil || other.Error.String() == e.Error.String())
	}) {
		r.refuse(to.ID, "Multiple error catch events with the same errorCode are not supported on the same activity")
	}
	to.Boundary = append(to.Boundary, e)
}
