package main

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"retry-worker/bpmn"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
)

func TestDeployJSON(t *testing.T) {
	g := gateway.New(t, gateway.Options{Tenants: []string{"clinic-a", "clinic-b"}})
	testkit.Environment(t, map[string]string{
		"ZEEBE_ADDRESS": g.Addr(), "ZEEBE_INSECURE_CONNECTION": "true", "RETRY_WORKER_TENANT_IDS": "clinic-a,clinic-b",
	})
	r := retryWorker("deploy", "-o", "json")
	if again := retryWorker("deploy", "-o", "json"); again != r {
		t.Errorf("what is there already does not keep its version: %+v", again)
	}
	var got []struct {
		Process, File, Tenant string
		Version               int
		Key                   int64
	}
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != exitDone || r.stderr != "" {
		t.Fatalf("got %+v (%v)", r, err)
	}
	models := bpmn.Models()
	if len(got) != 2*len(models) {
		t.Fatalf("%d deployments, want each of %d models for two tenants", len(got), len(models))
	}
	for i, d := range got {
		m, tenant := models[i%len(models)], []string{"clinic-a", "clinic-b"}[i/len(models)]
		if d.Process != m.ProcessID || d.File != m.Name || d.Tenant != tenant || d.Version != 1 || d.Key == 0 {
			t.Errorf("deployment %d: got %+v, want %s of %s for %s", i, d, m.ProcessID, m.Name, tenant)
		}
	}
}

func TestDeployRefused(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	testkit.Environment(t, map[string]string{"ZEEBE_ADDRESS": g.Addr(), "ZEEBE_INSECURE_CONNECTION": "true"})
	model := bpmn.Models()[0].Name
	refuses := "deploy " + model + ": the engine refuses the model"
	for said, line := range map[string]string{
		"the model is wrong:\nno start event": refuses + ": the model is wrong: no start event; correct it there, or deploy a model that this engine's version takes",
		"Command 'CREATE' rejected with code 'INVALID_ARGUMENT': Expected to deploy new resources, but encountered the following errors:\n" +
			"'" + model + "': - Element: Analyze > extensionElements > taskDefinition\n    - ERROR: Attribute 'type' must be present and not empty\n": refuses +
			" at Analyze > extensionElements > taskDefinition: Attribute 'type' must be present and not empty; correct it there, or deploy a model that this engine's version takes",
		"Expected to handle gRPC request DeployResource with tenant identifier 'x', but multi-tenancy is disabled": "deploy " + model +
			": rpc error: code = InvalidArgument desc = Expected to handle gRPC request DeployResource with tenant identifier 'x', but multi-tenancy is disabled" +
			"; `retry-worker check` says what is wrong with the connection",
	} {
		g.Inject(gateway.Fault{Method: gateway.DeployResource, Code: codes.InvalidArgument, Message: said, Times: 1})
		retryWorker("deploy").fails(t, exitFailed, line)
	}
}

func TestDeployWithNobodyThere(t *testing.T) {
	testkit.Environment(t, map[string]string{"ZEEBE_ADDRESS": testkit.Nowhere(t), "ZEEBE_INSECURE_CONNECTION": "true"})
	r := retryWorker("deploy")
	if r.code != exitFailed || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 ||
		!strings.HasSuffix(r.stderr, "connection refused\"; `retry-worker check` says what is wrong with the connection\n") {
		t.Errorf("got %+v, want one line with advice", r)
	}
}
