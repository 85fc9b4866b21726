package demo

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/api"
	"retry-worker/internal/worker"
)

// strangerBackoff keeps an instance that is not the demo's own for whoever it belongs to.
const strangerBackoff = 30 * time.Second

// players play every outside system. Safe for concurrent use.
type players struct {
	Options
	ctx       context.Context // of the run
	story     *story
	people    *people  // who decide
	instances sync.Map // *Sample by the key of its process instance, once a job of it was seen

	mu       sync.Mutex
	samples  map[string]*progress
	answered map[int64]worker.Reply // by job key: a job delivered twice gets the same answer
}

// progress of a sample.
type progress struct {
	*Sample
	process *Process
	tries   int
	open    int // dependencies

	// Of a dead letter that is left for the person who looks at the screen:
	letter      string      // its id
	verdict     *api.Review // that was told; nil: none yet
	triesBefore int         // it
	moved       bool        // the clock, for its sake
}

// corrected lets the next try succeed.
func (g *progress) corrected() { g.Failures = g.Failures[:min(len(g.Failures), g.tries)] }

func newPlayers(ctx context.Context, o *Options, s *story) *players {
	p := &players{Options: *o, ctx: ctx, story: s, samples: make(map[string]*progress),
		answered: make(map[int64]worker.Reply)}
	p.people = &people{players: p, refused: make(map[string]bool)}
	for _, of := range s.processes {
		for _, x := range of.Samples {
			p.samples[x.ID] = &progress{Sample: x, process: of, open: x.Open}
		}
	}
	return p
}

// worker of the engine that takes the players' jobs.
func (p *players) worker() *worker.Worker {
	var tasks []worker.Subscription
	for _, x := range p.story.processes {
		tasks = append(tasks, worker.Subscription{JobType: x.Work.JobType,
			Begin: worker.Always(p.answer(x, p.try), x.IDVariable)})
		for _, t := range x.Also {
			say := func(g *progress) worker.Reply { return t.Answer(p, g) }
			tasks = append(tasks, worker.Subscription{JobType: t.JobType, Begin: worker.Always(p.answer(x, say), x.IDVariable)})
		}
	}
	return worker.New(p.Engine, worker.Config{
		Name: "demo", JobTimeout: 10 * time.Second, PollTimeout: time.Second, MaxJobsActive: 32, Concurrency: 16,
	}, tasks, worker.NoHooks(), zap.NewNop())
}

// try is one try of a sample's work: its next failure, or success.
func (p *players) try(g *progress) worker.Reply {
	work := &g.process.Work
	if g.letter != "" && g.verdict == nil {
		_ = p.people.lookAgain(p.ctx, g) // so that the decision is told first; the next look says what is wrong
	}
	g.tries++
	if g.tries > len(g.Failures) {
		p.story.succeeded(g)
		return worker.Reply{Action: worker.Completed, Variables: "{}"}
	}
	f := g.Failures[g.tries-1]
	p.story.failed(g, f)
	return worker.Reply{Action: worker.Thrown, Error: worker.BPMNError{
		Code: work.ErrorCode, Message: "the " + work.Try + " failed", Variables: g.process.thrown(f),
	}}
}

// answer gives each job of a process's sample one answer, and those of strangers back.
func (p *players) answer(of *Process, say func(*progress) worker.Reply) worker.Handler {
	return func(_ context.Context, j *worker.Job) worker.Reply {
		var variables map[string]any
		_ = json.Unmarshal([]byte(j.Variables), &variables) // a stranger's may be anything
		id, _ := variables[of.IDVariable].(string)
		p.mu.Lock()
		defer p.mu.Unlock()
		g := p.samples[id]
		if g == nil {
			return worker.Reply{Action: worker.Failed, Failure: worker.Failure{
				Retries: j.Retries, Backoff: strangerBackoff, Message: "not one of the demo's samples",
			}}
		}
		p.instances.Store(j.ProcessInstanceKey, g.Sample)
		if reply, again := p.answered[j.Key]; again {
			return reply
		}
		reply := say(g)
		p.answered[j.Key] = reply
		return reply
	}
}
