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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unique"

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

	// turning holds a token for the length of a turn, and guards term: while this process acts, otherwise nil. It is no
	// mutex, so that a bubble of testing/synctest sees who waits for it.
	turning chan struct{}
	term    *term

	mu     sync.Mutex
	*known      // nil until the journal was read
	behind bool // there may be records in the store that were not taken in
	// anew: the journal is to be read anew, as what is known may not be recorded.
	anew bool
	// looked is when the store was asked last, by this machine's clock.
	looked time.Time
	left   leavers
	// passed are claims that this replica let through and that are not added to the sums of all; failing: a destination
	// fails, so that its breaker should know of them.
	passed  passed
	failing bool
	// leads: this process acts. told: why it cannot was logged. late: another process released a claim.
	leads, told, late bool

	forged     sync.Once // an answer that is not what was signed was logged
	unreadable sync.Map  // what was logged of records and states that cannot be read
}

// known is what the journal has of destinations.
type known struct {
	registry *destination.Registry
	version  string                                // of the catalogue that the registry is configured by
	subjects map[string]journal.Subject            // of those that are held, by their claims in the queues
	lost     map[string]bool                       // destinations whose state cannot be read: nobody goes there
	orders   map[string][]journal.DestinationOrder // that nobody has followed yet
	// versions are those of the states that are recorded or being recorded, heard those that were heard of.
	versions, heard map[string]int64
	weighed         passed // that the breakers have counted
	seen            int64  // the last record that was taken in
}

func newKnown(s *Settings, now time.Time) *known {
	return &known{
		registry: destination.NewRegistry(s.Configured, s.Otherwise, now), version: s.Version,
		subjects: map[string]journal.Subject{}, lost: map[string]bool{},
		orders:   map[string][]journal.DestinationOrder{},
		versions: map[string]int64{}, heard: map[string]int64{}, weighed: passed{},
	}
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

func (l *leavers) has(jobKey int64) bool { return l.these[jobKey] || l.before[jobKey] }

// New prepares Gates; Run has them follow the journal, Lead act.
func New(o Options) *Gates {
	return &Gates{Options: o, woken: clock.NewSignal(), turning: make(chan struct{}, 1), passed: passed{}}
}

// claimOf returns the name of a job in the queues and in its destination's records, which must not say whose it is.
func claimOf(jobKey int64) string { return strconv.FormatInt(jobKey, 10) }

func jobOf(claim string) int64 {
	key, _ := strconv.ParseInt(claim, 10, 64) // claimOf made it
	return key
}

// Admit reports whether a claim may go at once; deadline is its own, zero for none. The others are held, and the leader
// releases them. A job that is held, or left its gate without the engine's hearing of it, may not.
func (g *Gates) Admit(name string, jobKey int64, deadline time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.Clock.Now()
	if g.known == nil || g.left.has(jobKey) || !deadline.IsZero() && !deadline.After(now) {
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

// Recorded takes in what this process's journal recorded (journal.Hooks).
func (g *Gates) Recorded(records []journal.Happening) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil || g.behind || records[0].Number() != g.seen+1 { // another process has written, too
		g.behind = true
		g.woken.Send()
		return
	}
	wakes := false
	for i := range records {
		wakes = g.take(records[i].Record) || wakes
	}
	if wakes {
		g.woken.Send()
	}
}

// take takes in the record that follows, and reports whether it is about a destination.
func (g *Gates) take(r journal.Record) bool {
	g.seen = r.Number()
	return g.hear(r)
}

// hear takes in what a record says, and reports whether it is about a destination. What cannot be read says nothing.
func (g *Gates) hear(r journal.Record) bool {
	s, e := r.Subject, r.Entry
	if g.leads && g.evidence(&r) {
		return true
	}
	switch {
	case r.Attempt != nil:
		fails := r.Attempt.Tells == journal.TellsFailed
		g.failing = g.failing || fails
		return fails
	case e.Kind == journal.GateEntry:
		g.gate(s, e)
	case e.Kind == journal.DestinationEntry:
		g.destination(s.ID, e)
	default:
		return false
	}
	return true
}

// evidence tells a destination what a record says of it, and reports whether that is anything. The one that acts alone
// weighs it: the others know a destination as it is recorded.
func (g *Gates) evidence(r *journal.Record) bool {
	if r.Attempt != nil {
		return g.attempt(r.Attempt)
	}
	if r.Entry.Kind != journal.OutcomeEntry && r.Entry.Kind != journal.GateEntry {
		return false
	}
	sent, err := journal.ReadSent(r.Entry)
	if err != nil || sent.JobKey == 0 {
		return false
	}
	now := g.Clock.Now()
	g.registry.Gate(sent.Destination, now).Apply(destination.Answered{Claim: claimOf(sent.JobKey), Sent: sent.At}, now)
	return true
}

// attempt tells a destination of a failure, and reports whether that says something of it.
func (g *Gates) attempt(a *journal.Attempt) bool {
	now := g.Clock.Now()
	claim, sent := "", a.Sent.At
	if !sent.IsZero() {
		claim = claimOf(a.Sent.JobKey)
	}
	if a.Tells == "" {
		if claim != "" {
			g.registry.Gate(a.Sent.Destination, now).Apply(destination.Unclear{Claim: claim}, now)
		}
		return claim != ""
	}
	d := g.registry.Gate(a.Destination, now)
	if claim == "" && d.State.Phase == destination.Ramping && d.State.Outage.Tests > 0 {
		sent = d.State.Outage.Since // its gate let it go before: what goes now has a.Sent
	}
	switch a.Tells {
	case journal.TellsFailed:
		if d.State.Phase != destination.Up {
			g.Hooks.Wasted(g.Settings().Label(d.Name))
		}
		d.Apply(destination.Failed{Claim: claim, Sent: sent}, now)
	case journal.TellsAnswered:
		d.Apply(destination.Answered{Claim: claim, Sent: sent}, now)
	case journal.TellsRateLimited:
		d.Apply(destination.RateLimited{Claim: claim, Sent: sent, RetryAfter: a.RetryAfter}, now)
	}
	return true
}

// gate takes in that a claim is held, or is no more.
func (g *Gates) gate(s journal.Subject, e *journal.Entry) {
	b, err := journal.BodyOf[journal.GateBody](e)
	switch {
	case err != nil || b.Action == journal.GateAnswered:
	case b.Action == journal.GateHeld:
		g.hold(s, &b.HeldJob)
	default:
		claim, now := claimOf(b.JobKey), g.Clock.Now()
		delete(g.subjects, claim)
		g.late = g.late || !g.left.has(b.JobKey)
		g.left.add(b.JobKey, now)
		g.registry.Gate(b.Destination, now).Queue.Remove(claim)
	}
}

func (k *known) hold(s journal.Subject, h *journal.HeldJob) {
	claim := claimOf(h.JobKey)
	k.subjects[claim] = journal.Subject{
		Tenant: unique.Make(s.Tenant).Value(), Policy: unique.Make(s.Policy).Value(), ID: s.ID,
	}
	k.registry.Gate(h.Destination, h.Since).Hold(destination.Held{Claim: claim, Since: h.Since, Deadline: h.Deadline,
		Limit: h.Limit, RetriesLeft: h.MaxRetries - h.Retries, Cents: h.Context.Cents()})
}

// destination takes in what was recorded of a destination, or ordered.
func (g *Gates) destination(name string, e *journal.Entry) {
	b, err := journal.BodyOf[journal.DestinationBody](e)
	if err != nil {
		return
	}
	now := g.Clock.Now()
	d := g.registry.Gate(name, now)
	if b.State != nil {
		g.heard[d.Name] = b.Version
		g.orders[d.Name] = slices.DeleteFunc(g.orders[d.Name], func(o journal.DestinationOrder) bool {
			return o.Record <= b.Follows
		})
		if b.Version > g.versions[d.Name] { // another process's
			g.versions[d.Name] = b.Version
			d.Take(*b.State, now)
			for _, o := range g.orders[d.Name] {
				order(d, &o.DestinationCommand, now)
			}
		}
	}
	if b.Command != nil {
		ordered := journal.DestinationOrder{Record: e.Record, DestinationCommand: *b.Command}
		g.orders[d.Name] = append(g.orders[d.Name], ordered)
		order(d, b.Command, now)
	}
}

// order has a destination follow what a person ordered: people see that at once.
func order(d *destination.Gate, c *journal.DestinationCommand, now time.Time) {
	switch c.Verb {
	case journal.HoldClaims:
		d.Apply(destination.Hold{Until: c.Until}, now)
	case journal.SendCanary:
		d.Apply(destination.TestNow{}, now)
	case journal.ReleaseAt:
		d.Apply(destination.ReleaseAt{Pace: c.PerMinute}, now)
	case journal.TreatAsUp:
		d.Apply(destination.TreatAsUp{Until: c.Until}, now)
	}
	d.Changed = true
}

// Destination is one as people see it.
type Destination struct {
	Name     string
	State    destination.State
	Settings destination.Settings
	Held     int
	// Unrecorded reports whether State is not recorded yet: something has just happened, or was ordered.
	Unrecorded bool
	// Oldest is since when the claim is held that is held longest, Deadline the nearest of all; zero for none.
	Oldest, Deadline time.Time
	// Back is when it is expected back; zero where it is not down, or too little is known.
	Back destination.Back
}

// Claim is one that is held, as people see it.
type Claim struct {
	destination.Held
	Subject journal.Subject
}

// Destinations returns those that are configured or were asked for, by their names; journal.ErrUnavailable until the
// journal was read.
func (g *Gates) Destinations() ([]Destination, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil {
		return nil, journal.ErrUnavailable
	}
	now := g.Clock.Now()
	var all []Destination
	g.registry.Each(func(d *destination.Gate) { all = append(all, g.tell(d, now)) })
	slices.SortFunc(all, func(a, b Destination) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Label returns what people call it.
func (d *Destination) Label() string { return cmp.Or(d.Settings.Label, d.Name) }

// tell returns a destination as people see it.
func (k *known) tell(d *destination.Gate, now time.Time) Destination {
	oldest, deadline := d.Queue.Bounds()
	back, _ := k.registry.Back(&d.State, now)
	unrecorded := d.Changed || len(k.orders[d.Name]) > 0 || k.heard[d.Name] < k.versions[d.Name]
	return Destination{d.Name, d.State, d.Settings, d.Queue.Len(), unrecorded, oldest, deadline, back}
}

// shown claims of one destination.
const shown = 50

// Destination returns one with the claims whose turn is next. It fails as Destinations does, or with ErrUnknown.
func (g *Gates) Destination(name string) (Destination, []Claim, error) {
	if _, err := g.find(name); err != nil {
		return Destination{}, nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil {
		return Destination{}, nil, journal.ErrUnavailable
	}
	now := g.Clock.Now()
	d := g.registry.Gate(name, now)
	var claims []Claim
	for _, h := range d.Queue.Next(shown) {
		claims = append(claims, Claim{h, g.subjects[h.Claim]})
	}
	return g.tell(d, now), claims, nil
}
