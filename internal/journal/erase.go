package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
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
	ErrSubjectUnknown = errors.New("subject_not_found: the journal knows no such subject; it may be erased or purged " +
		"already")
	ErrSubjectBusy = errors.New("subject_busy")
)

// Erase erases a subject: its records go, and its name wherever it stands; what was counted goes on under a pseudonym.
// A subject that something is still to be done about is refused. It returns an error that holds a *StoreError, or is
// one of ErrReasonRequired, ErrSubjectUnknown and ErrSubjectBusy, which says what is to be done.
func (j *Journal) Erase(ctx context.Context, store Eraser, e Erasure) (Erased, error) {
	var done Erased
	var refused error
	var c *Changes
	err := store.Erase(ctx, e.Subject, func(head Head, p *Erasing) *Changes {
		c, done, refused = p.Step(head, j.now(), e, j.publish)
		return c
	})
	return done, cmp.Or(j.certain(ctx, c, err), refused)
}

// erasureBody is the audit's word on an erasure, and where the fold starts from then: the subject's state, and the sums
// that the erased records contributed.
type erasureBody struct {
	Reason string `json:"reason"`
	By     string `json:"by"`
	// Erased are the records that are gone. Amended are those of no subject that named it, by their digests since.
	Erased  []Run            `json:"erased"`
	Amended map[int64]string `json:"amended,omitempty"`
	State   SubjectState     `json:"state,omitzero"`
	Letters []DeadLetter     `json:"deadLetters,omitempty"`
	Items   []BulkItemChange `json:"items,omitempty"`
	Sums    []Sum            `json:"sums,omitempty"`
	Causes  []Fingerprint    `json:"causes,omitempty"`
}

// erasure folds an erasure.
func (p *projection) erasure(l *life, b *erasureBody) {
	l.SubjectState = b.State
	for i := range b.Letters {
		l.letters[b.Letters[i].ID] = &b.Letters[i]
	}
	p.items = append(p.items, b.Items...)
	p.add(b.Sums, b.Causes)
}

// Erasures tell which records erasures took, and what they signed anew.
type Erasures struct {
	gone    Runs
	amended map[int64]string
	// failures that they took, by their causes.
	failures map[string]int64
}

// NewErasures reads the records of erasures, in their order.
func NewErasures(records []KeyedRecord) (*Erasures, error) {
	all := &Erasures{amended: map[int64]string{}, failures: map[string]int64{}}
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
			addFailures(all.failures, b.Sums)
		}
	}
	all.gone.All()
	return all, nil
}

// addFailures adds those among sums to counts by cause.
func addFailures(counts map[string]int64, sums []Sum) {
	for _, s := range sums {
		if s.Name == SumCauseFailures {
			counts[s.Cause] += s.N
		}
	}
}

// Gone reports whether the record was erased.
func (e *Erasures) Gone(record int64) bool { return e.gone.Holds(record) }

// Holds reports whether the record is what was signed. digest is the ledger's.
func (e *Erasures) Holds(r *Entry, digest Digest) bool {
	is := DigestEntry(*r)
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
	// Letters of the subject, Items of bulk runs that are about them, and all Runs.
	Letters []KeyedDeadLetter
	Items   []RunItem
	Runs    []BulkRun
	// Waiting are the outbox's messages with one of its MessageKeys.
	Waiting []Message
	// Failures are those that are counted by cause (Fingerprint.ID), Alone the ids of bulk runs whose filter finds it, as
	// Finds says, and no other subject.
	Failures map[string]int64
	Alone    map[string]bool
}

// Finds returns what of the words of a run's filter finds the subject: the beginning of its id, and what one of its dead
// letters has in its context; empty where that does not.
func (p *Erasing) Finds(r *BulkRun, s Subject) (prefix, context string) {
	if n := len(r.Filter.Query); n > 0 && n <= len(s.ID) && strings.EqualFold(s.ID[:n], r.Filter.Query) {
		prefix = s.ID[:n]
	}
	for i := range p.Letters {
		for _, c := range p.Letters[i].DeadLetter.Context {
			if c.Variable+"="+c.Value == r.Filter.Context {
				context = r.Filter.Context
			}
		}
	}
	return prefix, context
}

// MessageKeys returns the keys of the messages that are about the subject: its own, and the ids of its dead letters.
func (p *Erasing) MessageKeys(s Subject) []string {
	keys := []string{s.OutboxKey()}
	for i := range p.Letters {
		keys = append(keys, p.Letters[i].DeadLetter.ID)
	}
	return keys
}

// Expunged is what an erasure takes.
type Expunged struct {
	// Key of the subject.
	Key int64
	// Amended records, which name it no more.
	Amended []KeyedRecord
	// Causes (Fingerprint.ID) that nobody else has: their patterns go.
	Causes []string
}

// Step returns the changes of the erasure. Its error is one that an erasure is refused with, or tells which record is
// not what was signed.
func (p *Erasing) Step(head Head, at time.Time, e Erasure, publish Publisher) (*Changes, Erased, error) {
	l, sums, known, err := p.check(e)
	if err != nil {
		return nil, Erased{}, err
	}
	x, b, c := newEraser(p, e.Subject), newBatch(at, head, publish), &Changes{}
	left := newLife(x.to)
	left.SubjectState = SubjectState{Attempts: l.Attempts,
		Episode: Episode{Number: l.Episode.Number, State: l.Episode.State}}
	letters := x.takeLetters()
	for _, d := range letters {
		b.letters[d.ID] = KeyedDeadLetter{p.Key, x.to, d}
	}
	amended, digests, err := x.amend(known)
	if err != nil {
		return nil, Erased{}, err
	}
	sums.grow(c)
	taken := maps.Clone(known.failures)
	addFailures(taken, c.Sums)
	reason := regexp.MustCompile("(?i)"+regexp.QuoteMeta(e.Subject.ID)).ReplaceAllLiteralString(e.Reason, x.to.ID)
	body := &erasureBody{Reason: storable(redact.Line(reason, maxReasonBytes)), By: bounded(e.By),
		Erased: runsOf(p.Records), Amended: digests, State: left.SubjectState, Letters: letters, Items: c.Items,
		Sums: c.Sums, Causes: c.Fingerprints}
	b.subjects[p.Key], b.changes.Runs = left, x.takeQueries()
	b.changes.Erased = &Expunged{Key: p.Key, Amended: amended}
	for i := range body.Causes {
		f := &body.Causes[i]
		if f.Pattern = ""; p.Failures[f.ID] <= taken[f.ID] {
			b.changes.Erased.Causes = append(b.changes.Erased.Causes, f.ID)
		}
	}
	for i := range p.Waiting {
		b.changes.Published = append(b.changes.Published, p.Waiting[i].Sequence)
	}
	done := Erased{Pseudonym: x.to, Records: len(p.Records), Record: b.next()}
	record := Entry{Record: done.Record, Kind: ErasureEntry, Subject: x.to, At: b.milli(),
		Body: string(encoded(body)), Salt: newSalt()}
	b.append(p.Key, record, Happening{Episode: left.Episode})
	return b.seal(), done, nil
}

// check returns what the fold makes of the subject's records, what they contributed to the sums, and what was erased
// before; the error is why it cannot be erased.
func (p *Erasing) check(e Erasure) (l *life, sums *projection, known *Erasures, err error) {
	if strings.TrimSpace(e.Reason) == "" {
		return nil, nil, nil, ErrReasonRequired
	}
	if p.Key == 0 {
		return nil, nil, nil, ErrSubjectUnknown
	}
	if known, err = NewErasures(p.Erasures); err != nil {
		return nil, nil, nil, err
	}
	if l, err = carriedLife(e.Subject, p.Base); err != nil {
		return nil, nil, nil, err
	}
	sums = newProjection()
	for i := range p.Records {
		r := &p.Records[i].Entry
		if !known.Holds(r, p.RecordDigests[i]) {
			return nil, nil, nil, notSigned("erased", r)
		}
		body, err := decodeBody(r)
		if err != nil {
			return nil, nil, nil, err
		}
		if r.Kind == ErasureEntry { // it is a pseudonym
			return nil, nil, nil, ErrSubjectUnknown
		}
		sums.apply(l, r, body)
	}
	return l, sums, known, p.busy(l, e.Subject)
}

func notSigned(done string, r *Entry) error {
	return fmt.Errorf("nothing is %s: record %d is not what was signed; `audit verify` says more", done, r.Record)
}

// busy returns why the subject cannot be erased yet.
func (p *Erasing) busy(l *life, s Subject) error {
	busy := func(why string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrSubjectBusy, fmt.Sprintf(why, args...))
	}
	switch l.Episode.State {
	case Scheduled, Reprocessing:
		return busy("a retry of it is going on; erase it once that has ended, or say how it ended (/outcomes)")
	case Dead:
		return busy("its dead letter %s waits for a person; retry or discard that first", l.Episode.DeadLetter)
	}
	if len(l.Held) > 0 {
		return busy("it waits at the gate of a destination; erase it once it has gone, or cancel its process")
	}
	if slices.ContainsFunc(p.Waiting, func(m Message) bool { return m.Queue == GateQueue }) {
		return busy("the answer of its gate is on its way to the process; try again when that has it")
	}
	for i := range p.Letters {
		if d := &p.Letters[i].DeadLetter; d.Answer != 0 {
			return busy("the answer about its dead letter %s is on its way to the process; try again when that has it", d.ID)
		}
	}
	for i := range p.Runs {
		r := &p.Runs[i]
		has := slices.ContainsFunc(p.Items, func(i RunItem) bool { return i.Run == r.ID })
		if !r.State.Ended() && (has || p.named(r, s)) {
			return busy("the bulk run %s is about it; wait until that has ended, or cancel it", r.ID)
		}
	}
	return nil
}

// named reports whether the run's filter names the subject, or a dead letter of it, in capitals or not, or finds nobody
// else.
func (p *Erasing) named(r *BulkRun, s Subject) bool {
	id := strings.ToLower(s.ID)
	return p.Alone[r.ID] || strings.Contains(strings.ToLower(r.Filter.Query), id) ||
		strings.Contains(strings.ToLower(r.Filter.Context), id) ||
		slices.ContainsFunc(p.Letters,
			func(d KeyedDeadLetter) bool {
				return strings.Contains(r.Filter.Query, d.DeadLetter.ID) || strings.Contains(r.Filter.IDs, d.DeadLetter.ID)
			})
}

// eraser takes a subject's name out of what stays.
type eraser struct {
	*Erasing
	from, to Subject
	// ids are the new ones of its dead letters: the old ones are digests of its name.
	ids map[string]string
	// runs are those whose filter names it.
	runs map[string]bool
}

func newEraser(p *Erasing, s Subject) *eraser {
	x := &eraser{Erasing: p, from: s, to: s, ids: map[string]string{}, runs: map[string]bool{}}
	x.to.ID = "erased-" + uuid.NewString() // which redaction leaves as it is, in events too
	for i := range p.Runs {
		x.runs[p.Runs[i].ID] = p.named(&p.Runs[i], s)
	}
	return x
}

// id is the new one of a dead letter.
func (x *eraser) id(old string) string {
	if x.ids[old] == "" {
		x.ids[old] = uuid.NewString()
	}
	return x.ids[old]
}

// takeLetters returns what stays of its dead letters: what is counted.
func (x *eraser) takeLetters() (all []DeadLetter) {
	for i := range x.Letters {
		d := x.Letters[i].DeadLetter
		d.ID, d.Context, d.Deadline = x.id(d.ID), nil, time.Time{}
		d.ProcessInstanceKey, d.ReviewJobKey, d.FirstFailure, d.ReviewSeen = 0, 0, time.Time{}, time.Time{}
		d.Review.Reason, d.Review.Deadline = "", time.Time{}
		all = append(all, d)
	}
	return all
}

// takeQueries returns the bulk runs whose filter named it.
func (x *eraser) takeQueries() (all []BulkRun) {
	for _, r := range x.Runs {
		if x.runs[r.ID] {
			r.Filter.Query, r.Filter.IDs, r.Filter.Context = "", "", ""
			all = append(all, r)
		}
	}
	return all
}

// amend returns the records of no subject that named it, without its name, and their digests.
func (x *eraser) amend(known *Erasures) (all []KeyedRecord, digests map[int64]string, err error) {
	digests = map[int64]string{}
	for i := range x.Others {
		r := x.Others[i]
		body, err := decodeBody(&r.Entry)
		if err != nil {
			return nil, nil, err
		}
		if !x.takes(body) {
			continue
		}
		if !known.Holds(&r.Entry, x.OthersDigests[i]) {
			return nil, nil, notSigned("erased", &r.Entry)
		}
		r.Entry.Body, r.Entry.Salt = string(encoded(body)), newSalt()
		all, digests[r.Entry.Record] = append(all, r), DigestEntry(r.Entry).String()
	}
	return all, digests, nil
}

// takes takes the name out of a record's body, and reports whether it was there.
func (x *eraser) takes(body any) (found bool) {
	switch b := body.(type) {
	case *bulkBody:
		if b.Verb == BulkStart && x.runs[b.Run] {
			b.Filter.Query, b.Filter.IDs, b.Filter.Context, b.Query, found = "", "", "", "", true
		}
	case *purgeBody:
		n := len(b.Subjects)
		b.Subjects = slices.DeleteFunc(b.Subjects, func(c carriedSubject) bool { return c.Subject == x.from })
		found = len(b.Subjects) < n
		for i := range b.Runs {
			r := &b.Runs[i]
			if x.runs[r.Run.ID] {
				r.Run.Filter.Query, r.Run.Filter.IDs, r.Run.Filter.Context, r.Query, found = "", "", "", "", true
			}
		}
	}
	return found
}

// runsOf are the numbers of the records.
func runsOf(records []KeyedRecord) []Run {
	var all Runs
	for i := range records {
		all.Add(Run{First: records[i].Entry.Record, Last: records[i].Entry.Record})
	}
	return all.All()
}
