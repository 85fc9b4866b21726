package gateway

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"retry-worker/internal/clock"
	"retry-worker/internal/engine"
)

// around takes every call into the records, through the faults, and to its effect.
func (g *Gateway) around(ctx context.Context, asked any, effect func() error) error {
	var key int64
	a := &Answer{from: from(ctx)}
	switch in := asked.(type) {
	case *pb.ActivateJobsRequest:
		return g.poll(ctx, in, a.from, effect)
	case engine.Complete:
		key, a.Method, a.Variables = in.Key, CompleteJob, in.Variables
	case engine.Fail:
		key, a.Method, a.Variables, a.Retries, a.BackOff, a.Message = in.Key, FailJob, in.Variables, int(in.Retries), in.BackOff, in.Message
	case engine.Throw:
		key, a.Method, a.Variables, a.ErrorCode, a.Message = in.Key, ThrowError, in.Variables, in.Code, in.Message
	case engine.UpdateTimeout:
		key, a.Method = in.Key, UpdateJobTimeout
	case engine.SetVariables:
		key, a.Method, a.Variables = in.Key, SetVariables, in.Variables
	case engine.Deploy:
		a.Method = DeployResource
	case engine.Create:
		a.Method = CreateProcessInstance
	case nil:
		a.Method = Topology
	}
	return g.answer(ctx, key, a, effect)
}

// from returns the name of the connection that a call came by; empty if the test makes it itself.
func from(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}

// poll records a poll, and carries it out.
func (g *Gateway) poll(ctx context.Context, in *pb.ActivateJobsRequest, from string, effect func() error) error {
	p := &Poll{ActivateJobsRequest: in}
	g.change(func() {
		p.At = g.Now()
		g.polls = append(g.polls, p)
		g.workers[from] = in.Worker
	})
	defer g.change(func() { p.Ended = g.Now() })
	return g.call(ctx, Call{Method: ActivateJobs, Worker: in.Worker, from: from}, func() error {
		g.change(func() { g.counts.Waiting++ })
		defer g.change(func() { g.counts.Waiting-- })
		return effect()
	})
}

// answer records any call but a poll, for the job that has the key or whose element has it, and carries it out.
func (g *Gateway) answer(ctx context.Context, key int64, a *Answer, effect func() error) error {
	c := Call{Method: a.Method, from: a.from}
	var j *job
	g.change(func() {
		a.Worker = g.workers[a.from]
		if j = g.jobs[cmp.Or(g.elements[key], key)]; j == nil {
			return
		}
		// Before its first poll, a connection is taken for that of the worker that holds the job.
		if c.JobKey = j.Key; a.Worker == "" && a.from != "" && len(j.Activations) > 0 {
			a.Worker = j.Activations[len(j.Activations)-1].Worker
		}
	})
	c.Worker = a.Worker
	if j == nil {
		return g.call(ctx, c, effect)
	}
	note := func(err error) {
		a.Code = status.Code(err)
		j.answers = append(j.answers, a)
	}
	err := g.call(ctx, c, func() error {
		g.commands.Lock() // so that the job's changes are this command's
		defer g.commands.Unlock()
		a.At, a.Reached = g.Now(), true
		err := effect()
		g.change(func() {
			a.Settled = err == nil && c.Answers() && j.State.Settled()
			note(err)
		})
		return err
	})
	g.change(func() {
		if !a.Reached {
			a.At = g.Now()
			note(err)
		}
	})
	return err
}

// CompleteJob completes a job as another worker would.
func (g *Gateway) CompleteJob(ctx context.Context, in *pb.CompleteJobRequest) (*pb.CompleteJobResponse, error) {
	command := engine.Complete{Key: in.JobKey, Variables: in.Variables}
	return &pb.CompleteJobResponse{}, g.around(ctx, command, func() error {
		_, err := g.engine.Do(ctx, command)
		return err
	})
}

// call takes a call through the faults to its effect, and returns what the caller gets.
func (g *Gateway) call(ctx context.Context, c Call, effect func() error) (err error) {
	defer func() {
		g.change(func() { g.calls[outcome{c.Method, status.Code(err)}]++ })
	}()
	md, _ := metadata.FromIncomingContext(ctx)
	c.token = strings.TrimPrefix(strings.Join(md.Get("authorization"), ""), "Bearer ")
	delay, last := g.plan(c)
	if delay > 0 {
		clock.Machine{}.Rest(ctx, delay)
		if ctx.Err() != nil {
			return status.FromContextError(ctx.Err()).Err()
		}
	}
	if last == nil || last.DropAck || last.CutStream {
		err = effect()
	}
	switch {
	case last == nil:
		return err
	case last.CutStream && err == nil:
		if s, is := ctx.Value(streamKey{}).(*stream); is {
			s.cut = last
			return nil
		}
	case last.Hang:
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	return last.err()
}

type streamKey struct{}

// stream is the answer to a gRPC poll.
type stream struct {
	grpc.ServerStream
	perMessage int
	cut        *Fault // CutStream; nil: none
	err        error  // the poll's end
}

// intercept is gRPC's interceptor of polls.
func (g *Gateway) intercept(server any, to grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	s := &stream{ServerStream: to, perMessage: g.options.JobsPerMessage}
	return cmp.Or(handler(server, s), s.err)
}

func (s *stream) Context() context.Context {
	return context.WithValue(s.ServerStream.Context(), streamKey{}, s)
}

func (s *stream) SendMsg(m any) error {
	jobs := m.(*pb.ActivateJobsResponse).Jobs
	if s.cut != nil {
		jobs, s.err = jobs[:min(s.cut.CutAfter, len(jobs))], s.cut.err()
	}
	for part := range slices.Chunk(jobs, max(1, cmp.Or(s.perMessage, len(jobs)))) {
		if err := s.ServerStream.SendMsg(&pb.ActivateJobsResponse{Jobs: part}); err != nil {
			return err
		}
	}
	return nil
}

// outcome is how a call ended.
type outcome struct {
	method Method
	code   codes.Code
}

// Calls returns how many calls of a method ended with one of the codes; with any if none is given.
func (g *Gateway) Calls(m Method, of ...codes.Code) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for o, count := range g.calls {
		if o.method == m && (len(of) == 0 || slices.Contains(of, o.code)) {
			n += count
		}
	}
	return n
}
