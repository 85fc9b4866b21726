// Package gate runs the gates of destinations: it follows the journal's records about them, holds claims that may not
// go yet, and releases them when their turn comes.
//
// Each replica has one Gates. While a destination is up and has no pace of its own, every replica lets claims through
// at once. The rest is done by the leader alone, which holds the lease: it records destinations' states, releases
// claims and gives up those that cannot be sent in time.
package gate

import (
	"cmp"
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

// Store is what Gates needs of a journal's store.
type Store interface {
	journal.Reader
	// Pending and AddAdmissions are journal.Outbox's.
	Pending(ctx context.Context, queue string, after int64, limit int) ([]journal.Message, error)
	AddAdmissions(ctx context.Context, all []journal.Admission) error
}

// Memory records what Gates does (journal.Journal does).
type Memory interface {
	RecordDestination(ctx context.Context, name string, body journal.DestinationBody) error
	Depart(ctx context.Context, d *journal.Departure) (bool, error)
	Published(ctx context.Context, sequences []int64) error
}

// Settings are the catalogue's destinations and policies.
type Settings struct {
	Version      string
	Destinations destination.Configured
	Policies     decision.Policies
}

// released counts claims that went, by destination and why. One that is not configured is named destination.Other.
const released = "retry_worker_released_total"

// Options are the parameters of New.
type Options struct {
	Store    Store
	Memory   Memory
	Engine   worker.Engine
	Settings func() Settings
	// Probe asks a URL, and reports whether it answers with a status of expect.
	Probe func(ctx context.Context, url string, expect []int) bool
	Clock clock.Clock
	// Zone is the time zone of texts for people.
	Zone  *time.Location
	Hooks worker.Hooks
	Log   *zap.Logger
}

// Gates holds the gates of all destinations. Its methods are safe for concurrent use.
type Gates struct {
	Options
	woken clock.Signal

	// turning holds a token during a turn. It guards term, the context of this process's lead; nil while it does not
	// lead. It is no mutex, so that testing/synctest sees goroutines that wait for it.
	turning chan struct{}
	term    context.Context

	mu     sync.Mutex
	*known // nil until the journal is read
	// anew: the journal must be read anew, as known may differ from it.
	anew bool
	told bool                // the failure was logged
	left map[int64]time.Time // when jobs left their gates
	// passed are this replica's admissions that are not stored yet. failing: a destination fails, so store them at
	// once.
	passed  passed
	failing bool

	logged sync.Map // errors that were logged
}

// New returns Gates. Run makes them follow the journal, Lead makes them act.
func New(o Options) *Gates {
	return &Gates{Options: o, woken: clock.NewSignal(), turning: make(chan struct{}, 1),
		left: map[int64]time.Time{}, passed: passed{}}
}

// once logs an error, but not twice.
func (g *Gates) once(message string, err error) {
	if _, before := g.logged.LoadOrStore(message+err.Error(), true); !before {
		g.Log.Error(message, zap.String("event", "gates_fault"), zap.Error(err))
	}
}

// leaversFor is the longest time in which the engine may not know that a job left its gate. It is bounded, as a wiped
// broker reuses keys.
const leaversFor = 10 * time.Minute

// Admit reports whether a claim may go at once; deadline is its own, zero for none. A job that is held, or left its
// gate lately, may not: the engine may not know yet.
func (g *Gates) Admit(name string, jobKey int64, deadline time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.Clock.Now()
	if g.known == nil || now.Sub(g.left[jobKey]) < leaversFor || !deadline.IsZero() && !deadline.After(now) ||
		g.registry.Holds(jobKey) {
		return false
	}
	d := g.registry.Gate(name, now)
	if g.lost[d.Name] || !(g.leads && d.Admit(now) || !g.leads && d.IsFree(now)) {
		return false
	}
	g.pass(d)
	g.Hooks.Add(released, 1, g.Settings().Destinations.Label(name), string(destination.Pass))
	return true
}

// Expected returns when a destination is expected back; zero if it is not down.
func (g *Gates) Expected(name string) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil {
		return time.Time{}
	}
	now := g.Clock.Now()
	state := g.registry.Gate(name, now).At(now)
	return g.registry.Expected(&state, now)
}

// Destination is a destination as people see it.
type Destination struct {
	Name     string
	State    destination.State
	Settings destination.Settings
	// Held is the number of held claims, Cents their value.
	Held  int
	Cents int64
	// Unrecorded reports whether State, or an order, is still to be recorded by the leader.
	Unrecorded bool
	// Oldest is since when the first of them is held, Deadline their nearest deadline; zero for none.
	Oldest, Deadline time.Time
	// Back is when it is expected back; zero if it is not down, or too little is known.
	Back destination.Back
}

// Label returns the name that people use.
func (d *Destination) Label() string { return cmp.Or(d.Settings.Label.String(), d.Name) }

// Destinations returns the destinations that are configured or were asked for, sorted by name. Its error is
// journal.ErrUnavailable until the journal is read.
func (g *Gates) Destinations() (all []Destination, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil {
		return nil, journal.ErrUnavailable
	}
	now := g.Clock.Now()
	for _, d := range g.registry.All() {
		all = append(all, g.describe(d, now))
	}
	return all, nil
}

// describe returns a destination as people see it.
func (k *known) describe(d *destination.Gate, now time.Time) Destination {
	oldest, deadline, cents := d.Queue.Sum()
	state := d.At(now)
	back, _ := k.registry.Back(&state, now)
	r := k.record(d.Name)
	unrecorded := d.Changed || len(r.Orders) > 0 || r.Version < r.written
	return Destination{d.Name, state, d.Settings, d.Queue.Len(), cents, unrecorded, oldest, deadline, back}
}

// ErrUnknown says that no destination has the name.
var ErrUnknown = journal.Refuse("destination_not_found", "no destination of this name is configured, or was asked for; GET /api/v1/destinations and "+
	"`retry-worker destinations list` have their names")

// shown is how many claims of a destination are shown.
const shown = 50

// Destination returns a destination with the claims whose turn is next. Its errors are ErrUnknown and that of
// Destinations.
func (g *Gates) Destination(name string) (Destination, []destination.Held, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil {
		return Destination{}, nil, journal.ErrUnavailable
	}
	d := g.registry.Find(name)
	if d == nil {
		return Destination{}, nil, ErrUnknown
	}
	return g.describe(d, g.Clock.Now()), d.Queue.Next(shown), nil
}

// Command records a person's order, which the leader then follows. Its errors are a *journal.Refusal and those of
// Destination and journal.Journal.RecordDestination.
func (g *Gates) Command(ctx context.Context, name string, o destination.Order) error {
	d, _, err := g.Destination(name)
	if err != nil {
		return err
	}
	now, most := g.Clock.Now(), d.Settings.Pace.Most
	switch o.Verb {
	case destination.HoldClaims, destination.TreatAsUp:
		o.Until = o.Until.UTC().Truncate(time.Millisecond)
		if !o.Until.After(now) || o.Until.After(now.Add(destination.LongestOrder)) {
			return journal.Refuse("invalid_until",
				"until is missing, past or more than 7 days ahead, expected an instant such as 2026-03-01T18:00:00-03:00")
		}
	case destination.ReleaseAt:
		if !(o.PerMinute > 0 && o.PerMinute <= most) {
			return journal.Refuse("invalid_pace",
				"perMinute is %g, expected more than 0 and at most %g, the destination's pace.most", o.PerMinute, most)
		}
	}
	return g.Memory.RecordDestination(ctx, name, journal.DestinationBody{Command: &o})
}
