package destination

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// mostUnconfigured destinations are told apart; more names than that are a mistake in a process.
const mostUnconfigured = 1000

// Other is the name that all destinations share that nobody configured and for which there is no room.
const Other = "other"

// Registry holds the Gates by their names. It is not safe for concurrent use.
type Registry struct {
	gates      map[string]*Gate
	configured map[string]Settings // each has its Gate
	otherwise  Settings
}

// NewRegistry makes a Registry of the destinations that are configured; all others have the settings otherwise.
func NewRegistry(configured map[string]Settings, otherwise Settings, now time.Time) *Registry {
	r := &Registry{gates: make(map[string]*Gate)}
	r.Configure(configured, otherwise, now)
	return r
}

// settings returns those of a destination.
func (r *Registry) settings(name string) Settings {
	if s, configured := r.configured[name]; configured {
		return s
	}
	return r.otherwise
}

// Gate returns the one of that name. A new one may take the place of the one that is idle and empty for the longest
// time; where none is, it is that of Other.
func (r *Registry) Gate(name string, now time.Time) *Gate {
	g := r.gates[name]
	if g == nil {
		_, configured := r.configured[name]
		if full := len(r.gates)-len(r.configured) >= mostUnconfigured; full && !configured && name != Other && !r.forget() {
			return r.Gate(Other, now)
		}
		g = &Gate{Name: name, Settings: r.settings(name), State: New(now)}
		r.gates[name] = g
	}
	g.used = now
	return g
}

// Find returns the one of that name, nil where it is not configured and was not asked for.
func (r *Registry) Find(name string) *Gate { return r.gates[name] }

// Configure takes changed settings over. A destination keeps what is known of it.
func (r *Registry) Configure(configured map[string]Settings, otherwise Settings, now time.Time) {
	r.configured, r.otherwise = configured, otherwise
	for name := range configured {
		r.Gate(name, now)
	}
	for name, g := range r.gates {
		g.Settings = r.settings(name)
		waiting := g.Queue.byTurn()
		g.Queue = Queue{}
		for _, h := range waiting { // until when they can be sent may be another
			g.Hold(*h)
		}
	}
}

// All returns the Gates by their names.
func (r *Registry) All() []*Gate {
	return slices.SortedFunc(maps.Values(r.gates), func(a, b *Gate) int { return strings.Compare(a.Name, b.Name) })
}

// forget makes room, and reports whether there was any to make.
func (r *Registry) forget() bool {
	var oldest *Gate
	for name, g := range r.gates {
		_, configured := r.configured[name]
		idle := !configured && name != Other && g.Queue.Len() == 0 && g.Phase == Up && g.UpUntil.IsZero()
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
	// keptOutages of a destination are remembered, the latest.
	keptOutages = 20
	// fewestOutages must be known before something is expected of the next.
	fewestOutages = 5
)

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
		for _, g := range r.gates {
			lengths = append(lengths, g.Lasted...)
		}
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
