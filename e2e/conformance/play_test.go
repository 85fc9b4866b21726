package conformance_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

const (
	// lookEvery is how often something is asked that cannot be waited for otherwise.
	lookEvery = 10 * time.Millisecond
	// longPoll is how long a job is waited for.
	longPoll = 30 * time.Second
	// held is how long jobs are held where time-outs do not matter.
	held = 1000 * time.Hour
)

// play is one row played through one door.
type play struct {
	*testing.T
	door
	ctx    context.Context
	engine *engine
	id     string // of its process, and the beginning of its job types and messages
}

// must ends the row for an error.
func (p *play) must(err error) {
	p.Helper()
	testkit.Must(p, err)
}

// refused fails the row where an error has not that code, and returns what it says.
func (p *play) refused(what string, err error, want codes.Code) string {
	p.Helper()
	if got := status.Code(err); got != want {
		p.Errorf("%s: answered %v (%v), want %v", what, got, err, want)
	}
	return status.Convert(err).Message()
}

// same fails the row where two values differ.
func (p *play) same(what string, got, want any) {
	p.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		p.Errorf("%s: not as expected (-want +got):\n%s", what, diff)
	}
}

// sameJSON is same for values in JSON.
func (p *play) sameJSON(what, got, want string) {
	p.Helper()
	var g, w any
	p.must(json.Unmarshal([]byte(got), &g))
	p.must(json.Unmarshal([]byte(want), &w))
	p.same(what, g, w)
}

// process deploys its process of those parts.
func (p *play) process(parts ...part) *pb.ProcessMetadata {
	p.Helper()
	deployed, err := p.deploy("", file("model.bpmn", newProcess(p.id, parts...)))
	p.must(err)
	if len(deployed) != 1 {
		p.Fatalf("%d processes were deployed, want one", len(deployed))
	}
	return deployed[0]
}

// request is one for an instance of the newest version of its process.
func (p *play) request(variables string) *pb.CreateProcessInstanceRequest {
	return &pb.CreateProcessInstanceRequest{BpmnProcessId: p.id, Version: -1, Variables: variables}
}

// start an instance of its process.
func (p *play) start(variables string) (instance int64) {
	p.Helper()
	answer, err := p.create(p.request(variables))
	p.must(err)
	return answer.GetProcessInstanceKey()
}

// results runs an instance of its process to its end, and returns those of its variables.
func (p *play) results(variables string, fetch ...string) string {
	p.Helper()
	got, err := p.result(&pb.CreateProcessInstanceWithResultRequest{
		Request: p.request(variables), RequestTimeout: longPoll.Milliseconds(), FetchVariables: fetch,
	})
	p.must(err)
	return got
}

// poll is a request for a job of a task, which is waited for and then held that long.
func (p *play) poll(task string, wait, hold time.Duration) *pb.ActivateJobsRequest {
	return &pb.ActivateJobsRequest{
		Type: p.id + "-" + task, Worker: "conformance", Timeout: hold.Milliseconds(), MaxJobsToActivate: 1,
		RequestTimeout: wait.Milliseconds(),
	}
}

// job waits for a job of a task.
func (p *play) job(task string) *pb.ActivatedJob {
	p.Helper()
	return p.jobFor(task, held)
}

// jobFor is job, held for that long.
func (p *play) jobFor(task string, hold time.Duration) *pb.ActivatedJob {
	p.Helper()
	return p.only(p.activate(p.poll(task, longPoll, hold)))
}

// only returns the one job that was activated.
func (p *play) only(jobs []*pb.ActivatedJob, err error) *pb.ActivatedJob {
	p.Helper()
	p.must(err)
	if len(jobs) != 1 {
		p.Fatalf("%d jobs were activated, want one", len(jobs))
	}
	return jobs[0]
}

// sees waits for a job of a task and fails the row where it has other variables.
func (p *play) sees(task, want string) *pb.ActivatedJob {
	p.Helper()
	job := p.job(task)
	p.sameJSON("the variables of "+task, job.GetVariables(), want)
	return job
}

// again waits for a job a second time, and fails the row where another comes, or one with other retries.
func (p *play) again(job *pb.ActivatedJob, retries int32) {
	p.Helper()
	p.isAgain(p.job(job.GetElementId()), job, retries)
}

func (p *play) isAgain(got, job *pb.ActivatedJob, retries int32) {
	p.Helper()
	p.same("key and retries", []any{got.GetKey(), got.GetRetries()}, []any{job.GetKey(), retries})
}

// noJob fails the row where there is a job of a task now.
func (p *play) noJob(task string) {
	p.Helper()
	jobs, err := p.activate(p.poll(task, -time.Millisecond, held))
	p.must(err)
	if len(jobs) > 0 {
		p.Errorf("a job of %s, want none: %v", task, jobs[0])
	}
}

// waiting begins to wait for a job of a task, that long at most; what it returns waits for the job.
func (p *play) waiting(task string, wait time.Duration) func() *pb.ActivatedJob {
	var jobs []*pb.ActivatedJob
	var err error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		jobs, err = p.activate(p.poll(task, wait, held))
	}()
	return func() *pb.ActivatedJob {
		p.Helper()
		<-answered
		return p.only(jobs, err)
	}
}

// done completes a job.
func (p *play) done(job *pb.ActivatedJob, variables string) {
	p.Helper()
	p.must(p.complete(job.GetKey(), variables))
}

// fails tries to fail a job.
func (p *play) fails(job *pb.ActivatedJob, retries int32, backOff time.Duration) error {
	return p.fail(&pb.FailJobRequest{JobKey: job.GetKey(), Retries: retries, RetryBackOff: backOff.Milliseconds()})
}

// sends a message to one of its events.
func (p *play) sends(event, key string, live time.Duration, variables string) {
	p.Helper()
	_, err := p.publish(&pb.PublishMessageRequest{
		Name: p.id + "-" + event, CorrelationKey: key, TimeToLive: live.Milliseconds(), Variables: variables,
	})
	p.must(err)
}

// later moves the engine's clock forward and returns its time.
func (p *play) later(by time.Duration) time.Time {
	p.Helper()
	now, err := p.engine.moveClock(p.ctx, by)
	p.must(err)
	return now
}

// running fails the row where an instance does not run.
func (p *play) running(instance int64) {
	p.Helper()
	if err := p.touch(instance); err != nil {
		p.Errorf("the instance does not run: %v", err)
	}
}

// ended waits until an instance has ended.
func (p *play) ended(instance int64) {
	p.Helper()
	for {
		err := p.touch(instance)
		if status.Code(err) == codes.NotFound {
			return
		}
		p.must(err)
		select {
		case <-time.After(lookEvery):
		case <-p.ctx.Done():
			p.Fatal("the instance has not ended")
		}
	}
}

// incident waits for the incident of an instance whose number, from 0, is that, and fails the row where it is of
// another type or element. Where records cannot be read it returns nothing.
func (p *play) incident(instance int64, number int, errorType, element string) (found incident) {
	p.Helper()
	if !p.engine.own {
		return incident{}
	}
	var lost error
	wait.Within(wait.Limit, func() bool {
		p.engine.mu.Lock()
		defer p.engine.mu.Unlock()
		of := p.engine.incidents[instance]
		if lost = p.engine.lost; len(of) > number {
			found = of[number]
		}
		return len(of) > number || lost != nil
	})
	if found.key == 0 {
		p.Fatalf("no incident %d of the instance, want %s at %s (the records: %v)", number, errorType, element, lost)
	}
	p.same("the incident: "+found.ErrorMessage, []string{found.ErrorType, found.ElementID}, []string{errorType, element})
	return found
}
