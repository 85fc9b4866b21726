package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
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
	History(ctx context.Context, name string) (*gate.History, error)
	Command(ctx context.Context, name string, c journal.DestinationCommand) error
}

// DestinationList is all of them, by name.
type DestinationList struct {
	Items []Destination `json:"items"`
}

// Destination is one as the API shows it.
type Destination struct {
	Name  string            `json:"name"`
	State destination.Phase `json:"state"`
	Since string            `json:"since"`
	// Cause of the outage; null while it is up.
	Cause           *string `json:"cause"`
	Held            int     `json:"held"`
	OldestHeldSince *string `json:"oldestHeldSince"`
	NearestDeadline *string `json:"nearestDeadline"`
	// NextTest is when the next claim goes ahead, should one wait; null unless it is down.
	NextTest *string `json:"nextTest"`
	// PerMinute is how many claims may go now; 0 while none may.
	PerMinute float64 `json:"perMinute"`
	// HeldUntil and UpUntil are what a person ordered.
	HeldUntil *string `json:"heldUntil"`
	UpUntil   *string `json:"upUntil"`
}

// DestinationDetail is one with its claims and its last 24 hours.
type DestinationDetail struct {
	Destination
	// Claims are the next 50 by turn.
	Claims []HeldClaim        `json:"claims"`
	Phases []DestinationPhase `json:"phases"`
	// Traffic is that of each half of an hour in which there was any.
	Traffic []DestinationTraffic `json:"traffic"`
	Orders  []DestinationOrder   `json:"orders"`
}

// HeldClaim is one that waits.
type HeldClaim struct {
	SubjectName
	HeldSince string  `json:"heldSince"`
	Deadline  *string `json:"deadline"`
}

// DestinationPhase is a time in which it was in one state.
type DestinationPhase struct {
	State destination.Phase `json:"state"`
	From  string            `json:"from"`
	Until string            `json:"until"`
}

// DestinationTraffic is what went in a time: claims that passed at once, were held and were released, and submissions
// that failed.
type DestinationTraffic struct {
	From     string `json:"from"`
	Until    string `json:"until"`
	Admitted int    `json:"admitted"`
	Held     int    `json:"held"`
	Released int    `json:"released"`
	Failed   int    `json:"failed"`
}

// DestinationOrder is what a person ordered.
type DestinationOrder struct {
	Order     journal.DestinationVerb `json:"order"`
	Until     *string                 `json:"until"`
	PerMinute *float64                `json:"perMinute"`
	Reason    string                  `json:"reason"`
	By        string                  `json:"by"`
	At        string                  `json:"at"`
}

func destinationOf(d *gate.Destination, now time.Time) Destination {
	s := &d.State
	told := Destination{
		Name: d.Name, State: s.Phase, Since: decision.Instant(s.Since), Held: d.Held,
		OldestHeldSince: journal.InstantOrNull(d.Oldest), NearestDeadline: journal.InstantOrNull(d.Deadline),
		HeldUntil: journal.InstantOrNull(s.HeldUntil), UpUntil: journal.InstantOrNull(s.UpUntil),
	}
	switch s.Phase {
	case destination.Down:
		told.NextTest = journal.InstantOrNull(s.NextTest)
	case destination.Up, destination.Ramping:
		told.PerMinute = s.PerMinute(&d.Settings, now)
	}
	if s.Phase != destination.Up {
		told.Cause = journal.OrNull(string(s.Outage.Cause))
	}
	return told
}

// destinations answers GET /api/v1/destinations.
func (s *API) destinations(w http.ResponseWriter, r *http.Request, m *Journal) {
	if _, bad := readParameters(r); bad != nil {
		s.refuse(w, bad)
		return
	}
	all, err := m.Gates.Destinations()
	if err != nil {
		s.unreadable(w, r, err)
		return
	}
	list := DestinationList{make([]Destination, len(all))}
	for i := range all {
		list.Items[i] = destinationOf(&all[i], s.now())
	}
	s.write(w, http.StatusOK, list)
}

// destination answers GET /api/v1/destinations/{name}.
func (s *API) destination(w http.ResponseWriter, r *http.Request, m *Journal) {
	if _, bad := readParameters(r); bad != nil {
		s.refuse(w, bad)
		return
	}
	s.showDestination(w, r, m)
}

// showDestination answers with the one that the path names, as it stands.
func (s *API) showDestination(w http.ResponseWriter, r *http.Request, m *Journal) {
	name := r.PathValue("name")
	d, claims, err := m.Gates.Destination(name)
	if err != nil {
		s.unordered(w, r, err, cannotRead)
		return
	}
	h, err := m.Gates.History(r.Context(), name)
	if err != nil {
		s.unordered(w, r, err, cannotRead)
		return
	}
	detail := DestinationDetail{
		destinationOf(&d, s.now()), make([]HeldClaim, len(claims)), make([]DestinationPhase, len(h.Phases)),
		[]DestinationTraffic{}, make([]DestinationOrder, len(h.Orders)),
	}
	for i, c := range claims {
		detail.Claims[i] = HeldClaim{SubjectName(c.Subject), decision.Instant(c.Since), journal.InstantOrNull(c.Deadline)}
	}
	for i, p := range h.Phases {
		detail.Phases[i] = DestinationPhase{p.Phase, decision.Instant(p.From), decision.Instant(p.Until)}
	}
	for _, t := range h.Traffic {
		if t.Any() {
			detail.Traffic = append(detail.Traffic, DestinationTraffic{
				decision.Instant(t.From), decision.Instant(t.Until), t.Admitted, t.Held, t.Released, t.Failed})
		}
	}
	for i, o := range h.Orders {
		detail.Orders[i] = DestinationOrder{
			Order: o.Verb, Until: journal.InstantOrNull(o.Until), Reason: o.Reason, By: o.By, At: decision.Instant(o.At),
		}
		if o.PerMinute > 0 {
			detail.Orders[i].PerMinute = &h.Orders[i].PerMinute
		}
	}
	s.write(w, http.StatusOK, detail)
}

// order answers POST /api/v1/destinations/{name}/hold, …/probe and …/release: it has a person's order recorded, under
// the name that was logged in with. Its fields are reason and those.
func (s *API) order(verb journal.DestinationVerb, fields ...string) func(http.ResponseWriter, *http.Request, *Journal) {
	fields = append(fields, "reason")
	return func(w http.ResponseWriter, r *http.Request, m *Journal) {
		f, bad := readFields(w, r, fields...)
		if bad != nil {
			s.refuse(w, bad)
			return
		}
		c, bad := f.order(verb)
		if bad != nil {
			s.refuse(w, bad)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), recordTime)
		defer cancel()
		c.By = access.From(ctx).Name
		if err := m.Gates.Command(ctx, r.PathValue("name"), c); err != nil {
			s.unordered(w, r, err,
				"the order was not recorded for sure; see by GET whether it is among the orders, and give it again if not")
			return
		}
		s.log.Info("a person gave an order about a destination", zap.String("event", "destination_ordered"),
			zap.String("order", string(c.Verb)), zap.String("by", c.By))
		s.showDestination(w, r, m)
	}
}

// order that the fields give: a release has either perMinute or until.
func (f fields) order(verb journal.DestinationVerb) (c journal.DestinationCommand, bad *refusal) {
	until, badUntil := f.instant("until")
	reason, badReason := f.checkedReason()
	c = journal.DestinationCommand{Verb: verb, Until: until, Reason: reason}
	if verb == journal.ReleaseAt && !until.IsZero() {
		c.Verb = journal.TreatAsUp
	}
	if raw, given := f["perMinute"]; given && (!until.IsZero() || json.Unmarshal(raw, &c.PerMinute) != nil) {
		bad = invalid(string(deadletter.InvalidPace),
			"perMinute is %.60s, expected a number above 0, or until and no perMinute", raw)
	}
	return c, firstOf(badUntil, bad, badReason)
}

// unordered answers that an order, or an answer, did not come about. unavailable is what it says where the journal is
// why.
func (s *API) unordered(w http.ResponseWriter, r *http.Request, err error, unavailable string) {
	wrong, is := errors.AsType[*gate.CommandError](err)
	switch {
	case is:
		s.refuse(w, invalid(wrong.Code, "%s", wrong.Message))
	case errors.Is(err, gate.ErrUnknown):
		s.fail(w, http.StatusNotFound, "destination_not_found", err.Error())
	default:
		s.undecided(w, r, err, unavailable)
	}
}
