package gate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	"unique"

	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
)

// known is what was read from the journal about destinations.
type known struct {
	registry *destination.Registry
	version  string             // of the catalogue that configured the registry
	records  map[string]*record // by destination
	lost     map[string]bool    // destinations whose state cannot be read: no claim goes there
	weighed  passed             // counted by the breakers
	seen     int64              // the last record that was followed
	head     int64              // the last record that was followed before lead
	leads    bool               // this process leads
}

// record is a destination's recorded state. written is the version that is recorded or about to be.
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

// restore takes over a destination's recorded State, and applies the orders since.
func (k *known) restore(d *destination.Gate, now time.Time) {
	r := k.record(d.Name)
	if r.written = r.Version; r.Version > 0 {
		d.Take(r.State, now)
	}
	for _, o := range r.Orders {
		d.Apply(o.Order, now)
	}
}

// hold adds a held claim to its destination's queue.
func (k *known) hold(s journal.Subject, h *journal.HeldJob) {
	s.Tenant, s.Policy = unique.Make(s.Tenant).Value(), unique.Make(s.Policy).Value() // most are the same
	k.registry.Gate(h.Destination, h.Since).Hold(destination.Held{Claim: h.JobKey, Subject: s,
		Since: h.Since, Deadline: h.Deadline, Limit: h.Limit, RetriesLeft: h.MaxRetries - h.Retries, Cents: h.Context.Cents()})
}

// pageRecords is how many records are read at a time.
const pageRecords = 500

// follow takes over the records since the last one that was followed.
func (g *Gates) follow(ctx context.Context) error {
	for more := true; more; {
		seen, open := g.configure()
		if !open {
			if err := g.read(ctx); err != nil {
				return err
			}
			continue
		}
		page, err := g.page(ctx, seen)
		if err != nil && len(page) == 0 {
			return err
		}
		more = g.takeAll(page, err)
	}
	return g.addUp(ctx)
}

// page returns the records after one. With an error the last one is unreadable.
func (g *Gates) page(ctx context.Context, after int64) ([]journal.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	page, err := g.Store.Records(ctx, journal.RecordFilter{}, after, pageRecords)
	if !errors.Is(err, journal.ErrUnreadable) && err != nil {
		page = nil
	}
	return page, err
}

// configure takes over the settings of the catalogue in force. It returns the last record that was followed; open is
// false if the journal has to be read first.
func (g *Gates) configure() (seen int64, open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil || g.anew {
		return 0, false
	}
	if s := g.Settings(); s.Version != g.version {
		g.version = s.Version
		g.registry.Configure(s.Destinations, g.Clock.Now())
	}
	return g.seen, true
}

// read makes the gates anew from the journal.
func (g *Gates) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	s, now := g.Settings(), g.Clock.Now()
	k := &known{registry: destination.NewRegistry(s.Destinations, now), version: s.Version,
		records: map[string]*record{}, lost: map[string]bool{}, weighed: passed{}}
	head, err := g.Store.Held(ctx, func(of *journal.KeyedState) { g.restore(k, of, now) })
	if err != nil {
		return err
	}
	k.seen, k.head = head.Record, head.Record
	err = g.unanswered(ctx, func(page []journal.Message) error {
		g.mu.Lock()
		defer g.mu.Unlock()
		for i := range page {
			if a, forged := journal.ReadGateAnswer(&page[i]); forged == nil {
				g.left[a.JobKey] = now
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known, g.anew = k, false
	return nil
}

// canaryRecords is the most records that are read again for the outcomes of the current canaries. With more, it is
// cheaper to let a canary time out.
const canaryRecords = 50_000

// lead begins to lead. The recorded States may not include the outcomes of the current canaries, if the last leader
// ended before it recorded them: the records since are followed again for these.
func (k *known) lead(now time.Time) {
	k.leads, k.head = true, k.seen
	for _, d := range k.registry.All() {
		if d.Lead(now); d.Phase == destination.Testing {
			k.seen = min(k.seen, max(k.record(d.Name).Read, k.head-canaryRecords))
		}
	}
}

// restore takes over the recorded state of a subject or a destination. An unreadable state is left out: its claims stay
// held, which for a destination are all that go there.
func (g *Gates) restore(k *known, of *journal.KeyedState, now time.Time) {
	name := of.Subject.ID
	if of.Unreadable != nil {
		if of.Subject == journal.DestinationSubject(name) {
			k.lost[k.registry.Gate(name, now).Name] = true
		}
		g.once(unread, fmt.Errorf("subject %d: %w", of.Key, of.Unreadable))
		return
	}
	for i := range of.Held {
		k.hold(of.Subject, &of.Held[i])
	}
	if of.Destination != nil {
		d := k.registry.Gate(name, now)
		k.record(d.Name).DestinationState = *of.Destination
		k.restore(d, now)
	}
}

const unread = "records that cannot be read are left out, and the claims that they are about stay held: `audit verify` says more, " +
	"`journal rebuild` makes states anew"

// Recorded follows records of this process's journal (journal.Hooks.Committed).
func (g *Gates) Recorded(records []journal.Happening) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(records) == 0 {
		return
	}
	if g.known == nil || records[0].Record != g.seen+1 { // another process has written, too: let follow read
		g.woken.Send()
		return
	}
	for i := range records {
		g.take(&records[i].Entry)
	}
}

// takeAll follows the records of a page that are new, and reports whether more may follow. After an unreadable one the
// journal is read anew, unless it has been since. Once none follow, this process begins to lead if it has the lease:
// before that, it would count outcomes which a later State includes.
func (g *Gates) takeAll(page []journal.Entry, unreadable error) (more bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range page {
		if r := &page[i]; r.Record > g.seen {
			g.take(r)
		}
	}
	if unreadable != nil {
		g.once(unread, unreadable)
		g.anew = g.anew || g.seen > g.head
	}
	if more = g.anew || unreadable != nil || len(page) == pageRecords; !more && g.term != nil && !g.leads {
		g.lead(g.Clock.Now())
		more = g.seen < g.head
	}
	return more
}

// take follows the next record. An unreadable body is ignored.
func (g *Gates) take(r *journal.Entry) {
	if g.seen = r.Record; g.leads {
		g.evidence(r)
	}
	if g.seen <= g.head {
		return
	}
	if r.Attempt != nil {
		if r.Attempt.Tells == destination.TellsFailed && !g.failing {
			g.failing = true
			g.woken.Send()
		}
		return
	}
	switch r.Kind {
	case journal.GateEntry:
		g.gate(r.Subject, r)
	case journal.DestinationEntry:
		g.destination(r.Subject.ID, r)
	case journal.ErasureEntry, journal.RebuildEntry:
		// Erased records may be about held claims; rebuilt states may be readable now.
		g.anew = true
		g.woken.Send()
	}
}

// outcomeOf returns the outcome of a claim that a record reports, and its destination; name is empty if there is none.
func outcomeOf(r *journal.Entry) (name string, o destination.Outcome) {
	if a := r.Attempt; a != nil {
		o = destination.Outcome{Tells: a.Tells, Sent: a.Sent.At, RetryAfter: a.RetryAfter}
		if name = a.Destination; a.Tells == "" {
			name = a.Sent.Destination
		}
		if !o.Sent.IsZero() {
			o.Claim = a.Sent.JobKey
		}
	} else if k := r.Kind; k == journal.OutcomeEntry || k == journal.GateEntry {
		if sent, err := journal.ReadSent(r); err == nil && sent.Destination != "" {
			return sent.Destination,
				destination.Outcome{Tells: destination.TellsAnswered, Claim: sent.JobKey, Sent: sent.At}
		}
	}
	return name, o
}

// evidence applies a claim's outcome to its destination. Only the leader does so; others take over the recorded States.
func (g *Gates) evidence(r *journal.Entry) {
	name, o := outcomeOf(r)
	if name == "" {
		return
	}
	d := g.registry.Gate(name, g.Clock.Now())
	if g.seen <= g.head && (d.Phase != destination.Testing || d.Canary.Claim != o.Claim) {
		return // the recorded State includes it
	}
	if o.Claim == 0 && d.Phase == destination.Ramping && d.Outage.Tests > 0 {
		o.Sent = d.Outage.Since // sent before the ramp: claims of a ramp have a name
	}
	if o.Tells == destination.TellsFailed && d.Phase != destination.Up {
		g.Hooks.Add("retry_worker_wasted_attempts_total", 1, g.Settings().Destinations.Label(d.Name))
	}
	g.tell(name, o)
}

// tell applies an event to a destination.
func (g *Gates) tell(name string, e destination.Event) {
	now := g.Clock.Now()
	d := g.registry.Gate(name, now)
	if d.Apply(e, now); d.Changed {
		g.woken.Send()
	}
}

// gate follows a gate's record: a claim is held, or has left.
func (g *Gates) gate(s journal.Subject, e *journal.Entry) {
	b, err := journal.BodyOf[journal.GateBody](e)
	switch {
	case err != nil || b.Action == journal.GateAnswered:
		return
	case b.Action == journal.GateHeld:
		g.hold(s, &b.HeldJob)
	default:
		now := g.Clock.Now()
		g.left[b.JobKey] = now
		g.registry.Gate(b.Destination, now).Queue.Remove(b.JobKey)
	}
	g.woken.Send()
}

// destination follows a destination's record: a State, or an order, which people see at once.
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
	case b.State != nil && b.Version > r.written: // from another process
		g.known.restore(d, now)
	case b.Command != nil:
		d.Apply(*b.Command, now)
	}
	g.woken.Send()
}

// passed counts the claims that passed while their destination was up. The keys' Count is 0.
type passed map[journal.Admission]int

func minuteAt(now time.Time) int64 { return now.Unix() / 60 }

// pass counts a claim that this replica let through. If it leads, its breaker has counted the claim already.
func (g *Gates) pass(d *destination.Gate) {
	at := journal.Admission{Destination: d.Name, Minute: minuteAt(g.Clock.Now())}
	if g.passed[at]++; g.leads {
		g.weighed[at]++
	}
}

// addUp adds this replica's passed claims to the stored admissions: each minute once it is over, or at once if a
// destination fails. The leader then counts the others' claims in its breakers.
func (g *Gates) addUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	due, leads := g.duePassed()
	if len(due) > 0 {
		if err := g.Store.AddAdmissions(ctx, due); err != nil {
			return err // due is lost: breakers open a little sooner for that minute
		}
	}
	if !leads {
		return nil
	}
	all := g.Settings().Destinations
	within := all.Others.OpensAt.Within
	for _, of := range all.Named {
		within = max(within, of.OpensAt.Within)
	}
	sums, err := g.Store.Admissions(ctx, minuteAt(g.Clock.Now().Add(-within)))
	if err == nil {
		g.weigh(sums)
	}
	return err
}

// duePassed takes the counts to add now, in an order that is the same in all replicas, and forgets jobs that left long
// ago.
func (g *Gates) duePassed() (due []journal.Admission, leads bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.Clock.Now()
	maps.DeleteFunc(g.left, func(_ int64, at time.Time) bool { return now.Sub(at) >= leaversFor })
	for at, n := range g.passed {
		if g.failing || at.Minute < minuteAt(now) {
			delete(g.passed, at)
			at.Count = n
			due = append(due, at)
		}
	}
	slices.SortFunc(due, func(a, b journal.Admission) int {
		return cmp.Or(cmp.Compare(a.Minute, b.Minute), cmp.Compare(a.Destination, b.Destination))
	})
	g.failing = false
	return due, g.leads
}

// weigh counts the stored admissions of the last minutes that the breakers have not counted yet.
func (g *Gates) weigh(sums []journal.Admission) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.Clock.Now()
	for _, a := range sums {
		count, d := a.Count, g.registry.Gate(a.Destination, now)
		a.Count = 0
		within := minuteAt(now.Add(-d.Settings.OpensAt.Within))
		if n := count + g.passed[a] - g.weighed[a]; n > 0 && a.Minute >= within {
			d.Apply(destination.Admitted{Count: n}, now)
			g.weighed[a] += n
		}
	}
	oldest := minuteAt(now) - journal.AdmissionsKept
	maps.DeleteFunc(g.weighed, func(at journal.Admission, _ int) bool { return at.Minute < oldest })
}
