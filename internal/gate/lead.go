package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"retry-worker/internal/clock"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

// Lease is the name of the leader's lease.
const Lease = "gates"

const (
	// longestRest is the longest pause between two turns, as other processes write, too.
	longestRest = time.Second
	// shortestRest is the least pause between two turns, so that a busy journal is not followed record by record.
	shortestRest = 20 * time.Millisecond
	// callTime bounds one call of the journal or the engine.
	callTime = 5 * time.Second
	// readTime bounds reading all held claims, which takes a second or two for 100,000 and far longer for more.
	readTime = time.Minute
	// mostFlying is the most calls on their way at once.
	mostFlying = 32
)

// Run follows the journal until stop ends, and acts while Lead runs.
func (g *Gates) Run(stop context.Context) {
	for stop.Err() == nil {
		rest := longestRest / 4
		if g.turn(stop) {
			rest = g.untilDue()
		}
		clock.Machine{}.Rest(stop, shortestRest)
		ctx, cancel := context.WithTimeout(stop, longestRest)
		clock.RestOr(ctx, g.Clock, rest, g.woken)
		cancel()
		select {
		case <-g.woken: // the next turn looks at everything
		default:
		}
	}
}

// Lead makes this process lead until stop ends; calls under way then go on until hard ends. The caller holds the lease.
func (g *Gates) Lead(stop, hard context.Context) {
	g.betweenTurns(func() { g.term = hard })
	<-stop.Done()
	g.betweenTurns(func() {
		if g.term, g.anew = nil, true; g.known != nil {
			g.leads = false
		}
	})
}

// betweenTurns calls do after the current turn, and starts the next at once.
func (g *Gates) betweenTurns(do func()) {
	g.turning <- struct{}{}
	defer func() { <-g.turning }()
	g.mu.Lock()
	defer g.mu.Unlock()
	do()
	g.woken.Send()
}

// turn follows the journal and, if this process leads, acts. It reports whether everything due was done.
func (g *Gates) turn(ctx context.Context) bool {
	g.turning <- struct{}{}
	defer func() { <-g.turning }()
	err, done := g.follow(ctx), true
	if err == nil && g.term != nil {
		done, err = g.release(g.term)
	}
	g.report(err)
	return done && err == nil
}

// report logs once that turns fail, and once that they succeed again. After a failure the next turn reads the journal
// anew: changes that were not recorded are void.
func (g *Gates) report(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.known = nil
	}
	if fails := err != nil && !errors.Is(err, context.Canceled); fails != g.told {
		g.told = fails
		if fails {
			g.Log.Warn("no claim that is held is let go until this is over", zap.String("event", "gates_wait"), zap.Error(err))
		} else {
			g.Log.Info("claims that are held are let go again", zap.String("event", "gates_go_on"))
		}
	}
}

// untilDue returns the time until something is due.
func (g *Gates) untilDue() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	rest, now := time.Hour, g.Clock.Now()
	if g.known == nil || !g.leads { // the leader acts
		return rest
	}
	for _, d := range g.registry.All() {
		if at := d.Next(now); !at.IsZero() && !g.lost[d.Name] {
			rest = min(rest, max(at.Sub(now), 0))
		}
	}
	return rest
}

// release records changed States and releases the claims whose turn it is. While answers wait no claim is released, as
// all would go at once when the engine is back. It reports whether no answer waits.
func (g *Gates) release(ctx context.Context) (answered bool, err error) {
	answered = g.deliver(ctx, false) == nil // otherwise the engine is away, which its loop logs
	departed := false
	for _, s := range g.look(ctx, answered) {
		if s.record != nil {
			if err := g.Memory.RecordDestination(ctx, s.gate.Name, *s.record); err != nil {
				return false, err
			}
			g.logPhase(s.gate.Name, s.record)
		}
		if len(s.departures) > 0 {
			if err := g.depart(ctx, &s); err != nil {
				return false, err
			}
			departed = true
		}
	}
	return answered && (!departed || g.deliver(ctx, true) == nil), nil
}

// step is what to do for one destination.
type step struct {
	gate       *destination.Gate
	record     *journal.DestinationBody
	departures []departure
}

// departure is a claim that goes or is given up, and how long it was held.
type departure struct {
	journal.Departure
	held time.Duration
}

// look returns what there is to do for each destination. If goes is false no claim leaves.
func (g *Gates) look(ctx context.Context, goes bool) (steps []step) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.Clock.Now()
	for _, d := range g.registry.All() {
		if g.lost[d.Name] {
			continue
		}
		d.Believe(now)
		s := step{gate: d}
		if at := d.Next(now); goes && (d.Changed || !at.IsZero() && !now.Before(at)) {
			g.due(ctx, &s, now)
		}
		d.Leaving = len(s.departures) > 0
		if d.Changed {
			s.record = g.change(d)
		}
		if s.record != nil || d.Leaving {
			steps = append(steps, s)
		}
	}
	return steps
}

// due adds the claims that go or are given up to s, and asks the URL if it is time. A canary must go before
// CanaryTimeout, as another one follows then.
func (g *Gates) due(ctx context.Context, s *step, now time.Time) {
	d := s.gate
	released, givenUp, probe := d.Due(now)
	for i := range released {
		r := &released[i]
		going := journal.Departure{Kind: r.Kind, Reason: r.Reason(d.Name, g.Zone)}
		if r.Kind == destination.Test {
			going.Before = r.At.Add(destination.CanaryTimeout)
		} else {
			g.pass(d)
		}
		g.leaves(s, &r.Held, now, going)
	}
	for i := range givenUp {
		g.leaves(s, &givenUp[i], now, journal.Departure{GiveUp: whyGivenUp(&givenUp[i])})
	}
	if probe {
		c := d.Settings.Probe // a copy, as settings may change meanwhile
		go func() { g.tellLater(d.Name, destination.Probed{OK: g.Probe(ctx, c.URL, c.Expect)}) }()
	}
}

func (g *Gates) leaves(s *step, h *destination.Held, now time.Time, d journal.Departure) {
	d.Subject, d.JobKey = h.Subject, h.Claim
	g.left[d.JobKey] = now // its record may be followed late
	s.departures = append(s.departures, departure{d, now.Sub(h.Since)})
}

// change returns the body of the record of a changed State.
func (g *Gates) change(d *destination.Gate) *journal.DestinationBody {
	state, r := d.State, g.record(d.Name)
	r.written++
	b := &journal.DestinationBody{Version: r.written, State: &state, Read: g.seen}
	if n := len(r.Orders); n > 0 {
		b.Follows = r.Orders[n-1].Record
	}
	if was := cmp.Or(r.State.Phase, destination.Up); was != state.Phase {
		b.Went = was
	}
	d.Changed = false
	return b
}

// whyGivenUp returns which passes first, the total limit or the deadline.
func whyGivenUp(h *destination.Held) decision.Reason {
	if h.SendBy.IsZero() || !h.Limit.IsZero() && h.Limit.Before(h.SendBy) {
		return decision.ReasonTimeLimit
	}
	return decision.ReasonDeadline
}

// logPhase logs that a destination entered another phase.
func (g *Gates) logPhase(name string, b *journal.DestinationBody) {
	if b.Went == "" {
		return
	}
	write := g.Log.Info
	if b.State.Phase == destination.Down && b.Went == destination.Up {
		write = g.Log.Warn
	}
	write("a destination changed its state", zap.String("event", "destination_"+string(b.State.Phase)),
		zap.String("destination", g.Settings().Destinations.Label(name)), zap.String("was", string(b.Went)),
		zap.String("cause", string(b.State.Outage.Cause)))
}

// each calls do for 0 to n-1, up to mostFlying at once, and returns the first error.
func each(n int, do func(i int) error) error {
	var flying errgroup.Group
	flying.SetLimit(mostFlying)
	for i := range n {
		flying.Go(func() error { return do(i) })
	}
	return flying.Wait()
}

// depart records the departures from a destination's gate, roughly in their order.
func (g *Gates) depart(ctx context.Context, s *step) error {
	label := g.Settings().Destinations.Label(s.gate.Name)
	err := each(len(s.departures), func(i int) error {
		d := &s.departures[i]
		ok, err := g.Memory.Depart(ctx, &d.Departure)
		switch {
		case err != nil || !ok:
		case d.GiveUp != "":
			g.Hooks.Ended(d.Subject.Policy)
		default:
			g.Hooks.Add(released, 1, label, string(d.Kind))
			g.Hooks.Observe("retry_worker_held_seconds", d.held.Seconds())
		}
		return err
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	s.gate.Leaving = false
	return err
}

// tellLater applies an event to a destination, if this process still leads.
func (g *Gates) tellLater(name string, e destination.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known != nil && g.leads {
		g.tell(name, e)
		g.woken.Send()
	}
}

// errUnanswered says that the engine did not take an answer, which must be sent again.
var errUnanswered = errors.New("the engine did not take an answer of a gate")

// unanswered calls do with each page of the answers to processes at gates that are still to be sent, until do fails.
func (g *Gates) unanswered(ctx context.Context, do func(page []journal.Message) error) error {
	for after, more := int64(0), true; more; {
		page, err := g.Store.Pending(ctx, journal.GateQueue, after, pageRecords)
		if err == nil {
			err = do(page)
		}
		if err != nil {
			return err
		}
		if more = len(page) == pageRecords; more {
			after = page[len(page)-1].Sequence
		}
	}
	return nil
}

// deliver sends the waiting answers, without forged ones. first says that they were never sent before, but for stuck
// ones. Its error says that the engine did not take all the others.
func (g *Gates) deliver(ctx context.Context, first bool) error {
	return g.unanswered(ctx, func(page []journal.Message) (err error) {
		failures := make([]error, len(page))
		_ = each(len(page), func(i int) error {
			failures[i] = g.answer(ctx, &page[i], first)
			return nil
		})
		var done []int64
		for i, failure := range failures {
			switch {
			case failure == nil:
				done = append(done, page[i].Sequence)
			case !errors.Is(failure, errUnanswered):
				g.once("an answer of a gate is not sent", failure)
			case g.isStuck(&page[i]):
				g.once("the engine does not take an answer of a gate, so its claim does not go; the others do", failure)
			default:
				err = failure
			}
		}
		if len(done) == 0 {
			return err
		}
		return errors.Join(err, g.Memory.Published(ctx, done))
	})
}

// isStuck reports whether an answer waits for so long that the others need not wait for it: its job may be of a
// partition that is gone, while the engine answers others.
func (g *Gates) isStuck(m *journal.Message) bool {
	return g.Clock.Now().Sub(m.At).Abs() >= destination.CanaryTimeout
}

// answer answers one process. The error is errUnanswered, or says that the answer is forged.
func (g *Gates) answer(ctx context.Context, m *journal.Message, first bool) error {
	a, err := journal.ReadGateAnswer(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	first = first && !g.isStuck(m)
	action := worker.AnswerGate(ctx, g.Engine, &a, g.Settings().Policies[a.Subject.Policy], g.Log)
	if action == worker.Released {
		return fmt.Errorf("the job %d waits since %s: %w", a.JobKey, decision.Instant(a.At), errUnanswered)
	}
	g.Hooks.Add(worker.Answered, 1, worker.SubmissionGate, string(action))
	switch {
	case a.Kind != destination.Test:
	case action == worker.Superseded && first: // the canary never left: its process has ended
		g.tellLater(a.Destination, destination.Lost{Claim: a.JobKey})
	case action == worker.Completed && !first: // the canary left late: the engine was away
		g.tellLater(a.Destination, destination.Departed{Claim: a.JobKey})
	}
	return nil
}
