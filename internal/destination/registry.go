package destination

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
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
	// leastRest and mostRest bound the expected rest of an outage.
	leastRest, mostRest = 25 * time.Minute, 2 * time.Hour
)

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
