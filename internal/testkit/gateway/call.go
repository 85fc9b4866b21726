package gateway

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"retry-worker/internal/clock"
	"retry-worker/internal/engine"
)

// around takes every call into the records, through the faults, and to its effect.
func (g *Gateway) around(ctx context.Context, asked any, effect func() error) error {
	var key int64
	a := &Answer{}
	switch in := asked.(type) {
	case *pb.ActivateJobsRequest:
		return g.poll(ctx, in, effect)
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

// poll records a poll, and carries it out.
func (g *Gateway) poll(ctx context.Context, in *pb.ActivateJobsRequest, effect func() error) error {
	p := &Poll{ActivateJobsRequest: in}
	g.change(func() { g.polls = append(g.polls, p) })
	defer g.change(func() { p.Ended = g.Now() })
	return g.call(ctx, Call{Method: ActivateJobs, Worker: in.Worker}, func() error {
		g.change(func() { g.counts.Waiting++ })
		defer g.change(func() { g.counts.Waiting-- })
		return effect()
	})
}

// answer records any call but a poll, for the job that has the key or whose element has it, and carries it out.
func (g *Gateway) answer(ctx context.Context, key int64, a *Answer, effect func() error) error {
	c := Call{Method: a.Method}
	var j *job
	g.change(func() { j = g.jobs[cmp.Or(g.elements[key], key)] })
	if j == nil {
		return g.call(ctx, c, effect)
	}
	c.JobKey = j.Key
	note := func(err error) {
		a.Code = status.Code(err)
		j.answers = append(j.answers, a)
	}
	err := g.call(ctx, c, func() error {
		g.commands.Lock() // so that the job's changes are this command's
		defer g.commands.Unlock()
		a.Reached = true
		err := effect()
		g.change(func() {
			a.Settled = err == nil && c.Answers() && j.State.Settled()
			note(err)
		})
		return err
	})
	g.change(func() {
		if !a.Reached {
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
	if last == nil || last.DropAck {
		err = effect()
	}
	switch {
	case last == nil:
		return err
	case last.Hang:
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	return last.err()
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
