package engine_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/testkit"
)

// TestFullDisk has the engine's log take no byte more, in the middle of a line: nothing is acknowledged meanwhile, and what was
// before, and is after, outlives a kill.
func TestFullDisk(t *testing.T) {
	c := start(t)
	c.deploy("ONE", "one")
	ctx, enough := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	reading.Go(func() { c.follow(ctx, func(*event) {}) }) // sees a gap
	create := func() (int64, error) {
		r, err := c.CreateProcessInstance(t.Context(), &pb.CreateProcessInstanceRequest{BpmnProcessId: "ONE", Version: -1}, grpc.WaitForReady(true))
		return r.GetProcessInstanceKey(), err
	}
	acknowledged := map[int64]bool{}
	key, err := create()
	testkit.Must(t, err)
	acknowledged[key] = true
	log, err := os.Stat(filepath.Join(c.Data(), "engine.log"))
	testkit.Must(t, err)
	limit := func(size uint64) {
		testkit.Must(t, unix.Prlimit(c.PID(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: math.MaxUint64}, nil))
	}
	limit(uint64(log.Size()) + 100)
	for range 3 {
		if _, err = create(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "log cannot be written") {
			t.Errorf("with a full disk an instance is answered %v, expected RESOURCE_EXHAUSTED and why", err)
		}
	}
	limit(math.MaxUint64)
	key, err = create()
	testkit.Must(t, err)
	acknowledged[key] = true
	c.Kill()
	testkit.Must(t, c.Restart(t.Context()))
	key, err = create()
	testkit.Must(t, err)
	acknowledged[key] = true
	enough()
	reading.Wait()
	for key := range acknowledged {
		_, err := c.SetVariables(t.Context(), &pb.SetVariablesRequest{ElementInstanceKey: key, Variables: "{}", Local: true})
		if err != nil {
			t.Errorf("instance %d was acknowledged: %v", key, err)
		}
	}
}
