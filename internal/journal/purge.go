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

const (
	// purgeBatch records go in one transaction, so that no commit waits long.
	purgeBatch = 500
	// purgePause between two of them lets commits through.
	purgePause = 20 * time.Millisecond
)

// PurgeStore is what a purge needs of a store.
type PurgeStore interface {
	Moment(ctx context.Context, do func(Moment) error) error
	Purger
}

// ErrClockAhead is why nothing is purged: this machine's clock leapt since the last purge, and may be wrong.
var ErrClockAhead = errors.New("nothing is purged: the clock leapt between two commits since the last purge, or " +
	"since the last; check it, and say `retry-worker journal purge --confirm` (on SQLite with the worker stopped)")

// Purge deletes what was recorded before now by more than the retention, in bounded batches, each of which is a record.
// It returns how many were deleted. Where the signed instants of the links since the last purge do not lead up to now
// in steps of at most a tenth of the retention, or a day, it returns ErrClockAhead. A person who has checked the clock
// says confirmed, which is a record even where nothing goes. It may be ended at any time and goes on when it is called
// again. One process at a time should call it.
func (j *Journal) Purge(ctx context.Context, store PurgeStore, retention time.Duration, confirmed bool) (int, error) {
	now := j.now()
	through, err := store.LastRecordBefore(ctx, now.Add(-retention))
	if err == nil && !confirmed && through > 0 {
		err = store.Moment(ctx, func(m Moment) error { return checkClock(m, now, through, max(retention/10, 24*time.Hour)) })
	}
	if err != nil || !confirmed && through == 0 {
		return 0, err
	}
	deleted := 0
	for ctx.Err() == nil {
		n, err := store.Purge(ctx, through, purgeBatch, func(head Head, p *Purging) (*Changes, error) {
			return p.Step(head, j.now(), confirmed, j.publish)
		})
		deleted += n
		if err != nil || n < purgeBatch {
			return deleted, err
		}
		confirmed = false
		clock.Machine{}.Rest(ctx, purgePause)
	}
	return deleted, ctx.Err()
}

// checkClock returns ErrClockAhead where links that follow one another by at most leap do not lead from the last purge
// up to now. However much was signed while the clock was further ahead, it does not count: only a purge that a person
// confirmed does, or the clock that comes back. It looks at nothing where nothing up to through is left to purge.
func checkClock(m Moment, now time.Time, through int64, leap time.Duration) error {
	base, err := m.LastPurge()
	if err != nil {
		return err
	}
	b, err := carried(base)
	if err != nil || through <= b.Through {
		return err
	}
	var last Link
	var sound time.Time
	if base != nil {
		sound = base.At
	}
	for after := b.Link; ; after = last.Number {
		links, err := m.Links(after, purgeBatch)
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

// purgeBody is the audit's word on records that are rightly gone, and where the fold starts from then: the sums that
// those records contributed, less what went with them, and the subjects and bulk runs that go on, as those records left
// them.
type purgeBody struct {
	// Through is the last record that was purged; Link is this record's own. Confirmed tells that a person vouched for the
	// clock.
	Through   int64 `json:"through"`
	Link      int64 `json:"link,omitempty"`
	Confirmed bool  `json:"confirmed,omitempty"`

	Sums     []Sum            `json:"sums,omitempty"`
	Causes   []Fingerprint    `json:"causes,omitempty"`
	Subjects []carriedSubject `json:"subjects,omitempty"`
	Runs     []carriedRun     `json:"bulkRuns,omitempty"`
}

type carriedSubject struct {
	Subject
	State   SubjectState `json:"state"`
	Last    *Entry       `json:"last,omitempty"`
	Letters []DeadLetter `json:"deadLetters,omitempty"`
}

type carriedRun struct {
	Run   BulkRun    `json:"bulkRun"`
	Query string     `json:"querySha256,omitempty"`
	Items []BulkItem `json:"items,omitempty"`
}

// carried returns what a purge's record carries; the zero value where there is none.
func carried(base *Entry) (purgeBody, error) {
	if base == nil {
		return purgeBody{}, nil
	}
	return BodyOf[purgeBody](base)
}

// life returns a subject as the purge left it.
func (b *purgeBody) life(s Subject) (*life, error) {
	for i := range b.Subjects {
		if b.Subjects[i].Subject == s {
			return b.Subjects[i].life()
		}
	}
	return newLife(s), nil
}

// carriedLife returns a subject as the last purge left it.
func carriedLife(s Subject, base *Entry) (*life, error) {
	b, err := carried(base)
	if err != nil {
		return nil, err
	}
	return b.life(s)
}

// CarriedLast returns a function that returns the last attempt of a subject, of which the record is purged; nil where
// nothing is known of it. base is the record of the last purge, which is read once.
func CarriedLast(base *Entry) (func(Subject) (*Attempt, error), error) {
	b, err := carried(base)
	return func(s Subject) (*Attempt, error) {
		l, err := b.life(s)
		if err != nil {
			return nil, err
		}
		return l.last, nil
	}, err
}

func newLife(s Subject) *life { return &life{subject: s, letters: map[string]*DeadLetter{}} }

func (c *carriedSubject) life() (*life, error) {
	l := newLife(c.Subject)
	l.SubjectState = c.State
	for i := range c.Letters {
		l.letters[c.Letters[i].ID] = &c.Letters[i]
	}
	if c.Last != nil {
		r, err := c.Last.Decode()
		if err != nil {
			return nil, err
		}
		l.last = r.Attempt
	}
	return l, nil
}

// waits reports whether the state is needed though no record is left that tells of it.
func (l *life) waits() bool { return len(l.Held) > 0 || l.Destination != nil || l.Taught != nil }

// carry is what the fold starts from where earlier records are purged.
func (l *life) carry() carriedSubject {
	c := carriedSubject{Subject: l.subject, State: l.SubjectState}
	if l.last != nil {
		last := *l.last
		if last.Salt = ""; last.Error != "" { // its digest is not of this
			last.Error = cmp.Or(pattern(last.Error), "#") // what its cause is told by, which is kept for good (R24)
		}
		e := EntryOf(l.subject, &last)
		c.Last = &e
	}
	for _, id := range slices.Sorted(maps.Keys(l.letters)) {
		c.Letters = append(c.Letters, *l.letters[id])
	}
	return c
}

// Fold folds the records of many subjects, in their order.
type Fold struct {
	*projection
	lives map[Subject]*life
	runs  map[string]*foldedRun
	// through is the last record that was purged, purge the record that says so.
	through, purge int64
}

type foldedRun struct {
	BulkRun
	query string
	items map[int64]*BulkItem // by the records of their dead letters
}

// NewFold returns a fold that starts from what the last purge carried; nil where nothing was purged.
func NewFold(base *Entry) (*Fold, error) {
	f := &Fold{projection: newProjection(), lives: map[Subject]*life{}, runs: map[string]*foldedRun{}}
	b, err := carried(base)
	if err != nil {
		return nil, err
	}
	f.through = b.Through
	if base != nil {
		f.purge = base.Record
	}
	for i := range b.Subjects {
		if f.lives[b.Subjects[i].Subject], err = b.Subjects[i].life(); err != nil {
			return nil, err
		}
	}
	for _, r := range b.Runs {
		run := &foldedRun{BulkRun: r.Run, query: r.Query, items: map[int64]*BulkItem{}}
		for i := range r.Items {
			run.items[r.Items[i].Record] = &r.Items[i]
		}
		f.runs[r.Run.ID] = run
	}
	return f, nil
}

// Record folds one record.
func (f *Fold) Record(e *Entry) error {
	body, err := decodeBody(e)
	switch b := body.(type) {
	case nil:
		if err == nil && e.Subject != (Subject{}) {
			f.life(e.Subject)
		}
		return err
	case *bulkBody:
		f.step(e, b)
	case *purgeBody:
		f.purged(b)
	default:
		f.apply(f.life(e.Subject), e, body)
		f.settleItems()
	}
	return err
}

func (f *Fold) life(s Subject) *life {
	if f.lives[s] == nil {
		f.lives[s] = newLife(s)
	}
	return f.lives[s]
}

// purged adds the sums that purged records contributed.
func (f *Fold) purged(b *purgeBody) {
	f.through = max(f.through, b.Through)
	f.add(b.Sums, b.Causes)
}

// add adds the sums that records contributed which are gone.
func (p *projection) add(sums []Sum, causes []Fingerprint) {
	for _, s := range sums {
		p.sums.add(s)
	}
	for i := range causes {
		if c := p.causes[causes[i].ID]; c != nil {
			c.Add(&causes[i])
		} else {
			p.causes[causes[i].ID] = new(causes[i])
		}
	}
}

// step folds a record of a bulk run.
func (f *Fold) step(e *Entry, b *bulkBody) {
	r := f.runs[b.Run]
	if r == nil && b.Verb != BulkStart {
		return // purged
	}
	if r == nil {
		r = &foldedRun{query: b.Query, items: map[int64]*BulkItem{}}
		f.runs[b.Run] = r
		for _, i := range b.items(e.At) {
			r.items[i.Record] = &i
		}
	}
	r.fold(e.Record, e.At, b)
	if i := r.items[b.Record]; i != nil && b.Verb == bulkRefuse {
		(&BulkItemChange{To: BulkRefused, Code: b.Code, ChangedAt: e.At}).Apply(i)
	}
}

// settleItems takes over what became of runs' dead letters.
func (f *Fold) settleItems() {
	for n := range f.items {
		c := &f.items[n]
		if r := f.runs[c.Run]; r != nil && r.items[c.Record] != nil {
			c.Apply(r.items[c.Record])
		}
	}
	f.items = nil
}

// Forgotten is what a purge takes.
type Forgotten struct {
	// Through is the last record of those that go.
	Through int64
	// Subjects by their keys, DeadLetters by their records, Runs by their ids.
	Subjects, DeadLetters []int64
	Runs                  []string
}

// Purging is what a store shows of what is to be purged.
type Purging struct {
	// Base is the record of the last purge; nil where there was none.
	Base *Entry
	// Records that go, in order, from the first that is there on, and their Digests by the ledger.
	Records []KeyedRecord
	Digests []Digest
	// Erasures are the records of erasures.
	Erasures []KeyedRecord
	// Stays are the states of the subjects that records behind those are of, by their keys.
	Stays map[int64]SubjectState
	// Letters that were born up to the last of the records, as they stand.
	Letters []KeyedDeadLetter
	// Runs that have ended, by the records of their starts.
	Ended map[string]int64
}

// Step returns the changes of the purge; nil where nothing goes and none is confirmed. Its error tells which record is
// not what was signed: none goes then. publish makes the outbox's messages; nil where nobody listens.
func (p *Purging) Step(head Head, at time.Time, confirmed bool, publish Publisher) (*Changes, error) {
	f, err := NewFold(p.Base)
	if err != nil || len(p.Records) == 0 && !confirmed {
		return nil, err
	}
	known, err := NewErasures(p.Erasures)
	if err != nil {
		return nil, err
	}
	b, forgotten := newBatch(at, head, publish), &Forgotten{Through: f.through}
	keys := map[Subject]int64{}
	for i := range p.Records {
		r := &p.Records[i]
		if !known.Holds(&r.Entry, p.Digests[i]) {
			return nil, notSigned("purged", &r.Entry)
		}
		if err := f.Record(&r.Entry); err != nil {
			return nil, err
		}
		forgotten.Through = r.Entry.Record
		if r.Key != 0 {
			keys[r.Entry.Subject] = r.Key
		}
	}
	body := &purgeBody{Through: forgotten.Through, Link: head.Link + 1, Confirmed: confirmed}
	for _, s := range slices.SortedFunc(maps.Keys(f.lives), compareSubjects) {
		// Those without a record here were carried, and may have more.
		if _, stays := p.Stays[keys[s]]; stays || keys[s] == 0 || f.lives[s].waits() {
			body.Subjects = append(body.Subjects, f.lives[s].carry())
		} else {
			forgotten.Subjects = append(forgotten.Subjects, keys[s])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.runs)) {
		if begun, ended := p.Ended[id]; ended && begun <= forgotten.Through {
			forgotten.Runs = append(forgotten.Runs, id)
			continue
		}
		body.Runs = append(body.Runs, f.runs[id].carry())
	}
	for i := range p.Letters {
		d := &p.Letters[i]
		state, stays := p.Stays[d.Key]
		if l := f.lives[d.Subject]; !stays && l != nil && l.waits() {
			state, stays = l.SubjectState, true
		}
		if stays && state.Episode.DeadLetter == d.DeadLetter.ID {
			continue
		}
		forgotten.DeadLetters = append(forgotten.DeadLetters, d.DeadLetter.Record)
	}
	sums := &Changes{}
	f.grow(sums)
	body.Sums, body.Causes = sums.Sums, sums.Fingerprints
	b.changes.Forgotten = forgotten
	b.entry(nil, Subject{}, PurgeEntry, body, Happening{}, 0)
	return b.seal(), nil
}

func (r *foldedRun) carry() carriedRun {
	c := carriedRun{Run: r.BulkRun, Query: r.query}
	for _, i := range r.items {
		c.Items = append(c.Items, *i)
	}
	slices.SortFunc(c.Items, func(a, b BulkItem) int { return cmp.Compare(a.Number, b.Number) })
	return c
}

func compareSubjects(a, b Subject) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.ID, b.ID))
}
