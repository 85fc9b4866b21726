package gate

import (
	"context"
	"errors"
	"slices"
	"strings"
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
	for waits := true; stop.Err() == nil; { // answers may be on their way from before
		waits = g.turn(stop, waits)
		g.rest(stop, g.next(waits))
	}
}

// Lead has this process act until stop ends; what it began then goes on until hard ends. Who calls it holds the lease.
func (g *Gates) Lead(stop, hard context.Context) {
	g.act(&term{hard})
	<-stop.Done()
	g.act(nil)
}

// term is the time for which this process acts.
type term struct{ hard context.Context }

// act sets the term, nil for none; a turn that has begun is awaited. Who acts begins with what is recorded: until that is
// read, people see what this process knew.
func (g *Gates) act(t *term) {
	g.turning <- struct{}{}
	defer func() { <-g.turning }()
	if g.term = t; t == nil {
		g.mu.Lock()
		g.leads, g.anew = false, true
		g.mu.Unlock()
	} else if g.read(t.hard) != nil {
		g.forget() // the turn that follows says why
	}
	g.woken.Send()
}

// turn follows the journal and, where this process acts, acts; waits tells that answers may be on their way, before and
// after.
func (g *Gates) turn(ctx context.Context, waits bool) bool {
	g.turning <- struct{}{}
	defer func() { <-g.turning }()
	err := g.follow(ctx)
	if g.term == nil {
		waits = true
	} else if err == nil {
		late := g.wasLate()
		waits, err = g.release(g.term.hard, waits || late)
	}
	if g.report(err); err != nil {
		g.forget()
	}
	return waits || err != nil
}

// wasLate reports whether another process has released a claim since it was asked last, which may not answer it any more.
func (g *Gates) wasLate() (late bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	late, g.late = g.late, false
	return late
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

// rest until something was heard, at most longestRest, or that long by the clock.
func (g *Gates) rest(stop context.Context, atMost time.Duration) {
	clock.Machine{}.Rest(stop, shortestRest)
	ctx, cancel := context.WithTimeout(stop, longestRest)
	defer cancel()
	clock.RestOr(ctx, g.Clock, atMost, g.woken)
	select {
	case <-g.woken: // what follows looks at everything
	default:
	}
}

// next is how long nothing is to be done; waits tells that answers are to be sent again.
func (g *Gates) next(waits bool) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	rest, now := time.Hour, g.Clock.Now()
	switch {
	case g.known != nil && !g.leads: // what is due, somebody else does
		return rest
	case g.known == nil || waits:
		return longestRest / 4
	}
	g.registry.Each(func(d *destination.Gate) {
		if at := d.Next(); !at.IsZero() && !g.lost[d.Name] {
			rest = min(rest, max(at.Sub(now), 0))
		}
	})
	return rest
}

// departure is a claim that goes, or is given up.
type departure struct {
	journal.Departure
	destination string
	held        time.Duration
}

// step is what one look at a destination came to.
type step struct {
	name       string
	record     *journal.DestinationBody
	departures []departure
	probe      *destination.Probe
}

// release records what became of the destinations, and lets go whose turn it is. While answers wait, of which waits
// tells that there may be some, nobody goes: they would come all at once when the engine is back.
func (g *Gates) release(ctx context.Context, waits bool) (stillWaits bool, err error) {
	goes := !waits || g.deliver(ctx, false) == nil // else the engine is away: its loop says so
	departed := false
	for _, s := range g.look(goes) {
		if s.probe != nil {
			go g.probe(ctx, s.name, s.probe)
		}
		if s.record != nil {
			if err := g.Memory.RecordDestination(ctx, s.name, *s.record); err != nil {
				return true, err
			}
			g.said(s.name, s.record)
		}
		if len(s.departures) == 0 {
			continue
		}
		if err := g.depart(ctx, &s); err != nil {
			return true, err
		}
		departed = true
	}
	return !goes || departed && g.deliver(ctx, true) != nil, nil
}

// look asks each gate whose turn it is, unless nobody goes, and returns what there is to do by their names.
func (g *Gates) look(goes bool) (steps []step) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.Clock.Now()
	g.registry.Each(func(d *destination.Gate) {
		if g.lost[d.Name] {
			return
		}
		d.Believe(now)
		s := step{name: d.Name}
		if goes {
			g.due(d, &s, now)
		}
		d.Leaving = len(s.departures) > 0
		if d.Changed {
			s.record = g.change(d)
		}
		if s.record != nil || s.probe != nil || len(s.departures) > 0 {
			steps = append(steps, s)
		}
	})
	slices.SortFunc(steps, func(a, b step) int { return strings.Compare(a.name, b.name) })
	return steps
}

// due adds whose turn it is, and who is given up.
func (g *Gates) due(d *destination.Gate, s *step, now time.Time) {
	g.resend(d, s)
	if at := d.Next(); len(s.departures) == 0 && !d.Changed && (at.IsZero() || now.Before(at)) {
		return
	}
	released, givenUp, probe := d.Due(now)
	for i := range released {
		r := &released[i]
		if r.Kind != destination.Test {
			g.pass(d)
		}
		s.add(g, &r.Held, now, g.departureOf(d, r))
	}
	for i := range givenUp {
		s.add(g, &givenUp[i], now, journal.Departure{GiveUp: whyGivenUp(&givenUp[i])})
	}
	if probe {
		s.probe = new(d.Settings.Probe) // others are taken over while it is asked
	}
}

// change returns the record of a state that is another.
func (g *Gates) change(d *destination.Gate) *journal.DestinationBody {
	state := d.State
	g.versions[d.Name]++
	b := &journal.DestinationBody{Version: g.versions[d.Name], State: &state}
	if orders := g.orders[d.Name]; len(orders) > 0 {
		b.Follows = orders[len(orders)-1].Record
	}
	if d.Left != state.Phase {
		b.Went = d.Left
	}
	d.Changed, d.Left = false, ""
	return b
}

func (s *step) add(g *Gates, h *destination.Held, now time.Time, d journal.Departure) {
	d.Subject, d.JobKey = g.subjects[h.Claim], jobOf(h.Claim)
	g.left.add(d.JobKey, now) // its record may be heard of late
	s.departures = append(s.departures, departure{d, s.name, now.Sub(h.Since)})
}

// resend sends the canary again that was recorded and is still held: who recorded it ended before it could go.
func (g *Gates) resend(d *destination.Gate, s *step) {
	now, sent := g.Clock.Now(), d.State.Canary.Sent
	if d.State.Phase != destination.Testing || !now.Before(sent.Add(destination.CanaryTimeout)) {
		return
	}
	if h, held := d.Queue.Remove(d.State.Canary.Claim); held {
		r := destination.Release{Held: h, Kind: destination.Test, At: sent, Outage: d.State.Outage}
		s.add(g, &h, now, g.departureOf(d, &r))
	}
}

// departureOf returns how a claim goes. A canary goes while it is waited for: another one follows then.
func (g *Gates) departureOf(d *destination.Gate, r *destination.Release) journal.Departure {
	going := journal.Departure{Kind: r.Kind, Reason: r.Reason(d.Name, g.Zone)}
	if r.Kind == destination.Test {
		going.Before = r.At.Add(destination.CanaryTimeout)
	}
	return going
}

// whyGivenUp is which of the two passes first.
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
	write("a destination is in another state", zap.String("event", "destination_"+string(b.State.Phase)),
		zap.String("destination", g.Settings().Label(name)), zap.String("was", string(b.Went)),
		zap.String("cause", string(b.State.Outage.Cause)))
}

// depart records who leaves a destination's gate, in their order as far as the journal takes several at once.
func (g *Gates) depart(ctx context.Context, s *step) error {
	var flying errgroup.Group
	flying.SetLimit(mostFlying)
	for i := range s.departures {
		d := &s.departures[i]
		flying.Go(func() error {
			ok, err := g.Memory.Depart(ctx, &d.Departure)
			if err == nil && ok {
				g.counted(d)
			}
			return err
		})
	}
	err := flying.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.registry.Gate(s.name, g.Clock.Now()).Leaving = false
	return err
}

func (g *Gates) counted(d *departure) {
	if d.GiveUp != "" {
		g.Hooks.GivenUp(d.Subject.Policy)
		return
	}
	g.Hooks.Released(g.Settings().Label(d.destination), d.Kind, d.held)
}

// probe asks the destination's URL.
func (g *Gates) probe(ctx context.Context, name string, p *destination.Probe) {
	ok := g.Probe(ctx, p.URL, p.Expect)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known != nil && g.leads {
		g.registry.Gate(name, g.Clock.Now()).Apply(destination.Probed{OK: ok}, g.Clock.Now())
		g.woken.Send()
	}
}

// errUnanswered is why answers are sent again.
var errUnanswered = errors.New("the engine did not take an answer of a gate")

// deliver answers the processes whose turn has come; first tells that nobody may have answered them before.
func (g *Gates) deliver(ctx context.Context, first bool) error {
	for {
		page, err := g.Store.Pending(ctx, journal.GateQueue, 0, pageRecords)
		page = slices.DeleteFunc(page, func(m journal.Message) bool {
			forged := m.Held()
			if forged != nil {
				g.forged.Do(func() { g.Log.Error("an answer of a gate is not sent", zap.Error(forged)) })
			}
			return forged != nil
		})
		if err != nil || len(page) == 0 {
			return err
		}
		sent, done := make([]bool, len(page)), make([]int64, 0, len(page))
		var flying errgroup.Group
		flying.SetLimit(mostFlying)
		for i := range page {
			flying.Go(func() error { sent[i] = g.answer(ctx, &page[i], first); return nil })
		}
		_ = flying.Wait()
		for i := range page {
			if sent[i] {
				done = append(done, page[i].Sequence)
			}
		}
		if err := g.Memory.Published(ctx, done); err != nil {
			return err
		}
		if len(done) < len(page) {
			return errUnanswered
		}
	}
}

// answer answers one process, and reports whether that is done with.
func (g *Gates) answer(ctx context.Context, m *journal.Message, first bool) bool {
	a, err := journal.ReadGateAnswer(m)
	if err != nil {
		g.Log.Error("an answer of a gate cannot be read", zap.Error(err))
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	action := worker.AnswerGate(ctx, g.Engine, &a, g.Settings().Policies[a.Subject.Policy], g.Log)
	if action == worker.Released {
		return false
	}
	g.Hooks.Answered(worker.SubmissionGate, action)
	if a.Kind == destination.Test {
		g.canary(&a, action, first)
	}
	return true
}

// canary takes in how a canary left the gate: never, as its process has ended, or long after its turn, as the engine was
// away.
func (g *Gates) canary(a *journal.GateAnswer, action worker.Action, first bool) {
	var e destination.Event
	switch {
	case action == worker.Superseded && first:
		e = destination.Lost{Claim: claimOf(a.JobKey)}
	case action == worker.Completed && !first:
		e = destination.Departed{Claim: claimOf(a.JobKey)}
	default:
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known != nil {
		g.registry.Gate(a.Destination, g.Clock.Now()).Apply(e, g.Clock.Now())
	}
}
