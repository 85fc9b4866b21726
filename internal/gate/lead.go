package gate

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"retry-worker/internal/clock"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

// Lease is the right to act, which one process has at a time.
const Lease = "gates"

const (
	// longestRest is how long nothing is looked for where nothing was heard: other processes write, too.
	longestRest = time.Second
	// shortestRest is between two looks, so that a busy journal is not followed record by record.
	shortestRest = 20 * time.Millisecond
	// callTime bounds one call of the journal or the engine.
	callTime = 5 * time.Second
	// mostFlying answers are on their way at once.
	mostFlying = 32
)

// Run follows the journal, and acts while Lead runs, until stop ends.
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
		case <-g.woken: // what follows looks at everything
		default:
		}
	}
}

// Lead has this process act until stop ends; what it began then goes on until hard ends. Who calls it holds the lease.
// Who acts begins with what is recorded: until that is read, people see what this process knew.
func (g *Gates) Lead(stop, hard context.Context) {
	g.betweenTurns(func() {
		if g.term = hard; g.read(hard) != nil {
			g.forget() // the turn that follows says why
		}
	})
	<-stop.Done()
	g.betweenTurns(func() {
		g.term = nil
		g.mu.Lock()
		defer g.mu.Unlock()
		g.leads, g.anew = false, true
	})
}

// betweenTurns calls do when a turn that has begun is over, and has the next begin at once.
func (g *Gates) betweenTurns(do func()) {
	g.turning <- struct{}{}
	defer func() { <-g.turning }()
	do()
	g.woken.Send()
}

// turn follows the journal and, where this process acts, acts. It reports whether all was done that was due.
func (g *Gates) turn(ctx context.Context) bool {
	g.turning <- struct{}{}
	defer func() { <-g.turning }()
	err, done := g.follow(ctx), true
	if err == nil && g.term != nil {
		done, err = g.release(g.term)
	}
	if g.report(err); err != nil {
		g.forget()
	}
	return done && err == nil
}

// forget has the journal read anew: what was not recorded did not happen.
func (g *Gates) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known, g.leads = nil, false
}

// report says once that nothing can be done, and why.
func (g *Gates) report(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if fails := err != nil && !errors.Is(err, context.Canceled); fails != g.told {
		g.told = fails
		if fails {
			g.Log.Warn("no claim that is held is let go until this is over", zap.String("event", "gates_wait"), zap.Error(err))
		} else {
			g.Log.Info("claims that are held are let go again", zap.String("event", "gates_go_on"))
		}
	}
}

// untilDue returns how long nothing is to be done.
func (g *Gates) untilDue() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	rest, now := time.Hour, g.Clock.Now()
	if g.known == nil || !g.leads { // what is due, somebody else does
		return rest
	}
	for _, d := range g.registry.All() {
		if at := d.Next(now); !at.IsZero() && !g.lost[d.Name] {
			rest = min(rest, max(at.Sub(now), 0))
		}
	}
	return rest
}

// release records what became of the destinations, and lets go whose turn it is. While answers wait nobody goes: they
// would come all at once when the engine is back. It reports whether no answer waits.
func (g *Gates) release(ctx context.Context) (answered bool, err error) {
	answered = g.deliver(ctx, false) == nil // else the engine is away: its loop says so
	departed := false
	for _, s := range g.look(ctx, answered) {
		if s.record != nil {
			if err := g.Memory.RecordDestination(ctx, s.gate.Name, *s.record); err != nil {
				return false, err
			}
			g.said(s.gate.Name, s.record)
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

// step is what one look at a destination came to.
type step struct {
	gate       *destination.Gate
	record     *journal.DestinationBody
	departures []departure
}

// departure is a claim that goes, or is given up.
type departure struct {
	journal.Departure
	held time.Duration
}

// look asks each gate whose turn it is, unless nobody goes, and returns what there is to do.
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

// due adds whose turn it is, and who is given up, and has the URL asked when it is to be. A canary goes while it is
// waited for: another one follows then.
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
		c := d.Settings.Probe // others are taken over while it is asked
		go func() { g.tellLater(d.Name, destination.Probed{OK: g.Probe(ctx, c.URL, c.Expect)}) }()
	}
}

func (g *Gates) leaves(s *step, h *destination.Held, now time.Time, d journal.Departure) {
	d.Subject, d.JobKey = g.subjects[h.Claim], jobOf(h.Claim)
	g.left.add(d.JobKey, now) // its record may be heard of late
	s.departures = append(s.departures, departure{d, now.Sub(h.Since)})
}

// change returns the record of a state that is another.
func (g *Gates) change(d *destination.Gate) *journal.DestinationBody {
	state, r := d.State, g.record(d.Name)
	r.written++
	b := &journal.DestinationBody{Version: r.written, State: &state, Read: g.seen}
	if n := len(r.Orders); n > 0 {
		b.Follows = r.Orders[n-1].Record
	}
	if d.Left != state.Phase {
		b.Went = d.Left
	}
	d.Changed, d.Left = false, ""
	return b
}

// whyGivenUp returns which of the two passes first.
func whyGivenUp(h *destination.Held) decision.Reason {
	if h.SendBy.IsZero() || !h.Limit.IsZero() && h.Limit.Before(h.SendBy) {
		return decision.ReasonTimeLimit
	}
	return decision.ReasonDeadline
}

// said writes that a destination is in another phase.
func (g *Gates) said(name string, b *journal.DestinationBody) {
	if b.Went == "" {
		return
	}
	write := g.Log.Info
	if b.State.Phase == destination.Down && b.Went == destination.Up {
		write = g.Log.Warn
	}
	write("a destination changed its state", zap.String("event", "destination_"+string(b.State.Phase)),
		zap.String("destination", g.Settings().Label(name)), zap.String("was", string(b.Went)),
		zap.String("cause", string(b.State.Outage.Cause)))
}

// each calls do for 0 to n-1, some at once, and returns the first error.
func each(n int, do func(i int) error) error {
	var flying errgroup.Group
	flying.SetLimit(mostFlying)
	for i := range n {
		flying.Go(func() error { return do(i) })
	}
	return flying.Wait()
}

// depart records who leaves a destination's gate, in their order as far as the journal takes several at once.
func (g *Gates) depart(ctx context.Context, s *step) error {
	label := g.Settings().Label(s.gate.Name)
	err := each(len(s.departures), func(i int) error {
		d := &s.departures[i]
		ok, err := g.Memory.Depart(ctx, &d.Departure)
		switch {
		case err != nil || !ok:
		case d.GiveUp != "":
			g.Hooks.GivenUp(d.Subject.Policy)
		default:
			g.Hooks.Released(label, d.Kind, d.held)
		}
		return err
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	s.gate.Leaving = false
	return err
}

// tellLater tells a destination what was found out meanwhile, where this process still acts.
func (g *Gates) tellLater(name string, e destination.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known != nil && g.leads {
		g.tell(name, e)
		g.woken.Send()
	}
}

// errUnanswered is why answers are sent again.
var errUnanswered = errors.New("the engine did not take an answer of a gate")

// unanswered returns what processes that wait at gates are to be told, with the messages' sequences. What is not what
// was signed is not sent.
func (g *Gates) unanswered(ctx context.Context) (sequences []int64, answers []journal.GateAnswer, err error) {
	page, err := g.Store.Pending(ctx, journal.GateQueue, 0, pageRecords)
	for i := range page {
		if a, forged := journal.ReadGateAnswer(&page[i]); forged != nil {
			g.once("an answer of a gate is not sent", forged)
		} else {
			sequences, answers = append(sequences, page[i].Sequence), append(answers, a)
		}
	}
	return sequences, answers, err
}

// deliver answers the processes whose turn has come; first tells that nobody may have answered them before.
func (g *Gates) deliver(ctx context.Context, first bool) error {
	for {
		done, answers, err := g.unanswered(ctx)
		if err != nil || len(answers) == 0 {
			return err
		}
		_ = each(len(answers), func(i int) error {
			if !g.answer(ctx, &answers[i], first) {
				done[i] = 0
			}
			return nil
		})
		done = slices.DeleteFunc(done, func(sequence int64) bool { return sequence == 0 })
		if err := g.Memory.Published(ctx, done); err != nil {
			return err
		}
		if len(done) < len(answers) {
			return errUnanswered
		}
	}
}

// answer answers one process, and reports whether that is done with.
func (g *Gates) answer(ctx context.Context, a *journal.GateAnswer, first bool) bool {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	action := worker.AnswerGate(ctx, g.Engine, a, g.Settings().Policies[a.Subject.Policy], g.Log)
	if action == worker.Released {
		return false
	}
	g.Hooks.Answered(worker.SubmissionGate, action)
	switch claim := claimOf(a.JobKey); {
	case a.Kind != destination.Test:
	case action == worker.Superseded && first: // it never left, as its process has ended
		g.tellLater(a.Destination, destination.Lost{Claim: claim})
	case action == worker.Completed && !first: // it left long after its turn, as the engine was away
		g.tellLater(a.Destination, destination.Departed{Claim: claim})
	}
	return true
}
