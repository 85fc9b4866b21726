package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/internal/engine"
	"retry-worker/internal/engine/server"
)

// gateway is the development engine, which makes jobs as they are asked for, until all are handed out.
type gateway struct {
	*server.Server
	jobs      int64
	mix       mix
	latency   time.Duration // between a command's effect and its answer
	now       time.Time
	allServed chan struct{} // closed when all jobs are answered

	mu                     sync.Mutex
	made, done             int64
	held, maxHeld, refused int
	polled                 bool
	firstAnswer            time.Time
}

// mix says how many of 100 jobs meet an unknown or a permanent error or have used up their retries; the others meet a
// transient error. With gate, all jobs are those of a gate that is open.
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
	if m.gate { // no destination takes more than 1,000 a second
		return fmt.Sprintf(`{"claimId":"CLM-BENCH-%d","operadora":"portal-%d"}`, n, n%100)
	}
	texts, retries := transientTexts, n%5
	switch place := n * 37 % 100; { // 37 and 100 have no common factor, so the kinds are spread
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

// model is a process of one task, and ends with it.
const model = `<definitions xmlns="http://www.omg.org/spec/BPMN/20100524/MODEL" xmlns:zeebe="http://camunda.org/schema/zeebe/1.0">
<process id="BENCH" isExecutable="true"><startEvent id="start"/><sequenceFlow id="begin" sourceRef="start" targetRef="task"/>
<serviceTask id="task"><extensionElements><zeebe:taskDefinition type=%q/></extensionElements></serviceTask>
<sequenceFlow id="done" sourceRef="task" targetRef="end"/><endEvent id="end"/>
<boundaryEvent id="caught" attachedToRef="task"><errorEventDefinition/></boundaryEvent>
<sequenceFlow id="thrown" sourceRef="caught" targetRef="end"/></process></definitions>`

// open starts the engine; Close ends it.
func (g *gateway) open(ctx context.Context) (err error) {
	g.allServed, g.now = make(chan struct{}), time.Now()
	g.Server, err = server.Open(server.Options{Shape: server.Shape86, Happened: g.happened, Around: g.around})
	if err != nil {
		return err
	}
	resource := engine.Resource{Name: "bench.bpmn", Content: fmt.Sprintf(model, g.mix.jobType())}
	_, err = g.Do(ctx, engine.Deploy{Resources: []engine.Resource{resource}, Tenant: engine.DefaultTenant})
	return err
}

// listen serves the engine until it is closed, and returns its address.
func (g *gateway) listen() (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for the engine: %w", err)
	}
	if g.mix.rest {
		g.ServeREST(l)
		return "http://" + l.Addr().String(), nil
	}
	g.ServeGRPC(l)
	return l.Addr().String(), nil
}

// make starts n processes, and returns the engine's events.
func (g *gateway) make(ctx context.Context, n int64) ([]engine.Event, error) {
	g.mu.Lock()
	first := g.made + 1
	g.made += n
	g.mu.Unlock()
	all := make([]engine.Command, n)
	for i := range all {
		all[i] = engine.Create{
			ProcessID: "BENCH", Version: engine.Latest, Tenant: engine.DefaultTenant, Variables: g.mix.variables(first+int64(i), g.now),
		}
	}
	return g.Do(ctx, all...)
}

// wanted returns how many jobs to add for a poll.
func (g *gateway) wanted(in *pb.ActivateJobsRequest) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if in.Type != g.mix.jobType() {
		return 0
	}
	first := !g.polled
	g.polled = true
	if g.mix.gate && first { // a worker that has not read the journal holds all claims, which is not measured here
		return 0
	}
	return min(int64(in.MaxJobsToActivate), max(0, g.jobs-g.made))
}

func (g *gateway) around(ctx context.Context, asked any, effect func() error) error {
	switch in := asked.(type) {
	case *pb.ActivateJobsRequest:
		if n := g.wanted(in); n > 0 {
			if _, err := g.make(ctx, n); err != nil {
				return err
			}
		}
	case engine.Complete, engine.Throw:
		err := effect()
		if err != nil {
			g.mu.Lock()
			g.refused++
			g.mu.Unlock()
		}
		time.Sleep(g.latency)
		return err
	}
	return effect()
}

func (g *gateway) happened(events []engine.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range events {
		switch e := &events[i]; e.ValueType + " " + e.Intent {
		case "JOB_BATCH ACTIVATED":
			g.held += len(e.Value.JobKeys)
			g.maxHeld = max(g.maxHeld, g.held)
		case "JOB COMPLETED", "JOB ERROR_THROWN":
			g.held--
			if g.done++; g.done == 1 {
				g.firstAnswer = time.Now()
			}
			if g.done == g.jobs {
				close(g.allServed)
			}
		}
	}
}

// answered returns how many jobs have been answered.
func (g *gateway) answered() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.done
}
