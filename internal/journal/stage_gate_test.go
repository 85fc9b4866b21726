package journal_test

import (
	"maps"
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
)

// policy changes what tiss-submission says, from now on.
func (s *stage) policy(a *arguments) (string, error) {
	p := *s.policies[decision.DefaultPolicy]
	s.policies = maps.Clone(s.policies)
	s.policies[p.Name] = &p
	for name, value := range a.Named {
		var err error
		switch name {
		case "catalogue":
			p.Catalogue = value
		case "retries":
			p.MaxRetries = a.Number(name)
		case "limit":
			p.TotalLimit, err = time.ParseDuration(value)
		case "longest":
			p.Backoff.Max, err = time.ParseDuration(value)
		case "opens":
			always := destination.Settings{Pace: destination.Pace{Most: 1e18}} // any number at once
			always.Calendar, err = calendar.New(time.UTC, []calendar.Window{{Hours: value}}, nil)
			p.Destinations.Others = always
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

// brings returns what a claim brings beside its id: a deadline, and what it is worth.
func (s *stage) brings(a *arguments) (deadline time.Time, of decision.Context, err error) {
	if value := a.Named["value"]; value != "" {
		of = decision.Context{{Variable: "value", Type: decision.ContextMoney, Value: value}}
	}
	if text := a.Named["deadline"]; text != "" {
		deadline, err = s.instant(text)
	}
	return deadline, of, err
}

// hold has a claim come to the gate of the destination portal.
func (s *stage) hold(a *arguments) (string, error) {
	deadline, of, err := s.brings(a)
	if err != nil {
		return "", err
	}
	err = s.journal.Hold(s.t.Context(), &journal.Arrival{Subject: s.subject(a), JobKey: a.Number("job"), ProcessInstanceKey: a.Number("instance"),
		Destination: "portal", Policy: s.policies[decision.DefaultPolicy], Deadline: deadline, Context: of})
	if err != nil {
		return "", err
	}
	return s.changes(s.subject(a)), nil
}

// depart has a claim leave its gate: given up, or let through.
func (s *stage) depart(a *arguments) (string, error) {
	d := &journal.Departure{Subject: s.subject(a), JobKey: a.Number("job")}
	switch {
	case a.Words["given-up"]:
		d.GiveUp = decision.ReasonDeadline
	case a.Words["late"]:
		d.Before = s.now
	}
	d.Kind = map[string]destination.Kind{"canary": destination.Test, "ramp": destination.RampedUp, "up": destination.Pass}[a.Named["by"]]
	if _, err := s.journal.Depart(s.t.Context(), d); err != nil {
		return "", err
	}
	return s.changes(d.Subject), nil
}
