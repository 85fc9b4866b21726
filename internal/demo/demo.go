// Package demo starts sample claims and plays everybody around the worker: the insurers' portal, the
// people of the review and, on a broker made for it, time.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/worker"
)

// ProcessID of the model that the demo runs.
const ProcessID = "SUB_06"

const (
	// calm is how long nothing may happen before time is moved.
	calm = 700 * time.Millisecond
	// patience is how long the demo waits where it cannot move time.
	patience = 30 * time.Second
)

// clockSteps move the engine's clock over the ladder of tiss-submission: 5, 10, 20, 40 and 80 minutes
// with their jitter, each counted from now.
var clockSteps = []time.Duration{6 * time.Minute, 6 * time.Minute, 12 * time.Minute, 24 * time.Minute, 48 * time.Minute}

// Engine is what the demo needs of the process engine. Its BPMN errors must carry their variables to
// the boundary event only, as those of a worker by another author do.
type Engine interface {
	worker.Engine
	// Create starts an instance and returns its key; variables is a JSON object.
	Create(ctx context.Context, processID, variables string) (int64, error)
}

// Options of one run.
type Options struct {
	Engine Engine
	Out    io.Writer
	// JSON writes an object a line instead of text.
	JSON bool
	// Clock of the engine; nil: the timers take the time they take.
	Clock *Clock
	// WorkerLog is the file that the worker's log goes to; empty: its decisions are not shown.
	WorkerLog string
	// Run makes claim ids differ between two runs on one engine.
	Run int64
}

// Run plays the thirty sample claims and returns when each has ended, when nothing moves any more, or
// when ctx ends.
func Run(ctx context.Context, o Options) error {
	claims := SampleClaims(o.Run)
	s := newStory(o.Out, o.JSON, claims)
	playing, curtain := context.WithCancel(ctx)
	d := &director{Options: o, story: s, instances: make(map[int64]string)}
	var background sync.WaitGroup
	defer background.Wait()
	defer curtain()
	// The last answers are told before they have reached the engine: the players finish what they began.
	background.Go(func() { d.players(claims).Run(playing, ctx) })
	if o.WorkerLog != "" {
		background.Go(func() {
			if err := follow(playing, o.WorkerLog, d.read); err != nil {
				s.note("%v", err)
			}
		})
	}
	s.note("Starting %d sample claims (process %s).", len(claims), ProcessID)
	if err := d.start(ctx, claims); err != nil {
		return err
	}
	if err := d.passTime(ctx); err != nil {
		return err
	}
	s.summarize(len(claims))
	return ctx.Err()
}

// director knows which instance belongs to which claim, and moves time.
type director struct {
	Options
	story *story

	mu        sync.Mutex
	instances map[int64]string
}

// players are the portal and the reviewers, as workers of the engine.
func (d *director) players(claims []Claim) *worker.Worker {
	p := newPortal(claims, d.story)
	return worker.New(d.Engine, worker.Config{
		Name: "demo", JobTimeout: 10 * time.Second, PollTimeout: time.Second, MaxJobsActive: 32, Concurrency: 16,
	}, []worker.Subscription{
		{JobType: SubmitClaim, Variables: []string{"claimId"}, Handler: p.submit},
		{JobType: worker.RetryReview, Variables: []string{"claimId", "retryCount", "responsibleTeam", "deadLetterId"}, Handler: p.review},
	}, worker.NoHooks(), zap.NewNop())
}

func (d *director) start(ctx context.Context, claims []Claim) error {
	for i := range claims {
		variables, err := claims[i].start()
		if err != nil {
			return err
		}
		d.mu.Lock() // the log may speak of the instance before its key is known here
		key, err := d.Engine.Create(ctx, ProcessID, variables)
		if err == nil {
			d.instances[key] = claims[i].ID
		}
		d.mu.Unlock()
		if err != nil {
			return fmt.Errorf("%w; is the model deployed (`retry-worker deploy`)?", err)
		}
	}
	return nil
}

// passTime waits for the claims to end. Where it may, it moves the engine's clock whenever nothing else happens.
func (d *director) passTime(ctx context.Context) error {
	if d.Clock == nil {
		d.story.note("The timers take 5 minutes and more; the demo shows what happens meanwhile (--clock-url moves the clock of a broker made for it).")
		for d.story.quiet(ctx.Done(), patience) && ctx.Err() == nil {
			d.story.note("Waiting for timers.")
		}
		return nil
	}
	for _, step := range clockSteps {
		if !d.story.quiet(ctx.Done(), calm) {
			return nil
		}
		d.story.note("All timers wait. The demo moves the broker's own clock %v ahead.", step)
		if err := d.Clock.Add(ctx, step); err != nil {
			return err
		}
	}
	if d.WorkerLog == "" {
		// The engine says nothing of its incidents: the rejected ones are looked up there.
		if d.story.quiet(ctx.Done(), calm) && d.story.waiting(Rejected) == 0 {
			d.story.note("The rejected claims wait as incidents in the engine; the worker's log says why (--worker-log shows it here).")
			return nil
		}
	}
	if d.story.quiet(ctx.Done(), patience) && ctx.Err() == nil {
		return errors.New("nothing has happened for " + patience.String() + " and claims are still open; is `retry-worker serve` running?")
	}
	return nil
}

// read takes a line of the worker's log.
func (d *director) read(l logLine) {
	d.mu.Lock()
	claim, ours := d.instances[l.ProcessInstanceKey]
	d.mu.Unlock()
	switch {
	case !ours:
	case l.Event == "input_rejected":
		d.story.rejected(claim, l.Detail)
	default:
		d.story.decided(l)
	}
}
