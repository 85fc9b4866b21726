package gatewaytest_test

import (
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"

	"retry-worker/internal/gatewaytest"
)

const model = `<?xml version="1.0"?><definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">
<process id="SUB_06" isExecutable="true"/><process id="NOTE"/></definitions>`

func TestDeployAndCreate(t *testing.T) {
	o := gatewaytest.Options{}
	o.Jobs = func(i gatewaytest.Instance) []gatewaytest.Job { return []gatewaytest.Job{{Type: "work"}} }
	_, c := start(t, o)
	ctx := deadline(t)
	deploy := func(name, content string) (*pb.DeployResourceResponse, error) {
		return c.DeployResource(ctx, &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: name, Content: []byte(content)}}})
	}
	for name, content := range map[string]string{"a.bpmn": "<definitions", "b.bpmn": "<definitions/>", "c.dmn": model} {
		_, err := deploy(name, content)
		wantCode(t, name, err, codes.InvalidArgument)
	}
	create := &pb.CreateProcessInstanceRequest{BpmnProcessId: "SUB_06", Version: -1, Variables: `{"claimId":"CLM-T-9"}`}
	_, err := c.CreateProcessInstance(ctx, create)
	wantCode(t, "not deployed", err, codes.NotFound)
	for _, step := range []struct {
		content string
		version int32
	}{{model, 1}, {model, 1}, {model + " ", 2}} {
		out, err := deploy("sub.bpmn", step.content)
		if err != nil || len(out.Deployments) != 1 || out.Deployments[0].GetProcess().Version != step.version {
			t.Fatalf("deployed %v with %v, want one process of version %d", out, err, step.version)
		}
	}
	out, err := c.CreateProcessInstance(ctx, create)
	if err != nil || out.Version != 2 || out.BpmnProcessId != "SUB_06" {
		t.Fatalf("created %v with %v, want version 2", out, err)
	}
	j := c.take(1)[0]
	if j.ProcessInstanceKey != out.ProcessInstanceKey || j.Variables != `{"claimId":"CLM-T-9"}` || j.ProcessDefinitionKey != out.ProcessDefinitionKey {
		t.Errorf("the instance's job is %v", j)
	}
}

func TestCreateByKeyAndByVersion(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	ctx := deadline(t)
	var versions []gatewaytest.Process
	for _, content := range []string{model, model + " "} {
		deployed, err := g.Deploy(ctx, "", []gatewaytest.Resource{{Name: "sub.bpmn", Content: []byte(content)}})
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, deployed...)
	}
	for name, tt := range map[string]*struct {
		request pb.CreateProcessInstanceRequest
		code    codes.Code
		version int32
	}{
		"key of version 1": {pb.CreateProcessInstanceRequest{ProcessDefinitionKey: versions[0].Key}, codes.OK, 1},
		"version 1":        {pb.CreateProcessInstanceRequest{BpmnProcessId: "SUB_06", Version: 1}, codes.OK, 1},
		"latest":           {pb.CreateProcessInstanceRequest{BpmnProcessId: "SUB_06", Version: -1}, codes.OK, 2},
		"version 3":        {pb.CreateProcessInstanceRequest{BpmnProcessId: "SUB_06", Version: 3}, codes.NotFound, 0},
		"unknown key":      {pb.CreateProcessInstanceRequest{ProcessDefinitionKey: 5}, codes.NotFound, 0},
		"no object":        {pb.CreateProcessInstanceRequest{BpmnProcessId: "SUB_06", Version: 1, Variables: "[]"}, codes.InvalidArgument, 0},
	} {
		out, err := c.CreateProcessInstance(ctx, &tt.request)
		if wantCode(t, name, err, tt.code); out.GetVersion() != tt.version {
			t.Errorf("%s: version %d, want %d", name, out.GetVersion(), tt.version)
		}
	}
}

// TestCreateAtAnElement: where a process is to begin at elements it has not, nothing begins.
func TestCreateAtAnElement(t *testing.T) {
	g, c := start(t, gatewaytest.Options{})
	ctx := deadline(t)
	const withTask = `<definitions><process id="P" isExecutable="true"><task id="there"/></process></definitions>`
	if _, err := g.Deploy(ctx, "", []gatewaytest.Resource{{Name: "p.bpmn", Content: []byte(withTask)}}); err != nil {
		t.Fatal(err)
	}
	for element, want := range map[string]codes.Code{"there": codes.OK, "elsewhere": codes.InvalidArgument} {
		_, err := c.CreateProcessInstance(ctx, &pb.CreateProcessInstanceRequest{
			BpmnProcessId: "P", Version: -1,
			StartInstructions: []*pb.ProcessInstanceCreationStartInstruction{{ElementId: element}},
		})
		wantCode(t, element, err, want)
	}
}
