package gate

import (
	"context"
	"errors"
	"fmt"
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
