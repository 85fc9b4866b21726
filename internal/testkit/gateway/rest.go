package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// server is what serves a gateway: gRPC's, or restServer.
type server interface {
	Serve(l net.Listener) error
	Stop()
}

// restServer serves the REST API, by the calls that serve gRPC.
type restServer struct {
	http.Server
	gateway *Gateway
	running sync.WaitGroup
}

func newRESTServer(g *Gateway) *restServer {
	s := &restServer{gateway: g}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/topology", s.serve(s.topology))
	mux.HandleFunc("POST /v2/jobs/activation", s.serve(s.activate))
	mux.HandleFunc("POST /v2/jobs/{key}/{verb}", s.serve(s.answer))
	mux.HandleFunc("PUT /v2/element-instances/{key}/variables", s.serve(s.variables))
	s.Handler = mux
	s.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return peer.NewContext(ctx, &peer.Peer{Addr: c.RemoteAddr()})
	}
	return s
}

// Stop cuts all connections and returns when no call runs.
func (s *restServer) Stop() {
	_ = s.Close()
	s.running.Wait()
}

// restRequest has the fields of all requests.
type restRequest struct {
	key, verb                string
	Type, Worker             string
	Timeout, RequestTimeout  int64
	MaxJobsToActivate        int32
	FetchVariable, TenantIDs []string
	WithLease                bool
	Variables                json.RawMessage
	Retries                  int32
	RetryBackOff             int64
	ErrorCode, ErrorMessage  string
	LeaseToken               string
}

type leaseKey struct{}

// LeaseVersion is that of a gateway with leases.
const LeaseVersion = "8.10.0"

// leaseIn returns the token that a call shows, or something where it wants one.
func leaseIn(ctx context.Context) string {
	lease, _ := ctx.Value(leaseKey{}).(string)
	return lease
}

// serve reads a request as gRPC's calls want it, and writes what a call returns: 204 for nil.
func (s *restServer) serve(do func(context.Context, *restRequest) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.running.Add(1)
		defer s.running.Done()
		in := &restRequest{key: r.PathValue("key"), verb: r.PathValue("verb")}
		body, err := io.ReadAll(r.Body)
		if err == nil && len(body) > 0 {
			err = json.Unmarshal(body, in)
		}
		if err != nil {
			writeProblem(w, http.StatusBadRequest, "Bad Request", "Failed to read request")
			return
		}
		ctx := metadata.NewIncomingContext(r.Context(), metadata.Pairs("authorization", r.Header.Get("Authorization")))
		ctx = context.WithValue(ctx, leaseKey{}, cmp.Or(in.LeaseToken, map[bool]string{true: "wanted"}[in.WithLease]))
		out, err := do(ctx, in)
		switch {
		case r.Context().Err() != nil:
			panic(http.ErrAbortHandler)
		case err != nil:
			writeError(w, err)
		case out == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(out)
		}
	}
}

// restStatus tells codes as 8.6.0 does, as far as it has them.
var restStatus = map[codes.Code]struct {
	status int
	title  string
}{
	codes.NotFound:           {http.StatusNotFound, "NOT_FOUND"},
	codes.FailedPrecondition: {http.StatusConflict, "INVALID_STATE"},
	codes.InvalidArgument:    {http.StatusBadRequest, "INVALID_ARGUMENT"},
	codes.ResourceExhausted:  {http.StatusServiceUnavailable, "RESOURCE_EXHAUSTED"},
	codes.Unauthenticated:    {http.StatusUnauthorized, "Unauthorized"},
	codes.PermissionDenied:   {http.StatusForbidden, "FORBIDDEN"},
	codes.DeadlineExceeded:   {http.StatusGatewayTimeout, "DEADLINE_EXCEEDED"},
	codes.Unavailable:        {http.StatusServiceUnavailable, "io.camunda.zeebe.broker.client.api.PartitionNotFoundException"},
}

func writeError(w http.ResponseWriter, err error) {
	told, known := restStatus[status.Code(err)]
	if !known {
		told.status, told.title = http.StatusInternalServerError, "INTERNAL_ERROR"
	}
	writeProblem(w, told.status, told.title, status.Convert(err).Message())
}

func writeProblem(w http.ResponseWriter, code int, title, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "about:blank", "title": title, "status": code, "detail": detail})
}

func (s *restServer) topology(ctx context.Context, _ *restRequest) (any, error) {
	t, err := s.gateway.Topology(ctx, nil)
	return map[string]any{
		"gatewayVersion": t.GatewayVersion, "partitionsCount": 1, "replicationFactor": 1,
		"brokers": []any{map[string]any{"partitions": []any{map[string]any{"partitionId": 1, "role": "leader"}}}},
	}, err
}

// restStream takes a poll's messages.
type restStream struct {
	grpc.ServerStream
	ctx  context.Context
	jobs []*pb.ActivatedJob
}

func (s *restStream) Context() context.Context { return s.ctx }

func (s *restStream) Send(r *pb.ActivateJobsResponse) error {
	s.jobs = append(s.jobs, r.Jobs...)
	return nil
}

func (s *restServer) activate(ctx context.Context, in *restRequest) (any, error) {
	stream := &restStream{ctx: ctx}
	err := s.gateway.ActivateJobs(&pb.ActivateJobsRequest{
		Type: in.Type, Worker: in.Worker, Timeout: in.Timeout, MaxJobsToActivate: in.MaxJobsToActivate,
		FetchVariable: in.FetchVariable, RequestTimeout: in.RequestTimeout, TenantIds: in.TenantIDs,
	}, stream)
	jobs := make([]any, len(stream.jobs))
	for i, j := range stream.jobs {
		jobs[i] = s.gateway.restJob(j)
	}
	return map[string]any{"jobs": jobs}, err
}

// restJob is a job as the version tells it: keys are numbers in 8.6, and text later.
func (g *Gateway) restJob(j *pb.ActivatedJob) any {
	told := map[string]any{
		"type": j.Type, "tenantId": j.TenantId, "retries": j.Retries, "worker": j.Worker, "deadline": j.Deadline,
		"customHeaders": json.RawMessage(j.CustomHeaders), "variables": json.RawMessage(j.Variables), "unknown": []int{1},
	}
	if !strings.HasPrefix(g.version(), "8.6") {
		told["jobKey"], told["leaseToken"] = strconv.FormatInt(j.Key, 10), nil
		told["processInstanceKey"] = strconv.FormatInt(j.ProcessInstanceKey, 10)
		told["elementInstanceKey"] = strconv.FormatInt(j.ElementInstanceKey, 10)
		if lease := g.leaseOf(j.Key); lease != "" {
			told["leaseToken"] = lease
		}
		return told
	}
	told["key"], told["processInstanceKey"], told["elementInstanceKey"] = j.Key, j.ProcessInstanceKey, j.ElementInstanceKey
	return told
}

func (g *Gateway) version() string {
	if g.options.REST {
		return cmp.Or(g.options.Version, "8.6.0")
	}
	return cmp.Or(g.options.Version, Version)
}

func (g *Gateway) leaseOf(key int64) (lease string) {
	g.change(func() { lease = g.jobs[key].lease })
	return lease
}

func (in *restRequest) number() int64 {
	n, _ := strconv.ParseInt(in.key, 10, 64) // 0 is nobody's
	return n
}

func (s *restServer) answer(ctx context.Context, in *restRequest) (_ any, err error) {
	switch key := in.number(); in.verb {
	case "completion":
		_, err = s.gateway.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: key, Variables: string(in.Variables)})
	case "failure":
		_, err = s.gateway.FailJob(ctx, &pb.FailJobRequest{JobKey: key, Retries: in.Retries, RetryBackOff: in.RetryBackOff,
			ErrorMessage: in.ErrorMessage})
	default:
		_, err = s.gateway.ThrowError(ctx, &pb.ThrowErrorRequest{JobKey: key, ErrorCode: in.ErrorCode,
			ErrorMessage: in.ErrorMessage, Variables: string(in.Variables)})
	}
	return nil, err
}

func (s *restServer) variables(ctx context.Context, in *restRequest) (any, error) {
	_, err := s.gateway.SetVariables(ctx,
		&pb.SetVariablesRequest{ElementInstanceKey: in.number(), Variables: string(in.Variables)})
	return nil, err
}
