package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
)

// ErrUnknown is why nothing is ordered of a destination: nobody knows its name.
var ErrUnknown = errors.New("no destination of this name is configured, or was asked for")

// CommandError is what is wrong with an order.
type CommandError struct {
	// Code is invalid_until or invalid_pace.
	Code, Message string
}

func (e *CommandError) Error() string { return e.Message }

// Command has a person's order recorded, which whoever acts then follows. It fails with ErrUnknown, a *CommandError,
// journal.ErrReasonRequired, or as Destinations and RecordDestination do.
func (g *Gates) Command(ctx context.Context, name string, c journal.DestinationCommand) error {
	d, err := g.find(name)
	if err != nil {
		return err
	}
	now, most := g.Clock.Now(), d.Settings.Pace.Most
	switch c.Verb {
	case journal.HoldClaims, journal.TreatAsUp:
		c.Until = c.Until.UTC().Truncate(time.Millisecond)
		if !c.Until.After(now) || c.Until.After(now.Add(destination.LongestOrder)) {
			return &CommandError{"invalid_until",
				"until is missing, past or more than 7 days ahead, expected an instant such as 2026-03-01T18:00:00-03:00"}
		}
	case journal.ReleaseAt:
		if !(c.PerMinute > 0 && c.PerMinute <= most) {
			return &CommandError{"invalid_pace", fmt.Sprintf(
				"perMinute is %g, expected more than 0 and at most %g, the destination's pace.most", c.PerMinute, most)}
		}
	}
	return g.Memory.RecordDestination(ctx, name, journal.DestinationBody{Command: &c})
}

// find returns the destination of that name, without its claims.
func (g *Gates) find(name string) (Destination, error) {
	all, err := g.Destinations()
	if err != nil {
		return Destination{}, err
	}
	i := slices.IndexFunc(all, func(d Destination) bool { return d.Name == name })
	if i < 0 {
		return Destination{}, ErrUnknown
	}
	return all[i], nil
}

// Stretch is a time in which a destination was in one phase.
type Stretch struct {
	Phase       destination.Phase
	From, Until time.Time
}

// Traffic is what went to a destination in a time: claims that went at once, were held and were released, and
// submissions that failed.
type Traffic struct {
	From, Until                      time.Time
	Admitted, Held, Released, Failed int
}

// add adds what a replica counted. It counts where it began: counts are of less time than a Traffic.
func (t *Traffic) add(c *journal.Traffic) {
	t.Admitted += c.Admitted
	t.Held += c.Held
	t.Released += c.Released
	t.Failed += c.Failed
}

// Any reports whether there was any.
func (t *Traffic) Any() bool { return t.Admitted+t.Held+t.Released+t.Failed > 0 }

// History is what became of a destination in the last 24 hours.
type History struct {
	// Phases follow one another without gaps.
	Phases []Stretch
	// Traffic is that of each half of an hour.
	Traffic []Traffic
	// Orders are what people ordered, the newest first.
	Orders []Order
	counts counts
}

// Order is a person's, as it was recorded.
type Order struct {
	journal.DestinationCommand
	At time.Time
}

// shownHistory is how far back people see what became of a destination, shownStep how long each of its Traffic is.
const (
	shownHistory = 24 * time.Hour
	shownStep    = 30 * time.Minute
)

// History returns what became of a destination. It fails as Destinations does, or with ErrUnknown.
func (g *Gates) History(ctx context.Context, name string) (*History, error) {
	now := g.Clock.Now()
	from := now.Add(-shownHistory)
	filter := journal.RecordFilter{Subject: journal.DestinationSubject(name), Since: from}
	d, err := g.find(name)
	if err != nil {
		return nil, err
	}
	h := &History{Phases: []Stretch{{From: from, Until: now}}, counts: counts{}}
	for at := from.Truncate(shownStep); !at.After(now); at = at.Add(shownStep) {
		h.Traffic = append(h.Traffic, Traffic{From: at, Until: at.Add(shownStep)})
	}
	add := func(r *journal.Record) error { return h.add(r.Entry) }
	if err := g.records(ctx, filter, math.MaxInt, add); err != nil {
		return nil, err
	}
	g.countedYet(h, d.Name)
	last := &h.Phases[len(h.Phases)-1]
	last.Phase = cmp.Or(last.Phase, d.State.Phase)
	slices.Reverse(h.Orders)
	return h, nil
}

// add adds what a destination's record says.
func (h *History) add(e *journal.Entry) error {
	b, err := journal.BodyOf[journal.DestinationBody](e)
	if err != nil {
		return err
	}
	if b.Command != nil {
		h.Orders = append(h.Orders, Order{*b.Command, e.At})
	}
	if t := b.Traffic; t != nil && h.counts.isNew("", t) {
		h.count(t)
	}
	h.Phases = advance(h.Phases, &b)
	return nil
}

func (h *History) count(t *journal.Traffic) {
	if i := int(t.Since.Sub(h.Traffic[0].From) / shownStep); i >= 0 && i < len(h.Traffic) {
		h.Traffic[i].add(t)
	}
}

// countedYet adds what this replica has counted and not recorded.
func (g *Gates) countedYet(h *History, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, t := range []*journal.Traffic{g.flushing[name], g.traffic[name]} {
		if t != nil && h.counts.isNew("", t) {
			h.count(t)
		}
	}
}

// advance adds what a record says to the phases before it, the first of which is empty until one tells it.
func advance(phases []Stretch, b *journal.DestinationBody) []Stretch {
	if b.State == nil {
		return phases
	}
	last := &phases[len(phases)-1]
	if b.Went == "" {
		last.Phase = cmp.Or(last.Phase, b.State.Phase)
		return phases
	}
	last.Phase = cmp.Or(last.Phase, b.Went)
	next := Stretch{b.State.Phase, b.State.Since, last.Until}
	if next.Phase == last.Phase || !next.From.After(last.From) { // it left and came back between two records
		last.Phase = next.Phase
		return phases
	}
	last.Until = next.From
	return append(phases, next)
}
