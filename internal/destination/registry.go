package destination

import (
	"math"
	"slices"
	"time"
)

// mostUnconfigured destinations are told apart; more names than that are a mistake in a process.
const mostUnconfigured = 1000

// Other is the name that all destinations share that nobody configured and for which there is no room.
const Other = "other"

// Registry holds the Gates by their names. It is not safe for concurrent use.
type Registry struct {
	gates      map[string]*Gate
	used       map[string]time.Time // of those that are not configured
	configured map[string]Settings
	otherwise  Settings
}

// NewRegistry makes a Registry of the destinations that are configured; all others have the settings otherwise.
func NewRegistry(configured map[string]Settings, otherwise Settings, now time.Time) *Registry {
	r := &Registry{gates: make(map[string]*Gate), used: make(map[string]time.Time)}
	r.Configure(configured, otherwise, now)
	return r
}

// Gate returns the one of that name. A new one may take the place of the one that is idle and empty for the longest
// time; where none is, it is that of Other.
func (r *Registry) Gate(name string, now time.Time) *Gate {
	settings, configured := r.configured[name]
	if !configured {
		settings = r.otherwise
	}
	g := r.gates[name]
	switch {
	case g != nil:
	case !configured && name != Other && len(r.used) >= mostUnconfigured && !r.forget():
		return r.Gate(Other, now)
	default:
		g = &Gate{Name: name, Settings: settings, State: New(now)}
		r.gates[name] = g
	}
	if !configured && name != Other {
		r.used[name] = now
	}
	return g
}

// Configure takes changed settings over. A destination keeps what is known of it.
func (r *Registry) Configure(configured map[string]Settings, otherwise Settings, now time.Time) {
	r.configured, r.otherwise = configured, otherwise
	for name, g := range r.gates {
		settings, ok := configured[name]
		if g.Settings = settings; !ok {
			g.Settings = otherwise
		}
		if delete(r.used, name); !ok && name != Other {
			r.used[name] = now
		}
		for _, w := range slices.Clone(g.Queue.turn.claims) { // until when they can be sent may be another
			g.Hold(w.Held)
		}
	}
	for name := range configured {
		r.Gate(name, now)
	}
}

// Each calls do for every Gate, in no order.
func (r *Registry) Each(do func(*Gate)) {
	for _, g := range r.gates {
		do(g)
	}
}

// forget makes room, and reports whether there was any to make.
func (r *Registry) forget() bool {
	var oldest string
	for name, used := range r.used {
		g := r.gates[name]
		idle := g.Queue.Len() == 0 && g.State.Phase == Up && g.State.UpUntil.IsZero()
		if before := r.used[oldest]; idle && (oldest == "" || used.Before(before) || used.Equal(before) && name < oldest) {
			oldest = name
		}
	}
	delete(r.gates, oldest)
	delete(r.used, oldest)
	return oldest != ""
}

const (
	// keptOutages of a destination are remembered, the latest.
	keptOutages = 20
	// fewestOutages must be known before something is expected of the next.
	fewestOutages = 5
)

// lasted remembers how long the outage was that ends now, unless a person began or ended it.
func (m *machine) lasted() {
	if m.Outage.Cause == CausePerson || m.Flow.Fixed {
		return
	}
	kept := m.Lasted[max(0, len(m.Lasted)+1-keptOutages):]
	m.Lasted = append(slices.Clone(kept), m.Outage.Until.Sub(m.Outage.Since)) // not in another State's
}

// Back is when a destination is expected back: the median and the quartiles of the outages that lasted longer than its
// own has so far.
type Back struct{ Median, Low, High time.Time }

// Back returns when a destination is expected back, by its own last outages or, where fewer than five are known, by
// those of all destinations. It reports false where it is not down, a person says until when, or too little is known.
func (r *Registry) Back(s *State, now time.Time) (b Back, ok bool) {
	if !s.isDown() || !s.HeldUntil.IsZero() {
		return b, false
	}
	lengths := slices.Clone(s.Lasted)
	if len(lengths) < fewestOutages {
		lengths = nil
		r.Each(func(g *Gate) { lengths = append(lengths, g.State.Lasted...) })
	}
	if len(lengths) < fewestOutages {
		return b, false
	}
	elapsed := now.Sub(s.Outage.Since)
	if lengths = slices.DeleteFunc(lengths, func(d time.Duration) bool { return d <= elapsed }); len(lengths) == 0 {
		return b, false
	}
	slices.Sort(lengths)
	at := func(q float64) time.Time {
		return s.Outage.Since.Add(lengths[int(math.Ceil(q*float64(len(lengths))))-1])
	}
	return Back{Median: at(0.5), Low: at(0.25), High: at(0.75)}, true
}

const (
	// leastRest and mostRest bound how much longer an outage is expected to last.
	leastRest, mostRest = 25 * time.Minute, 2 * time.Hour
)

// Expected returns when a destination that is down is expected back; zero where it is not down. Where too little is
// known its outage is taken to last as long again as it has: those that users reported do at the median (13,363 of them:
// docs/destinations.md).
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
