package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/events"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// store is the store as one replica reaches it, with faults.
type store struct {
	*testkit.Memory
	*replica
}

var errStore = &journal.StoreError{Kind: journal.Unavailable, Err: errors.New("a fault of the store")}

// writeFaults are what a write may suffer, by the names that they are drawn and told by.
var writeFaults = []struct {
	name string
	testkit.Fault
}{
	{"write fails", testkit.Fault{Kind: journal.Unavailable}},
	{"write lost its acknowledgement", testkit.Fault{Kind: journal.Ambiguous, After: true}},
	{"write hangs", testkit.Fault{Kind: journal.Ambiguous, Hang: true}},
	{"write hangs when done", testkit.Fault{Kind: journal.Ambiguous, Hang: true, After: true}},
	{"decided twice", testkit.Fault{Twice: true}},
}

// Transact implements journal.Store.
func (v *store) Transact(
	ctx context.Context, lookups []journal.Lookup, decide func(journal.Head, []journal.History) *journal.Changes,
) error {
	v.port(v.name + " transact")
	if v.refuses() {
		return errStore
	}
	if v.fault("killed in mid-commit") { // the transaction is whole or absent: a store that says otherwise is not played
		err := v.transact(ctx, lookups, decide, testkit.Fault{Kind: journal.Ambiguous, After: v.draw("whole").IntN(2) == 0})
		v.die()
		return err
	}
	if time.Now().Before(v.slow) { // a disk that stands still does not hear that nobody waits any more
		set(&v.mu, &v.forgot, time.Now())
		dice := v.draw("slow write of " + v.name)
		still := dice.IntN(3) == 0
		if still {
			ctx = context.WithoutCancel(ctx)
		}
		v.Rest(ctx, time.Duration(dice.Int64N(int64(12*time.Second))))
		if v.port(v.name + " goes on"); v.life.Err() != nil || ctx.Err() != nil {
			return errStore
		} else if still {
			return v.transact(ctx, lookups, decide)
		}
	}
	var fault []testkit.Fault
	for _, f := range writeFaults {
		if v.fault(f.name) {
			set(&v.mu, &v.forgot, time.Now())
			fault = append(fault, f.Fault)
			break
		}
	}
	err := v.transact(ctx, lookups, decide, fault...)
	if err == nil {
		v.port(v.name + " committed")
	}
	return err
}

func (v *store) transact(
	ctx context.Context, lookups []journal.Lookup, decide func(journal.Head, []journal.History) *journal.Changes, fault ...testkit.Fault,
) error {
	v.Memory.Heal() // what another did not suffer, as nobody waited for it any more
	for _, f := range fault {
		v.Memory.Fail(1, f)
	}
	err := v.Memory.Transact(ctx, lookups, decide)
	if refused, ok := errors.AsType[*journal.StoreError](err); ok && refused.Kind == journal.Invalid { // each change is tried alone then
		v.fail("the store refuses a transaction: %v", err)
	}
	return err
}

// refuses reports whether nothing can be written; what there is can be read.
func (v *store) refuses() bool { return time.Now().Before(v.readOnly) || v.isCut() }

// isSlow reports whether writes took long a moment ago.
func (s *sim) isSlow() bool {
	return slices.ContainsFunc(s.replicas, func(r *replica) bool { return time.Since(r.slow) < lateness })
}

// isCut reports whether the replica does not reach the store.
func (r *replica) isCut() bool { return time.Now().Before(r.cut) }

// Probe implements journal.Store.
func (v *store) Probe(ctx context.Context) error {
	v.port(v.name + " probe")
	if v.refuses() {
		return errStore
	}
	return v.Memory.Probe(ctx)
}

// read parks and reports what a read suffers.
func (v *store) read(what string) error {
	v.port(v.name + " read " + what)
	if v.isCut() || v.fault("read fails") {
		v.forgets()
		return errStore
	}
	return nil
}

const (
	// leaseGrid is when a lease is asked for: the product draws the pause between two tries, which a seed cannot give again.
	leaseGrid = 5 * time.Second
	// renewTime is odd, so that the end of a lease never falls on the instant of something else.
	renewTime = 1_000_313 * time.Nanosecond
)

// Lease implements journal.Outbox.
func (v *store) Lease(ctx context.Context, name, holder string, span time.Duration) (bool, error) {
	drawn := span > 0
	if drawn {
		since := time.Since(v.began) - v.offset
		wait := (since+leaseGrid-1)/leaseGrid*leaseGrid - since
		if v.given(name) > 0 {
			wait = renewTime
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			v.hold(name, false)
			return false, errStore
		}
	}
	if err := v.read("lease " + name); err != nil {
		if drawn && v.given(name) == 1 {
			err = nil // it is lost: else it would end so long after it was asked for, which is drawn
		}
		v.hold(name, false)
		return false, err
	}
	relays := strings.HasPrefix(name, "outbox/") // two at once may open again what a process took
	if at := v.holders[name]; at != "" && at != holder && span > 0 && !relays && v.fault("lease stolen") {
		if _, err := v.Memory.Lease(ctx, name, at, 0); err != nil {
			return false, err
		}
		v.stolen[name] = time.Now()
	}
	held, err := v.Memory.Lease(ctx, name, holder, span)
	if held = held && !v.fault("lease lost"); held && v.holders[name] != holder {
		v.mu.Lock()
		before := v.terms[name]
		if v.holders[name] = holder; name == gate.Lease {
			v.ledSince = time.Now()
		}
		v.mu.Unlock()
		if before != nil && before.Err() == nil && !v.wasStolen(name) {
			v.fail("%s is given the lease %s, and who had it acts still", v.name, name)
		}
		v.forgets()
	}
	if acts := v.terms[name]; span > 0 && !held && err == nil && acts != nil && acts.Err() == nil && v.holders[name] == holder {
		v.in(time.Second, func() {
			if acts.Err() == nil && v.life.Err() == nil {
				v.fail("%s was told that the lease %s is not its own, and acts still", v.name, name)
			}
		})
	}
	if v.hold(name, held && span > 0); held && name == gate.Lease {
		v.led = time.Now()
	}
	late := held && drawn && v.given(name) > 2 && v.fault("lease told late") // before, its end is drawn
	if name == deadletter.BulkLease && (late || v.given(name) == 1) {
		v.ranSince = time.Now()
	}
	if late {
		v.Rest(ctx, 14*time.Second)
		v.hold(name, false) // it is asked for anew
		v.forgets()
		v.port(v.name + " has lease " + name)
	}
	return held, err
}

// answersLease is that of the relay of what people decided.
const answersLease = "outbox/" + journal.ReviewQueue

// leads: who does what one alone may do has the lease for it.
func (r *replica) leads(lease string) {
	r.mu.Lock()
	of := r.holders[lease]
	r.mu.Unlock()
	if of != "" && !strings.HasPrefix(of, r.name) && !r.wasStolen(lease) && r.life.Err() == nil {
		r.fail("%s acts, and the lease %s is of %s", r.name, lease, of)
	}
}

// AddAdmissions implements journal.Outbox.
func (v *store) AddAdmissions(ctx context.Context, all []journal.Admission) error {
	v.port(fmt.Sprint(v.name, " admits ", all))
	if v.refuses() {
		v.forgets()
		return errStore
	}
	return v.Memory.AddAdmissions(ctx, all)
}

// given is how often the replica was given that lease since it had none.
func (r *replica) given(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leases[name]
}

func (r *replica) hold(name string, held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leases[name]++; !held {
		r.leases[name] = 0
	}
}

// Records implements journal.Reader.
func (v *store) Records(ctx context.Context, f journal.RecordFilter, after int64, limit int) ([]journal.Entry, error) {
	if v.End().Record <= after {
		return nil, nil
	}
	if err := v.read("records"); err != nil {
		return nil, err
	}
	return v.Memory.Records(ctx, f, after, limit)
}

// Held implements journal.Reader.
func (v *store) Held(ctx context.Context, take func(*journal.KeyedState)) (journal.Head, error) {
	defer v.forgets() // what is read anew is all that is known
	if err := v.read("held"); err != nil {
		return journal.Head{}, err
	}
	return v.Memory.Held(ctx, take)
}

// BulkItems implements deadletter.BulkStore.
func (v *store) BulkItems(ctx context.Context, run string, outcome journal.BulkOutcome, after int64, limit int) ([]journal.BulkItem, error) {
	if err := v.ofRun(fmt.Sprint("items ", after), run); err != nil {
		return nil, err
	}
	return v.Memory.BulkItems(ctx, run, outcome, after, limit)
}

// BulkRun implements deadletter.BulkStore.
func (v *store) BulkRun(ctx context.Context, id string) (journal.BulkRun, bool, error) {
	if err := v.ofRun(by(ctx), id); err != nil {
		return journal.BulkRun{}, false, err
	}
	run, found, err := v.Memory.BulkRun(ctx, id)
	if found {
		v.Rest(ctx, time.Duration(run.Begun)) // runs look at the same instants, and go on apart
	}
	return run, found, err
}

// ofRun is read for what is read of a bulk run.
func (v *store) ofRun(what, id string) error { return v.read(what + v.nameOfRun(id)) }

// nameOfRun is a bulk run's name in labels, as its id is drawn.
func (s *sim) nameOfRun(id string) string {
	run, _, _ := s.memory.BulkRun(context.Background(), id)
	return fmt.Sprint(" of run ", run.Begun)
}

// Pending implements journal.Outbox.
func (v *store) Pending(ctx context.Context, queue string, after int64, limit int) ([]journal.Message, error) {
	if err := v.read("pending " + queue); err != nil {
		return nil, err
	}
	return v.Memory.Pending(ctx, queue, after, limit)
}

// caller is the key of who calls a port, which tells two apart that ask the same at once.
type caller struct{}

// as returns ctx for calls of who; by returns who calls, in labels.
func as(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, caller{}, " for "+who)
}

func by(ctx context.Context) string {
	who, _ := ctx.Value(caller{}).(string)
	return who
}

// decideInRun decides as the bulk runs of a replica, two of which may decide on one dead letter at one instant.
func (r *replica) decideInRun(ctx context.Context, c deadletter.Command) (deadletter.Item, error) {
	return r.letters.Decide(as(ctx, r.nameOfRun(c.Run)), c)
}

// DeadLetter implements deadletter.Reader.
func (v *store) DeadLetter(ctx context.Context, id string) (deadletter.Item, bool, error) {
	if err := v.read("dead letter " + id + by(ctx)); err != nil || v.fault("dead letter not read") {
		set(&v.mu, &v.unread, time.Now())
		return deadletter.Item{}, false, errStore
	}
	return v.Memory.DeadLetter(ctx, id)
}

// memory is a replica's journal as its gates, relays and bulk runs reach it: their goroutines call it in whatever order they
// run.
type memory struct {
	*journal.Journal
	*replica
}

// Depart implements gate.Memory.
func (m memory) Depart(ctx context.Context, d *journal.Departure) (bool, error) {
	m.leads(gate.Lease)
	m.port(fmt.Sprint(m.name, " depart ", d.Subject.ID, " of ", d.JobKey))
	went, err := m.Journal.Depart(ctx, d)
	if err != nil {
		m.forgets()
	}
	return went, err
}

// forgets: what gates heard of and did not record they may not know any more.
func (r *replica) forgets() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgot = time.Now()
	for _, w := range r.portals {
		w.paused.since = w.paused.until
	}
}

// RecordDestination implements gate.Memory.
func (m memory) RecordDestination(ctx context.Context, name string, b journal.DestinationBody) error {
	m.port(fmt.Sprint(m.name, " record ", name, " ", b.Version, by(ctx)))
	err := m.Journal.RecordDestination(ctx, name, b)
	if err != nil {
		m.forgets()
	}
	return err
}

// Delivered is a worker.ReviewSink's Record.
func (m memory) Delivered(ctx context.Context, a *journal.Answer, taken bool) error {
	m.port(fmt.Sprint(m.name, " delivered ", a.JobKey))
	// Who leads next does not know that it was. Not at each start, where many are told: none would ever be.
	if taken && time.Since(m.started) > time.Minute && m.sometimes("killed as a decision was taken", 1, 15) {
		m.die()
		return errStore
	}
	return m.Journal.Delivered(ctx, a, taken)
}

// Bulk implements deadletter.Memory.
func (m memory) Bulk(ctx context.Context, b *journal.BulkStep) (journal.BulkRun, error) {
	m.port(fmt.Sprint(m.name, " ", b.Verb, m.nameOfRun(b.Run.ID)))
	return m.Journal.Bulk(ctx, b)
}

// RefuseBulkItem implements deadletter.Memory.
func (m memory) RefuseBulkItem(ctx context.Context, run string, number int64, code string) error {
	m.port(fmt.Sprint(m.name, " refuse ", number, m.nameOfRun(run)))
	return m.Journal.RefuseBulkItem(ctx, run, number, code)
}

// Expunge implements journal.Expunger. What is erased is not told any more.
func (v *store) Expunge(
	ctx context.Context, of journal.Scope, step func(journal.Head, *journal.Expunging) (*journal.Changes, error),
) error {
	if v.port(v.name + " expunge"); v.refuses() {
		return errStore
	}
	defer v.anew()
	before := v.pending()
	err := v.Memory.Expunge(ctx, of, step)
	after := v.pending() // with the erasure's own
	gone := func(m journal.Message) bool {
		return !slices.ContainsFunc(after, func(n journal.Message) bool { return n.Sequence == m.Sequence })
	}
	for _, m := range before {
		if _, heard := v.events[m.ID]; gone(m) && !heard {
			v.expected[saidBy(&m)]--
			v.events[m.ID] = m.Body // one that is on its way may be told yet
		}
	}
	return err
}

// pending are the events that nobody was told yet.
func (v *store) pending() []journal.Message {
	return slices.DeleteFunc(v.Outbox(), func(m journal.Message) bool { return m.Queue != events.Queue })
}
