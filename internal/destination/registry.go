package destination

import (
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
