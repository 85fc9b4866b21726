package demo

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/worker"
)

const (
	// strangerBackoff keeps an instance that is not the demo's own for whoever it belongs to.
	strangerBackoff = 30 * time.Second
	// reviewTime is what a person takes to decide; the fastest there ever was.
	reviewTime = 300 * time.Millisecond
)

// players play every outside system and the people of the reviews. Safe for concurrent use.
type players struct {
	ctx       context.Context // of the run
	story     *story
	publisher Publisher // nil: the engine takes no messages

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
}

func newPlayers(ctx context.Context, o *Options, s *story, processes []Process) *players {
	p := &players{ctx: ctx, story: s, samples: make(map[string]*progress), answered: make(map[int64]worker.Reply)}
	p.publisher, _ = o.Engine.(Publisher)
	for i := range processes {
		for j := range processes[i].Samples {
			x := &processes[i].Samples[j]
			p.samples[x.ID] = &progress{Sample: x, process: &processes[i], open: x.Open}
		}
	}
	return p
}

// worker of the engine that takes the players' jobs.
func (p *players) worker(engine worker.Engine, processes []Process) *worker.Worker {
	ids := make(map[string]bool)
	var tasks []worker.Subscription
	for i := range processes {
		x := &processes[i]
		ids[x.IDVariable] = true
		tasks = append(tasks, worker.Subscription{JobType: x.Work.JobType, Begin: worker.Always(p.answer(p.try), x.IDVariable)})
		for _, t := range x.Also {
			say := func(g *progress, _ variables) worker.Reply { return t.Answer(p, g) }
			tasks = append(tasks, worker.Subscription{JobType: t.JobType, Begin: worker.Always(p.answer(say), x.IDVariable)})
		}
	}
	seen := append(slices.Sorted(maps.Keys(ids)), "retryCount", "responsibleTeam", "deadLetterId", "jobStatus")
	tasks = append(tasks, worker.Subscription{JobType: worker.RetryReview, Begin: worker.Always(p.decideLater(p.answer(p.review)), seen...)})
	return worker.New(engine, worker.Config{
		Name: "demo", JobTimeout: 10 * time.Second, PollTimeout: time.Second, MaxJobsActive: 32, Concurrency: 16,
	}, tasks, worker.NoHooks(), zap.NewNop())
}

// try is one try of a sample's work: its next failure, or success.
func (p *players) try(g *progress, _ variables) worker.Reply {
	work := &g.process.Work
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

// review does what a person would: lets the work be tried again at once, or lets it go.
func (p *players) review(g *progress, v variables) worker.Reply {
	p.story.reviewed(g, v)
	if g.Discard {
		return worker.Reply{Action: worker.Completed, Variables: jsonObject(letGo())}
	}
	g.Failures = g.Failures[:min(len(g.Failures), g.tries)] // corrected: it succeeds now
	return worker.Reply{Action: worker.Completed, Variables: jsonObject(sentAgain(v.RetryCount))}
}

func (p *players) decideLater(next worker.Handler) worker.Handler {
	return func(ctx context.Context, j *worker.Job) worker.Reply {
		select {
		case <-time.After(reviewTime):
		case <-ctx.Done():
		}
		return next(ctx, j)
	}
}

// variables of a job that the players look at.
type variables struct {
	ClaimID         string
	MessageID       string
	JobID           string
	RetryCount      int64
	ResponsibleTeam string
	DeadLetterID    string
	JobStatus       string
}

// answer gives each job of a sample one answer, and those of strangers back.
func (p *players) answer(say func(*progress, variables) worker.Reply) worker.Handler {
	return func(_ context.Context, j *worker.Job) worker.Reply {
		var v variables
		_ = json.Unmarshal([]byte(j.Variables), &v) // a sample may hold wrong types on purpose
		p.mu.Lock()
		defer p.mu.Unlock()
		g := p.find(v)
		if g == nil {
			return worker.Reply{Action: worker.Failed, Failure: worker.Failure{
				Retries: j.Retries, Backoff: strangerBackoff, Message: "not one of the demo's samples",
			}}
		}
		if reply, again := p.answered[j.Key]; again {
			return reply
		}
		reply := say(g, v)
		p.answered[j.Key] = reply
		return reply
	}
}

func (p *players) find(v variables) *progress {
	for _, id := range []string{v.ClaimID, v.MessageID, v.JobID} {
		if g := p.samples[id]; g != nil {
			return g
		}
	}
	return nil
}
