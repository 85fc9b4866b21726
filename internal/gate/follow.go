package gate

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unique"

	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
)

// known is what the journal has of destinations.
type known struct {
	registry *destination.Registry
	version  string                     // of the catalogue that the registry is configured by
	subjects map[string]journal.Subject // of those that are held, by their claims in the queues
	records  map[string]*record         // by destination
	lost     map[string]bool            // destinations whose state cannot be read: nobody goes there
	weighed  passed                     // that the breakers have counted
	seen     int64                      // the last record that was taken in
}

// record is what is recorded of a destination; written is the version of its State that is recorded or being recorded.
type record struct {
	journal.DestinationState
	written int64
}

func (k *known) record(name string) *record {
	r := k.records[name]
	if r == nil {
		r = &record{}
		k.records[name] = r
	}
	return r
}

// restore takes over what is recorded of a destination, and what people ordered since.
func (k *known) restore(d *destination.Gate, now time.Time) {
	r := k.record(d.Name)
	if r.written = r.Version; r.Version > 0 {
		d.Take(r.State, now)
	}
	for _, o := range r.Orders {
		d.Apply(o.Order, now)
	}
}

// hold takes in that a claim is held.
func (k *known) hold(s journal.Subject, h *journal.HeldJob) {
	claim := claimOf(h.JobKey)
	k.subjects[claim] = journal.Subject{
		Tenant: unique.Make(s.Tenant).Value(), Policy: unique.Make(s.Policy).Value(), ID: s.ID,
	}
	k.registry.Gate(h.Destination, h.Since).Hold(destination.Held{Claim: claim, Since: h.Since, Deadline: h.Deadline,
		Limit: h.Limit, RetriesLeft: h.MaxRetries - h.Retries, Cents: h.Context.Cents()})
}

// pageRecords are read at once.
const pageRecords = 500

// follow takes in what was recorded since.
func (g *Gates) follow(ctx context.Context) error {
	for more := true; more; {
		seen, open := g.configure()
		if !open {
			if err := g.read(ctx); err != nil {
				return err
			}
			continue
		}
		page, further, err := g.page(ctx, seen)
		if err != nil {
			return err
		}
		more = g.takeAll(page) || further
	}
	return g.addUp(ctx)
}

// configure takes over the settings of the catalogue in force. It returns the last record that was taken in, and whether
// the journal was read and need not be read anew.
func (g *Gates) configure() (seen int64, open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil || g.anew {
		return 0, false
	}
	if s := g.Settings(); s.Version != g.version {
		g.version = s.Version
		g.registry.Configure(s.Configured, s.Otherwise, g.Clock.Now())
	}
	return g.seen, true
}

// read makes the gates of what the journal has, and begins to act on them where this process does. The caller turns.
func (g *Gates) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	s, now := g.Settings(), g.Clock.Now()
	k := &known{registry: destination.NewRegistry(s.Configured, s.Otherwise, now), version: s.Version,
		subjects: map[string]journal.Subject{}, records: map[string]*record{}, lost: map[string]bool{}, weighed: passed{}}
	head, err := g.Store.Held(ctx, func(of *journal.KeyedState) { g.restore(k, of, now) })
	if err != nil {
		return err
	}
	k.seen = head.Record
	words, err := g.words(ctx, k)
	if err != nil {
		return err
	}
	_, unheard, err := g.unanswered(ctx)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known, g.anew, g.leads = k, false, g.term != nil
	for i := range unheard {
		g.left.add(unheard[i].JobKey, now)
	}
	if g.leads {
		for _, d := range k.registry.All() {
			d.Lead(now)
		}
		for i := range words {
			g.evidence(&words[i])
		}
	}
	return nil
}

// restore takes over what is recorded of a subject or a destination. Where that cannot be read it is left out: claims
// stay held, each that it is or all that go to the destination.
func (g *Gates) restore(k *known, of *journal.KeyedState, now time.Time) {
	name := of.Subject.ID
	if of.Unreadable != nil {
		if of.Subject == journal.DestinationSubject(name) {
			k.lost[k.registry.Gate(name, now).Name] = true
		}
		g.once(unread, fmt.Errorf("subject %d: %w", of.Key, of.Unreadable))
		return
	}
	for i := range of.State.Held {
		k.hold(of.Subject, &of.State.Held[i])
	}
	if of.State.Destination != nil {
		d := k.registry.Gate(name, now)
		k.record(d.Name).DestinationState = *of.State.Destination
		k.restore(d, now)
	}
}

const unread = "records that cannot be read are left out, and the claims that they are about stay held: `audit verify` says more, " +
	"`journal rebuild` makes states anew"

// wordPages are looked through at most: where so much is recorded, a canary that waits costs less.
const wordPages = 100

// words returns what was recorded of the canaries that destinations are tested with, behind what their states take in: who
// read it may have ended, or failed, before that was recorded.
func (g *Gates) words(ctx context.Context, k *known) (words []journal.Record, err error) {
	canaries, after := map[string]bool{}, k.seen
	for _, d := range k.registry.All() {
		if d.Phase == destination.Testing && d.Canary.Claim != "" {
			canaries[d.Canary.Claim] = true
			after = min(after, k.record(d.Name).Read)
		}
	}
	for range wordPages {
		if after >= k.seen {
			break
		}
		page, _, err := g.page(ctx, after)
		if errors.Is(err, journal.ErrUnreadable) || err == nil && len(page) == 0 {
			break // its canary waits out its time
		}
		if err != nil {
			return nil, err
		}
		after = page[len(page)-1].Number()
		for i := range page {
			if _, o := outcomeOf(&page[i]); page[i].Number() <= k.seen && canaries[o.Claim] {
				words = append(words, page[i])
			}
		}
	}
	return words, nil
}

// page returns the next records behind one, and whether more may follow. One that cannot be read fails the turn: the next
// one reads the journal's states anew, and goes on behind it.
func (g *Gates) page(ctx context.Context, after int64) (page []journal.Record, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	page, err = g.Store.Records(ctx, journal.RecordFilter{}, after, pageRecords)
	return page, len(page) == pageRecords, err
}

// Recorded takes in what this process's journal recorded (journal.Hooks).
func (g *Gates) Recorded(records []journal.Happening) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(records) == 0 {
		return
	}
	if g.known == nil || records[0].Number() != g.seen+1 { // another process has written, too
		g.woken.Send()
		return
	}
	for i := range records {
		g.take(&records[i].Record)
	}
}

// takeAll takes in records that this process did not hear of itself, and reports whether the journal is to be read anew.
func (g *Gates) takeAll(page []journal.Record) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range page {
		if r := &page[i]; g.known != nil && r.Number() > g.seen {
			g.take(r)
		}
	}
	return g.anew
}

// take takes in the record that follows. What cannot be read says nothing.
func (g *Gates) take(r *journal.Record) {
	g.seen = r.Number()
	if g.leads {
		g.evidence(r)
	}
	if r.Attempt != nil {
		if r.Attempt.Tells == destination.TellsFailed && !g.failing {
			g.failing = true
			g.woken.Send()
		}
		return
	}
	switch r.Entry.Kind {
	case journal.GateEntry:
		g.gate(r.Subject, r.Entry)
	case journal.DestinationEntry:
		g.destination(r.Subject.ID, r.Entry)
	case journal.ErasureEntry, journal.RebuildEntry:
		// What was erased may tell that a claim came or left; what was rebuilt can be read now.
		g.anew = true
		g.woken.Send()
	}
}

// outcomeOf returns what a record tells of a claim that went, and its destination; that is empty where it tells nothing.
func outcomeOf(r *journal.Record) (name string, o destination.Outcome) {
	if a := r.Attempt; a != nil {
		o = destination.Outcome{Tells: a.Tells, Sent: a.Sent.At, RetryAfter: a.RetryAfter}
		if name = a.Destination; a.Tells == "" {
			name = a.Sent.Destination
		}
		if !o.Sent.IsZero() {
			o.Claim = claimOf(a.Sent.JobKey)
		}
	} else if k := r.Entry.Kind; k == journal.OutcomeEntry || k == journal.GateEntry {
		if sent, err := journal.ReadSent(r.Entry); err == nil && sent.JobKey != 0 {
			return sent.Destination,
				destination.Outcome{Tells: destination.TellsAnswered, Claim: claimOf(sent.JobKey), Sent: sent.At}
		}
	}
	return name, o
}

// evidence tells a destination what became of a claim. The one that acts alone weighs it: the others know a destination
// as it is recorded.
func (g *Gates) evidence(r *journal.Record) {
	name, o := outcomeOf(r)
	if name == "" {
		return
	}
	d := g.registry.Gate(name, g.Clock.Now())
	if o.Claim == "" && d.Phase == destination.Ramping && d.Outage.Tests > 0 {
		o.Sent = d.Outage.Since // its gate let it go before: what goes now says so
	}
	if o.Tells == destination.TellsFailed && d.Phase != destination.Up {
		g.Hooks.Wasted(g.Settings().Label(d.Name))
	}
	g.tell(name, o)
}

// tell tells a destination what happened.
func (g *Gates) tell(name string, e destination.Event) {
	now := g.Clock.Now()
	d := g.registry.Gate(name, now)
	if d.Apply(e, now); d.Changed {
		g.woken.Send()
	}
}

// gate takes in that a claim is held, or is no more.
func (g *Gates) gate(s journal.Subject, e *journal.Entry) {
	b, err := journal.BodyOf[journal.GateBody](e)
	switch {
	case err != nil || b.Action == journal.GateAnswered:
		return
	case b.Action == journal.GateHeld:
		g.hold(s, &b.HeldJob)
	default:
		claim, now := claimOf(b.JobKey), g.Clock.Now()
		delete(g.subjects, claim)
		g.left.add(b.JobKey, now)
		g.registry.Gate(b.Destination, now).Queue.Remove(claim)
	}
	g.woken.Send()
}

// destination takes in what was recorded of a destination, or ordered: people see that at once.
func (g *Gates) destination(name string, e *journal.Entry) {
	b, err := journal.BodyOf[journal.DestinationBody](e)
	if err != nil {
		return
	}
	now := g.Clock.Now()
	d := g.registry.Gate(name, now)
	r := g.record(d.Name)
	r.Fold(&b, e.Record)
	switch {
	case b.State != nil && b.Version > r.written: // another process's
		g.known.restore(d, now)
	case b.Command != nil:
		d.Apply(*b.Command, now)
	}
	g.woken.Send()
}
