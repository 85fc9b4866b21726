package engine

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/bpmn"
	"retry-worker/internal/testkit/wait"
)

// Deploy deploys the bundled models and those in files.
func Deploy(ctx context.Context, gateway pb.GatewayClient, files ...string) error {
	var resources []*pb.Resource
	for _, m := range bpmn.Models() {
		resources = append(resources, &pb.Resource{Name: m.Name, Content: m.Content})
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		resources = append(resources, &pb.Resource{Name: filepath.Base(file), Content: content})
	}
	_, err := gateway.DeployResource(ctx, &pb.DeployResourceRequest{Resources: resources})
	return err
}

// CreateInstance starts an instance and returns its key. It repeats the call while the engine is too busy.
func CreateInstance(ctx context.Context, gateway pb.GatewayClient, r *pb.CreateProcessInstanceRequest) (key int64, err error) {
	err = Patiently(func() error {
		created, err := gateway.CreateProcessInstance(ctx, r, grpc.WaitForReady(true))
		key = created.GetProcessInstanceKey()
		return err
	})
	return key, err
}

// Patiently repeats a call while the engine is too busy.
func Patiently(ask func() error) (err error) {
	for deadline := time.Now().Add(wait.Limit); ; {
		if err = ask(); status.Code(err) != codes.ResourceExhausted || time.Now().After(deadline) {
			return err
		}
	}
}
