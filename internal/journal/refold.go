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
		f.gone.Add(b.Gone...)
		for _, s := range b.Sums { // what the removed records had added
			f.sums.add(s)
		}
		for i := range b.Causes {
			f.addCause(&b.Causes[i])
		}
		return err
	}
	return nil
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

// Table is a projection as stores keep it. Its first Keys columns are the key.
type Table struct {
	Name    string
	Keys    int
	Columns []string
}

func table(name string, keys int, columns string) *Table {
	return &Table{name, keys, strings.Fields(columns)}
}

// The projections.
var (
	SubjectsTable    = table("subjects", 1, "key tenant policy id last dead_letter destination body")
	DeadLettersTable = table("dead_letters", 1,
		"record id subject state policy team reason fingerprint at chance deadline cents assignee follow_up body")
	SumsTable         = table("sums", 6, "slot name policy cause destination bucket n")
	FingerprintsTable = table("fingerprints", 1,
		"id policy reason classification pattern first_seen last_seen began prior told news")
	RunsTable  = table("bulk_runs", 1, "id state body")
	ItemsTable = table("bulk_items", 2, "run number record outcome code changed decided")
)

// Row is a row of a table. Its values are strings, int64 or nil.
type Row []any

// key returns the row's key, for maps.
func (t *Table) key(r Row) (k [6]any) {
	copy(k[:], r[:t.Keys])
	return k
}

// String returns the table's name and the row's key.
func (t *Table) String(r Row) string {
	name := t.Name
	for _, key := range r[:t.Keys] {
		name += fmt.Sprintf(" %q", fmt.Sprint(key))
	}
	return name
}

// Row returns the subject's row.
func (s *KeyedState) Row() Row {
	return Row{s.Key, s.Subject.Tenant, s.Subject.Policy, s.Subject.ID, s.LastRecord, s.Episode.DeadLetter,
		s.destination(), string(encoded(&s.SubjectState))}
}

// NoDeadline is the deadline column of a dead letter without one, which sorts last.
const NoDeadline = 1 << 62

// Due returns the deadline in milliseconds, or NoDeadline.
func (d *DeadLetter) Due() int64 {
	if d.Deadline.IsZero() {
		return NoDeadline
	}
	return Milli(d.Deadline)
}

// Place holds what the orders of a list sort a dead letter by. Deadline is as Due returns it.
type Place struct{ Deadline, Cents, Chance, Record int64 }

// Place returns the dead letter's place.
func (d *DeadLetter) Place() Place { return Place{d.Due(), d.Cents, d.Chance, d.Record} }

// Row returns the dead letter's row.
func (d *DeadLetter) Row() Row {
	return Row{d.Record, d.ID, d.Key, string(d.State), d.Subject.Policy, string(d.Team), string(d.Reason), d.Fingerprint,
		Milli(d.CreatedAt), d.Chance, d.Due(), d.Cents, d.Assigned.Assignee, Milli(d.Assigned.FollowUpAt), string(encoded(d))}
}

// Row returns the sum's row.
func (s *Sum) Row() Row {
	return Row{s.Slot, string(s.Name), s.Policy, s.Cause, s.Destination, s.Bucket, s.N}
}

// Row returns the fingerprint's row.
func (f *Fingerprint) Row() Row {
	told, news := int64(0), ""
	if f.News != nil {
		told, news = Milli(f.News.At), string(encoded(f.News))
	}
	return Row{f.ID, f.Policy, string(f.Reason), string(f.Classification), f.Pattern, Milli(f.FirstSeen),
		Milli(f.LastSeen), Milli(f.Began), Milli(f.Prior), told, news}
}

// Row returns the bulk run's row.
func (r *BulkRun) Row() Row { return Row{r.ID, string(r.State), string(encoded(r))} }

// Row returns the item's row.
func (i *BulkItem) Row() Row {
	return Row{i.Run, i.Number, i.Record, string(i.Outcome), i.Code, Milli(i.ChangedAt), Milli(i.DecidedAt)}
}

// Moment is a snapshot of a journal.
type Moment interface {
	Head() (Head, error)
	IdentityKey() (IdentityKey, error)
	// Links returns the links after that number, in order, at most limit.
	Links(after int64, limit int) ([]Link, error)
	// Entries returns the records after that number, as they are stored, in order, at most limit.
	Entries(after int64, limit int) ([]Entry, error)
	// Subjects returns the subjects with keys above after, at most limit, in the order of their keys.
	Subjects(after int64, limit int) (SubjectPage, error)
	// Answered returns the records that were answered, as Runs.All does.
	Answered() ([]Run, error)
	// Rows returns all rows of a table that belongs to no subject.
	Rows(t *Table) ([]Row, error)
	// Messages returns the messages of all queues after that number, in order, at most limit.
	Messages(after int64, limit int) ([]Message, error)
	// Expunges calls take for the records of expunges until it returns false, in order, or the last first if backwards.
	Expunges(backwards bool, take func(*Entry) bool) error
}

// Rebuilding is a Moment of a journal whose projections are replaced.
type Rebuilding interface {
	Moment
	// ReplaceSubjects replaces the subjects with keys above after, through p.Through, and their dead letters.
	ReplaceSubjects(after int64, p *SubjectPage) error
	// Replace replaces all rows of a table that belongs to no subject.
	Replace(t *Table, rows []Row) error
	// ReplaceAnswered replaces the records that were answered.
	ReplaceAnswered(runs []Run) error
	// RemoveMessage removes a message from the outbox.
	RemoveMessage(sequence int64) error
}

// SubjectPage holds the rows of some subjects, and those of dead letters and the records in order of all keys through
// Through: the last subject's, or the greatest there is if there are no more subjects.
type SubjectPage struct {
	Through           int64
	Subjects, Letters []Row
	Records           []Entry
}

// MostRun is the most records of a run that a store keeps.
const MostRun = 4096

// Runs is a set of runs. It merges runs that touch or overlap, except those with an Until, which come last.
type Runs struct {
	all    []Run
	sorted int
}

// Add adds runs.
func (r *Runs) Add(runs ...Run) {
	if r.all = append(r.all, runs...); len(r.all) > 2*r.sorted+1024 {
		r.All()
	}
}

// All returns the merged runs in order.
func (r *Runs) All() []Run {
	slices.SortFunc(r.all, func(a, b Run) int {
		return cmp.Or(cmp.Compare(min(a.Until, 1), min(b.Until, 1)),
			cmp.Compare(a.First, b.First), cmp.Compare(a.Until, b.Until))
	})
	merged := r.all[:0]
	for _, n := range r.all {
		last := len(merged) - 1
		switch {
		case last >= 0 && n.Until == 0 && n.First <= merged[last].Last+1:
			merged[last].Last = max(merged[last].Last, n.Last)
		case last >= 0 && n == merged[last]:
		default:
			merged = append(merged, n)
		}
	}
	r.all, r.sorted = merged, len(merged)
	return r.all
}

// Holds reports whether a run contains n. Call All before.
func (r *Runs) Holds(n int64) bool {
	i, found := slices.BinarySearchFunc(r.all, n, func(r Run, n int64) int { return cmp.Compare(r.First, n) })
	return found || i > 0 && r.all[i-1].Last >= n
}

// Missing returns the numbers from 1 through last that are in no run.
func (r *Runs) Missing(last int64) []Run {
	r.All()
	return r.Left([]Run{{First: 1, Last: last}})
}

// Left returns the parts of runs that are not in r. Call r.All before.
func (r *Runs) Left(runs []Run) (all []Run) {
	for _, n := range runs {
		from, _ := slices.BinarySearchFunc(r.all, n.First, func(r Run, n int64) int { return cmp.Compare(r.Last, n) })
		for _, gone := range r.all[from:] {
			if gone.First > n.Last {
				break
			}
			if n.First < gone.First {
				all = append(all, Run{First: n.First, Last: gone.First - 1, Until: n.Until})
			}
			n.First = gone.Last + 1
		}
		if n.First <= n.Last {
			all = append(all, n)
		}
	}
	return all
}
