package api

import (
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
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

// destinationInput names a destination, orderInput also says why it gets an order.
type (
	destinationInput struct {
		Name string `json:"name" in:"path" doc:"Its name in the policies file, or in the process's variable."`
	}
	orderInput struct {
		destinationInput
		reasonInput
	}
)

var destinations = []*Operation{
	op(access.Read, "GET /destinations", "listDestinations", func(c *call, _ *struct{}) (Page[Destination], error) {
		all, err := c.Destinations.Destinations()
		now := c.now()
		return paged(func(d *gate.Destination) Destination { return destinationOf(d, now) })(all, "", err)
	}),
	op(access.Read, "GET /destinations/{name}", "showDestination", (*call).destination),
	op(access.Order, "POST /destinations/{name}/hold", "holdDestination", func(c *call, in *struct {
		orderInput
		Until time.Time `json:"until" required:"1" doc:"At most 7 days ahead."`
	}) (DestinationDetail, error) {
		return c.order(&in.orderInput, destination.Order{Verb: destination.HoldClaims, Until: in.Until})
	}),
	op(access.Order, "POST /destinations/{name}/probe", "probeDestination",
		func(c *call, in *orderInput) (DestinationDetail, error) {
			return c.order(in, destination.Order{Verb: destination.SendCanary})
		}),
	op(access.Order, "POST /destinations/{name}/release", "releaseDestination", func(c *call, in *struct {
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
	}),
}

func (c *call) destination(in *destinationInput) (DestinationDetail, error) {
	d, claims, err := c.Destination(in.Name)
	if err != nil {
		return DestinationDetail{}, err
	}
	return DestinationDetail{destinationOf(&d, c.now()), journal.Views(claims, func(c *destination.Held) HeldClaim {
		return HeldClaim{SubjectName(c.Subject), decision.Instant(c.Since), journal.InstantOrNull(c.Deadline)}
	})}, nil
}

// order gives a person's order, and answers with the destination as it stands after.
func (c *call) order(of *orderInput, o destination.Order) (DestinationDetail, error) {
	o.Reason = of.Reason
	if err := c.Order(c.Context(), of.Name, o); err != nil {
		return DestinationDetail{}, err
	}
	return c.destination(&of.destinationInput)
}

// Cause is what failures share: policy, reason and error, without what differs from case to case.
type Cause struct {
	ID             string                       `json:"id" pattern:"^[0-9a-f]{16}$" doc:"Its fingerprint."`
	Policy         string                       `json:"policy"`
	Reason         decision.Reason              `json:"reason" type:"string"`
	Classification decision.ErrorClassification `json:"classification" doc:"PERMANENT where one of them was."`
	Pattern        string                       `json:"pattern" doc:"The error without what differs from case to case."`
	FirstSeen      string                       `json:"firstSeen" format:"date-time"`
	LastSeen       string                       `json:"lastSeen" format:"date-time"`
	Failures       int64                        `json:"failures" doc:"How many failures were decided on."`
	Retried        int64                        `json:"retried"`
	Exhausted      int64                        `json:"exhausted" doc:"How many were given up at the limit."`
	Permanent      int64                        `json:"permanent" doc:"How many were given up as permanent."`
	Recovered      int64                        `json:"recovered" doc:"How many episodes recovered after one of them."`
	Learnt         CauseLearnt                  `json:"learnt" doc:"What became of those closed in the last half year."`
	New            *journal.News                `json:"new" doc:"What was told of it when it was new, or back, last; null where it never was."`
	Taught         *Teaching                    `json:"taught" doc:"What a person taught of it; null where nobody did."`
}

// CauseLearnt counts the retried claims of a cause that were closed in the last half year.
type CauseLearnt struct {
	Closed              int64  `json:"closed"`
	Recovered           int64  `json:"recovered"`
	MeanRecoveryMinutes *int64 `json:"meanRecoveryMinutes" doc:"From the first failure; null where none recovered."`
	Hopeless            bool   `json:"hopeless" doc:"Fewer than one in ten recovers, with 95 % certainty."`
}

// Teaching is what a person taught about a cause (R26).
type Teaching struct {
	Classification decision.ErrorClassification `json:"classification"`
	Team           *string                      `json:"team" doc:"The team that acts; null where it is transient."`
	Reason         string                       `json:"reason" doc:"Why, in a person's words."`
	By             string                       `json:"by"`
	At             string                       `json:"at" format:"date-time"`
	Record         int64                        `json:"record" doc:"The record of the audit that tells of it."`
}

func (c *call) causeOf(f *journal.Cause) Cause {
	shown := Cause{ID: f.ID, Policy: f.Policy, Reason: f.Reason, Classification: f.Classification, Pattern: f.Pattern,
		FirstSeen: decision.Instant(f.FirstSeen), LastSeen: decision.Instant(f.LastSeen), Failures: f.Failures,
		Retried: f.Retried, Exhausted: f.Exhausted, Permanent: f.Permanent, Recovered: f.Recovered, New: f.News}
	learnt := c.Prospects(f)
	shown.Learnt = CauseLearnt{Closed: learnt.Closed(), Recovered: learnt.Recovered, Hopeless: learnt.Hopeless()}
	if learnt.Recovered > 0 {
		shown.Learnt.MeanRecoveryMinutes = new(decision.Minutes(learnt.Mean()))
	}
	if t := f.Taught; t != nil {
		shown.Taught = &Teaching{t.Class, journal.OrNull(string(t.Team)), t.Reason, t.By, decision.Instant(t.At), t.Record}
	}
	return shown
}

// causeInput names a cause.
type causeInput struct {
	ID string `json:"id" in:"path" doc:"A cause's fingerprint."`
}

var causes = []*Operation{
	op(access.Read, "GET /causes", "listCauses", func(c *call, in *struct {
		Policy string `json:"policy" doc:"Only those of this policy."`
		Taught bool   `json:"taught" doc:"True: only those that a person taught something of."`
		New    bool   `json:"new" doc:"True: those that were told as new, or back, within a day."`
		pageInput
	}) (Page[Cause], error) {
		f := journal.CauseFilter{Policy: in.Policy, Taught: in.Taught}
		if in.New {
			f.Told = c.now().Add(-statistics.Daily)
		}
		return paged(c.causeOf)(c.ListCauses(c.Context(), f, in.Cursor, in.Limit))
	}),
	op(access.Read, "GET /causes/{id}", "showCause", func(c *call, in *causeInput) (Cause, error) {
		return shown(c.causeOf)(c.Cause(c.Context(), in.ID))
	}),
	op(access.Teach, "POST /causes/{id}/teach", "teachCause", func(c *call, in *struct {
		causeInput
		Class decision.ErrorClassification `json:"classification" required:"1" enum:"PERMANENT,TRANSIENT" doc:"What it shall be."`
		Team  decision.Team                `json:"team" doc:"The team that acts on it; none where it is transient."`
		reasonInput
	}) (Cause, error) {
		t := journal.Teaching{Class: in.Class, Team: in.Team, Reason: in.Reason}
		return shown(c.causeOf)(c.Teach(c.Context(), in.ID, t))
	}),
	op(access.Teach, "DELETE /causes/{id}/teach", "forgetCause", func(c *call, in *struct {
		causeInput
		reasonInput
	}) (Cause, error) {
		return shown(c.causeOf)(c.Teach(c.Context(), in.ID, journal.Teaching{Reason: in.Reason}))
	}),
}
