package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"retry-worker/internal/destination"
)

// defaultDestination names the settings that every other destination inherits.
const defaultDestination = "default"

// destinations makes the settings of each destination: its own, then those of default, then the built-in ones.
func (b *builder) destinations(doc *document) {
	all := &b.catalogue.Destinations
	all.Named = make(map[string]destination.Settings, len(doc.Destinations))
	inherited := doc.Destinations[defaultDestination]
	if at := join("destinations", defaultDestination) + ".label"; b.has(at) {
		b.mismatch(at, "a label of one destination: default is many")
	}
	all.Others = b.settings(join("destinations", defaultDestination), &inherited, destination.Defaults())
	for _, name := range slices.Sorted(maps.Keys(doc.Destinations)) {
		if own := doc.Destinations[name]; name != defaultDestination {
			all.Named[name] = b.settings(join("destinations", name), &own, all.Others)
		}
	}
	for _, p := range b.catalogue.Policies {
		if d := p.Destination; d != nil {
			all.Named[d.Default] = all.Of(d.Default)
		}
	}
	b.openings(doc)
}

func (b *builder) settings(path string, doc *destinationSettings, s destination.Settings) destination.Settings {
	s.Label = doc.Label
	set(&s.OpensAt.Failures, float64(doc.OpensAt.Failures))
	set(&s.OpensAt.Of, doc.OpensAt.Of)
	set(&s.OpensAt.Within, time.Duration(doc.OpensAt.Within))
	set(&s.Probe.Every, time.Duration(doc.Probe.Every))
	set(&s.Probe.URL, doc.Probe.URL)
	if len(doc.Probe.Expect) > 0 {
		s.Probe.Expect = doc.Probe.Expect
	}
	if doc.Calendar != nil {
		s.Calendar = b.calendar(path+".calendar", doc.Calendar)
	}
	p := doc.Pace
	set(&s.Pace.Start, float64(p.Start))
	set(&s.Pace.Most, float64(p.Most))
	s.Pace.Limited = s.Pace.Limited || p.Most > 0
	set(&s.Pace.Factor, float64(p.Step.factor))
	set(&s.Pace.Step, time.Duration(p.Step.every))
	set(&s.Pace.OnRateLimit, float64(p.OnRateLimit))
	if at := path + ".pace.start"; b.has(at) && s.Pace.Start > s.Pace.Most {
		b.mismatch(at, fmt.Sprintf("at most most (%g/min)", s.Pace.Most))
	}
	s.Pace.Start = min(s.Pace.Start, s.Pace.Most) // start may be inherited
	return s
}

// set assigns found to the variable, unless it is zero.
func set[T comparable](to *T, found T) { *to = cmp.Or(found, *to) }
