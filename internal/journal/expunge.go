package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"retry-worker/internal/clock"
)

// An expunge removes records of ended episodes: a purge those older than the retention, an erasure (LGPD) those of one
// subject. The expunge's own record keeps what they added to the sums, from which the fold goes on. Their digests stay
// in the ledger.

// Expunger removes records for good. Its errors hold a *StoreError, or are those of step.
type Expunger interface {
	// Expunge finds what the scope selects and saves the changes that step returns, in one short transaction. It saves
	// nothing if they are nil.
	Expunge(ctx context.Context, of Scope, step func(Head, *Expunging) (*Changes, error)) error
}

// Scope selects what may be expunged: everything of Subject or, if that is zero, the records without a subject and the
// subjects whose first record is after After, up to Through, at most Limit of them.
type Scope struct {
	Subject        Subject
	After, Through int64
	Limit          int
}

// Expunging is what a store finds for a Scope.
type Expunging struct {
	Scope
	// Last is the last record that was looked at; Through if none follow.
	Last int64
	// Loose are the records without a subject; those of a bulk run come together with its start. Records of expunges
	// are not among them: they stay.
	Subjects []Expungeable
	Loose    []Entry
	// Failures are the failures counted by cause (Fingerprint.ID), Erasures the records of erasures. Both are set only
	// if the Scope names a Subject.
	Failures map[string]int64
	Erasures []Entry
}

// Expungeable is a subject with all its records in order; of a destination they may be the first alone. Run is a bulk
// run that has one of its dead letters and has not ended. Waiting are its messages, if it is to be erased.
type Expungeable struct {
	Key     int64
	Subject Subject
	Records []Entry
	Run     string
	Waiting []Message
}

// folded is a subject with its decoded records, their history and projection. The first ended records can be removed.
type folded struct {
	*Expungeable
	bodies []body
	whole  *History
	all    *projection
	ended  int
}

// Expunged says what to remove. The dead letters of records go with them, and these' items of bulk runs.
type Expunged struct {
	Records []Run
	// Subjects are keys, Runs ids.
	Subjects []int64
	Runs     []string
	// Causes (Fingerprint.ID) lose their patterns.
	Causes []string
}

// expungeBody is the body of an expunge's record: which records are rightly gone, and what they added to the sums.
type expungeBody struct {
	// Reason and By are a person's words and name, in an erasure.
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	// Through is the last record that a purge looked at, Link this record's own. Confirmed says that a person has
	// checked the clock.
	Through   int64 `json:"through,omitempty"`
	Link      int64 `json:"link,omitempty"`
	Confirmed bool  `json:"confirmed,omitempty"`
	// Gone are the removed records.
	Gone   []Run         `json:"gone,omitempty"`
	Sums   []Sum         `json:"sums,omitempty"`
	Causes []Fingerprint `json:"causes,omitempty"`
}

// expunge runs step in the store and returns its changes.
func (j *Journal) expunge(
	ctx context.Context, store Expunger, of Scope, step func(Head, *Expunging) (*Changes, error),
) (c *Changes, err error) {
	err = store.Expunge(ctx, of, func(head Head, p *Expunging) (*Changes, error) {
		var err error
		c, err = step(head, p)
		return c, err
	})
	return c, j.certain(ctx, c, err)
}

// expunge collects what is removed.
type expunge struct {
	*batch
	gone Runs
	body expungeBody
	left *projection // what the removed records had added to sums
	out  Expunged
}

func newExpunge(head Head, at time.Time, publish Publisher) *expunge {
	return &expunge{batch: newBatch(at, head, publish), left: newProjection()}
}

// Purge returns the changes of a purge; nil if nothing changes and none is confirmed. If a record is not what was
// signed the error names it, and nothing is removed. publish makes the outbox's messages; nil for none.
func (p *Expunging) Purge(head Head, at time.Time, confirmed bool, publish Publisher) (*Changes, error) {
	x := newExpunge(head, at, publish)
	for i := range p.Subjects {
		if err := x.purge(p, &p.Subjects[i]); err != nil {
			return nil, err
		}
	}
	runs := map[string]bool{}
	for i := range p.Loose {
		r := &p.Loose[i]
		if err := r.check("purged"); err != nil {
			return nil, err
		}
		if x.take(r); r.Kind == BulkEntry {
			b, err := BodyOf[bulkBody](r)
			if err != nil {
				return nil, err
			}
			runs[b.Run] = true
		}
	}
	x.out.Runs = slices.Sorted(maps.Keys(runs))
	if x.body.Through, x.body.Confirmed = p.Last, confirmed; len(x.gone.All()) == 0 && !confirmed {
		return x.seal(), nil // expired episodes
	}
	x.body.Link = head.Link + 1
	return x.close(PurgeEntry), nil
}

// purge removes a subject's old records that later ones do not need, or expires its episode.
func (x *expunge) purge(p *Expunging, e *Expungeable) error {
	s, err := e.fold(p.Through)
	if err != nil {
		return err
	}
	whole := s.whole
	waits := s.Run != "" || slices.ContainsFunc(whole.deadLetters(), func(d DeadLetter) bool { return d.Answer != 0 })
	switch last := s.Records[len(s.Records)-1].Record; {
	case waits:
	case s.ended > 0:
		x.takeFirst(s, s.ended)
	case last <= p.Through && whole.Episode.State.Open() && len(whole.Held) == 0:
		left := whole.Episode
		left.State, left.DeadLetter, left.NextRetryTime = Expired, "", time.Time{}
		x.entry(whole, s.Subject, OutcomeEntry, &outcomeBody{Outcome: outcomeExpired, Episode: left.Number, State: Expired,
			At: x.milli(), Left: &left, Opened: left.OpenedAt})
	}
	return nil
}

// fold folds the subject's records. Records up to through that later ones do not need count as ended.
func (e *Expungeable) fold(through int64) (*folded, error) {
	s := &folded{Expungeable: e, whole: (&History{}).of(e.Subject), all: newProjection()}
	s.whole.Key = e.Key
	old := true
	for i := range s.Records {
		r := &s.Records[i]
		if err := r.check("expunged"); err != nil {
			return nil, err
		}
		b, err := bodyOf(r)
		if err != nil {
			return nil, err
		}
		if old && s.whole.begins(b) {
			s.ended = i
		}
		old = old && r.Record <= through
		s.bodies = append(s.bodies, b)
		s.all.apply(s.whole, r, b)
	}
	if old && s.whole.idle() {
		s.ended = len(s.Records)
	}
	return s, nil
}

// idle reports whether the subject waits for nothing, and is neither a destination nor a cause with a teaching.
func (h *History) idle() bool {
	return !h.Episode.State.Open() && len(h.Held) == 0 && h.Destination == nil && h.Taught == nil
}

// begins reports whether the record b and those after it can be folded without the records before.
func (h *History) begins(b body) bool {
	switch b := b.(type) {
	case *Attempt:
		return b.Revision == 0 && b.Episode > h.Episode.Number && len(h.Held) == 0
	case *outcomeBody:
		return b.Outcome == outcomeExpired
	case *TeachingBody:
		return true
	case *DestinationBody:
		return b.State != nil && (h.Destination == nil || !slices.ContainsFunc(h.Destination.Orders,
			func(o DestinationOrder) bool { return o.Record > b.Follows }))
	}
	return h.Episode.Number == 0 && h.idle()
}

// takeFirst removes the first n records of a subject and folds the rest anew. The difference between the sums of all
// and of the rest goes into the expunge's record.
func (x *expunge) takeFirst(s *folded, n int) {
	all, rest, left := s.all, newProjection(), (&History{}).of(s.Subject)
	left.Key = s.Key
	for i := range s.Records {
		if i < n {
			x.take(&s.Records[i])
		} else {
			rest.apply(left, &s.Records[i], s.bodies[i])
		}
	}
	for sum, n := range rest.sums {
		sum.N = -n
		all.sums.add(sum)
	}
	for sum, n := range all.sums {
		if x.left.sums[sum] += n; n != 0 && all.causes[sum.Cause] != nil {
			x.left.addCause(all.causes[sum.Cause])
		}
	}
	switch {
	case n == len(s.Records):
		x.out.Subjects = append(x.out.Subjects, s.Key)
	case s.whole.Destination == nil: // otherwise not all may be here, and the latest state stays as it is
		x.subjects[s.Key] = left
	}
}

// take marks a record as removed.
func (x *expunge) take(r *Entry) { x.gone.Add(Run{First: r.Record, Last: r.Record}) }

// close returns the changes, with the expunge's record.
func (x *expunge) close(kind EntryKind) *Changes {
	left := &Changes{}
	x.left.grow(left)
	x.body.Sums, x.body.Causes, x.body.Gone = left.Sums, left.Fingerprints, x.gone.All()
	x.out.Records = x.body.Gone
	x.changes.Expunged = &x.out
	x.entry(nil, Subject{}, kind, &x.body)
	return x.seal()
}

// count returns the number of removed records.
func (e *Expunged) count() (n int) {
	if e != nil {
		for _, r := range e.Records {
			n += int(r.Last - r.First + 1)
		}
	}
	return n
}

// check returns an error if the record is not what was signed.
func (e *Entry) check(done string) error {
	if !e.Forged {
		return nil
	}
	return fmt.Errorf("nothing is %s: record %d is not what was signed; `audit verify` says more", done, e.Record)
}

// AddGone adds the records that the expunge e removed.
func (r *Runs) AddGone(e *Entry) error {
	b, err := BodyOf[struct{ Gone []Run }](e)
	r.Add(b.Gone...)
	return err
}

const (
	// purgeBatch is how many records one transaction looks at, so that no commit waits long.
	purgeBatch = 20
	// purgePause is the least pause between two transactions, and purgeRest the pause as a multiple of the last one's
	// time, to let commits through.
	purgePause = 10 * time.Millisecond
	purgeRest  = 3
)

// PurgeStore is what a purge needs of a store.
type PurgeStore interface {
	Moment(ctx context.Context, do func(Moment) error) error
	// LastRecordBefore returns the last record before the first one that was written at t or later; 0 for none.
	LastRecordBefore(ctx context.Context, t time.Time) (int64, error)
	Expunger
}

// ErrClockAhead says that nothing is purged, as the clock leapt since the last purge and may be wrong.
var ErrClockAhead = errors.New("nothing is purged: the clock leapt between two commits since the last purge, or " +
	"since the last commit; check it, then run `retry-worker journal purge --confirm` (on SQLite with the worker stopped)")

// Purge removes the records of episodes that ended longer ago than the retention, and returns how many it removed. An
// episode of which nothing was heard for so long expires. Purge works in small batches, each with a record of its own.
// If two links since the last purge, or the last link and now, are more than a tenth of the retention and more than a
// day apart, it returns ErrClockAhead. A person who has checked the clock sets confirmed, which is recorded even if
// nothing is removed. Purge may be interrupted at any time, and goes on when called again. One process at a time should
// call it.
func (j *Journal) Purge(ctx context.Context, store PurgeStore, retention time.Duration, confirmed bool) (int, error) {
	now := j.now()
	through, err := store.LastRecordBefore(ctx, now.Add(-retention))
	if err == nil && !confirmed && through > 0 {
		err = store.Moment(ctx, func(m Moment) error { return checkClock(m, now, through, max(retention/10, 24*time.Hour)) })
	}
	if err != nil || !confirmed && through == 0 {
		return 0, err
	}
	gone := 0
	for of := (Scope{Through: through, Limit: purgeBatch}); ctx.Err() == nil; {
		began := time.Now()
		c, err := j.expunge(ctx, store, of, func(head Head, p *Expunging) (*Changes, error) {
			of.After = p.Last
			return p.Purge(head, j.now(), confirmed, j.publish)
		})
		if c != nil && err == nil {
			gone += c.Expunged.count()
		}
		if err != nil || of.After >= through {
			return gone, err
		}
		confirmed = false
		clock.Machine{}.Rest(ctx, max(purgePause, purgeRest*time.Since(began)))
	}
	return gone, ctx.Err()
}

// checkClock returns ErrClockAhead unless links at most leap apart lead from the last purge up to now. Links behind a
// larger gap do not count, however many there are, until a person confirms a purge or the clock comes back. It checks
// nothing if the last purge has looked up to through.
func checkClock(m Moment, now time.Time, through int64, leap time.Duration) error {
	var b expungeBody
	var sound time.Time
	var bad error
	err := m.Expunges(true, func(e *Entry) bool {
		if e.Kind == PurgeEntry {
			b, bad = BodyOf[expungeBody](e)
			sound = e.At
		}
		return e.Kind != PurgeEntry
	})
	if err = cmp.Or(err, bad); err != nil || through <= b.Through {
		return err
	}
	key, err := m.IdentityKey()
	if err != nil {
		return err
	}
	last := Link{Hash: key.Start().Hash}
	for after := b.Link; ; after = last.Number {
		links, err := m.Links(after, linksAtOnce)
		if err != nil {
			return err
		}
		for _, l := range links {
			if (last.Number > 0 || b.Link == 0) && l.Hash != l.HashAfter(last.Hash) {
				return fmt.Errorf("nothing is purged: link %d is not what was signed; `audit verify` says more", l.Number)
			}
			if last = l; sound.IsZero() || l.At.After(sound) && l.At.Sub(sound) <= leap {
				sound = l.At
			}
		}
		if len(links) == 0 {
			break
		}
	}
	if now.Sub(sound) > leap {
		return ErrClockAhead
	}
	return nil
}

// linksAtOnce is how many links are read at a time.
const linksAtOnce = 500
