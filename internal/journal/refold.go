package journal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Broken says what in the journal is not as it was written and signed.
type Broken struct {
	// What is broken: "record", "link" or "message" with Number; otherwise a table, or its row by key.
	What   string `json:"what"`
	Number int64  `json:"number,omitempty"`
	// Problem says what is wrong with it and what was expected, in one line.
	Problem string `json:"problem"`
}

func (b *Broken) Error() string {
	if b.Number == 0 {
		return b.What + " " + b.Problem
	}
	return fmt.Sprintf("%s %d %s", b.What, b.Number, b.Problem)
}

// compare returns the first difference between rows and those made from the records, matched by key.
func (t *Table) compare(got, want []Row) error {
	left := make(map[[6]any]Row, len(want))
	for _, r := range want {
		left[t.key(r)] = r
	}
	for _, r := range got {
		w, known := left[t.key(r)]
		if !known {
			return &Broken{What: t.String(r), Problem: "is there, and no record tells of it"}
		}
		for i, column := range t.Columns {
			if r[i] == w[i] {
				continue
			}
			if is, was := fmt.Sprint(r[i]), fmt.Sprint(w[i]); is != was {
				return &Broken{What: t.String(w), Problem: fmt.Sprintf("says that %s is %q, signed was %q", column, is, was)}
			}
		}
		delete(left, t.key(r))
	}
	for _, r := range want {
		if left[t.key(r)] != nil {
			return &Broken{What: t.String(r), Problem: "is missing"}
		}
	}
	return nil
}

// Refold folds all records anew, to compare or replace the stored projections.
type Refold struct {
	*projection
	runs map[string]*foldedRun
	gone Runs
	// decided are the dead letters whose decision is on its way, or can still be undone.
	decided []DeadLetter
}

type foldedRun struct {
	BulkRun
	items map[int64]*BulkItem // by their dead letters' records
}

// NewRefold returns a fold of the whole journal.
func NewRefold() *Refold { return &Refold{projection: newProjection(), runs: map[string]*foldedRun{}} }

// Gone returns the records that the folded expunges removed.
func (f *Refold) Gone() *Runs {
	f.gone.All()
	return &f.gone
}

// Entry folds a record of a bulk run or an expunge. These must come first, in their order.
func (f *Refold) Entry(e *Entry) error {
	switch e.Kind {
	case BulkEntry:
		b, err := BodyOf[bulkBody](e)
		f.step(e, &b)
		return err
	case PurgeEntry, ErasureEntry:
		b, err := BodyOf[expungeBody](e)
		f.expunged(&b)
		return cmp.Or(err, f.gone.AddGone(e))
	}
	return nil
}

// expunged adds what removed records had added to the sums.
func (f *Refold) expunged(b *expungeBody) {
	for _, s := range b.Sums {
		f.sums.add(s)
	}
	for i := range b.Causes {
		f.addCause(&b.Causes[i])
	}
}

// addCause merges what removed records said about a cause.
func (p *projection) addCause(c *Fingerprint) {
	if known := p.causes[c.ID]; known != nil {
		known.Add(c)
	} else {
		p.causes[c.ID] = new(*c)
	}
}

// step folds a record of a bulk run.
func (f *Refold) step(e *Entry, b *bulkBody) {
	r := f.runs[b.Run]
	if b.Verb == BulkStart {
		r = &foldedRun{items: map[int64]*BulkItem{}}
		f.runs[b.Run] = r
		for _, i := range b.items(e.At) {
			r.items[i.Record] = &i
		}
	}
	if r == nil {
		return // the run's start is missing
	}
	r.fold(e.Record, e.At, b)
	if i := r.items[b.Record]; i != nil && b.Verb == bulkRefuse {
		i.Became(&BulkItem{Outcome: BulkRefused, Code: b.Code, ChangedAt: e.At})
	}
}

// Page compares a page of subjects, and their dead letters, with their records.
func (f *Refold) Page(p *SubjectPage) error {
	subjects, letters, err := f.Anew(p)
	return cmp.Or(err, SubjectsTable.compare(p.Subjects, subjects), DeadLettersTable.compare(p.Letters, letters))
}

// Rows returns the expected rows of a table that belongs to no subject, once all records are folded. got are the stored
// rows: fingerprints' patterns, of which records have only a digest, are taken from them.
func (f *Refold) Rows(t *Table, got []Row) (all []Row) {
	switch t {
	case SumsTable:
		for _, s := range f.sums.list() {
			all = append(all, s.Row())
		}
	case FingerprintsTable:
		for _, c := range f.causes {
			all = append(all, f.cause(*c, got))
		}
	case RunsTable:
		for _, r := range f.runs {
			all = append(all, r.Row())
		}
	case ItemsTable:
		gone := f.Gone()
		for _, r := range f.runs {
			for _, i := range r.items {
				if !gone.Holds(i.Record) {
					all = append(all, i.Row())
				}
			}
		}
	}
	return all
}

// cause returns the fingerprint's row. It keeps the stored pattern if that fits the ID, as another version may have
// made it, and the stored columns that no record tells.
func (f *Refold) cause(c Fingerprint, got []Row) Row {
	c.Began, c.Prior = c.FirstSeen, time.Time{}
	row := c.Row()
	for _, r := range got {
		if r[0] != c.ID {
			continue
		}
		c.Pattern = fmt.Sprint(r[4])
		if c.name() == c.ID {
			row[4] = r[4]
		}
		copy(row[7:], r[7:])
	}
	return row
}

// Compare compares the rows of a table that belongs to no subject with the records, once all are folded.
func (f *Refold) Compare(t *Table, got []Row) error {
	if t == SumsTable { // sums of 0 may be stored or not
		got = slices.DeleteFunc(got, func(r Row) bool { return strings.Trim(fmt.Sprint(r[t.Keys:]...), "0 ") == "" })
	}
	return t.compare(got, f.Rows(t, got))
}

// Anew returns the rows of a page's subjects and their dead letters, made from the records. Subjects without records
// are left out.
func (f *Refold) Anew(p *SubjectPage) (subjects, letters []Row, err error) {
	records, there := map[int64][]Entry{}, map[int64]Row{}
	for _, r := range p.Records {
		records[r.Key] = append(records[r.Key], r)
	}
	for _, d := range p.Letters {
		there[d[0].(int64)] = d
	}
	for _, row := range p.Subjects {
		h := (&History{}).of(Subject{fmt.Sprint(row[1]), fmt.Sprint(row[2]), fmt.Sprint(row[3])})
		h.Key = row[0].(int64)
		for _, e := range records[h.Key] {
			body, err := bodyOf(&e)
			if err != nil {
				return nil, nil, err
			}
			f.apply(h, &e, body)
		}
		if len(records[h.Key]) > 0 {
			subjects = append(subjects, h.Row())
		}
		for _, d := range h.deadLetters() {
			if d.Answer != 0 || d.Later != (Later{}) {
				f.decided = append(f.decided, d)
			}
			letter := d.Row()
			if before, known := there[d.Record]; known {
				letter[9] = before[9] // its chance
			}
			letters = append(letters, letter)
		}
	}
	for i := range f.items { // outcomes of bulk runs' items
		c := &f.items[i]
		if r := f.runs[c.Run]; r != nil && r.items[c.Record] != nil {
			r.items[c.Record].Became(c)
		}
	}
	f.items = f.items[:0]
	return subjects, letters, nil
}

// Decisions returns the messages of the outbox that carry out what people decided, once all subjects are folded:
// answers to processes, as of an instant, and decisions that can still be undone.
func (f *Refold) Decisions(at time.Time) (all []Message) {
	slices.SortFunc(f.decided, func(a, b DeadLetter) int { return cmp.Compare(a.Record, b.Record) })
	for i := range f.decided {
		if d := &f.decided[i]; d.Answer != 0 {
			all = append(all, d.AnswerMessage(at))
		} else {
			all = append(all, d.LaterMessage())
		}
	}
	return all
}
