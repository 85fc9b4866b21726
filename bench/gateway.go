package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// gateway is an engine that always has claims to decide on, until all jobs are handed out.
type gateway struct {
	pb.UnimplementedGatewayServer
	jobs      int64
	mix       mix
	latency   time.Duration // between a command's effect and its answer
	now       time.Time
	allServed chan struct{} // closed when all jobs are answered

	mu               sync.Mutex
	made, done       int64
	held             map[int64]bool
	maxHeld, refused int
	polled           bool
	firstAnswer      time.Time
}

// mix is how many of 100 jobs are of a kind; the others meet a transient error. Or all are those of a gate that is open.
type mix struct {
	unknown, permanent, exhausted int64
	gate, rest                    bool
}

func (m mix) jobType() string {
	if m.gate {
		return "submission-gate"
	}
	return "analyze-retry"
}

func (m mix) variables(n int64, now time.Time) string {
	if m.gate { // no destination may take more than 1,000 a second
		return fmt.Sprintf(`{"claimId":"CLM-BENCH-%d","operadora":"portal-%d"}`, n, n%100)
	}
	texts, retries := transientTexts, n%5
	switch place := n * 37 % 100; { // 37 has no factor in common with 100: the kinds are spread
	case place < m.unknown:
		texts = unknownTexts
	case place < m.unknown+m.permanent:
		texts = permanentTexts
	case place < m.unknown+m.permanent+m.exhausted:
		retries = 5
	}
	last := now.Add(-time.Duration(n%3600) * time.Second)
	return fmt.Sprintf(`{"claimId":"CLM-BENCH-%d","submissionError":%q,"retryCount":%d,"lastSubmissionTime":%q}`,
		n, texts[n/7%int64(len(texts))], retries, last.UTC().Format(time.RFC3339))
}

// serve listens until stop is called.
func (g *gateway) serve() (address string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen for the stub gateway: %w", err)
	}
	g.held, g.allServed, g.now = map[int64]bool{}, make(chan struct{}), time.Now()
	if g.mix.rest {
		server := &http.Server{Handler: g.rest(), ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(l) }() // ends with the server
		return "http://" + l.Addr().String(), func() { _ = server.Close() }, nil
	}
	server := grpc.NewServer()
	pb.RegisterGatewayServer(server, g)
	go func() { _ = server.Serve(l) }() // ends with the server
	return l.Addr().String(), server.Stop, nil
}

func (g *gateway) ActivateJobs(r *pb.ActivateJobsRequest, to pb.Gateway_ActivateJobsServer) error {
	if jobs := g.take(r); len(jobs) > 0 {
		return to.Send(&pb.ActivateJobsResponse{Jobs: jobs})
	}
	select {
	case <-to.Context().Done():
	case <-time.After(time.Duration(r.RequestTimeout) * time.Millisecond):
	}
	return nil
}

func (g *gateway) take(r *pb.ActivateJobsRequest) (jobs []*pb.ActivatedJob) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mix.gate && !g.polled { // until it knows the journal it holds all; those that are held are not what is measured
		g.polled = r.Type == g.mix.jobType()
		return nil
	}
	for r.Type == g.mix.jobType() && g.made < g.jobs && len(jobs) < int(r.MaxJobsToActivate) {
		g.made++
		g.held[g.made] = true
		jobs = append(jobs, &pb.ActivatedJob{
			Key: g.made, Type: r.Type, ProcessInstanceKey: g.made, ElementInstanceKey: g.made, BpmnProcessId: "SUB_06",
			ElementId: "task", Worker: r.Worker, Retries: 3, CustomHeaders: "{}", TenantId: "<default>",
			Deadline: g.now.Add(time.Hour).UnixMilli(), Variables: g.mix.variables(g.made, g.now),
		})
	}
	g.maxHeld = max(g.maxHeld, len(g.held))
	return jobs
}

// answer takes the answer to a job, once.
func (g *gateway) answer(key int64) error {
	g.mu.Lock()
	defer time.Sleep(g.latency)
	defer g.mu.Unlock()
	if !g.held[key] {
		g.refused++
		return status.Error(codes.NotFound, "no such job")
	}
	delete(g.held, key)
	if g.done++; g.done == 1 {
		g.firstAnswer = time.Now()
	}
	if g.done == g.jobs {
		close(g.allServed)
	}
	return nil
}

// answered is how many jobs were so far.
func (g *gateway) answered() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.done
}

func (g *gateway) CompleteJob(_ context.Context, r *pb.CompleteJobRequest) (*pb.CompleteJobResponse, error) {
	return &pb.CompleteJobResponse{}, g.answer(r.JobKey)
}

func (g *gateway) ThrowError(_ context.Context, r *pb.ThrowErrorRequest) (*pb.ThrowErrorResponse, error) {
	return &pb.ThrowErrorResponse{}, g.answer(r.JobKey)
}

func (g *gateway) SetVariables(context.Context, *pb.SetVariablesRequest) (*pb.SetVariablesResponse, error) {
	return &pb.SetVariablesResponse{}, nil
}

func (g *gateway) Topology(context.Context, *pb.TopologyRequest) (*pb.TopologyResponse, error) {
	leader := &pb.Partition{PartitionId: 1, Role: pb.Partition_LEADER, Health: pb.Partition_HEALTHY}
	return &pb.TopologyResponse{Brokers: []*pb.BrokerInfo{{Partitions: []*pb.Partition{leader}}}}, nil
}
