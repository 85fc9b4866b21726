package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"retry-worker/internal/journal"
)

// Journal is the journal to verify. Moment runs do with a snapshot of it.
type Journal interface {
	Moment(ctx context.Context, do func(journal.Moment) error) error
}

// Report is the result of a verification.
type Report struct {
	// Links and Records count those that hold.
	Links   int64 `json:"links"`
	Records int64 `json:"records"`
	// Expunged counts the records that are rightly missing: they were purged or erased, and their digests stay.
	Expunged int64 `json:"expunged"`
	// Head is the last link that holds: its number and hash.
	Head journal.Head `json:"head"`
}

func broken(what string, n int64, format string, args ...any) error {
	return &journal.Broken{What: what, Number: n, Problem: fmt.Sprintf(format, args...)}
}

// Verify compares every record with its digest in the ledger, every link with the previous one, and all projections
// with the records. It reads one snapshot of the journal; a worker may write meanwhile. Its memory does not grow with
// the number of records. Its error is the first *journal.Broken, or says what could not be read; the report covers what
// holds before that. kept is a head that somebody kept outside the journal; zero for none. Only with it Verify can tell
// that the ledger's tail was cut off, or that all of it was rewritten. progress may be nil.
func Verify(ctx context.Context, j Journal, kept journal.Head, progress Progress) (report Report, err error) {
	err = j.Moment(ctx, func(m journal.Moment) error {
		v := &verifier{Moment: m, ctx: ctx, kept: kept, progress: progress}
		err := v.run(v.walk, v.ends, v.messages, v.subjects, v.answers, v.tables)
		report = v.report
		return err
	})
	return report, err
}

// Rebuilder rebuilds the journal.
type Rebuilder interface {
	// Rebuild makes the ledger's head anew, and saves what do replaces and the changes that it returns in one
	// transaction.
	Rebuild(ctx context.Context, do func(journal.Rebuilding) (*journal.Changes, error)) error
}

// Rebuild rebuilds the projections from the records, and records that. Unless unverified, it first verifies the
// records; if they do not hold it changes nothing, and its error is the first *journal.Broken. publish and progress may
// be nil; progress gets keys of subjects once the records are verified.
func Rebuild(
	ctx context.Context, r Rebuilder, at time.Time, unverified bool, publish journal.Publisher, progress Progress,
) error {
	return r.Rebuild(ctx, func(to journal.Rebuilding) (*journal.Changes, error) {
		v := &verifier{Moment: to, rebuilt: to, ctx: ctx, progress: progress}
		steps := []func() error{v.walk, v.ends, v.messages, v.subjects, v.answers, v.tables}
		if unverified {
			steps = slices.Replace(steps, 0, 2, v.collect)
		}
		if err := v.run(steps...); err != nil {
			return nil, err
		}
		c := journal.RebuildStep(v.head, at, unverified, publish)
		c.Link.LetGo = v.missing
		for _, m := range v.fold.Decisions(c.Link.At) { // lost ones are made again
			if !v.held[m.ID] {
				c.Outbox = append(c.Outbox, m)
			}
		}
		c.Seal(v.head, c.Link.At)
		return c, nil
	})
}

// verifier walks over the links together with their records, and then over the projections.
type verifier struct {
	journal.Moment
	rebuilt  journal.Rebuilding // takes the projections; nil to compare them
	ctx      context.Context
	kept     journal.Head
	progress Progress
	report   Report
	head     journal.Head
	fold     *journal.Refold
	gone     journal.Runs
	answered journal.Runs
	// message is the last signed message of the outbox. Links say that letGo were removed; missing are neither in the
	// outbox nor removed. held are those that carry out decisions, as they were signed, by their ids.
	message int64
	letGo   journal.Runs
	held    map[string]bool
	missing []journal.Run
	record  int64 // the last one that was checked
	// next reads records; ahead is one that was read and not checked.
	next  func() (*journal.Entry, error, bool)
	ahead *journal.Entry
}

// run reads what the steps need, and does them.
func (v *verifier) run(steps ...func() error) (err error) {
	if v.head, err = v.Head(); errors.Is(err, journal.ErrNoHead) {
		return &journal.Broken{What: "ledger_head", Problem: "is missing: " + journal.ErrNoHead.Error()}
	} else if err != nil {
		return err
	}
	key, err := v.IdentityKey()
	if failed, is := errors.AsType[*journal.StoreError](err); is && failed.Kind == journal.Invalid {
		return &journal.Broken{What: "identity_key", Problem: "is missing: restore the database from a backup"}
	} else if err != nil {
		return err
	}
	v.report.Head, v.fold, v.held = key.Start(), journal.NewRefold(), map[string]bool{}
	err = v.Expunges(false, func(e *journal.Entry) bool { return v.gone.AddGone(e) == nil }) // walk reports errors
	if err != nil {
		return err
	}
	v.gone.All()
	var stop func()
	v.next, stop = iter.Pull2(each(v.ctx, beforeAll, pageSize, v.Entries, numberOf, nil))
	defer stop()
	for _, step := range steps {
		if err := cmp.Or(step(), v.ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// beforeAll is below all numbers.
const beforeAll = math.MinInt64

// walk checks the links and their records.
func (v *verifier) walk() error {
	told := func(int64) { v.progress.tell(v.record, v.head.Record, v.report.Records) }
	for l, err := range each(v.ctx, beforeAll, pageSize, v.Links, func(l *journal.Link) int64 { return l.Number }, told) {
		if err == nil {
			err = v.link(l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// link compares a link with the previous one, and its digests with their records.
func (v *verifier) link(l *journal.Link) error {
	prev := v.report.Head
	switch {
	case l.Number < 1:
		return broken("link", l.Number, "was put in: numbers begin at 1")
	case l.Number != prev.Link+1:
		return broken("link", prev.Link+1, "is missing: link %d follows link %d", l.Number, prev.Link)
	case l.First != v.record+1:
		return broken("link", l.Number, "begins at record %d, expected %d", l.First, v.record+1)
	case l.Message != v.message+1:
		return broken("link", l.Number, "begins at message %d, expected %d", l.Message, v.message+1)
	case l.Hash != l.HashAfter(prev.Hash):
		follows := fmt.Sprintf("link %d", prev.Link)
		if prev.Link == 0 {
			follows = "identity_key"
		}
		return broken("link", l.Number, "(records %d to %d) was changed, or does not follow %s: its hash is %s, expected %s",
			l.First, l.First+int64(len(l.Digests))-1, follows, l.Hash, l.HashAfter(prev.Hash))
	case l.Number == v.kept.Link && l.Hash != v.kept.Hash:
		return broken("link", l.Number, "has the hash %s, expected %s as in the given head: the ledger was rewritten", l.Hash,
			v.kept.Hash)
	}
	for i := range l.Digests {
		if err := v.hold(l, l.Digests[i]); err != nil {
			return err
		}
	}
	v.answered.Add(l.Answered...)
	v.message += int64(len(l.Messages))
	v.letGo.Add(l.LetGo...)
	v.report.Links++
	v.report.Head = journal.Head{Link: l.Number, Hash: l.Hash}
	if l.Number == v.head.Link && !l.At.Equal(v.head.At) {
		return broken("link", l.Number, "was written at %s, the head says %s", l.At, v.head.At)
	}
	return nil
}

// hold compares the next record with its digest, and folds it if it is a bulk run's or an expunge's.
func (v *verifier) hold(l *journal.Link, want journal.Digest) error {
	v.record++
	r, err := v.at(v.record)
	switch gone := v.gone.Holds(v.record); {
	case err != nil:
		return err
	case r == nil && gone:
		v.report.Expunged++
		return nil
	case r == nil:
		return broken("record", v.record, "is missing: the ledger has its digest, and nothing says that it was purged or erased")
	case gone:
		return broken("record", v.record, "was put in: it was purged or erased")
	case r.Digest() != want:
		return broken("record", v.record, "was changed: its digest is %s, expected %s as in link %d",
			r.Digest(), want, l.Number)
	}
	v.report.Records++
	if err := v.fold.Entry(r); err != nil {
		return broken("record", v.record, "cannot be read: %v", err)
	}
	return nil
}

// at returns the record with the number n; nil if it is missing. Calls must have ascending n, without gaps.
func (v *verifier) at(n int64) (r *journal.Entry, err error) {
	if v.ahead == nil {
		if v.ahead, err, _ = v.next(); err != nil {
			return nil, err
		}
	}
	switch r = v.ahead; {
	case r == nil || r.Record > n:
		return nil, nil
	case r.Record < n:
		return nil, broken("record", r.Record, "was put in: no link vouches for it, the last record is %d", v.head.Record)
	}
	v.ahead = nil
	return r, nil
}

// collect takes from the links and the records what the projections are made of, even if they do not hold.
func (v *verifier) collect() error {
	for l, err := range each(v.ctx, beforeAll, pageSize, v.Links, func(l *journal.Link) int64 { return l.Number }, nil) {
		if err != nil {
			return err
		}
		v.answered.Add(l.Answered...)
		v.letGo.Add(l.LetGo...)
	}
	e, err, more := v.next()
	for ; more && err == nil; e, err, more = v.next() {
		if err := v.fold.Entry(e); err != nil {
			return err
		}
	}
	return err
}

// messages compares the outbox with the messages that were signed and not removed, or removes what is not among these.
func (v *verifier) messages() error {
	v.letGo.All()
	known := journal.Runs{}
	number := func(m *journal.Message) int64 { return m.Sequence }
	for m, err := range each(v.ctx, beforeAll, pageSize, v.Messages, number, nil) {
		problem := ""
		switch {
		case err != nil:
			return err
		case m.Sequence < 1 || m.Sequence > v.head.Message:
			problem = fmt.Sprintf("was put in: no link vouches for it, the last message is %d", v.head.Message)
		case v.letGo.Holds(m.Sequence):
			problem = "was put in: it was sent, or needed no longer"
		case m.Forged:
			problem = "was changed: it is not what its link signed"
		}
		switch {
		case problem == "":
			known.Add(journal.Run{First: m.Sequence, Last: m.Sequence})
			if m.Queue == journal.ReviewQueue || m.Queue == journal.LaterQueue {
				v.held[m.ID] = true
			}
		case v.rebuilt == nil:
			return broken("message", m.Sequence, "%s", problem)
		default:
			if err := v.rebuilt.RemoveMessage(m.Sequence); err != nil {
				return err
			}
		}
	}
	known.Add(v.letGo.All()...)
	if v.missing = known.Missing(v.head.Message); len(v.missing) > 0 && v.rebuilt == nil {
		return broken("message", v.missing[0].First, "is missing: a link has its digest, and it was not sent yet")
	}
	return nil
}

// ends checks that the ledger ends where its head says, and that nothing is outside it.
func (v *verifier) ends() error {
	if v.report.Head.Link != v.head.Link || v.report.Head.Hash != v.head.Hash || v.record != v.head.Record ||
		v.message != v.head.Message {
		return broken("link", max(v.head.Link, 1),
			"is not what the head says: the ledger ends at link %d, record %d, message %d with the hash %s, expected link %d, "+
				"record %d, message %d and %s", v.report.Head.Link, v.record, v.message, v.report.Head.Hash, v.head.Link,
			v.head.Record, v.head.Message, v.head.Hash)
	}
	if v.kept.Link > v.head.Link {
		return broken("link", v.head.Link+1,
			"is missing: the ledger ends at link %d, the given head is link %d: its tail was cut off", v.head.Link,
			v.kept.Link)
	}
	_, err := v.at(math.MaxInt64)
	return err
}

// subjects compares or rebuilds each subject and its dead letters. The subjects' names stay, as the records were signed
// with them.
func (v *verifier) subjects() error {
	for after, made := int64(beforeAll), 0; v.ctx.Err() == nil; {
		page, err := v.Subjects(after, pageSize)
		if err != nil {
			return err
		}
		last := len(page.Subjects) == 0
		if v.rebuilt == nil {
			err = v.fold.Page(&page)
		} else if page.Subjects, page.Letters, err = v.fold.Anew(&page); err == nil {
			err = v.rebuilt.ReplaceSubjects(after, &page)
			made += len(page.Subjects)
		}
		if err != nil || last {
			return err
		}
		if after = page.Through; after > v.head.Subject {
			return &journal.Broken{What: "ledger_head",
				Problem: fmt.Sprintf("says that subject %d is the last, there is subject %d", v.head.Subject, after)}
		}
		if v.rebuilt != nil {
			v.progress.tell(after, v.head.Subject, int64(made))
		}
	}
	return nil
}

// answers compares or rebuilds what the links say was answered.
func (v *verifier) answers() error {
	want := v.gone.Left(v.answered.All())
	if v.rebuilt != nil {
		return v.rebuilt.ReplaceAnswered(want)
	}
	answered, err := v.Answered()
	if err != nil {
		return err
	}
	got := v.gone.Left(answered)
	for i := range max(len(got), len(want)) {
		is, was := got[min(i, len(got)):min(i+1, len(got))], want[min(i, len(want)):min(i+1, len(want))]
		if !slices.Equal(is, was) {
			return &journal.Broken{What: "answered", Problem: fmt.Sprintf("says %v, signed was %v", is, was)}
		}
	}
	return nil
}

// tables compares or rebuilds the tables that belong to no subject.
func (v *verifier) tables() error {
	for _, t := range []*journal.Table{journal.SumsTable, journal.FingerprintsTable, journal.RunsTable,
		journal.ItemsTable} {
		rows, err := v.Rows(t)
		if err == nil && v.rebuilt != nil {
			err = v.rebuilt.Replace(t, v.fold.Rows(t, rows))
		} else if err == nil {
			err = v.fold.Compare(t, rows)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
