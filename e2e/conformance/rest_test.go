package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
)

// rest is the door of a row that is about the REST API.
func (p *play) rest() *restDoor { return p.door.(*restDoor) }

// answered fails the row where an error is not that problem of the REST API; an empty title is any.
func (p *play) answered(what string, err error, status int, title string) {
	p.Helper()
	told, ok := errors.AsType[*problem](err)
	if !ok || told.code != status || title != "" && told.Title != title {
		p.Errorf("%s: %v, want %d %s", what, err, status, title)
	}
}

// members of a JSON object.
func (p *play) members(text string) (members map[string]json.RawMessage) {
	p.Helper()
	p.must(json.Unmarshal([]byte(text), &members))
	return members
}

// hasKeys posts a request and fails the row where members of the answer are no keys in the form of the version.
func (p *play) hasKeys(path string, body object, inside string, names ...string) {
	p.Helper()
	var answer json.RawMessage
	p.must(p.rest().post(body, &answer, "%s", path))
	if inside != "" {
		var list []json.RawMessage
		p.must(json.Unmarshal(p.members(string(answer))[inside], &list))
		p.same("how many "+inside, len(list), 1)
		answer = list[0]
	}
	for _, name := range names {
		got := string(p.members(string(answer))[name])
		digits := strings.Trim(got, `"`)
		if want := map[doors]string{rest86: digits, rest88: `"` + digits + `"`}[p.kind()]; digits == "" || got != want {
			p.Errorf("%s: %s is %s, want a key as %s writes it", path, name, got, p.name())
		}
	}
}

var restRows = []row{
	{"REST: errors are problem+json: 404 NOT_FOUND, 409 INVALID_STATE, 400", seen, onREST, 0, func(p *play) {
		p.oneTask()
		p.start("")
		job := p.job("a")
		p.done(job, "")
		p.answered("completed twice", p.complete(job.GetKey(), ""), http.StatusNotFound, "NOT_FOUND")
		p.start("")
		job = p.job("a")
		p.must(p.fails(job, 0, 0))
		p.answered("in the wrong state", p.complete(job.GetKey(), ""), http.StatusConflict, "INVALID_STATE")
		p.answered("bad input", p.rest().post(object{"type": 7}, &object{}, "jobs/activation"), http.StatusBadRequest, "")
		p.answered("a key that is none", p.rest().post(object{}, nil, "jobs/seven/completion"), http.StatusBadRequest, "")
	}},
	{"REST: an unknown incident's key: 503 PartitionNotFoundException", seen, onREST, 0, func(p *play) {
		err := p.resolve(1)
		p.answered("resolved", err, http.StatusServiceUnavailable, "")
		if !strings.Contains(err.Error(), "PartitionNotFoundException") {
			p.Errorf("resolved: %v, want a title that is not backpressure's", err)
		}
	}},
	{"REST: setting no variables: 400", seen, rest86, 0, func(p *play) {
		p.oneTask()
		p.answered("no variables", p.setVariables(p.start(""), "{}", true), http.StatusBadRequest, "")
	}},
	{"REST: a modification of nothing: 204 while the instance runs, then 404", seen, onREST, 0, func(p *play) {
		p.oneTask()
		instance := p.start("")
		p.must(p.rest().post(object{}, nil, "process-instances/%d/modification", instance))
		p.done(p.job("a"), "")
		p.ended(instance)
		p.answered("once it has ended", p.rest().post(object{}, nil, "process-instances/%d/modification", instance),
			http.StatusNotFound, "NOT_FOUND")
	}},
	{"REST: keys are numbers in 8.6, later text; a job's is key, later jobKey", seen, onREST, 0, func(p *play) {
		p.oneTask()
		p.hasKeys("process-instances", object{"processDefinitionId": p.id}, "", "processInstanceKey", "processDefinitionKey")
		p.hasKeys("jobs/activation", object{
			"type": p.id + "-a", "timeout": 60_000, "maxJobsToActivate": 1, "requestTimeout": longPoll.Milliseconds(),
		}, "jobs", map[doors]string{rest86: "key", rest88: "jobKey"}[p.kind()],
			"processInstanceKey", "elementInstanceKey", "processDefinitionKey")
		p.hasKeys("messages/publication", object{"name": p.id, "correlationKey": "1"}, "", "messageKey")
	}},
	{"REST: requests have closed schemas: an unknown member is 400", described, onREST, 0, func(p *play) {
		p.oneTask()
		instance := p.start("")
		job := p.job("a")
		for path, body := range map[string]object{
			"POST process-instances": {"processDefinitionId": p.id},
			fmt.Sprintf("POST process-instances/%d/modification", instance): {},
			"POST jobs/activation":                                      {"type": "x", "timeout": 1000, "maxJobsToActivate": 1},
			fmt.Sprintf("POST jobs/%d/completion", job.GetKey()):        {},
			fmt.Sprintf("POST jobs/%d/failure", job.GetKey()):           {"retries": 1},
			fmt.Sprintf("POST jobs/%d/error", job.GetKey()):             {"errorCode": "E"},
			fmt.Sprintf("PATCH jobs/%d", job.GetKey()):                  {"changeset": object{"timeout": 1000}},
			fmt.Sprintf("PUT element-instances/%d/variables", instance): {"variables": object{"a": 1}},
			"POST messages/publication":                                 {"name": "x", "correlationKey": "1"},
		} {
			body["unknownMember"] = 1
			method, path, _ := strings.Cut(path, " ")
			p.answered(path, p.rest().call(method, path, body, &object{}), http.StatusBadRequest, "")
		}
		p.noJob("a")
		p.done(job, "")
		p.ended(instance)
	}},
	{"REST: a member that is missed: 400", described, onREST, 0, func(p *play) {
		p.oneTask()
		p.start("")
		for path, body := range map[string]object{
			"process-instances": {}, "messages/publication": {"correlationKey": "1"},
			"jobs/activation": {"worker": "w", "maxJobsToActivate": 1}, fmt.Sprintf("jobs/%d/error", p.job("a").GetKey()): {},
		} {
			p.answered(path, p.rest().post(body, &object{}, "%s", path), http.StatusBadRequest, "")
		}
	}},
	{"REST: the clock is pinned and set back: 204", seen, onREST, clock, func(p *play) {
		p.timed("timeDuration", "PT1H")
		p.start("")
		p.noJob("a")
		then := p.later(0).Add(2 * time.Hour).UnixMilli()
		p.must(p.rest().call(http.MethodPut, "clock", object{"timestamp": then}, nil))
		p.job("a")
		p.must(p.rest().post(nil, nil, "clock/reset"))
	}},
	{"REST: the topology says the version, and who leads", described, onREST, 0, func(p *play) {
		var topology struct {
			GatewayVersion  string
			PartitionsCount int
			Brokers         []struct {
				Partitions []struct{ Role, Health string }
			}
		}
		p.must(p.rest().call(http.MethodGet, "topology", nil, &topology))
		leaders := 0
		for _, broker := range topology.Brokers {
			for _, partition := range broker.Partitions {
				if partition.Role == "leader" && partition.Health == "healthy" {
					leaders++
				}
			}
		}
		if leaders == 0 || leaders != topology.PartitionsCount ||
			p.kind() == rest86 != strings.HasPrefix(topology.GatewayVersion, "8.6.") {
			p.Errorf("the topology is %+v through %s", topology, p.name())
		}
	}},
	{"counters tell elements and jobs by what became of them", seen, onGRPC, control, func(p *play) {
		p.caught()
		p.start("")
		p.must(p.throw(p.job("a").GetKey(), "E", ""))
		p.done(p.job("b"), "")
		counters := p.counters()
		for _, sample := range []string{
			`zeebe_element_instance_events_total action="completed" type="SERVICE_TASK"`,
			`zeebe_element_instance_events_total action="terminated" type="SERVICE_TASK"`,
			`zeebe_element_instance_events_total action="activated" type="PROCESS"`,
			`zeebe_job_events_total action="created" type="ID-a"`, `zeebe_job_events_total action="activated" type="ID-a"`,
			`zeebe_job_events_total action="error thrown" type="ID-a"`, `zeebe_job_events_total action="completed" type="ID-b"`,
			`zeebe_pending_incidents_total`,
		} {
			name, labels, _ := strings.Cut(strings.ReplaceAll(sample, "ID", p.id), " ")
			action, kind, _ := strings.Cut(labels, " type")
			found := false
			for line := range strings.Lines(counters) {
				found = found || strings.HasPrefix(line, name) && strings.Contains(line, action) && strings.Contains(line, kind)
			}
			if !found {
				p.Errorf("no counter %s", sample)
			}
		}
	}},
}

// counters of the engine's actuator, as Prometheus reads them.
func (p *play) counters() string {
	p.Helper()
	request, err := http.NewRequestWithContext(p.ctx, http.MethodGet, p.engine.control+"/actuator/prometheus", nil)
	p.must(err)
	response, err := http.DefaultClient.Do(request)
	p.must(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	p.must(err)
	return string(text)
}

// flood sends many messages at once until one is refused, and returns its error.
func (p *play) flood(d door) error {
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	d = d.during(ctx)
	const senders = 32
	refused := make(chan error, senders)
	for range senders {
		go func() {
			var err error
			for err == nil {
				_, err = d.publish(&pb.PublishMessageRequest{Name: p.id, CorrelationKey: "1"})
			}
			refused <- err
		}()
	}
	return <-refused
}

var ownRows = []row{
	{"a stream of jobs, and what else it does not speak, is UNIMPLEMENTED", own, onGRPC, 0, func(p *play) {
		client := p.door.(*grpcDoor).client
		request := &pb.StreamActivatedJobsRequest{Type: p.id, Worker: "w", Timeout: 1000}
		stream, err := client.StreamActivatedJobs(p.ctx, request)
		if err == nil {
			_, err = stream.Recv()
		}
		p.refused("StreamActivatedJobs", err, codes.Unimplemented)
		_, err = client.BroadcastSignal(p.ctx, &pb.BroadcastSignalRequest{SignalName: "s"})
		p.refused("BroadcastSignal", err, codes.Unimplemented)
	}},
	{"with result, without a request: INVALID_ARGUMENT", own, onGRPC, 0, func(p *play) {
		_, err := p.result(&pb.CreateProcessInstanceWithResultRequest{})
		p.refused("the call", err, codes.InvalidArgument)
	}},
	{"a variable that doubles in a loop is an incident", own, onGRPC, records, func(p *play) {
		p.process(element("intermediateThrowEvent", "t", output("=s + s", "s")), chain("start", "t", "t"))
		p.incident(p.start(`{"s":"x"}`), 0, "IO_MAPPING_ERROR", "t")
	}},
	{"above --max-in-flight RESOURCE_EXHAUSTED, over REST 503 of that title", own, onGRPC, 0, func(p *play) {
		crowded := startOwn(p.T, "8.8", onGRPC|rest88, "--max-in-flight", "1")
		p.refused("gRPC", p.flood(crowded.doors[0]), codes.ResourceExhausted)
		p.answered("REST", p.flood(crowded.doors[1]), http.StatusServiceUnavailable, "RESOURCE_EXHAUSTED")
	}},
	{"with --tenants each has processes and jobs of its own", own, onGRPC, 0, func(p *play) {
		p.door = startOwn(p.T, "8.8", onGRPC, "--tenants", "a,b").doors[0].during(p.ctx)
		for _, tenant := range []string{"a", "b"} {
			_, err := p.deploy(tenant, file("model.bpmn", newProcess(p.id, task("a"), chain("start", "a", "end"))))
			p.must(err)
			r := p.request("")
			r.TenantId = tenant
			_, err = p.create(r)
			p.must(err)
		}
		_, err := p.create(p.request(""))
		p.refused("a process of nobody's", err, codes.InvalidArgument)
		r := p.poll("a", longPoll, held)
		r.MaxJobsToActivate, r.TenantIds = 10, []string{"b"}
		p.same("tenant", p.only(p.activate(r)).GetTenantId(), "b")
		again := p.request("")
		again.TenantId = "b"
		_, err = p.create(again)
		p.must(err)
		r.MaxJobsToActivate, r.TenantIds = 1, []string{"a", "b"} // of all tenants together
		p.same("tenant", p.only(p.activate(r)).GetTenantId(), "a")
	}},
}
