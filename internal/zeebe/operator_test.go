package zeebe_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
)

const model = `<?xml version="1.0"?><definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL">
<process id="SUB_06" isExecutable="true"><startEvent id="begin"/><sequenceFlow id="on" sourceRef="begin" targetRef="end"/><endEvent id="end"/></process></definitions>`

func TestTopology(t *testing.T) {
	g, c := connected(t, gateway.Options{})
	got, err := c.Topology(wait.Context(t))
	want := "gateway " + gateway.Version + ", brokers: 1, partitions: 1, with a leader: 1"
	if err != nil || got != want {
		t.Errorf("got %q with %v, want %q", got, err, want)
	}
	g.Inject(gateway.Fault{Method: gateway.Topology, Code: codes.PermissionDenied})
	_, err = c.Topology(wait.Context(t))
	wantRefusal(t, err, "ask for the topology: ", codes.PermissionDenied)
}

// wantRefusal fails unless err says what was being done and what the gateway answered.
func wantRefusal(t *testing.T, err error, doing string, code codes.Code) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), doing) || status.Code(err) != code {
		t.Errorf("got %v, want %q and %v", err, doing, code)
	}
}

// TestDeployAndStart: a model that is there already keeps its version; instances are of the newest.
func TestDeployAndStart(t *testing.T) {
	_, c := connected(t, gateway.Options{})
	for _, step := range []struct {
		content string
		version int32
	}{{model, 1}, {model, 1}, {model + " ", 2}} {
		all, err := c.Deploy(wait.Context(t), "sub.bpmn", []byte(step.content), "")
		if err != nil || len(all) != 1 || all[0].Process != "SUB_06" || all[0].Version != step.version || all[0].Key == 0 {
			t.Errorf("deployed %+v with %v, want version %d", all, err, step.version)
		}
	}
	one, err := c.Create(wait.Context(t), "SUB_06", `{"claimId":"CLM-T-1"}`)
	other, err2 := c.Create(wait.Context(t), "SUB_06", "{}")
	if err != nil || err2 != nil || one == 0 || one == other {
		t.Errorf("started %d and %d with %v, %v", one, other, err, err2)
	}
	_, err = c.Create(wait.Context(t), "MISSING", "{}")
	wantRefusal(t, err, "start an instance of MISSING: ", codes.NotFound)
	_, err = c.Deploy(wait.Context(t), "broken.bpmn", []byte("<definitions"), "")
	if err == nil || !strings.HasPrefix(err.Error(), "deploy broken.bpmn: the engine refuses the model: ") {
		t.Errorf("got %v", err)
	}
}
