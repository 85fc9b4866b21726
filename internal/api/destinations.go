package api

import (
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
)

// Destination is a destination as the API shows it.
type Destination struct {
	Name            string            `json:"name"`
	Label           string            `json:"label" doc:"What people call it."`
	State           destination.Phase `json:"state"`
	Since           string            `json:"since" format:"date-time" doc:"When it came into this state."`
	Cause           *string           `json:"cause" enum:"failures,probe,person" doc:"What told of it; null while up."`
	Held            int               `json:"held" doc:"How many claims wait."`
	HeldAmount      string            `json:"heldAmount" doc:"What those are worth."`
	OldestHeldSince *string           `json:"oldestHeldSince" format:"date-time"`
	NearestDeadline *string           `json:"nearestDeadline" format:"date-time"`
	NextTest        *string           `json:"nextTest" format:"date-time" doc:"When the next claim may go ahead."`
	ExpectedBack    *DestinationBack  `json:"expectedBack" doc:"By its last outages; null unless enough is known."`
	PerMinute       float64           `json:"perMinute" doc:"How many of those that wait may go in a minute now."`
	HeldUntil       *string           `json:"heldUntil" format:"date-time" doc:"A person holds it until then."`
	UpUntil         *string           `json:"upUntil" format:"date-time" doc:"A person has it treated as up until then."`
	Closed          *string           `json:"closed" doc:"Why its calendar has it closed now."`
	OpensAt         *string           `json:"opensAt" format:"date-time" doc:"When it opens again; null where it is open."`
}

// DestinationBack estimates from similar outages when a destination will be back.
type DestinationBack struct {
	Median   string `json:"median" format:"date-time"`
	Earliest string `json:"earliest" format:"date-time" doc:"A quarter of such outages ended earlier."`
	Latest   string `json:"latest" format:"date-time" doc:"A quarter of such outages ended later."`
}

// DestinationDetail is a destination with claims that wait for it.
type DestinationDetail struct {
	Destination
	Claims []HeldClaim `json:"claims" items:"50" doc:"Those whose turn is next, the nearest deadline first."`
}

// HeldClaim is a claim that waits.
type HeldClaim struct {
	SubjectName
	HeldSince string  `json:"heldSince" format:"date-time"`
	Deadline  *string `json:"deadline" format:"date-time"`
}

func destinationOf(d *gate.Destination, now time.Time) Destination {
	s := &d.State
	told := Destination{
		Name: d.Name, Label: d.Label(), State: s.Phase, Since: decision.Instant(s.Since), Held: d.Held,
		HeldAmount:      decision.Amount(d.Cents),
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
func (c *call) destinations(*struct{}) (Page[Destination], error) {
	all, err := c.Destinations.Destinations()
	now := c.now()
	return pageOf(all, "", func(d *gate.Destination) Destination { return destinationOf(d, now) }), err
}

// destinationInput names a destination.
type destinationInput struct {
	Name string `json:"name" in:"path" doc:"Its name in the policies file, or in the process's variable."`
}

// destination answers GET /api/v1/destinations/{name}.
func (c *call) destination(in *destinationInput) (DestinationDetail, error) {
	d, claims, err := c.Destination(in.Name)
	if err != nil {
		return DestinationDetail{}, err
	}
	return DestinationDetail{destinationOf(&d, c.now()), viewsOf(claims, func(c *gate.Claim) HeldClaim {
		return HeldClaim{SubjectName(c.Subject), decision.Instant(c.Since), journal.InstantOrNull(c.Deadline)}
	})}, nil
}

// orderInput is an order's destination and reason.
type orderInput struct {
	destinationInput
	reasonInput
}

// hold answers POST /api/v1/destinations/{name}/hold.
func (c *call) hold(in *struct {
	orderInput
	Until time.Time `json:"until" required:"1" doc:"At most 7 days ahead."`
}) (DestinationDetail, error) {
	return c.order(&in.orderInput, destination.Order{Verb: destination.HoldClaims, Until: in.Until})
}

// probe answers POST /api/v1/destinations/{name}/probe.
func (c *call) probe(in *orderInput) (DestinationDetail, error) {
	return c.order(in, destination.Order{Verb: destination.SendCanary})
}

// release answers POST /api/v1/destinations/{name}/release, which has either perMinute or until.
func (c *call) release(in *struct {
	orderInput
	PerMinute *float64  `json:"perMinute" above:"0" code:"invalid_pace" doc:"At most the destination's pace.most."`
	Until     time.Time `json:"until" doc:"Treat it as up until then, at most 7 days ahead."`
}) (DestinationDetail, error) {
	if (in.PerMinute == nil) == in.Until.IsZero() {
		return DestinationDetail{}, refused("invalid_pace",
			"neither perMinute nor until is given, or both are: expected one of them")
	}
	o := destination.Order{Verb: destination.TreatAsUp, Until: in.Until}
	if in.PerMinute != nil {
		o.Verb, o.PerMinute = destination.ReleaseAt, *in.PerMinute
	}
	return c.order(&in.orderInput, o)
}

// order gives a person's order, and answers with the destination as it stands after.
func (c *call) order(of *orderInput, o destination.Order) (DestinationDetail, error) {
	o.Reason = of.Reason
	if err := c.Order(c.Context(), of.Name, o); err != nil {
		return DestinationDetail{}, err
	}
	return c.destination(&of.destinationInput)
}
