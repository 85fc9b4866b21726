package api

import (
	"context"
	"encoding/json"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
)

// Gates tells how destinations are, and takes people's orders (gate.Gates does). Safe for concurrent use.
type Gates interface {
	Destinations() ([]gate.Destination, error)
	Destination(name string) (gate.Destination, []gate.Claim, error)
	Command(ctx context.Context, name string, c destination.Order) error
}

// Destination is one as the API shows it.
type Destination struct {
	Name  string            `json:"name"`
	Label string            `json:"label"` // what people call it
	State destination.Phase `json:"state"`
	Since string            `json:"since"`
	// Cause of the outage; null while it is up.
	Cause           *string `json:"cause"`
	Held            int     `json:"held"`
	OldestHeldSince *string `json:"oldestHeldSince"`
	NearestDeadline *string `json:"nearestDeadline"`
	// NextTest is when the next claim goes ahead, should one wait; null unless it is down.
	NextTest *string `json:"nextTest"`
	// ExpectedBack is when it is expected back, by how long outages lasted; null unless it is down and enough is known.
	ExpectedBack *DestinationBack `json:"expectedBack"`
	// PerMinute is how many of those that wait may go now; 0 while none may.
	PerMinute float64 `json:"perMinute"`
	// HeldUntil and UpUntil are what a person ordered.
	HeldUntil *string `json:"heldUntil"`
	UpUntil   *string `json:"upUntil"`
	// Closed is why its calendar has it closed, OpensAt when that ends; null where it is open.
	Closed  *string `json:"closed"`
	OpensAt *string `json:"opensAt"`
}

// DestinationBack holds the median and the quartiles of the outages like its own.
type DestinationBack struct {
	Median   string `json:"median"`
	Earliest string `json:"earliest"`
	Latest   string `json:"latest"`
}

// DestinationDetail is one with its claims.
type DestinationDetail struct {
	Destination
	// Claims are the next 50 by turn.
	Claims []HeldClaim `json:"claims"`
}

// HeldClaim is one that waits.
type HeldClaim struct {
	SubjectName
	HeldSince string  `json:"heldSince"`
	Deadline  *string `json:"deadline"`
}

func destinationOf(d *gate.Destination, now time.Time) Destination {
	s := &d.State
	told := Destination{
		Name: d.Name, Label: d.Label(), State: s.Phase, Since: decision.Instant(s.Since), Held: d.Held,
		OldestHeldSince: journal.InstantOrNull(d.Oldest), NearestDeadline: journal.InstantOrNull(d.Deadline),
		HeldUntil: journal.InstantOrNull(s.HeldUntil), UpUntil: journal.InstantOrNull(s.UpUntil),
	}
	switch s.Phase {
	case destination.Down:
		told.NextTest = journal.InstantOrNull(s.NextTest)
	case destination.Up, destination.Ramping:
		told.PerMinute = s.PerMinute(&d.Settings, now)
	}
	if c := d.Settings.Calendar; !c.IsOpen(now) {
		opens := decision.Instant(c.Next(now))
		told.Closed, told.OpensAt, told.PerMinute = journal.OrNull(c.Why(now)), &opens, 0
	}
	if b := &d.Back; !b.Median.IsZero() {
		told.ExpectedBack = &DestinationBack{decision.Instant(b.Median), decision.Instant(b.Low), decision.Instant(b.High)}
	}
	if s.Phase != destination.Up {
		told.Cause = journal.OrNull(string(s.Outage.Cause))
	}
	return told
}

// destinations answers GET /api/v1/destinations, all on one page.
func (s *API) destinations(c *call) (any, error) {
	all, err := c.Gates.Destinations()
	now := s.now()
	return pageOf(all, "", func(d *gate.Destination) Destination { return destinationOf(d, now) }), err
}

// destination answers GET /api/v1/destinations/{name}.
func (s *API) destination(c *call) (any, error) {
	d, claims, err := c.Gates.Destination(c.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return DestinationDetail{destinationOf(&d, s.now()), viewsOf(claims, heldClaimOf)}, nil
}

func heldClaimOf(c *gate.Claim) HeldClaim {
	return HeldClaim{SubjectName(c.Subject), decision.Instant(c.Since), journal.InstantOrNull(c.Deadline)}
}

// order answers POST /api/v1/destinations/{name}/hold, …/probe and …/release: it has a person's order recorded, under
// the name that was logged in with. A release has either perMinute or until.
func (s *API) order(verb destination.Verb) func(*call) (any, error) {
	return func(c *call) (any, error) {
		o := destination.Order{Verb: verb, Until: c.instant("until"), By: c.by()}
		if verb == destination.ReleaseAt && !o.Until.IsZero() {
			o.Verb = destination.TreatAsUp
		}
		if raw, given := c.given["perMinute"]; given && (!o.Until.IsZero() || json.Unmarshal(raw, &o.PerMinute) != nil) {
			c.refuse(invalid(string(deadletter.InvalidPace),
				"perMinute is %.60s, expected a number above 0, or until and no perMinute", raw))
		}
		o.Reason = c.checkedReason()
		if c.wrong() != nil {
			return nil, c.wrong()
		}
		if err := c.Gates.Command(c.Context(), c.PathValue("name"), o); err != nil {
			return nil, &unsure{err, "the order was not recorded for sure; see by GET whether it is followed, " +
				"and give it again if not"}
		}
		s.log.Info("a person gave an order about a destination", zap.String("event", "destination_ordered"),
			zap.String("order", string(o.Verb)), zap.String("by", o.By))
		return s.destination(c)
	}
}
