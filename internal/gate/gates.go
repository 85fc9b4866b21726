// Package gate runs the gates of destinations: it keeps up with what the journal says of them, holds claims that may
// not go, and lets them go when their turn comes.
//
// Each replica has one Gates, which follows the journal's records, and lets through at once its share of what may go.
// The one that holds the lease alone acts on the rest: it records what becomes of a destination, releases claims and
// gives up those that cannot be sent in time.
package gate

import (
	"cmp"
	"context"
	"crypto/rand"
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
	// Records is journal.Archive's, Pending journal.Outbox's.
	Records(ctx context.Context, f journal.RecordFilter, after int64, limit int) ([]journal.Record, error)
	Pending(ctx context.Context, queue string, after int64, limit int) ([]journal.Message, error)
	Lease(ctx context.Context, name, holder string, span time.Duration) (bool, error)
	Leases(ctx context.Context, prefix string, span time.Duration) (int, error)
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
	id    string // of this process among the replicas
	woken clock.Signal

	// turning holds a token for the length of a turn, and guards term: while this process acts, otherwise nil. It is no
	// mutex, so that a bubble of testing/synctest sees who waits for it.
	turning chan struct{}
	term    *term

	mu     sync.Mutex
	*known      // nil until the journal was read
	behind bool // there may be records in the store that were not taken in
	// looked is when the store was asked last, heard when it was asked last and told all, by this machine's clock.
	looked, heard time.Time
	share         share
	left          leavers
	// traffic is what was counted since the last record of it, by destination, flushing what was counted before and is not known
	// to be recorded.
	traffic, flushing map[string]*journal.Traffic
	// leads tells that this process acts; told that why it cannot was logged; late that a departure was heard of that is not
	// this process's.
	leads, told, late bool

	forged     sync.Once // an answer that is not what was signed was logged
	unreadable sync.Map  // what was logged of records and states that cannot be read
}

// known is what the journal has of destinations.
type known struct {
	registry *destination.Registry
	version  string                     // of the catalogue that the registry is configured by
	subjects map[string]journal.Subject // of those that are held, by their claims in the queues
	lost     map[string]bool            // destinations whose state cannot be read: nobody goes there
	recorded map[string]journal.DestinationState
	versions map[string]int64 // of what is recorded, or is being recorded by this process
	counts   counts
	seen     int64 // the last record that was taken in
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
	return &Gates{Options: o, id: rand.Text()[:8], woken: clock.NewSignal(),
		turning: make(chan struct{}, 1), traffic: map[string]*journal.Traffic{}, flushing: map[string]*journal.Traffic{}}
}

// claimOf returns the name of a job in the queues and in its destination's records, which must not say whose it is.
func claimOf(jobKey int64) string { return strconv.FormatInt(jobKey, 10) }

func jobOf(claim string) int64 {
	key, _ := strconv.ParseInt(claim, 10, 64) // claimOf made it
	return key
}

// Admit reports whether a claim may go at once, within this replica's share; deadline is its own, zero for none. The
// others are held, and the leader releases them. A job that left its gate, of which the engine has not heard, may not.
func (g *Gates) Admit(name string, jobKey int64, deadline time.Time) (ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.Clock.Now()
	if g.known == nil || !g.mayAdmit() || g.left.has(jobKey) || !deadline.IsZero() && !deadline.After(now) {
		return false
	}
	d := g.registry.Gate(name, now)
	d.Replicas = g.share.count()
	if ok = !g.lost[d.Name] && d.Admit(now); ok {
		g.Hooks.Admitted(g.Settings().Label(name))
		g.count(d.Name).Admitted++
	}
	return ok
}

// Expected returns when a destination that is down is expected back, otherwise zero.
func (g *Gates) Expected(name string) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil {
		return time.Time{}
	}
	now := g.Clock.Now()
	return g.registry.Expected(&g.asRecorded(g.registry.Gate(name, now), now).State, now)
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
	switch {
	case r.Attempt != nil:
		return g.attempt(r.Attempt)
	case e.Kind == journal.OutcomeEntry:
		g.answered(e)
	case e.Kind == journal.GateEntry:
		g.gate(s, e)
	case e.Kind == journal.DestinationEntry:
		g.destination(s.ID, e)
	default:
		return false
	}
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
		if g.leads { // one replica counts
			g.count(d.Name).Failed++
			if d.State.Phase != destination.Up {
				g.Hooks.Wasted(g.Settings().Label(d.Name))
			}
		}
		d.Apply(destination.Failed{Claim: claim, Sent: sent}, now)
	case journal.TellsAnswered:
		d.Apply(destination.Answered{Claim: claim, Sent: sent}, now)
	case journal.TellsRateLimited:
		d.Apply(destination.RateLimited{Claim: claim, Sent: sent, RetryAfter: a.RetryAfter}, now)
	}
	return true
}

// answered tells a destination of a success.
func (g *Gates) answered(e *journal.Entry) {
	if sent, err := journal.ReadSent(e); err == nil && sent.JobKey != 0 {
		now := g.Clock.Now()
		g.registry.Gate(sent.Destination, now).Apply(destination.Answered{Claim: claimOf(sent.JobKey), Sent: sent.At}, now)
	}
}

// gate takes in that a claim is held, or is no more.
func (g *Gates) gate(s journal.Subject, e *journal.Entry) {
	b, err := journal.BodyOf[journal.GateBody](e)
	switch {
	case err != nil:
	case b.Action == journal.GateHeld:
		g.hold(s, &b.HeldJob, g.Clock.Now()) // the clock of who held it may be ahead or behind
		if g.leads {
			g.count(b.Destination).Held++
		}
	case b.Action == journal.GateAnswered:
		g.answered(e)
	default:
		claim, now := claimOf(b.JobKey), g.Clock.Now()
		delete(g.subjects, claim)
		g.late = g.late || !g.left.has(b.JobKey)
		g.left.add(b.JobKey, now)
		d := g.registry.Gate(b.Destination, now)
		d.Queue.Remove(claim)
		switch {
		case g.leads && b.Action == journal.GateReleased:
			g.count(d.Name).Released++
		case !g.leads && d.Queue.Len() == 0: // the leader has let claims go at the whole pace
			d.Wait(now)
		}
	}
}

func (k *known) hold(s journal.Subject, h *journal.HeldJob, heard time.Time) {
	claim := claimOf(h.JobKey)
	k.subjects[claim] = journal.Subject{Tenant: unique.Make(s.Tenant).Value(), Policy: unique.Make(s.Policy).Value(), ID: s.ID}
	k.registry.Gate(h.Destination, heard).Hold(destination.Held{Claim: claim, Since: h.Since, Deadline: h.Deadline,
		Limit: h.Limit, RetriesLeft: h.MaxRetries - h.Retries, Cents: h.Context.Cents()}, heard)
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
		orders := g.recorded[d.Name].Orders
		g.recorded[d.Name] = journal.DestinationState{Version: b.Version, State: *b.State}
		theirs := b.Version > g.versions[d.Name]
		if theirs { // another process's
			g.versions[d.Name] = b.Version
			d.Take(*b.State, now)
		}
		for _, o := range orders {
			switch {
			case o.Record <= b.Follows:
			case theirs:
				g.order(d, o, now)
			default:
				g.show(d, o, now)
			}
		}
	}
	if t := b.Traffic; t != nil && t.Replica != g.id && g.counts.isNew(d.Name, t) &&
		now.Sub(t.Since) <= d.Settings.OpensAt.Within+othersCountEvery { // else who acted before counted it, long ago
		d.Apply(destination.Admitted{Count: t.Admitted}, now)
	}
	if b.Command != nil {
		g.order(d, journal.DestinationOrder{Record: e.Record, DestinationCommand: *b.Command}, now)
	}
}

// order takes in what a person ordered.
func (k *known) order(d *destination.Gate, o journal.DestinationOrder, now time.Time) {
	order(d, &o.DestinationCommand, now)
	k.show(d, o, now)
}

// show has people see at once what was ordered.
func (k *known) show(d *destination.Gate, o journal.DestinationOrder, now time.Time) {
	of := k.stand(d, now)
	ordered := destination.Gate{Settings: d.Settings, State: of.State}
	order(&ordered, &o.DestinationCommand, now)
	k.recorded[d.Name] = journal.DestinationState{Version: of.Version, State: ordered.State, Orders: append(of.Orders, o)}
}

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
	// Ordered tells that whoever acts has still to follow what a person ordered.
	Ordered bool
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

// asRecorded returns a destination as it is recorded: what a replica finds by itself, which knows less than the one that acts
// of what others let through, is nothing yet.
func (k *known) asRecorded(d *destination.Gate, now time.Time) *destination.Gate {
	of := k.stand(d, now)
	if !d.Changed && of.Version >= k.versions[d.Name] {
		return d // which keeps what Back computes
	}
	recorded := new(*d)
	recorded.State = of.State
	return recorded
}

// tell returns a destination as people see it.
func (k *known) tell(d *destination.Gate, now time.Time) Destination {
	shown := k.asRecorded(d, now)
	oldest, deadline := d.Queue.Bounds()
	back, _ := k.registry.Back(&shown.State, now)
	return Destination{d.Name, shown.State, d.Settings, d.Queue.Len(), len(k.recorded[d.Name].Orders) > 0, oldest, deadline, back}
}

// stand returns what is recorded, with what people ordered since.
func (k *known) stand(d *destination.Gate, now time.Time) journal.DestinationState {
	if of, known := k.recorded[d.Name]; known {
		return of
	}
	return journal.DestinationState{State: destination.New(now)}
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
