package conformance_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
)

var instanceRows = []row{
	{"CreateProcessInstance: an unknown process or version is NOT_FOUND", described, all, 0, func(p *play) {
		_, err := p.create(p.request(""))
		p.refused("an unknown process", err, codes.NotFound)
		p.oneTask()
		_, err = p.create(&pb.CreateProcessInstanceRequest{BpmnProcessId: p.id, Version: 7})
		p.refused("an unknown version", err, codes.NotFound)
	}},
	{"CreateProcessInstance says what it created", described, all, 0, func(p *play) {
		deployed := p.oneTask()
		got, err := p.create(p.request(""))
		p.must(err)
		p.same("the answer",
			[]any{got.GetBpmnProcessId(), got.GetVersion(), got.GetProcessDefinitionKey(), got.GetTenantId()},
			[]any{p.id, int32(1), deployed.GetProcessDefinitionKey(), "<default>"})
		p.same("the job's instance", p.job("a").GetProcessInstanceKey(), got.GetProcessInstanceKey())
	}},
	{"start instructions: begins before that element, with its input mappings", described, all, 0, func(p *play) {
		p.process(task("a"), task("b", input("=n + 1", "next")), chain("start", "a", "b", "end"))
		r := p.request(`{"n":1}`)
		r.StartInstructions = []*pb.ProcessInstanceCreationStartInstruction{{ElementId: "b"}}
		created, err := p.create(r)
		p.must(err)
		p.done(p.sees("b", `{"n":1,"next":2}`), "")
		p.noJob("a")
		p.ended(created.GetProcessInstanceKey())
	}},
	{"start instructions: an unknown element is INVALID_ARGUMENT", described, all, 0, func(p *play) {
		p.oneTask()
		r := p.request("")
		r.StartInstructions = []*pb.ProcessInstanceCreationStartInstruction{{ElementId: "a"}, {ElementId: "missing"}}
		_, err := p.create(r)
		p.refused("CreateProcessInstance", err, codes.InvalidArgument)
		p.noJob("a")
	}},
	{"with result: answered at the end with all variables, or those fetched", described, all, 0, func(p *play) {
		p.process(task("a", output("=answer", "answer")), chain("start", "a", "end"))
		for want, fetch := range map[string][]string{`{"n":1,"answer":42}`: nil, `{"answer":42}`: {"answer", "missing"}} {
			completed := make(chan error, 1)
			go func() {
				jobs, err := p.activate(p.poll("a", longPoll, held))
				if err == nil && len(jobs) == 1 {
					err = p.complete(jobs[0].GetKey(), `{"answer":42,"lost":1}`)
				}
				completed <- err
			}()
			p.sameJSON("the result", p.results(`{"n":1}`, fetch...), want)
			p.must(<-completed)
		}
	}},
	{"with result, not in time: DEADLINE_EXCEEDED, and the instance goes on", described, all, 0, func(p *play) {
		p.oneTask()
		_, err := p.result(&pb.CreateProcessInstanceWithResultRequest{Request: p.request(""), RequestTimeout: 100})
		p.refused("the call", err, codes.DeadlineExceeded)
		job := p.job("a")
		p.done(job, "")
		p.ended(job.GetProcessInstanceKey())
	}},
	{"touching an instance: OK while it runs, then NOT_FOUND", seen, all, 0, func(p *play) {
		p.oneTask()
		first, second := p.start(""), p.start("")
		p.running(first)
		p.running(second)
		p.must(p.cancel(second))
		job := p.job("a")
		p.same("the job that is left", job.GetProcessInstanceKey(), first)
		p.done(job, "")
		for _, instance := range []int64{first, second} {
			p.ended(instance)
			p.refused("cancelled again", p.cancel(instance), codes.NotFound)
		}
	}},
	{"none throw events map their outputs", described, all, 0, func(p *play) {
		p.process(element("intermediateThrowEvent", "t", output("=n + 1", "n"), output("=missing", "nothing")),
			chain("start", "t", "end"))
		p.sameJSON("the result", p.results(`{"n":1}`), `{"n":2,"nothing":null}`)
	}},
}

// refusal is how Zeebe refuses a model: the file, then the element, then the error.
var refusal = regexp.MustCompile(`Expected to deploy new resources, but encountered the following errors:\n` +
	`'([^']+)': - Element: ([^\n]+)\n\s+- ERROR: \S`)

// modelRefused deploys a model that must be refused in that form for that element.
func (p *play) modelRefused(what, element string, parts ...part) {
	p.Helper()
	_, err := p.deploy("", file("bad.bpmn", newProcess(p.id, parts...)))
	said := p.refused(what, err, codes.InvalidArgument)
	found := refusal.FindStringSubmatch(said)
	if found == nil || found[1] != "bad.bpmn" || !slices.Contains(strings.Split(found[2], " > "), element) {
		p.Errorf("%s: refused by %q, want file, element %s and error as Zeebe writes them", what, said, element)
	}
}

var modelRows = []row{
	{"deployed again unchanged: the same version and key; changed: the next", described, all, 0, func(p *play) {
		first := p.oneTask()
		p.same("the first", []any{first.GetBpmnProcessId(), first.GetVersion(), first.GetResourceName(), first.GetTenantId()},
			[]any{p.id, int32(1), "model.bpmn", "<default>"})
		again := p.oneTask()
		p.same("unchanged", []any{again.GetVersion(), again.GetProcessDefinitionKey()},
			[]any{int32(1), first.GetProcessDefinitionKey()})
		old := p.start("")
		changed := p.process(task("b"), chain("start", "b", "end"))
		if changed.GetVersion() != 2 || changed.GetProcessDefinitionKey() == first.GetProcessDefinitionKey() {
			p.Errorf("changed: version %d, key %d", changed.GetVersion(), changed.GetProcessDefinitionKey())
		}
		p.start("")
		p.same("the newest version's job", p.job("b").GetProcessDefinitionVersion(), int32(2))
		p.same("the old instance's job", p.job("a").GetProcessInstanceKey(), old)
		_, err := p.create(&pb.CreateProcessInstanceRequest{BpmnProcessId: p.id, Version: 1})
		p.must(err)
		p.same("the first version's job", p.job("a").GetProcessDefinitionVersion(), int32(1))
	}},
	{"several processes in a file, and several files in a deployment", described, all, 0, func(p *play) {
		var processes []*process
		for i := range 3 {
			processes = append(processes, newProcess(fmt.Sprintf("%s-%d", p.id, i), task("a"), chain("start", "a", "end")))
		}
		deployed, err := p.deploy("", file("two.bpmn", processes[:2]...), file("one.bpmn", processes[2]))
		p.must(err)
		files := map[string]string{}
		for _, d := range deployed {
			files[d.GetBpmnProcessId()] = d.GetResourceName()
		}
		p.same("files", files,
			map[string]string{processes[0].id: "two.bpmn", processes[1].id: "two.bpmn", processes[2].id: "one.bpmn"})
		for i, process := range processes {
			_, err := p.create(&pb.CreateProcessInstanceRequest{BpmnProcessId: process.id, Version: -1})
			p.must(err)
			p.same("process", p.job(fmt.Sprintf("%d-a", i)).GetBpmnProcessId(), process.id)
		}
	}},
	{"a deployment is taken whole or not at all: INVALID_ARGUMENT", described, all, 0, func(p *play) {
		good := file("good.bpmn", newProcess(p.id, chain("start", "end")))
		for what, files := range map[string][]*pb.Resource{
			"nothing":                 {},
			"broken XML":              {good, {Name: "bad.bpmn", Content: good.GetContent()[:300]}},
			"no XML":                  {good, {Name: "bad.bpmn", Content: []byte("hello")}},
			"an unknown kind of file": {good, {Name: "notes.txt", Content: []byte("hello")}},
		} {
			_, err := p.deploy("", files...)
			p.refused(what, err, codes.InvalidArgument)
		}
		_, err := p.create(p.request(""))
		p.refused("an instance of the good file's", err, codes.NotFound)
	}},
	{"what only people read is ignored: documentation, properties, notes, DI", described, all, 0, func(p *play) {
		model := file("model.bpmn", newProcess(p.id, task("a", func(n *node) {
			n.attributes = ` name="A task" zeebe:modelerTemplate="t" zeebe:modelerTemplateVersion="1"`
			n.extensions = `<zeebe:properties><zeebe:property name="n" value="v"/></zeebe:properties>`
		}), chain("start", "a", "end")))
		model.Content = []byte(strings.NewReplacer(
			`<bpmn:serviceTask`, `<bpmn:textAnnotation id="n"><bpmn:text>Text</bpmn:text></bpmn:textAnnotation>`+
				`<bpmn:association id="n_a" sourceRef="a" targetRef="n"/><bpmn:serviceTask`,
			`<bpmn:extensionElements>`, `<bpmn:documentation>Text</bpmn:documentation><bpmn:extensionElements>`,
			`</bpmn:definitions>`, `<di:BPMNDiagram xmlns:di="http://www.omg.org/spec/BPMN/20100524/DI"/></bpmn:definitions>`,
		).Replace(string(model.GetContent())))
		_, err := p.deploy("", model)
		p.must(err)
		p.start("")
		p.job("a")
	}},
	{"a model that is wrong is refused by file, element and error", described, all, 0, func(p *play) {
		p.modelRefused("a gateway's flow without a condition", "g_b", exclusive("g", ""), task("a"), task("b"),
			chain("start", "g"), when("g", "a", "=true"), chain("g", "b", "end"), chain("a", "end"))
		for what, condition := range map[string]string{"a condition without =": "n > 1", "one that is no FEEL": "=n > "} {
			p.modelRefused(what, "g_a", exclusive("g", "b"), task("a"), task("b"),
				chain("start", "g", "b", "end"), when("g", "a", condition), chain("a", "end"))
		}
		p.modelRefused("a task without a type", "a", element("serviceTask", "a"), chain("start", "a", "end"))
		events, hour := element("eventBasedGateway", "g"), timer("t", "timeDuration", "PT1H")
		p.modelRefused("an event-based gateway with one event", "g", events, hour, chain("start", "g", "t", "end"))
		p.modelRefused("an event-based gateway that leads to a task", "g", events, hour, task("a"),
			chain("start", "g", "t", "end"), chain("g", "a", "end"))
		p.modelRefused("a correlation key without =", "m_"+p.id+"-m", message("m", "key"), chain("start", "m", "end"))
		p.modelRefused("a duration that is none", "t", timer("t", "timeDuration", "1 hour"), chain("start", "t", "end"))
	}},
}
