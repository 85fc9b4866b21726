package destination

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/calendar"
)

// mostUnconfigured is how many unconfigured destinations are kept apart. More names are a mistake in a process.
const mostUnconfigured = 1000

// Other is the name shared by unconfigured destinations: in metrics and the log, and beyond mostUnconfigured.
const Other = "other"

// Configured holds the settings of the destinations that the policies configure, by name, and those of all others.
type Configured struct {
	Named  map[string]Settings
	Others Settings
}

// Of returns the settings of a destination.
func (c Configured) Of(name string) Settings {
	if s, named := c.Named[name]; named {
		return s
	}
	return c.Others
}

// Label returns a destination's name in metrics and the log, from a closed set.
func (c Configured) Label(name string) string {
	if _, named := c.Named[name]; named {
		return name
	}
	return Other
}

// Registry holds the Gates by their names. It is not safe for concurrent use.
type Registry struct {
	gates      map[string]*Gate
	configured Configured // each that is named has its Gate
}

// NewRegistry returns a Registry with the configured destinations.
func NewRegistry(configured Configured, now time.Time) *Registry {
	r := &Registry{gates: make(map[string]*Gate)}
	r.Configure(configured, now)
	return r
}

// Gate returns the gate of that name, and creates it if needed. If there are too many, it replaces the idle one that
// was unused for longest; if none is idle, it returns the gate of Other.
func (r *Registry) Gate(name string, now time.Time) *Gate {
	g := r.gates[name]
	if g == nil {
		full := len(r.gates)-len(r.configured.Named) >= mostUnconfigured
		if full && r.configured.Label(name) != name && !r.forget() {
			return r.Gate(Other, now)
		}
		g = &Gate{Name: name, Settings: r.configured.Of(name), State: New(now)}
		r.gates[name] = g
	}
	g.used = now
	return g
}

// Find returns the gate of that name; nil if there is none.
func (r *Registry) Find(name string) *Gate { return r.gates[name] }

// Holds reports whether a claim waits for any destination.
func (r *Registry) Holds(claim int64) bool {
	for _, g := range r.gates {
		if g.Queue.Has(claim) {
			return true
		}
	}
	return false
}

// Configure takes over changed settings. Destinations keep their State.
func (r *Registry) Configure(configured Configured, now time.Time) {
	r.configured = configured
	for name := range configured.Named {
		r.Gate(name, now)
	}
	for name, g := range r.gates {
		g.Settings = configured.Of(name)
		g.Queue.replan(g.Settings.Calendar)
	}
}

// All returns the Gates, sorted by name.
func (r *Registry) All() []*Gate {
	return slices.SortedFunc(maps.Values(r.gates), func(a, b *Gate) int { return strings.Compare(a.Name, b.Name) })
}

// forget removes the idle gate that was unused for longest, and reports whether there was one.
func (r *Registry) forget() bool {
	var oldest *Gate
	for name, g := range r.gates {
		idle := r.configured.Label(name) != name && g.Queue.Len() == 0 && g.Phase == Up && g.UpUntil.IsZero()
		if idle && (oldest == nil || cmp.Or(g.used.Compare(oldest.used), cmp.Compare(name, oldest.Name)) < 0) {
			oldest = g
		}
	}
	if oldest != nil {
		delete(r.gates, oldest.Name)
	}
	return oldest != nil
}

const (
	// keptOutages is how many outages of a destination are remembered.
	keptOutages = 20
	// fewestOutages is how many outages must be known to predict the next one's length.
	fewestOutages = 5
)

// Back is when a destination is expected back: the median and quartiles of earlier outages that were longer than the
// current one is so far.
type Back struct{ Median, Low, High time.Time }

// Back returns when a destination is expected back, by its own outages or, if fewer than fewestOutages are known, by
// those of all destinations. It reports false if the destination is not down, a person holds it, or too little is
// known.
func (r *Registry) Back(s *State, now time.Time) (b Back, ok bool) {
	if !s.isDown() || !s.HeldUntil.IsZero() {
		return b, false
	}
	lengths := slices.Clone(s.Lasted)
	if len(lengths) < fewestOutages {
		lengths = nil
		for _, g := range r.gates {
			lengths = append(lengths, g.Lasted...)
		}
	}
	known, elapsed := len(lengths), now.Sub(s.Outage.Since)
	lengths = slices.DeleteFunc(lengths, func(d time.Duration) bool { return d <= elapsed })
	if known < fewestOutages || len(lengths) == 0 {
		return b, false
	}
	slices.Sort(lengths)
	at := func(q float64) time.Time {
		return s.Outage.Since.Add(lengths[int(math.Ceil(q*float64(len(lengths))))-1])
	}
	return Back{Median: at(0.5), Low: at(0.25), High: at(0.75)}, true
}

// leastRest and mostRest bound the expected rest of an outage.
const leastRest, mostRest = 25 * time.Minute, 2 * time.Hour

// Expected returns when a destination is expected back; zero if it is not down. If too little is known, the outage is
// expected to last as long again as it has, like the median of reported outages (docs/destinations.md).
func (r *Registry) Expected(s *State, now time.Time) time.Time {
	switch {
	case !s.isDown():
		return time.Time{}
	case !s.HeldUntil.IsZero():
		return s.HeldUntil
	}
	if b, ok := r.Back(s, now); ok {
		return b.Median
	}
	return now.Add(min(max(now.Sub(s.Outage.Since), leastRest), mostRest))
}

// Held is a claim that waits.
type Held struct {
	// Claim identifies it among all waiting claims: the key of its job.
	Claim int64
	// Subject names it (journal.Subject).
	Subject struct{ Tenant, Policy, ID string }
	// Since is when it was held.
	Since time.Time
	// Deadline is the claim's own, Limit the end of its policy's total limit; zero for none.
	Deadline, Limit time.Time
	// SendBy is the last instant up to Deadline at which the destination is open. Gate.Hold sets it.
	SendBy time.Time
	// Cents is what the claim is worth.
	Cents int64
	// RetriesLeft is how many more failures it can take.
	RetriesLeft int64
}

// plan sets SendBy by the destination's calendar.
func (h *Held) plan(c *calendar.Calendar) {
	if !h.Deadline.IsZero() {
		h.SendBy = c.LastSafe(h.Deadline)
	}
}

// timeToAct is how long before a claim's deadline or limit it is given to a person, or half of the time it had when it
// was held, if that is less.
const timeToAct = time.Hour

// giveUpAt returns when the claim is given up, as it cannot be sent in time; zero means never.
func (h *Held) giveUpAt() time.Time {
	last := soonest(h.Limit, h.SendBy)
	if last.IsZero() {
		return last
	}
	return last.Add(-min(timeToAct, max(0, last.Sub(h.Since)/2)))
}

// Queue holds the claims that wait for one destination. Its zero value is empty. It is not safe for concurrent use.
type Queue struct {
	claims map[int64]*Held
	// turns holds the claims in the order of their turns.
	turns []*Held
	// endsAt is the earliest instant at which a claim may have to be given up; zero means never.
	endsAt time.Time
}

// compareTurns orders claims by nearest deadline, then highest value, then longest wait.
func compareTurns(a, b *Held) int {
	return cmp.Or(earlier(a.SendBy, b.SendBy), cmp.Compare(b.Cents, a.Cents), a.Since.Compare(b.Since),
		cmp.Compare(a.Claim, b.Claim))
}

// earlier compares instants; none counts as never.
func earlier(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return b.Compare(a)
	}
	return a.Compare(b)
}

// soonest returns the earlier of two instants; none counts as never.
func soonest(a, b time.Time) time.Time {
	if earlier(b, a) < 0 {
		return b
	}
	return a
}

// Add adds a claim, in place of one with the same name.
func (q *Queue) Add(h Held) {
	q.Remove(h.Claim)
	if q.claims == nil {
		q.claims = make(map[int64]*Held)
	}
	at, _ := slices.BinarySearchFunc(q.turns, &h, compareTurns)
	q.claims[h.Claim], q.turns = &h, slices.Insert(q.turns, at, &h)
	q.endsAt = soonest(q.endsAt, h.giveUpAt())
}

// Remove removes a claim, and reports whether it was there. The first by turn is removed in constant time.
func (q *Queue) Remove(claim int64) (Held, bool) {
	h, ok := q.claims[claim]
	if !ok {
		return Held{}, false
	}
	delete(q.claims, claim)
	if at, _ := slices.BinarySearchFunc(q.turns, h, compareTurns); at > 0 {
		q.turns = slices.Delete(q.turns, at, at+1)
	} else {
		q.turns[0], q.turns = nil, q.turns[1:]
	}
	return *h, true
}

// GiveUp removes and returns the claims that are given up at now. It takes linear time if one may be.
func (q *Queue) GiveUp(now time.Time) (givenUp []Held) {
	if q.endsAt.IsZero() || now.Before(q.endsAt) {
		return nil
	}
	q.endsAt = time.Time{}
	q.turns = slices.DeleteFunc(q.turns, func(h *Held) bool {
		if at := h.giveUpAt(); at.IsZero() || now.Before(at) {
			q.endsAt = soonest(q.endsAt, at)
			return false
		}
		delete(q.claims, h.Claim)
		givenUp = append(givenUp, *h)
		return true
	})
	return givenUp
}

// Len returns how many claims wait.
func (q *Queue) Len() int { return len(q.claims) }

// Has reports whether a claim waits.
func (q *Queue) Has(claim int64) bool { return q.claims[claim] != nil }

// replan takes over a changed calendar.
func (q *Queue) replan(c *calendar.Calendar) {
	q.endsAt = time.Time{}
	for _, h := range q.turns {
		h.plan(c)
		q.endsAt = soonest(q.endsAt, h.giveUpAt())
	}
	slices.SortFunc(q.turns, compareTurns)
}

// Sum returns since when the first claim waits, the nearest SendBy, and the total value. It takes linear
// time.
func (q *Queue) Sum() (oldest, deadline time.Time, cents int64) {
	for i, h := range q.turns {
		if i == 0 {
			deadline = h.SendBy
		}
		oldest = soonest(oldest, h.Since)
		cents += h.Cents
	}
	return oldest, deadline, cents
}

// Next returns the first n claims by turn.
func (q *Queue) Next(n int) (next []Held) {
	for _, h := range q.turns[:min(n, q.Len())] {
		next = append(next, *h)
	}
	return next
}

// Canary returns the claim to send ahead; 0 if none waits. As a canary may fail, it is one with the most retries
// left, the first of these by turn. It takes linear time.
func (q *Queue) Canary() int64 {
	if q.Len() == 0 {
		return 0
	}
	return slices.MinFunc(q.turns, func(a, b *Held) int { return cmp.Compare(b.RetriesLeft, a.RetriesLeft) }).Claim
}
