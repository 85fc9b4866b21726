// Package engine_test holds the development engine, as a process, against what may happen to one: kills under load and a full
// disk. What it means by its protocol is e2e/conformance's.
package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/engine"
	"retry-worker/internal/testkit"
)

func TestMain(m *testing.M) { harness.Main(m) }

// client is a running engine with a connection to it.
type client struct {
	*engine.Engine
	pb.GatewayClient
	t *testing.T
}

func start(t *testing.T, flags ...string) *client {
	t.Helper()
	harness.SkipIfShort(t)
	e, err := engine.Start(t.Context(), flags...)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = e.Stop(context.Background()) })
	return &client{e, connect(t, e), t}
}

func connect(t *testing.T, e *engine.Engine) pb.GatewayClient {
	t.Helper()
	soon := backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1, MaxDelay: 5 * time.Millisecond} // an engine comes back at once
	connection, err := grpc.NewClient(e.GatewayAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon, MinConnectTimeout: time.Second}))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	return pb.NewGatewayClient(connection)
}

// deploy deploys a process of service tasks one after the other, whose job types are their ids.
func (c *client) deploy(process string, tasks ...string) {
	c.t.Helper()
	nodes, flows, last := `<startEvent id="start"/>`, "", "start"
	for _, id := range append(tasks, "end") {
		if id == "end" {
			nodes += `<endEvent id="end"/>`
		} else {
			nodes += fmt.Sprintf(`<serviceTask id="%[1]s"><extensionElements><z:taskDefinition type="%[1]s"/></extensionElements></serviceTask>`, id)
		}
		flows += fmt.Sprintf(`<sequenceFlow id="to_%[1]s" sourceRef="%[2]s" targetRef="%[1]s"/>`, id, last)
		last = id
	}
	content := fmt.Sprintf(`<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:z="http://camunda.org/schema/zeebe/1.0">
		<process id="%s" isExecutable="true">%s%s</process></definitions>`, process, nodes, flows)
	_, err := c.DeployResource(c.t.Context(), &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: process + ".bpmn", Content: []byte(content)}}})
	testkit.Must(c.t, err)
}
