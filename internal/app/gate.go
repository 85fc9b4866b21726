package app

import (
	"context"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/outbox"
	"retry-worker/internal/webclient"
	"retry-worker/internal/worker"
)

// newGates prepares the gates of destinations.
func (a *App) newGates(memory *journal.Journal) *gate.Gates {
	a.destinationsChanged(a.catalogue())
	gates := gate.New(gate.Options{
		Store: a.store, Memory: memory, Engine: a.engine, Clock: a.clock, Zone: a.settings.Notify.Zone, Log: a.log,
		Hooks: a.metrics.GateHooks(), Settings: a.gateSettings,
		Probe: webclient.NewProber(webclient.New(a.settings.Notify.Webhooks, a.version), a.log).OK,
	})
	a.metrics.WatchDestinations(gates.Destinations, a.destinationLabel, a.clock.Now)
	return gates
}

func (a *App) gateSettings() gate.Settings {
	c := a.catalogue()
	return gate.Settings{Version: c.Version, Configured: c.Destinations, Otherwise: c.DefaultDestination, Policies: c.Policies}
}

// destinationLabel returns the name of a destination in metrics and events.
func (a *App) destinationLabel(name string) string { return a.gateSettings().Label(name) }

// destinationsChanged starts the series of the destinations that are configured.
func (a *App) destinationsChanged(c *catalogue.Catalogue) {
	for name := range c.Destinations {
		a.metrics.StartDestination(name)
	}
}

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
