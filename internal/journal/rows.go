package journal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

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
		return cmp.Or(cmp.Compare(min(a.Until, 1), min(b.Until, 1)), cmp.Compare(a.First, b.First), cmp.Compare(a.Until, b.Until))
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
