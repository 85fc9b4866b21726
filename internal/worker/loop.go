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
	// fullness is the share of MaxJobsActive, in percent, below which a loop asks for more jobs.
	fullness = 70
	// firstPoll is short, to find out soon whether the engine answers.
	firstPoll = 200 * time.Millisecond
	// pollFirst and pollMost bound the pause after a poll that failed, or came back empty too soon.
	pollFirst = 50 * time.Millisecond
	pollMost  = 2 * time.Second
	// deadlineMargin is kept between the last try of an answer and the job's time-out.
	deadlineMargin = 500 * time.Millisecond
	// pollOverrun is how long a poll may exceed its time-out before it is given up as stuck. It is long, because the
	// jobs of a reply that was merely slow stay locked until their time-out.
	pollOverrun = 30 * time.Second
	// stopGrace replaces pollOverrun once the worker stops.
	stopGrace = time.Second
)

// loop activates the jobs of one type.
type loop struct {
	w       *Worker
	request ActivateRequest // except what changes from poll to poll
	begin   func() Activation
	// ask is how many jobs to ask for at once. It is halved if they do not fit into a message, and not raised before
	// careful: until then the same jobs come back.
	ask     int
	careful time.Time
	count   atomic.Int64
	freed   clock.Signal // sent once count has fallen below the threshold
}

func (l *loop) run(stop, kill context.Context) {
	pause := newBackoff(pollFirst, pollMost, rand.Uint64())
	wait := min(firstPoll, l.request.PollTimeout)
	for ; l.room(stop); wait = l.request.PollTimeout {
		begun, sent := l.begin(), time.Now()
		jobs, err := l.poll(stop, kill, wait, begun.Variables)
		l.take(stop, kill, jobs, sent, begun.Handler)
		if stop.Err() != nil {
			return
		}
		l.w.heard(l, err)
		switch {
		case err != nil:
			l.failed(err)
			clock.Machine{}.Rest(stop, pause.draw())
		case len(jobs) == 0 && time.Since(sent) < wait/2:
			clock.Machine{}.Rest(stop, pause.draw()) // do not flood an engine that answers without waiting
		case len(jobs) == 0:
			pause.reset()
		default:
			if time.Now().After(l.careful) {
				l.ask = min(2*l.ask, l.w.cfg.MaxJobsActive)
			}
			pause.reset()
		}
	}
}

// poll runs one activation. When stop ends, the poll may finish, within stopGrace.
func (l *loop) poll(stop, kill context.Context, wait time.Duration, variables []string) ([]Job, error) {
	// Jobs of a reply that is later than their time-out cannot be answered.
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

// take queues jobs. Their time-out counts from sent: the engine locked them at some time since, and its answer may
// have been delayed by the network or a frozen process.
func (l *loop) take(stop, kill context.Context, jobs []Job, sent time.Time, handler Handler) {
	deadline := sent.Add(l.request.JobTimeout - min(deadlineMargin, l.request.JobTimeout/10))
	l.count.Add(int64(len(jobs)))
	l.w.hooks.Add(inFlight, float64(len(jobs)))
	for i := range jobs {
		jobs[i].Deadline = deadline
		l.w.queue <- func() {
			l.w.serve(stop, kill, &jobs[i], handler)
			l.release()
		}
	}
}

func (l *loop) failed(err error) {
	if kindOf(err) == TooLarge {
		l.w.hooks.Add(oversized, 1, l.request.JobType)
		l.ask, l.careful = max(l.ask/2, 1), time.Now().Add(2*l.request.JobTimeout)
		l.w.log.Warn("jobs too large for one message; they come back after their time-out, asking for fewer at once",
			zap.String("jobType", l.request.JobType), zap.Int("atMost", l.ask), zap.Error(err))
	}
}

// room waits until the loop is below fullness and jobs can be handled. It returns false if stop ends.
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

// threshold returns the count of jobs from which on the loop is full enough.
func (l *loop) threshold() int64 { return (int64(l.w.cfg.MaxJobsActive)*fullness + 99) / 100 }

// release frees the place of an answered job.
func (l *loop) release() {
	l.w.hooks.Add(inFlight, -1)
	if l.count.Add(-1) < l.threshold() {
		l.freed.Send()
	}
}

// backoff paces repeated tries with doubling pauses between bounds. Each pause is drawn from its upper half, so that
// replicas do not move in step. Not for concurrent use.
type backoff struct {
	first, most, next time.Duration
	source            rand.PCG
}

// newBackoff returns a backoff whose draws depend on seed.
func newBackoff(first, most time.Duration, seed uint64) *backoff {
	return &backoff{first: first, most: most, next: first, source: *rand.NewPCG(seed, 0)}
}

func (b *backoff) reset() { b.next = b.first }

// draw returns the pause before the next try.
func (b *backoff) draw() time.Duration {
	pause := b.next/2 + time.Duration(b.source.Uint64()%uint64(b.next/2))
	b.next = min(2*b.next, b.most)
	return pause
}
