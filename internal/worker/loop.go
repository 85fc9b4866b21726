package worker

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
)

const (
	// fullness below which a loop asks for more jobs, in percent of MaxJobsActive.
	fullness = 70
	// firstPoll is short: it tells soon whether the engine answers.
	firstPoll = 200 * time.Millisecond
	// pollFirst and pollMost bound the pause after a poll that failed, or came back empty too soon.
	pollFirst = 50 * time.Millisecond
	pollMost  = 2 * time.Second
	// deadlineMargin is kept between the last try of an answer and the job's time-out.
	deadlineMargin = 500 * time.Millisecond
	// pollOverrun is what a poll may overrun its time-out by before it is given up as one that hangs. Not
	// soon: what a reply that is merely slow would bring is locked until its time-out then.
	pollOverrun = 30 * time.Second
	// stopGrace is that when the worker stops.
	stopGrace = time.Second
)

// loop activates the jobs of one type.
type loop struct {
	w       *Worker
	request ActivateRequest // but for what changes from poll to poll
	begin   func() Activation
	health  *engineHealth
	// ask is how many jobs at once the engine can send; halved when they do not fit a message, and not
	// raised again before careful: until then those jobs come back.
	ask     int
	careful time.Time
	count   atomic.Int64
	freed   clock.Signal // sent once count has fallen below the threshold
}

func newLoop(w *Worker, s Subscription, health *engineHealth) *loop {
	return &loop{
		w: w, begin: s.Begin, health: health, ask: w.cfg.MaxJobsActive, freed: clock.NewSignal(),
		request: ActivateRequest{
			JobType: s.JobType, Worker: w.cfg.Name, TenantIDs: w.cfg.TenantIDs,
			JobTimeout: w.cfg.JobTimeout, PollTimeout: min(w.cfg.PollTimeout, w.cfg.JobTimeout/2),
		},
	}
}

func (l *loop) run(stop, kill context.Context) {
	pause := newBackoff(pollFirst, pollMost, rand.Uint64())
	wait := min(firstPoll, l.request.PollTimeout)
	for ; l.room(stop); wait = l.request.PollTimeout {
		begun, sent := l.begin(), time.Now()
		jobs, err := l.poll(stop, kill, wait, begun.Variables)
		l.take(jobs, sent, begun.Handler)
		if stop.Err() != nil {
			return
		}
		l.health.report(l, err)
		switch {
		case err != nil:
			l.failed(err)
			clock.Machine{}.Rest(stop, pause.draw())
		case len(jobs) == 0 && time.Since(sent) < wait/2:
			clock.Machine{}.Rest(stop, pause.draw()) // an engine that does not wait must not be asked without end
		case len(jobs) == 0:
			pause.reset()
		default:
			l.raise()
			pause.reset()
		}
	}
}

// poll runs one activation; at a stop it is let end by itself, within bounds.
func (l *loop) poll(stop, kill context.Context, wait time.Duration, variables []string) ([]Job, error) {
	// A reply later than the job's time-out brings jobs that cannot be answered any more.
	ctx, cancel := context.WithTimeout(kill, min(l.request.JobTimeout, wait+pollOverrun))
	defer cancel()
	defer context.AfterFunc(stop, func() {
		time.AfterFunc(wait+stopGrace, cancel)
	})()
	r := l.request
	r.PollTimeout, r.Variables = wait, variables
	r.MaxJobs = min(l.ask, l.w.cfg.MaxJobsActive-int(l.count.Load()))
	return l.w.engine.Activate(ctx, r)
}

// take queues jobs. Their time runs from the moment they were asked for: the engine locked them some time
// between that and now, and its answer may have waited for a process that stood still, or on the network.
func (l *loop) take(jobs []Job, sent time.Time, handler Handler) {
	deadline := sent.Add(l.request.JobTimeout - min(deadlineMargin, l.request.JobTimeout/10))
	l.count.Add(int64(len(jobs)))
	l.w.hooks.InFlight(len(jobs))
	batch := make([]activeJob, len(jobs))
	for i := range jobs {
		batch[i] = activeJob{Job: jobs[i], loop: l, handler: handler}
		batch[i].Deadline = deadline
		l.w.queue <- &batch[i]
	}
}

func (l *loop) failed(err error) {
	if kindOf(err) == TooLarge {
		l.w.hooks.Oversized(l.request.JobType)
		l.ask, l.careful = max(l.ask/2, 1), time.Now().Add(2*l.request.JobTimeout)
		l.w.log.Warn("jobs too large for one message; they come back after their time-out, asking for fewer at once",
			zap.String("jobType", l.request.JobType), zap.Int("atMost", l.ask), zap.Error(err))
	}
}

func (l *loop) raise() {
	if time.Now().After(l.careful) {
		l.ask = min(2*l.ask, l.w.cfg.MaxJobsActive)
	}
}

// room waits until less than fullness of the loop's places are taken and jobs can be handled; false when stop
// ended.
func (l *loop) room(stop context.Context) bool {
	for stop.Err() == nil {
		if l.count.Load() < l.threshold() {
			return l.w.cfg.Await == nil || l.w.cfg.Await(stop)
		}
		select {
		case <-l.freed:
		case <-stop.Done():
		}
	}
	return false
}

// threshold returns the lowest count that is not below fullness.
func (l *loop) threshold() int64 { return (int64(l.w.cfg.MaxJobsActive)*fullness + 99) / 100 }

// release gives back the place of one answered job.
func (l *loop) release() {
	l.w.hooks.InFlight(-1)
	if l.count.Add(-1) < l.threshold() {
		l.freed.Send()
	}
}

// backoff paces repeated tries: doubling pauses between bounds, each drawn from its upper half so that
// replicas do not move in step. Not for concurrent use.
type backoff struct {
	first, most, next time.Duration
	source            rand.PCG
}

// newBackoff returns one whose pauses the seed draws.
func newBackoff(first, most time.Duration, seed uint64) *backoff {
	return &backoff{first: first, most: most, next: first, source: *rand.NewPCG(seed, 0)}
}

func (b *backoff) reset() { b.next = b.first }

// draw returns how long to pause before the next try.
func (b *backoff) draw() time.Duration {
	pause := b.next/2 + time.Duration(b.source.Uint64()%uint64(b.next/2))
	b.next = min(2*b.next, b.most)
	return pause
}
