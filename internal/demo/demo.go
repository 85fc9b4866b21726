// Package demo starts samples of every bundled process and plays everybody around the worker: the outside systems, the
// people who review and, on a broker made for it, time.
package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"retry-worker/internal/worker"
)

const (
	// calm is how long nothing may happen before time is moved.
	calm = 700 * time.Millisecond
	// patience is how long nothing may happen though nobody waits for a timer, and how long the worker's API may not answer:
	// the worker may just be starting.
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
	s := newStory(o.Out, Processes(o.Run))
	p := newPlayers(ctx, &o, s)
	playing, stop := context.WithCancelCause(ctx)
	var background sync.WaitGroup
	defer background.Wait()
	defer stop(nil)
	// The last answers are told before they have reached the engine: the players finish what they began.
	background.Go(func() { p.worker().Run(playing, ctx) })
	background.Go(func() { stop(p.people.work(playing)) })
	if o.Log != nil {
		read := p.read
		o.Log.take.Store(&read)
	}
	err := p.play(playing)
	if playing.Err() != nil {
		return context.Cause(playing) // what failed then was cut short
	}
	return err
}

// play starts the samples, waits for their ends, and stays where it is to.
func (p *players) play(ctx context.Context) error {
	if p.Resumed {
		p.story.note("The samples that were started before go on.")
	} else {
		p.story.announce()
		if err := p.start(ctx); err != nil {
			return err
		}
	}
	if err := p.passTime(ctx); err != nil {
		return err
	}
	if !p.Resumed {
		p.story.summarize()
	}
	if p.Invitation != "" && ctx.Err() == nil {
		p.stay(ctx)
	}
	return nil
}

// stay until ctx ends, and tell what becomes of the samples that were left.
func (p *players) stay(ctx context.Context) {
	left := "Nothing waits for your review."
	if counts := p.story.leftOver(); counts != "" {
		left = "Waiting for your review: " + counts + ". (One at its limit has to be forced.)"
	}
	p.story.note("%s The demo plays the outside systems until Ctrl-C.\n%s", left, p.Invitation)
	p.story.follow(ctx.Done())
}

func (p *players) start(ctx context.Context) error {
	for _, of := range p.story.processes {
		for _, x := range of.Samples {
			if _, err := p.Engine.Create(ctx, of.ID, of.start(x)); err != nil {
				return fmt.Errorf("%w; is the model deployed (`retry-worker deploy`)?", err)
			}
		}
	}
	return nil
}

// passTime waits for the samples to end. Where it may, it moves the clock whenever nothing else happens.
func (p *players) passTime(ctx context.Context) error {
	if p.Clock == nil {
		p.story.note("Jobs wait for seconds, messages for 5 s, 30 s and 5 min, claims for 5 min and more, all in real time; the demo " +
			"shows\nwhat happens meanwhile (--clock-url moves the clock of an engine made for it).")
	}
	idle := time.Duration(0)
	for moves := 0; moves < mostMoves && p.story.quiet(ctx.Done(), calm) && p.story.waiting() > 0; {
		if p.Clock == nil {
			continue
		}
		step, ok := p.Clock.Next()
		switch {
		case ok:
			p.story.note("--- Everybody waits for a timer. The demo moves the clock %s ahead. ---", told(step))
			if err := p.Clock.Add(ctx, step); err != nil {
				return err
			}
			idle = 0
			moves++
		case p.Resumed && idle >= held:
			return nil
		case idle >= patience:
			return fmt.Errorf("nothing has happened for %v and samples are still open; is `retry-worker serve` running?", patience)
		default:
			idle += calm
		}
	}
	if p.Log == nil && p.story.waiting() == 0 {
		p.story.note("The rejected claims wait as incidents in the engine; the worker's log says why.")
	}
	return nil
}

// told returns a step of whole minutes, or of seconds, for people.
func told(d time.Duration) string {
	if d >= time.Minute {
		return fmt.Sprintf("%.0f min", d.Minutes())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// read takes a line of the worker's log.
func (p *players) read(l logLine) {
	x, ours := p.instances.Load(l.ProcessInstanceKey)
	switch {
	case !ours:
	case l.Event == "input_rejected":
		p.story.rejected(x.(*Sample), l.Detail)
	default:
		p.story.decided(x.(*Sample), l)
	}
}

// logLine is what the demo reads of a line of the worker's log. Which sample it is about follows from the instance: the
// line names it by a variable of its policy's own, if at all.
type logLine struct {
	Event              string    `json:"event"`
	Message            string    `json:"message"`
	Detail             string    `json:"detail"`
	MatchedRule        string    `json:"matchedRule"`
	BackoffMinutes     int64     `json:"backoffMinutes"`
	NextRetryTime      string    `json:"nextRetryTime"`
	Timestamp          time.Time `json:"timestamp"`
	ResponsibleTeam    string    `json:"responsibleTeam"`
	ProcessInstanceKey int64     `json:"processInstanceKey"`
}

// wait returns the backoff for people; where it is below a minute, as far as the line's own time tells.
func (l *logLine) wait() string {
	const tick = 500 * time.Millisecond // the line is written a moment after the decision
	next, err := time.Parse(time.RFC3339, l.NextRetryTime)
	if d := next.Sub(l.Timestamp).Round(tick); err == nil && l.BackoffMinutes == 1 && d < time.Minute-tick {
		return fmt.Sprintf("%g s", d.Seconds())
	}
	return fmt.Sprintf("%d min", l.BackoffMinutes)
}

// Log takes the worker's log, a line with each Write, for the demo to tell its decisions. Its zero value is ready; it is safe
// for concurrent use.
type Log struct{ take atomic.Pointer[func(logLine)] }

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	var line logLine
	if take := l.take.Load(); take != nil && json.Unmarshal(b, &line) == nil && line.Event != "" {
		(*take)(line)
	}
	return len(b), nil
}
