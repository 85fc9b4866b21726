package zeebe

import (
	"context"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/testkit/wait"
)

// CreateInstance starts an instance and returns its key. A broker that is too busy to take it is asked again.
func CreateInstance(ctx context.Context, gateway pb.GatewayClient, r *pb.CreateProcessInstanceRequest) (key int64, err error) {
	err = Patiently(func() error {
		created, err := gateway.CreateProcessInstance(ctx, r, grpc.WaitForReady(true))
		key = created.GetProcessInstanceKey()
		return err
	})
	return key, err
}

// Patiently asks again as long as the broker is too busy.
func Patiently(ask func() error) (err error) {
	for deadline := time.Now().Add(wait.Limit); ; {
		if err = ask(); status.Code(err) != codes.ResourceExhausted || time.Now().After(deadline) {
			return err
		}
	}
}
