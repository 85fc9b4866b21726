package catalogue

import (
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/destination"
	"retry-worker/internal/text"
)

// defaultDestination names the settings that every other destination inherits.
const defaultDestination = "default"

// destinations makes the settings of each destination: its own, then those of default, then the built-in ones.
func (b *builder) destinations(doc *document) {
	all := &b.catalogue.Destinations
	all.Named = make(map[string]destination.Settings, len(doc.Destinations))
	all.Others = b.settings(defaultDestination, doc.Destinations[defaultDestination], destination.Defaults())
	for _, name := range slices.Sorted(maps.Keys(doc.Destinations)) {
		if name != defaultDestination {
			all.Named[name] = b.settings(name, doc.Destinations[name], all.Others)
		}
	}
	for _, p := range b.catalogue.Policies {
		if d := p.Destination; d != nil {
			all.Named[d.Default] = all.Of(d.Default)
		}
	}
	b.openings(doc)
}

// settings returns the settings of a destination, given those that it inherits.
func (b *builder) settings(name string, own yaml.Node, inherited destination.Settings) destination.Settings {
	path := join("destinations", name)
	s := destinationSettings{Settings: inherited}
	s.Label = text.Translated{}
	if err := recovered(func() error { return own.Decode(&s) }); err != nil && len(b.problems) == 0 {
		b.problem(path, "what cannot be read ("+oneSpace(err)+")", "a destination")
	}
	if s.Own != nil {
		s.Calendar = b.calendar(path+".calendar", s.Own)
	}
	p := &s.Pace
	p.Limited = p.Limited || b.has(path+".pace.most")
	if at := path + ".pace.start"; b.has(at) && p.Start > p.Most {
		b.mismatch(at, fmt.Sprintf("at most most (%g/min)", p.Most))
	}
	p.Start = min(p.Start, p.Most) // start may be inherited
	return s.Settings
}
