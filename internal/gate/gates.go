// Package gate runs the gates of destinations: it keeps up with what the journal says of them, holds claims that may
// not go, and lets them go when their turn comes.
//
// Each replica has one Gates, which follows the journal's records. While a destination is up and has no pace of its own,
// each lets claims through at once. The one that holds the lease alone acts on the rest: it records what becomes of a
// destination, releases claims and gives up those that cannot be sent in time.
package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

// Store is what Gates read of a journal's store.
type Store interface {
	journal.Holding
	// Records is journal.Archive's, Pending and AddAdmissions are journal.Outbox's.
	Records(ctx context.Context, f journal.RecordFilter, after int64, limit int) ([]journal.Record, error)
	Pending(ctx context.Context, queue string, after int64, limit int) ([]journal.Message, error)
	AddAdmissions(ctx context.Context, all []journal.Admission) error
}

// Memory records what Gates do (journal.Journal does).
type Memory interface {
	RecordDestination(ctx context.Context, name string, body journal.DestinationBody) error
	Depart(ctx context.Context, d *journal.Departure) (bool, error)
	Published(ctx context.Context, sequences []int64) error
}

// Settings are what the catalogue in force says of destinations, and of those who go there.
type Settings struct {
	Version    string
	Configured map[string]destination.Settings
	Otherwise  destination.Settings
	Policies   decision.Policies
}

// Label returns the name of a destination in metrics and the log, of which there is a closed set.
func (s Settings) Label(name string) string {
	if _, configured := s.Configured[name]; configured {
		return name
	}
	return destination.Other
}

// Hooks are told what happens; they must not block. A name that the catalogue does not configure is destination.Other.
type Hooks struct {
	// Admitted is called for a claim that passed at once.
	Admitted func(name string)
	// Released is called for one that was held and goes, GivenUp for one that cannot be sent in time.
	Released func(name string, kind destination.Kind, held time.Duration)
	GivenUp  func(policy string)
	// Wasted is called for a submission that failed because the destination was not up.
	Wasted func(name string)
	// Answered is called for each process that was answered.
	Answered func(jobType string, a worker.Action)
}

// NoHooks does nothing.
func NoHooks() Hooks {
	return Hooks{
		Admitted: func(string) {}, Released: func(string, destination.Kind, time.Duration) {}, GivenUp: func(string) {},
		Wasted: func(string) {}, Answered: func(string, worker.Action) {},
	}
}

// Options are what Gates are made with.
type Options struct {
	Store    Store
	Memory   Memory
	Engine   worker.GateEngine
	Settings func() Settings
	// Probe asks a URL, and reports whether it answers with one of those statuses.
	Probe func(ctx context.Context, url string, expect []int) bool
	Clock clock.Clock
	// Zone in which people are told when something was.
	Zone  *time.Location
	Hooks Hooks
	Log   *zap.Logger
}

// Gates are those of all destinations, as the journal has them. Their methods are safe for concurrent use.
type Gates struct {
	Options
	woken clock.Signal

	// turning holds a token for the length of a turn, and guards term: until when this process acts, nil while it does
	// not. It is no mutex, so that a bubble of testing/synctest sees who waits for it.
	turning chan struct{}
	term    context.Context

	mu     sync.Mutex
	*known // nil until the journal was read
	// anew: the journal is to be read anew, as what is known may not be recorded, or was rebuilt.
	anew bool
	// leads: this process acts. told: why it cannot was logged.
	leads, told bool
	left        leavers
	// passed are claims that this replica let through and that are not added to the sums of all; failing: a destination
	// fails, so that its breaker should know of them.
	passed  passed
	failing bool

	logged sync.Map // what is logged once
}

// New prepares Gates; Run has them follow the journal, Lead act.
func New(o Options) *Gates {
	return &Gates{Options: o, woken: clock.NewSignal(), turning: make(chan struct{}, 1), passed: passed{}}
}

// once logs an error the first time.
func (g *Gates) once(message string, err error) {
	if _, before := g.logged.LoadOrStore(message+err.Error(), true); !before {
		g.Log.Error(message, zap.String("event", "gates_unreadable"), zap.Error(err))
	}
}

// claimOf returns the name of a job in the queues and in its destination's records, which must not say whose it is.
func claimOf(jobKey int64) string { return strconv.FormatInt(jobKey, 10) }

func jobOf(claim string) int64 {
	key, _ := strconv.ParseInt(claim, 10, 64) // claimOf made it
	return key
}

// leavers are the jobs that left their gates in the last half of leaversFor, and in the one before.
type leavers struct {
	these, before map[int64]bool
	since         time.Time // of these
}

// leaversFor is how long the engine may not have heard that a job left, at most. A wiped broker's keys start over.
const leaversFor = 10 * time.Minute

func (l *leavers) add(jobKey int64, now time.Time) {
	if now.Sub(l.since) >= leaversFor/2 {
		l.these, l.before, l.since = map[int64]bool{}, l.these, now
	}
	l.these[jobKey] = true
}

// Admit reports whether a claim may go at once; deadline is its own, zero for none. The others are held, and the leader
// releases them. A job that is held, or left its gate without the engine's hearing of it, may not.
func (g *Gates) Admit(name string, jobKey int64, deadline time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.Clock.Now()
	if g.known == nil || g.left.these[jobKey] || g.left.before[jobKey] || !deadline.IsZero() && !deadline.After(now) {
		return false
	}
	if _, held := g.subjects[claimOf(jobKey)]; held {
		return false
	}
	d := g.registry.Gate(name, now)
	if g.lost[d.Name] || !(g.leads && d.Admit(now) || !g.leads && d.IsFree(now)) {
		return false
	}
	g.pass(d)
	g.Hooks.Admitted(g.Settings().Label(name))
	return true
}

// Expected returns when a destination that is down is expected back, otherwise zero.
func (g *Gates) Expected(name string) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil {
		return time.Time{}
	}
	now := g.Clock.Now()
	return g.registry.Expected(&g.registry.Gate(name, now).State, now)
}

// Destination is one as people see it.
type Destination struct {
	Name     string
	State    destination.State
	Settings destination.Settings
	// Held claims, and what they are worth.
	Held  int
	Cents int64
	// Unrecorded reports whether State is not recorded yet: something has just happened, or was ordered.
	Unrecorded bool
	// Oldest is since when the claim is held that is held longest, Deadline the nearest of all; zero for none.
	Oldest, Deadline time.Time
	// Back is when it is expected back; zero where it is not down, or too little is known.
	Back destination.Back
}

// Label returns what people call it.
func (d *Destination) Label() string { return cmp.Or(d.Settings.Label.String(), d.Name) }

// Claim is one that is held, as people see it.
type Claim struct {
	destination.Held
	Subject journal.Subject
}

// Destinations returns those that are configured or were asked for, by their names; journal.ErrUnavailable until the
// journal was read.
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
	back, _ := k.registry.Back(&d.State, now)
	r := k.record(d.Name)
	unrecorded := d.Changed || len(r.Orders) > 0 || r.Version < r.written
	return Destination{d.Name, d.State, d.Settings, d.Queue.Len(), cents, unrecorded, oldest, deadline, back}
}

// ErrUnknown is why nothing is told or ordered of a destination: nobody knows its name.
var ErrUnknown = errors.New("no destination of this name is configured, or was asked for; GET /api/v1/destinations and " +
	"`retry-worker destinations list` have their names")

// shown claims of one destination.
const shown = 50

// Destination returns one with the claims whose turn is next. It fails as Destinations does, or with ErrUnknown.
func (g *Gates) Destination(name string) (Destination, []Claim, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil {
		return Destination{}, nil, journal.ErrUnavailable
	}
	d := g.registry.Find(name)
	if d == nil {
		return Destination{}, nil, ErrUnknown
	}
	var claims []Claim
	for _, h := range d.Queue.Next(shown) {
		claims = append(claims, Claim{h, g.subjects[h.Claim]})
	}
	return g.describe(d, g.Clock.Now()), claims, nil
}

// CommandError is what is wrong with an order.
type CommandError struct {
	// Code is invalid_until or invalid_pace.
	Code, Message string
}

func (e *CommandError) Error() string { return e.Message }

// Command has a person's order recorded, which whoever acts then follows. It fails with a *CommandError,
// journal.ErrReasonRequired, or as Destination and RecordDestination do.
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
			return &CommandError{"invalid_until",
				"until is missing, past or more than 7 days ahead, expected an instant such as 2026-03-01T18:00:00-03:00"}
		}
	case destination.ReleaseAt:
		if !(o.PerMinute > 0 && o.PerMinute <= most) {
			return &CommandError{"invalid_pace", fmt.Sprintf(
				"perMinute is %g, expected more than 0 and at most %g, the destination's pace.most", o.PerMinute, most)}
		}
	}
	return g.Memory.RecordDestination(ctx, name, journal.DestinationBody{Command: &o})
}
