// Package demo starts samples of every bundled process and plays everybody around the worker: the outside systems, the
// people who review and, on a broker made for it, time.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"retry-worker/internal/worker"
)

const (
	// calm is how long nothing may happen before time is moved.
	calm = 700 * time.Millisecond
	// patience is how long the demo waits where it cannot move time.
	patience = 30 * time.Second
	// mostMoves of the clock: what is left then goes by real time.
	mostMoves = 100
	// held is how long a job may be held by a worker that is no more.
	held = 12 * time.Second
)

// Engine is what the demo needs of the process engine. Its BPMN errors must carry their variables to
// the boundary event only, as those of a worker by another author do.
type Engine interface {
	worker.Engine
	// Create starts an instance and returns its key; variables is a JSON object.
	Create(ctx context.Context, processID, variables string) (int64, error)
	// Publish correlates a message with the instances that wait for it under key, now or within life.
	Publish(ctx context.Context, name, key string, life time.Duration) error
}

// Options of one run.
type Options struct {
	Engine Engine
	Out    io.Writer
	// Ask the worker's API, through which the people decide.
	Ask Ask
	// Invitation leaves some dead letters to the person who looks at the screen, says where that person finds them, and
	// has the demo go on playing until ctx ends; empty: it ends when every sample has.
	Invitation string
	// Clock to move; nil: the timers take the time they take.
	Clock Clock
	// Log gets the worker's log; nil: its decisions are not shown.
	Log *Log
	// Run makes ids differ between two runs on one engine.
	Run int64
	// Resumed tells that the samples of that run were started before: they go on.
	Resumed bool
}

// Run plays the samples of all processes and returns when each has ended, when nothing moves any more, or
// when ctx ends; where it is to stay, only then, or when something fails.
func Run(ctx context.Context, o Options) error {
	err := run(ctx, o)
	if ctx.Err() != nil {
		return ctx.Err() // what it was about was cut short
	}
	return err
}

func run(ctx context.Context, o Options) error {
	s := newStory(o.Out, Processes(o.Run))
	playing, curtain := context.WithCancel(ctx)
	d := &director{players: newPlayers(ctx, &o, s), instances: make(map[int64]*Sample)}
	var background sync.WaitGroup
	defer background.Wait()
	defer curtain()
	// The last answers are told before they have reached the engine: the players finish what they began.
	background.Go(func() { d.worker().Run(playing, ctx) })
	background.Go(func() { d.people.work(playing) })
	if o.Log != nil {
		defer o.Log.follow(d.read)()
	}
	if o.Resumed {
		s.note("The samples that were started before go on.")
	} else {
		s.announce()
		if err := d.start(ctx); err != nil {
			return err
		}
	}
	if err := d.passTime(ctx); err != nil {
		return err
	}
	if !o.Resumed {
		s.summarize()
	}
	if o.Invitation != "" && ctx.Err() == nil {
		d.stay(ctx)
	}
	return nil
}

// stay until ctx ends, and tell what becomes of the samples that were left.
func (d *director) stay(ctx context.Context) {
	left := "Nothing waits for your review."
	if counts := d.story.leftOver(); counts != "" {
		left = "Waiting for your review: " + counts + ". (One at its limit has to be forced.)"
	}
	d.story.note("%s The demo plays the outside systems until Ctrl-C.\n%s", left, d.Invitation)
	d.story.follow(ctx.Done())
}

// director knows which instance belongs to which sample, and moves time.
type director struct {
	*players
	known     sync.Mutex // guards instances
	instances map[int64]*Sample
}

func (d *director) start(ctx context.Context) error {
	for _, p := range d.story.processes {
		for _, x := range p.Samples {
			if err := d.create(ctx, p, x); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *director) create(ctx context.Context, p *Process, x *Sample) error {
	d.known.Lock() // the log may speak of the instance before its key is known here
	defer d.known.Unlock()
	key, err := d.Engine.Create(ctx, p.ID, p.start(x))
	if err != nil {
		return fmt.Errorf("%w; is the model deployed (`retry-worker deploy`)?", err)
	}
	d.instances[key] = x
	return nil
}

// passTime waits for the samples to end. Where it may, it moves the clock whenever nothing else happens.
func (d *director) passTime(ctx context.Context) error {
	if d.Clock == nil {
		d.waitInRealTime(ctx)
		return nil
	}
	idle := time.Duration(0)
	for moves := 0; moves < mostMoves && d.story.quiet(ctx.Done(), calm) && d.story.waiting() > 0; {
		step, ok := d.Clock.Next()
		switch {
		case ok:
			d.story.note("--- Everybody waits for a timer. The demo moves the clock %s ahead. ---", told(step))
			if err := d.Clock.Add(ctx, step); err != nil {
				return err
			}
			idle = 0
			moves++
		case d.Resumed && idle >= held || d.unreviewed():
			return nil
		case idle >= patience:
			return errors.New("nothing has happened for " + patience.String() +
				" and samples are still open; is `retry-worker serve` running?")
		default:
			idle += calm
		}
	}
	if d.Log == nil && d.story.waiting() == 0 {
		d.story.note("The rejected claims wait as incidents in the engine; the worker's log says why.")
	}
	return nil
}

// unreviewed reports whether what is open waits for people who cannot decide, as they have said. Where nobody answers at
// the worker's address, the worker itself may be missing.
func (d *director) unreviewed() bool {
	err := d.people.absent()
	_, gone := errors.AsType[*net.OpError](err)
	return err != nil && !gone
}

// told is a step of whole minutes, or of seconds, for people.
func told(d time.Duration) string {
	if d >= time.Minute {
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// waitInRealTime lets the timers take the time they take.
func (d *director) waitInRealTime(ctx context.Context) {
	d.story.note("Jobs wait for seconds, messages for 5 s, 30 s and 5 min, claims for 5 min and more, all in real " +
		"time; the demo shows\n" +
		"what happens meanwhile (--clock-url moves the clock of a broker made for it).")
	for d.story.quiet(ctx.Done(), patience) && ctx.Err() == nil {
		d.story.note("Waiting for timers.")
	}
}

// read takes a line of the worker's log.
func (d *director) read(l logLine) {
	d.known.Lock()
	x, ours := d.instances[l.ProcessInstanceKey]
	d.known.Unlock()
	switch {
	case !ours:
	case l.Event == "input_rejected":
		d.story.rejected(x, l.Detail)
	default:
		d.story.decided(x, l)
	}
}
