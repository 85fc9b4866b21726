package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
)

// pageRecords are read at once.
const pageRecords = 500

// follow takes in what was recorded since.
func (g *Gates) follow(ctx context.Context) error {
	g.mu.Lock()
	open, now := g.known != nil && !g.anew, time.Now()
	look := g.behind || now.Sub(g.looked) >= longestRest
	if look {
		g.behind, g.looked = false, now
	}
	g.configure()
	g.mu.Unlock()
	if open && !look {
		return nil
	}
	if !open {
		if err := g.read(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	anew := false
	for seen := g.takeAll(nil); open; {
		page, more, err := g.page(ctx, journal.RecordFilter{}, seen)
		if err != nil {
			return err
		}
		seen, open = g.takeAll(page), more
		anew = anew || slices.ContainsFunc(page, func(r journal.Record) bool {
			return r.Attempt == nil && (r.Entry.Kind == journal.ErasureEntry || r.Entry.Kind == journal.RebuildEntry)
		})
	}
	if anew { // what was erased may tell that a claim came or left; what was rebuilt can be read now
		g.forget()
		return g.read(ctx)
	}
	return g.addUp(ctx)
}

// configure takes over the settings of the catalogue in force.
func (g *Gates) configure() {
	s := g.Settings()
	if g.known != nil && s.Version != g.version {
		g.version = s.Version
		g.registry.Configure(s.Configured, s.Otherwise, g.Clock.Now())
	}
}

// takeAll takes in records that this process did not hear of itself, and returns the last one that was taken in.
func (g *Gates) takeAll(page []journal.Record) int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range page {
		if r := page[i]; g.known != nil && r.Number() > g.seen {
			g.take(r)
		}
	}
	return g.seen
}

// read makes the gates of what the journal has, and begins to act on them where this process does. The caller turns.
func (g *Gates) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	s, now := g.Settings(), g.Clock.Now()
	k := newKnown(&s, now)
	head, err := g.Store.Held(ctx, func(of *journal.KeyedState) {
		if of.Unreadable != nil {
			g.lose(k, of)
			return
		}
		for i := range of.State.Held {
			k.hold(of.Subject, &of.State.Held[i])
		}
		if of.State.Destination != nil {
			k.restore(of.Subject.ID, of.State.Destination, now)
		}
	})
	if err != nil {
		return err
	}
	k.seen = head.Record
	words, err := g.words(ctx, k)
	if err != nil {
		return err
	}
	unheard, err := g.Store.Pending(ctx, journal.GateQueue, 0, pageRecords)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.behind = g.behind || g.known != nil && g.seen > k.seen // what was recorded meanwhile follows
	g.known, g.anew, g.leads = k, false, g.term != nil
	for i := range unheard {
		if a, err := journal.ReadGateAnswer(&unheard[i]); err == nil {
			g.left.add(a.JobKey, now)
		}
	}
	if g.leads {
		k.registry.Each(func(d *destination.Gate) { d.Lead(now) })
		for i := range words {
			g.evidence(&words[i])
		}
	}
	return nil
}

const (
	// wordsBefore makes up for clocks: the instants of records are those of whoever wrote them.
	wordsBefore = time.Minute
	// wordPages are looked through at most: where so much is recorded, a canary that waits costs less.
	wordPages = 100
)

// words returns what was recorded of the canaries that destinations are tested with: who took that in may have ended, or
// failed, before the destination's state was recorded.
func (g *Gates) words(ctx context.Context, k *known) (words []journal.Record, err error) {
	canaries, f := map[int64]bool{}, journal.RecordFilter{}
	k.registry.Each(func(d *destination.Gate) {
		if c := d.State.Canary; d.State.Phase == destination.Testing && c.Claim != "" {
			canaries[jobOf(c.Claim)] = true
			if since := c.Sent.Add(-wordsBefore); f.Since.IsZero() || since.Before(f.Since) {
				f.Since = since
			}
		}
	})
	if len(canaries) == 0 {
		return nil, nil
	}
	err = g.records(ctx, f, wordPages, func(r *journal.Record) error {
		if r.Number() <= k.seen && canaries[sentBy(r)] {
			words = append(words, *r)
		}
		return nil
	})
	return words, err
}

// records calls take for the records that the filter lets through, of so many pages at most. It returns take's error.
func (g *Gates) records(ctx context.Context, f journal.RecordFilter, pages int, take func(*journal.Record) error) error {
	for after, more := int64(0), true; more && pages > 0; pages-- {
		page, follow, err := g.page(ctx, f, after)
		if err != nil {
			return err
		}
		for i := range page {
			after = page[i].Number()
			if err := take(&page[i]); err != nil {
				return err
			}
		}
		more = follow
	}
	return nil
}

// page returns the next records behind one, and whether more may follow. One that cannot be read is among them, and says
// nothing: the others go on.
func (g *Gates) page(
	ctx context.Context, f journal.RecordFilter, after int64,
) (page []journal.Record, more bool, err error) {
	page, err = g.Store.Records(ctx, f, after, pageRecords)
	if more = len(page) == pageRecords; errors.Is(err, journal.ErrUnreadable) && len(page) > 0 {
		g.unread(err)
		return page, true, nil
	}
	return page, more, err
}

// lose leaves out what cannot be read: claims stay held, each that it is or all that go to the destination.
func (g *Gates) lose(k *known, of *journal.KeyedState) {
	if of.Subject == journal.DestinationSubject(of.Subject.ID) {
		k.lost[k.registry.Gate(of.Subject.ID, g.Clock.Now()).Name] = true
	}
	g.unread(fmt.Errorf("subject %d: %w", of.Key, of.Unreadable))
}

// unread says once what cannot be read.
func (g *Gates) unread(err error) {
	if _, told := g.unreadable.LoadOrStore(err.Error(), true); !told {
		g.Log.Error("what cannot be read is left out, and claims that it is about stay held: `audit verify` says more, "+
			"`journal rebuild` makes states anew", zap.String("event", "gates_unreadable"), zap.Error(err))
	}
}

// sentBy returns the job of the gate that let the claim go of which a record tells an outcome; 0 for none.
func sentBy(r *journal.Record) int64 {
	if r.Attempt != nil {
		return r.Attempt.Sent.JobKey
	}
	sent, _ := journal.ReadSent(r.Entry)
	return sent.JobKey
}

// restore takes over what was recorded of a destination.
func (k *known) restore(name string, of *journal.DestinationState, now time.Time) {
	d := k.registry.Gate(name, now)
	if of.Version > 0 {
		k.versions[d.Name], k.heard[d.Name] = of.Version, of.Version
		d.Take(of.State, now)
	}
	for _, o := range of.Orders {
		order(d, &o.DestinationCommand, now)
	}
	k.orders[d.Name] = slices.Clone(of.Orders)
}
