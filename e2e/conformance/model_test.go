package conformance_test

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
)

// process is a process of a model. Its parts are added by functions. Its events "start" and "end" are added where flows
// name them and no part does.
type process struct {
	id    string
	nodes []*node
	flows []flow
	top   string // what stands beside the process: errors and messages
}

type node struct {
	tag, id, attributes string
	extensions          string // inside extensionElements
	mappings            string // inside ioMapping
	headers             string // inside taskHeaders
	content             string // after the flows
}

type flow struct{ from, to, condition string }

// part adds to a process, option to a node.
type (
	part   func(*process)
	option func(*node)
)

// element is one of any kind.
func element(tag, id string, options ...option) part {
	return func(p *process) {
		n := &node{tag: tag, id: id}
		for _, o := range options {
			o(n)
		}
		p.nodes = append(p.nodes, n)
	}
}

// task is a service task whose jobs have the process's id and its own as their type.
func task(id string, options ...option) part {
	return func(p *process) { typedTask(id, p.id+"-"+id, "", options...)(p) }
}

// typedTask is a service task with that type and further attributes of its definition.
func typedTask(id, jobType, attributes string, options ...option) part {
	return element("serviceTask", id, append(options, func(n *node) {
		n.extensions += fmt.Sprintf(`<zeebe:taskDefinition type=%s %s/>`, quoted(jobType), attributes)
	})...)
}

// exclusive is an exclusive gateway; the default flow leads to that element, if any.
func exclusive(id, otherwise string) part {
	return element("exclusiveGateway", id, func(n *node) {
		if otherwise != "" {
			n.attributes = ` default=` + quoted(id+"_"+otherwise)
		}
	})
}

// timer is an intermediate catch event: kind is timeDate or timeDuration.
func timer(id, kind, value string, options ...option) part {
	return element("intermediateCatchEvent", id, append(options, func(n *node) {
		n.content = fmt.Sprintf("<bpmn:timerEventDefinition><bpmn:%s>%s</bpmn:%s></bpmn:timerEventDefinition>",
			kind, escaped(value), kind)
	})...)
}

// message is an intermediate catch event of a message whose name is the process's id and its own.
func message(id, key string, options ...option) part {
	return func(p *process) {
		name := p.id + "-" + id
		p.top += fmt.Sprintf(`<bpmn:message id="m_%s" name="%s"><bpmn:extensionElements>`+
			`<zeebe:subscription correlationKey=%s/></bpmn:extensionElements></bpmn:message>`, name, name, quoted(key))
		element("intermediateCatchEvent", id, append(options, func(n *node) {
			n.content = fmt.Sprintf(`<bpmn:messageEventDefinition messageRef="m_%s"/>`, name)
		})...)(p)
	}
}

// boundary is an error event at a task; without a code it catches all.
func boundary(id, at, code string, options ...option) part {
	return func(p *process) {
		element("boundaryEvent", id, append(options, func(n *node) {
			n.attributes = ` attachedToRef=` + quoted(at)
			n.content = p.errorDefinition(id, code)
		})...)(p)
	}
}

// errorEnd is an end event that throws an error.
func errorEnd(id, code string) part {
	return func(p *process) {
		element("endEvent", id, func(n *node) { n.content = p.errorDefinition(id, code) })(p)
	}
}

func (p *process) errorDefinition(id, code string) string {
	if code == "" {
		return `<bpmn:errorEventDefinition/>`
	}
	p.top += fmt.Sprintf(`<bpmn:error id="e_%s_%s" name=%s errorCode=%s/>`, p.id, id, quoted(code), quoted(code))
	return fmt.Sprintf(`<bpmn:errorEventDefinition errorRef="e_%s_%s"/>`, p.id, id)
}

// chain connects elements one after the other.
func chain(ids ...string) part {
	return func(p *process) {
		for i := range ids[1:] {
			when(ids[i], ids[i+1], "")(p)
		}
	}
}

// when connects two elements by a condition, which may be empty.
func when(from, to, condition string) part {
	return func(p *process) { p.flows = append(p.flows, flow{from, to, condition}) }
}

func input(source, target string) option { return mapping("input", source, target) }

func output(source, target string) option { return mapping("output", source, target) }

func mapping(tag, source, target string) option {
	return func(n *node) {
		n.mappings += fmt.Sprintf(`<zeebe:%s source=%s target=%s/>`, tag, quoted(source), quoted(target))
	}
}

func header(key, value string) option {
	return func(n *node) { n.headers += fmt.Sprintf(`<zeebe:header key=%s value=%s/>`, quoted(key), quoted(value)) }
}

func escaped(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a builder takes everything
	return out.String()
}

func quoted(text string) string { return `"` + escaped(text) + `"` }

// newProcess returns a process of those parts.
func newProcess(id string, parts ...part) *process {
	p := &process{id: id}
	for _, add := range parts {
		add(p)
	}
	known := make(map[string]bool)
	for _, n := range p.nodes {
		known[n.id] = true
	}
	for _, f := range p.flows {
		for _, event := range []string{"start", "end"} {
			if (f.from == event || f.to == event) && !known[event] {
				known[event] = true
				element(event+"Event", event)(p)
			}
		}
	}
	return p
}

// file is a model of those processes.
func file(name string, processes ...*process) *pb.Resource {
	var out strings.Builder
	out.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<bpmn:definitions xmlns:bpmn="http://www.omg.org/spec/BPMN/20100524/MODEL"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0"
 id="definitions" targetNamespace="urn:retry-worker:conformance">`)
	for _, p := range processes {
		fmt.Fprintf(&out, "\n<bpmn:process id=%s isExecutable=\"true\">", quoted(p.id))
		for _, n := range p.nodes {
			out.WriteString(p.xml(n))
		}
		for _, f := range p.flows {
			fmt.Fprintf(&out, "\n<bpmn:sequenceFlow id=%s sourceRef=%s targetRef=%s>",
				quoted(f.from+"_"+f.to), quoted(f.from), quoted(f.to))
			if f.condition != "" {
				fmt.Fprintf(&out, `<bpmn:conditionExpression xsi:type="bpmn:tFormalExpression">%s</bpmn:conditionExpression>`,
					escaped(f.condition))
			}
			out.WriteString("</bpmn:sequenceFlow>")
		}
		out.WriteString("\n</bpmn:process>\n" + p.top)
	}
	out.WriteString("\n</bpmn:definitions>\n")
	return &pb.Resource{Name: name, Content: []byte(out.String())}
}

func (p *process) xml(n *node) string {
	extensions := n.extensions
	if n.headers != "" {
		extensions += "<zeebe:taskHeaders>" + n.headers + "</zeebe:taskHeaders>"
	}
	if n.mappings != "" {
		extensions += "<zeebe:ioMapping>" + n.mappings + "</zeebe:ioMapping>"
	}
	out := fmt.Sprintf("\n<bpmn:%s id=%s%s>", n.tag, quoted(n.id), n.attributes)
	if extensions != "" {
		out += "<bpmn:extensionElements>" + extensions + "</bpmn:extensionElements>"
	}
	for _, tag := range []string{"incoming", "outgoing"} {
		for _, f := range p.flows {
			if tag == "incoming" && f.to == n.id || tag == "outgoing" && f.from == n.id {
				out += fmt.Sprintf("<bpmn:%s>%s</bpmn:%s>", tag, escaped(f.from+"_"+f.to), tag)
			}
		}
	}
	return out + n.content + "</bpmn:" + n.tag + ">"
}
