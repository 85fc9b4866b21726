package testkit

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// Gates returns the gates of the Fixture's journal. The first call starts them and waits until they have read the
// journal; they follow it until the test ends. They have no lease, so that nothing happens to a destination but what
// the test says.
func (f *Fixture) Gates() *gate.Gates {
	f.t.Helper()
	if g := f.gates.Load(); g != nil {
		return g
	}
	otherwise := destination.Defaults()
	otherwise.Calendar = f.Calendar
	g := gate.New(gate.Options{
		Store: f.Store, Memory: f.Journal, Clock: f.Clock, Zone: time.UTC, Hooks: worker.NoHooks(), Log: zap.NewNop(),
		Settings: func() gate.Settings { return gate.Settings{Destinations: destination.Configured{Others: otherwise}} },
	})
	untilEnd(f.t, g.Run)
	var err error
	wait.Until(f.t, "gates that have read the journal", func() bool {
		_, err = g.Destinations()
		return err == nil
	}, func() string { return err.Error() })
	f.gates.Store(g)
	return g
}

// recorded passes what was recorded to the gates, if there are any.
func (f *Fixture) recorded(records []journal.Happening, _ time.Duration) {
	if g := f.gates.Load(); g != nil {
		g.Recorded(records)
	}
}

// Portal is a destination for which a test records what happens.
type Portal struct {
	Name    string
	journal *journal.Journal
	gate    destination.Gate
	version int64
}

// NewPortal returns a portal that is up, with the built-in settings.
func NewPortal(name string, j *journal.Journal, at time.Time) *Portal {
	return &Portal{name, j, destination.Gate{Name: name, Settings: destination.Defaults(), State: destination.New(at)}, 0}
}

// Happens records what events at an instant make of the portal.
func (p *Portal) Happens(t testing.TB, at time.Time, events ...destination.Event) {
	t.Helper()
	was := p.gate.Phase
	for _, e := range events {
		p.gate.Apply(e, at)
	}
	state := p.gate.State
	p.version++
	body := journal.DestinationBody{Version: p.version, State: &state}
	if was != state.Phase {
		body.Went = was
	}
	Must(t, p.journal.RecordDestination(context.Background(), p.Name, body))
}

// Failures returns as many failed submissions in a row as take a portal down.
func Failures() []destination.Event {
	return slices.Repeat([]destination.Event{destination.Outcome{Tells: destination.TellsFailed}}, 5)
}

// Answered returns a submission that the portal answered; claim may be 0.
func Answered(claim int64) destination.Event {
	return destination.Outcome{Tells: destination.TellsAnswered, Claim: claim}
}

// Fails takes the portal down by failed submissions.
func (p *Portal) Fails(t testing.TB, at time.Time) {
	t.Helper()
	p.Happens(t, at, Failures()...)
}

// Recovers records n outages of half an hour each, an hour apart, the first at an instant.
func (p *Portal) Recovers(t testing.TB, first time.Time, n int) {
	t.Helper()
	for i := range n {
		at := first.Add(time.Duration(i) * time.Hour)
		p.Fails(t, at)
		at = at.Add(30 * time.Minute)
		p.Happens(t, at, destination.Turn{Waiting: 1, Canary: 1}, Answered(1), destination.Turn{})
	}
}

// Hold records that a claim of R$ 1,234.56 with that job waits for the portal.
func (p *Portal) Hold(t testing.TB, id string, job int64, deadline time.Time) {
	t.Helper()
	Must(t, p.journal.Hold(context.Background(), &journal.Arrival{
		Subject: Subject(decision.DefaultPolicy, id), JobKey: job, ElementInstanceKey: job + 1, ProcessInstanceKey: job + 2,
		Destination: p.Name, Deadline: deadline,
		Context: decision.Context{{Variable: "valor", Value: "1234.56", Type: decision.ContextMoney}}, Policy: catalogue.Default().Policies[decision.DefaultPolicy],
	}))
}

// Release records that a waiting claim may go.
func (p *Portal) Release(t testing.TB, id string, job int64, reason string) {
	t.Helper()
	_, err := p.journal.Depart(context.Background(), &journal.Departure{Subject: Subject(decision.DefaultPolicy, id), JobKey: job,
		Kind: destination.RampedUp, Reason: reason})
	Must(t, err)
}

// Services returns what a guard protects.
func (f *Fixture) Services() guard.Services {
	return guard.Services{DeadLetters: f.DeadLetters, Gates: f.Gates(), Journal: f.Journal, Store: f.Store, Log: zap.NewNop()}
}
