package journal

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Records go for good in one way: those of ended episodes, of everybody's where they are older than the retention (a
// purge), of one subject where a person asks for it (an erasure, LGPD). What they added to the sums stays in the record
// that says so, and the fold goes on from there; their digests stay in the ledger.

// Expunger takes records for good. Its errors hold a *StoreError, or are those of step.
type Expunger interface {
	// Expunge saves what step makes of what the scope finds, in one short transaction; nothing where that is nil.
	Expunge(ctx context.Context, of Scope, step func(Head, *Expunging) (*Changes, error)) error
}

// Scope says what may be expunged: everything of a Subject, or, where that is the zero value, what is found behind the
// record After up to Through, where at most Limit are looked at: records of no subject, and subjects whose first record
// lies there.
type Scope struct {
	Subject        Subject
	After, Through int64
	Limit          int
}

// Expunging is what a store shows of what may be expunged.
type Expunging struct {
	Scope
	// Last of the records that were looked at; Through where none follow.
	Last int64
	// Subjects with all that is known of them, and Loose records, which are of none. Those of a bulk run come together,
	// with that of its start. Expunges are not among them: they stay.
	Subjects []Expungeable
	Loose    []SignedRecord
	// Failures are those that are counted by cause (Fingerprint.ID), Erasures the records of erasures, where one Subject
	// is asked for.
	Failures map[string]int64
	Erasures []Entry
}

// SignedRecord is a record, and its digest by the ledger.
type SignedRecord struct {
	Entry
	Digest Digest
}

// Expungeable is a subject with all its records, in order, a bulk run that has not ended and is about one of its dead
// letters, and its messages, where it is to be erased.
type Expungeable struct {
	Key     int64
	Subject Subject
	Records []SignedRecord
	Run     string
	Waiting []Message
}

// folded is a subject with its records' bodies, what they come to and added, and how many of the first can go.
type folded struct {
	*Expungeable
	bodies []body
	whole  *History
	all    *projection
	ended  int
}

// Expunged is what goes: with a dead letter its place in bulk runs.
type Expunged struct {
	Records []Run
	// Subjects by their keys, DeadLetters by their records, Runs by their ids.
	Subjects, DeadLetters []int64
	Runs                  []string
	// Causes (Fingerprint.ID) whose patterns go.
	Causes []string
}

// expungeBody is the audit's word on records that are rightly gone, and what they added to the sums.
type expungeBody struct {
	// Reason and By are a person's words and name, of an erasure.
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	// Through is up to where a purge looked, Link this record's own. Confirmed tells that a person vouched for the clock.
	Through   int64 `json:"through,omitempty"`
	Link      int64 `json:"link,omitempty"`
	Confirmed bool  `json:"confirmed,omitempty"`
	// Gone are the records.
	Gone   []Run         `json:"gone,omitempty"`
	Sums   []Sum         `json:"sums,omitempty"`
	Causes []Fingerprint `json:"causes,omitempty"`
}

// expunge has a step made, and returns its changes.
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

// expunge gathers what goes.
type expunge struct {
	*batch
	gone Runs
	body expungeBody
	left *projection // what they had added to sums
	out  Expunged
}

func newExpunge(head Head, at time.Time, publish Publisher) *expunge {
	return &expunge{batch: newBatch(at, head, publish), left: newProjection()}
}

// Purge returns the changes of a purge; nil where nothing goes and none is confirmed. Its error tells which record is
// not what was signed: none goes then. publish makes the outbox's messages; nil where nobody listens.
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
		if x.take(r); r.Entry.Kind == BulkEntry {
			b, err := BodyOf[bulkBody](&r.Entry)
			if err != nil {
				return nil, err
			}
			runs[b.Run] = true
		}
	}
	x.out.Runs = slices.Sorted(maps.Keys(runs))
	if x.body.Through, x.body.Confirmed = p.Last, confirmed; len(x.gone.All()) == 0 && !confirmed {
		return x.seal(), nil // what has expired
	}
	x.body.Link = head.Link + 1
	return x.close(PurgeEntry), nil
}

// purge takes those records of a subject that are old and that nothing later builds on, or has its episode expire.
func (x *expunge) purge(p *Expunging, e *Expungeable) error {
	s, err := e.fold(p.Through)
	if err != nil {
		return err
	}
	whole := s.whole
	waits := s.Run != "" || slices.ContainsFunc(whole.deadLetters(), func(d DeadLetter) bool { return d.Answer != 0 })
	switch last := s.Records[len(s.Records)-1].Entry.Record; {
	case waits:
	case s.ended > 0:
		x.takeFirst(s, s.ended)
	case last <= p.Through && whole.Episode.State.Open() && len(whole.Held) == 0:
		whole.Key = s.Key
		left := whole.Episode
		left.State, left.DeadLetter, left.NextRetryTime = Expired, "", time.Time{}
		x.entry(whole, s.Subject, OutcomeEntry, &outcomeBody{Outcome: outcomeExpired, Episode: left.Number, State: Expired,
			At: x.milli(), Left: &left, Opened: left.OpenedAt}, Happening{})
	}
	return nil
}

// fold folds the subject's records. Those can go that are of up to through and not needed by later ones.
func (e *Expungeable) fold(through int64) (*folded, error) {
	s := &folded{Expungeable: e, whole: (&History{}).of(e.Subject), all: newProjection()}
	old := true
	for i := range s.Records {
		r := &s.Records[i]
		if err := r.check("expunged"); err != nil {
			return nil, err
		}
		b, err := bodyOf(&r.Entry)
		if err != nil {
			return nil, err
		}
		if old && s.whole.begins(b) {
			s.ended = i
		}
		old = old && r.Entry.Record <= through
		s.bodies = append(s.bodies, b)
		s.all.apply(s.whole, &r.Entry, b)
	}
	if old && s.whole.idle() {
		s.ended = len(s.Records)
	}
	return s, nil
}

// idle reports whether nothing is known that is still to come, or that holds for others.
func (h *History) idle() bool {
	return !h.Episode.State.Open() && len(h.Held) == 0 && h.Destination == nil && h.Taught == nil
}

// begins reports whether the fold of a record, and of those behind it, needs nothing of what was before it.
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

// takeFirst takes the first records of a subject. The rest is folded anew: what all added to the sums and the rest
// does not, stays in the expunge's record.
func (x *expunge) takeFirst(s *folded, n int) {
	all, rest, left := s.all, newProjection(), (&History{}).of(s.Subject)
	for i := range s.Records {
		if i < n {
			x.take(&s.Records[i])
		} else {
			rest.apply(left, &s.Records[i].Entry, s.bodies[i])
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
	for _, d := range s.whole.deadLetters() {
		if left.letters[d.ID] == nil {
			x.out.DeadLetters = append(x.out.DeadLetters, d.Record)
		}
	}
	if n < len(s.Records) {
		x.subjects[s.Key] = left
	} else {
		x.out.Subjects = append(x.out.Subjects, s.Key)
	}
}

// take notes that a record goes.
func (x *expunge) take(r *SignedRecord) { x.gone.Add(Run{First: r.Entry.Record, Last: r.Entry.Record}) }

// close returns the changes, with the record that says what went.
func (x *expunge) close(kind EntryKind) *Changes {
	left := &Changes{}
	x.left.grow(left)
	x.body.Sums, x.body.Causes, x.body.Gone = left.Sums, left.Fingerprints, x.gone.All()
	x.out.Records = x.body.Gone
	x.changes.Expunged = &x.out
	x.entry(nil, Subject{}, kind, &x.body, Happening{})
	return x.seal()
}

// count returns how many records go.
func (e *Expunged) count() (n int) {
	if e != nil {
		for _, r := range e.Records {
			n += int(r.Last - r.First + 1)
		}
	}
	return n
}

// check tells where the record is not what was signed.
func (r *SignedRecord) check(done string) error {
	if r.Entry.Digest() == r.Digest {
		return nil
	}
	return fmt.Errorf("nothing is %s: record %d is not what was signed; `audit verify` says more", done, r.Entry.Record)
}

// AddGone adds the records that the entry, of an expunge, took.
func (r *Runs) AddGone(e *Entry) error {
	b, err := BodyOf[struct{ Gone []Run }](e)
	for _, n := range b.Gone {
		r.Add(n)
	}
	return err
}
