package app

import (
	"context"
	"slices"

	"retry-worker/internal/api"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/events"
	"retry-worker/internal/gate"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/outbox"
	"retry-worker/internal/web"
	"retry-worker/internal/worker"
)

// relays carry the journal's messages: decisions to the waiting processes, and events if they are on. Each queue has a
// lease of its own, so that a stuck one does not stop the others.
type relays struct {
	reviews *outbox.Relay
	notices *notify.Sink
	wakes   []func() // make relays look for new messages
	runs    []func(ends, hard context.Context)
}

func (c *relays) add(r *outbox.Relay) {
	c.wakes, c.runs = append(c.wakes, r.Wake), append(c.runs, r.Run)
}

// wake tells the relays that there may be messages.
func (c *relays) wake() {
	for _, wake := range c.wakes {
		wake()
	}
}

// newRelays prepares the relays.
func (a *App) newRelays(memory *journal.Journal, gates *gate.Gates) *relays {
	sink := worker.NewReviewSink(a.engine, a.store, memory, a.clock.Now, a.metrics.Hooks(), a.log)
	byDelivery := func(context.Context, []int64) error { return nil } // the sink records each message's delivery itself
	c := &relays{reviews: outbox.New(journal.ReviewQueue, a.holder, a.store, byDelivery, sink, a.log)}
	c.reviews.Leads = sink.Leads
	c.add(c.reviews)
	a.addNotices(c, memory, gates)
	if a.sink != nil {
		published := func(ctx context.Context, sequences []int64) error {
			err := memory.Published(ctx, sequences)
			if err == nil {
				a.metrics.EventsPublished(len(sequences))
			}
			return err
		}
		c.add(outbox.New(events.Queue, a.holder, a.store, published, a.sink, a.log))
	}
	return c
}

// runRelays runs the relays and gathers notices. end stops them and waits for messages on their way.
func (a *App) runRelays(hard context.Context, c *relays) (end func()) {
	var ends []func()
	for _, run := range c.runs {
		ends = append(ends, a.background(hard, func(ends context.Context) { run(ends, hard) }))
	}
	return func() {
		for _, end := range slices.Backward(ends) {
			end()
		}
	}
}

// newReviews returns the worker of review jobs. Its places are its own, so that waiting for people blocks no other
// jobs.
func (a *App) newReviews(memory *journal.Journal, c *relays) *worker.Worker {
	a.metrics.StartJobType(worker.RetryReview)
	s := a.settings
	reviews := worker.NewReviews(a.engine, a.policies, a.store, memory, c.reviews.Wake, a.metrics.Hooks(), a.log)
	return reviews.Worker(worker.Config{Name: s.WorkerName, PollTimeout: pollTimeout, Await: memory.Await,
		TenantIDs: s.TenantIDs})
}

// openReviews opens the API for decisions on dead letters, alone or in bulk, and on destinations. Bulk runs use the
// returned service too.
func (a *App) openReviews(memory *journal.Journal, gates *gate.Gates) *deadletter.Service {
	service := deadletter.New(a.store, memory, a.policies, a.clock.Now, a.health.engineUp)
	people := guard.New(guard.Services{DeadLetters: service, Gates: gates, Journal: memory, Store: a.store, Accounts: a.api.Accounts, Log: a.log})
	a.api.Open(api.Journal{Reader: a.store, Guard: people, Sessions: a.store})
	a.pages.Open(a.store, people)
	return service
}

// carryBulk carries out bulk runs while this replica has their lease, until stop ends. Then it finishes what is under
// way, unless hard ends.
func (a *App) carryBulk(stop, hard context.Context, decide *deadletter.Service, memory *journal.Journal) {
	runner := deadletter.NewRunner(a.store, decide.Decide, memory, a.clock, a.health.engineUp, a.log)
	outbox.Lead(stop, hard, a.store, deadletter.BulkLease, a.holder, runner.Run)
}

// newGates prepares the gates of destinations.
func (a *App) newGates(memory *journal.Journal) *gate.Gates {
	return gate.New(gate.Options{
		Store: a.store, Memory: memory, Engine: a.engine, Clock: a.clock, Zone: a.settings.Notify.Zone, Log: a.log,
		Hooks: a.metrics.GateHooks(), Settings: a.gateSettings,
		Probe: web.NewProber(web.NewClient(a.settings.Notify.Webhooks, a.version), a.log).OK,
	})
}

func (a *App) gateSettings() gate.Settings {
	c := a.catalogue()
	return gate.Settings{Version: c.Version, Destinations: c.Destinations, Policies: c.Policies}
}

// destinationLabel returns a destination's name in metrics and events.
func (a *App) destinationLabel(name string) string { return a.catalogue().Destinations.Label(name) }

// holdGates takes gate jobs until stop ends, and manages all held claims while this replica has the lease.
func (a *App) holdGates(stop, hard context.Context, gates *gate.Gates, memory *journal.Journal) {
	defer a.background(hard, gates.Run)()
	defer a.background(hard, func(ends context.Context) {
		outbox.Lead(ends, hard, a.store, gate.Lease, a.holder, gates.Lead)
	})()
	a.metrics.StartJobType(worker.SubmissionGate)
	s := a.settings
	worker.NewGate(a.engine, gates.Admit, a.policies, memory, a.metrics.Hooks(), a.log).
		Worker(worker.Config{Name: s.WorkerName, PollTimeout: pollTimeout, Await: memory.Await,
			TenantIDs: s.TenantIDs}).Run(stop, hard)
}
