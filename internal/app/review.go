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

// relays carry the journal's messages: people's decisions to the processes that wait, and the events where
// anybody listens. Each queue is its own, with a lease of its own: one that is stuck holds the other not up.
type relays struct {
	reviews *outbox.Relay
	notices *notify.Sink
	wakes   []func() // that look for what was just recorded
	runs    []func(ends, hard context.Context)
}

func (c *relays) add(r *outbox.Relay) {
	c.wakes, c.runs = append(c.wakes, r.Wake), append(c.runs, r.Run)
}

// wake says that there may be messages.
func (c *relays) wake() {
	for _, wake := range c.wakes {
		wake()
	}
}

// newRelays prepares the relays.
func (a *App) newRelays(memory *journal.Journal, gates *gate.Gates) *relays {
	sink := worker.NewReviewSink(a.engine, a.store, memory, a.clock.Now, a.metrics.Hooks(), a.log)
	byDelivery := func(context.Context, []int64) error { return nil } // the sink lets go of each message with its record
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

// runRelays runs the relays, and gathers notices for theirs, until the function it returns is called, which waits for
// what is on its way.
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

// newReviews prepares the worker of review jobs: places of its own, so that people's patience takes none of the
// others'.
func (a *App) newReviews(memory *journal.Journal, c *relays) *worker.Worker {
	a.metrics.StartJobType(worker.RetryReview)
	s := a.settings
	reviews := worker.NewReviews(a.engine, a.policies, a.store, memory, c.reviews.Wake, a.metrics.Hooks(), a.log)
	return reviews.Worker(worker.Config{Name: s.WorkerName, PollTimeout: pollTimeout, Await: memory.Await,
		TenantIDs: s.TenantIDs})
}

// openReviews lets people see and decide, on one and on many, and on destinations; it is what bulk runs decide by, too.
func (a *App) openReviews(memory *journal.Journal, gates *gate.Gates) *deadletter.Service {
	service := deadletter.New(a.store, memory, a.policies, a.clock.Now, a.health.engineUp)
	people := guard.New(guard.Services{DeadLetters: service, Gates: gates, Journal: memory, Store: a.store, Accounts: a.api.Accounts, Log: a.log})
	a.api.Open(api.Journal{Reader: a.store, Guard: people, Sessions: a.store})
	a.pages.Open(a.store, people)
	return service
}

// carryBulk carries bulk runs out while this replica has their lease, until stop ends; what is on its way then is
// awaited, unless hard ends.
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
	return gate.Settings{Version: c.Version, Configured: c.Destinations, Otherwise: c.DefaultDestination, Policies: c.Policies}
}

// destinationLabel returns the name of a destination in metrics and events.
func (a *App) destinationLabel(name string) string { return a.gateSettings().Label(name) }

// holdGates takes jobs of gates until stop ends, and acts on all that are held while this replica has the lease.
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
