package journal

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"retry-worker/internal/redact"
)

// Erasure asks that what was recorded of a subject goes, and its name (LGPD).
type Erasure struct {
	Subject Subject
	// Reason and By are a person's words, which must not be empty, and name.
	Reason, By string
}

// Erased tells of an erasure that is done: under which name the subject's sums go on, how many records went, and which
// record says so.
type Erased struct {
	Pseudonym Subject
	Records   int
	Record    int64
}

// Eraser erases subjects. Its errors hold a *StoreError.
type Eraser interface {
	// Erase saves what step makes of what there is of the subject, in one transaction; nothing where that is nil.
	Erase(ctx context.Context, s Subject, step func(Head, *Erasing) *Changes) error
}

// What an erasure is refused with, besides ErrReasonRequired; the texts begin with the API's error codes.
var (
	ErrSubjectUnknown = errors.New("subject_not_found: the journal knows no such subject; it may be erased or purged already")
	ErrSubjectBusy    = errors.New("subject_busy")
)

// Erase erases a subject: its records go, and its name wherever it stands; what was counted goes on under a pseudonym. A
// subject that something is still to be done about is refused. It returns an error that holds a *StoreError, or is one of
// ErrReasonRequired, ErrSubjectUnknown and ErrSubjectBusy, which says what is to be done.
func (j *Journal) Erase(ctx context.Context, store Eraser, e Erasure) (Erased, error) {
	var done Erased
	var refused error
	err := store.Erase(ctx, e.Subject, func(head Head, p *Erasing) (c *Changes) {
		c, done, refused = p.Step(head, j.now(), e, j.publish)
		return c
	})
	return done, cmp.Or(err, refused)
}

// erasureBody is the audit's word on an erasure, and where the fold starts from then: the subject's state, and the sums that
// the erased records contributed.
type erasureBody struct {
	Reason string `json:"reason"`
	By     string `json:"by"`
	// Erased are the records that are gone. Amended are those of no subject that named it, by their digests since.
	Erased  []Run            `json:"erased"`
	Amended map[int64]string `json:"amended,omitempty"`
	State   SubjectState     `json:"state,omitzero"`
	Letters []DeadLetter     `json:"deadLetters,omitempty"`
	Figures []Figure         `json:"figures,omitempty"`
	Causes  []Fingerprint    `json:"causes,omitempty"`
}

// erasure folds an erasure.
func (p *projection) erasure(l *life, b *erasureBody) {
	l.SubjectState = b.State
	for i := range b.Letters {
		l.letters[b.Letters[i].ID] = &b.Letters[i]
	}
	p.add(b.Figures, b.Causes)
}

// Erasures tell which records erasures took, and what they signed anew.
type Erasures struct {
	gone    Runs
	amended map[int64]string
}

// NewErasures reads the records of erasures, in their order.
func NewErasures(records []KeyedRecord) (*Erasures, error) {
	all := &Erasures{amended: map[int64]string{}}
	for i := range records {
		body, err := decodeBody(&records[i].Entry)
		if err != nil {
			return nil, err
		}
		if b, ok := body.(*erasureBody); ok {
			for _, r := range b.Erased {
				all.gone.Add(r)
			}
			maps.Copy(all.amended, b.Amended)
		}
	}
	all.gone.All()
	return all, nil
}

// Gone reports whether the record was erased.
func (e *Erasures) Gone(record int64) bool {
	i, found := slices.BinarySearchFunc(e.gone.all, record, func(r Run, n int64) int { return cmp.Compare(r.First, n) })
	return found || i > 0 && e.gone.all[i-1].Last >= record
}

// Holds reports whether the record is what was signed. digest is the ledger's.
func (e *Erasures) Holds(r *Entry, digest Digest) bool {
	is := DigestEntry(r)
	if anew := e.amended[r.Record]; anew != "" {
		return is.String() == anew
	}
	return is == digest
}

// Erasing is what a store shows of a subject that is to be erased.
type Erasing struct {
	// Key of the subject; 0 where there is none.
	Key int64
	// Base is the record of the last purge, Erasures are those of erasures.
	Base     *Entry
	Erasures []KeyedRecord
	// Records of the subject, and Others of no subject, each in order, and the digests of all by the ledger.
	Records, Others              []KeyedRecord
	RecordDigests, OthersDigests []Digest
	// Letters of the subject, Items that name it, and all Runs.
	Letters []KeyedDeadLetter
	Items   []RunItem
	Runs    []BulkRun
}

// Expunged is what an erasure takes.
type Expunged struct {
	// Key of the subject. OutboxKey is that of its messages; those that hold Quoted, its id as JSON, go as well.
	Key               int64
	OutboxKey, Quoted string
	// Amended records, and Items, which name it no more.
	Amended []KeyedRecord
	Items   []RunItem
}

// eraser takes a subject's name out of what stays.
type eraser struct {
	from, to Subject
	// letters are the new ids of its dead letters: the old ones are digests of its name.
	letters map[string]string
	// runs are those whose filter names it.
	runs map[string]bool
	// items of runs as they stand: their outcomes are those of records that go.
	items []RunItem
}

// Step returns the changes of the erasure. Its error is one that an erasure is refused with, or tells which record is not
// what was signed.
func (p *Erasing) Step(head Head, at time.Time, e Erasure, publish Publisher) (*Changes, Erased, error) {
	var done Erased
	if strings.TrimSpace(e.Reason) == "" {
		return nil, done, ErrReasonRequired
	}
	if p.Key == 0 {
		return nil, done, ErrSubjectUnknown
	}
	l, sums, err := p.fold(e.Subject)
	if err == nil {
		err = p.busy(l, e.Subject)
	}
	if err != nil {
		return nil, done, err
	}
	x := &eraser{from: e.Subject, to: e.Subject, letters: map[string]string{}, runs: map[string]bool{}, items: p.Items}
	x.to.ID = "erased-" + strings.ToLower(rand.Text())
	b, c := newBatch(at, head, publish), &Changes{}
	sums.sums(c)
	reason := storable(redact.Line(strings.ReplaceAll(e.Reason, e.Subject.ID, x.to.ID), maxReasonBytes))
	body := &erasureBody{Reason: reason, By: bounded(storable(e.By), maxNameBytes), Erased: runsOf(p.Records), Amended: map[int64]string{},
		State:   SubjectState{Attempts: l.Attempts, Episode: Episode{Number: l.Episode.Number, State: l.Episode.State}},
		Figures: c.Figures, Causes: c.Fingerprints}
	left := newLife(x.to)
	left.SubjectState = body.State
	for i := range p.Letters {
		d := x.letter(p.Letters[i].DeadLetter)
		body.Letters = append(body.Letters, d)
		b.letters[d.ID] = KeyedDeadLetter{p.Key, x.to, d}
	}
	gone := &Expunged{Key: p.Key, OutboxKey: strings.Join([]string{e.Subject.Tenant, e.Subject.Policy, e.Subject.ID}, "/"),
		Quoted: `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(e.Subject.ID) + `"`}
	if gone.Amended, err = p.amend(x, body); err != nil {
		return nil, done, err
	}
	for _, i := range p.Items {
		x.item(i.Run, &i.Item)
		gone.Items = append(gone.Items, i)
	}
	for _, r := range p.Runs {
		if x.runs[r.ID] {
			r.Filter.Query = ""
			b.changes.Runs = append(b.changes.Runs, r)
		}
	}
	b.subjects[p.Key], b.changes.Erased = left, gone
	done = Erased{Pseudonym: x.to, Records: len(p.Records), Record: b.next()}
	record := Entry{Record: done.Record, Kind: ErasureEntry, Subject: x.to, At: b.milli(), Body: string(encoded(body)), Salt: newSalt()}
	b.append(p.Key, record, Happening{Episode: left.Episode})
	return b.seal(), done, nil
}

// fold folds the subject's records, and what they contributed to the sums.
func (p *Erasing) fold(s Subject) (*life, *projection, error) {
	l, err := carriedLife(s, p.Base)
	if err != nil {
		return nil, nil, err
	}
	known, err := NewErasures(p.Erasures)
	sums := newProjection()
	for i := range p.Records {
		r := &p.Records[i].Entry
		if !known.Holds(r, p.RecordDigests[i]) {
			err = notSigned("erased", r)
		}
		var body any
		if err == nil {
			body, err = decodeBody(r)
		}
		if _, again := body.(*erasureBody); again {
			err = ErrSubjectUnknown
		}
		if err != nil {
			return nil, nil, err
		}
		sums.apply(l, r, body)
	}
	return l, sums, nil
}

func notSigned(done string, r *Entry) error {
	return fmt.Errorf("nothing is %s: record %d is not what was signed; `audit verify` says more", done, r.Record)
}

// busy returns why the subject cannot be erased yet.
func (p *Erasing) busy(l *life, s Subject) error {
	switch l.Episode.State {
	case Scheduled, Reprocessing:
		return fmt.Errorf("%w: a retry of it is going on; erase it once that has ended, or say how it ended (/outcomes)", ErrSubjectBusy)
	case Dead:
		return fmt.Errorf("%w: its dead letter %s waits for a person; retry or discard that first", ErrSubjectBusy, l.Episode.DeadLetter)
	}
	for i := range p.Letters {
		if d := &p.Letters[i].DeadLetter; d.Answer != 0 {
			return fmt.Errorf("%w: the answer about its dead letter %s is on its way to the process; try again when that has it", ErrSubjectBusy, d.ID)
		}
	}
	for _, r := range p.Runs {
		named := r.Filter.Query != "" && strings.Contains(r.Filter.Query, s.ID)
		if !r.State.Ended() && (named || slices.ContainsFunc(p.Items, func(i RunItem) bool { return i.Run == r.ID })) {
			return fmt.Errorf("%w: the bulk run %s is about it; wait until that has ended, or cancel it", ErrSubjectBusy, r.ID)
		}
	}
	return nil
}

// letter is what stays of a dead letter: what is counted.
func (x *eraser) letter(d DeadLetter) DeadLetter {
	d.ID = x.id(d.ID)
	d.ProcessInstanceKey, d.ReviewJobKey, d.FirstFailure, d.ReviewSeen, d.Review.Reason = 0, 0, time.Time{}, time.Time{}, ""
	return d
}

// id is the new one of a dead letter.
func (x *eraser) id(old string) string {
	if old != "" && x.letters[old] == "" {
		x.letters[old] = uuid.NewString()
	}
	return x.letters[old]
}

// item reports whether the item was about the subject. It is as it stands then.
func (x *eraser) item(run string, i *BulkItem) bool {
	if i.Subject != x.from {
		return false
	}
	for _, n := range x.items {
		if n.Run == run && n.Item.Number == i.Number {
			*i = n.Item
		}
	}
	i.Subject, i.DeadLetter = x.to, x.id(i.DeadLetter)
	return true
}

// amend returns the records of no subject that named it, without its name, and notes their digests.
func (p *Erasing) amend(x *eraser, body *erasureBody) (all []KeyedRecord, err error) {
	for i := range p.Runs {
		if q := p.Runs[i].Filter.Query; q != "" && strings.Contains(q, x.from.ID) {
			x.runs[p.Runs[i].ID] = true
		}
	}
	known, err := NewErasures(p.Erasures)
	for i := range p.Others {
		r := p.Others[i]
		var b any
		if err == nil {
			b, err = decodeBody(&r.Entry)
		}
		if err != nil {
			return nil, err
		}
		if !x.takes(b) {
			continue
		}
		if !known.Holds(&r.Entry, p.OthersDigests[i]) {
			return nil, notSigned("erased", &r.Entry)
		}
		r.Entry.Salt, r.Entry.Body = newSalt(), string(encoded(b))
		all = append(all, r)
		body.Amended[r.Entry.Record] = DigestEntry(&r.Entry).String()
	}
	return all, nil
}

// takes takes the name out of a record's body, and reports whether it was there.
func (x *eraser) takes(body any) (found bool) {
	switch b := body.(type) {
	case *bulkBody:
		for i := range b.Items {
			found = x.item(b.Run, &b.Items[i]) || found
		}
		if b.Verb == BulkStart && x.runs[b.Run] {
			b.Filter.Query, b.Query, found = "", "", true
		}
		if id := x.letters[b.DeadLetter]; id != "" {
			b.DeadLetter, found = id, true
		}
	case *purgeBody:
		n := len(b.Subjects)
		b.Subjects = slices.DeleteFunc(b.Subjects, func(c carriedSubject) bool { return c.Subject == x.from })
		found = len(b.Subjects) < n
		for i := range b.Runs {
			r := &b.Runs[i]
			for n := range r.Items {
				found = x.item(r.Run.ID, &r.Items[n]) || found
			}
			if x.runs[r.Run.ID] {
				r.Run.Filter.Query, r.Query, found = "", "", true
			}
		}
	}
	return found
}

// runsOf are the numbers of the records.
func runsOf(records []KeyedRecord) []Run {
	var all Runs
	for i := range records {
		all.Add(Run{records[i].Entry.Record, records[i].Entry.Record})
	}
	return all.All()
}
