package journal

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Difference is the first thing of a projection that is not what the records say.
type Difference struct {
	// Where it is: a table and the row's key, and its column; Problem says what it says, and what was signed.
	Where   string
	Problem string
}

func (d *Difference) Error() string { return d.Where + " " + d.Problem }

// differ compares a row with what the records say.
func (t *Table) differ(got, want Row) error {
	for i, column := range t.Columns {
		if column == "seen" { // a heartbeat, which no record tells
			continue
		}
		if fmt.Sprint(got[i]) != fmt.Sprint(want[i]) {
			return &Difference{t.String(want),
				fmt.Sprintf("says that %s is %q, signed was %q", column, fmt.Sprint(got[i]), fmt.Sprint(want[i]))}
		}
	}
	return nil
}

// compare holds rows against what the records say, each by its key.
func (t *Table) compare(got, want []Row) error {
	left := map[string]Row{}
	for _, r := range want {
		left[t.String(r)] = r
	}
	for _, r := range got {
		key := t.String(r)
		w, known := left[key]
		if !known {
			return &Difference{key, "is there, and no record tells of it"}
		}
		if err := t.differ(r, w); err != nil {
			return err
		}
		delete(left, key)
	}
	if len(left) > 0 {
		return &Difference{slices.Min(slices.Collect(maps.Keys(left))), "is missing"}
	}
	return nil
}

// Refold folds all records anew, and is told of each part of the projections.
type Refold struct {
	*Fold
	letters int64
}

// Through returns the last record that was purged.
func (f *Refold) Through() int64 { return f.through }

// Letters returns how many dead letters were held against their records.
func (f *Refold) Letters() int64 { return f.letters }

// NewRefold returns a fold of the whole journal.
func NewRefold(base *Entry) (*Refold, error) {
	f, err := NewFold(base)
	if err != nil {
		return nil, err
	}
	return &Refold{Fold: f}, nil
}

// Entry folds a record of no subject: bulk runs and purges. They come first, in their order.
func (f *Refold) Entry(e *Entry) error {
	if e.Kind == BulkEntry || e.Kind == PurgeEntry {
		return f.Record(e)
	}
	return nil
}

// subject folds the records of one subject, in their order, and returns the rows that they come to. Of dead letters
// that were born before the last purge those are there that the episode named then, or that an erasure left since.
func (f *Refold) subject(
	key int64, s Subject, records []KeyedRecord,
) (subject Row, letters []KeyedDeadLetter, err error) {
	l, named, purged, erased := f.life(s), "", false, false
	for i := range records {
		if !purged && records[i].Entry.Record > f.purge {
			named, purged = l.Episode.DeadLetter, true
		}
		erased = erased || purged && records[i].Entry.Kind == ErasureEntry
		if err := f.Record(&records[i].Entry); err != nil {
			return nil, nil, err
		}
	}
	delete(f.lives, s)
	if !purged {
		named = l.Episode.DeadLetter
	}
	for _, d := range l.deadLetters() {
		if d.Record > f.through || d.ID == named || erased {
			letters = append(letters, KeyedDeadLetter{key, s, d})
		}
	}
	return (&KeyedState{Key: key, Subject: s, State: l.SubjectState}).Row(), letters, nil
}

// Page holds a page of subjects against their records.
func (f *Refold) Page(p *SubjectPage) error {
	subjects, letters, err := f.Anew(p)
	if err != nil {
		return err
	}
	for _, row := range p.Subjects {
		if len(subjects) == 0 || subjects[0][0] != row[0] {
			return &Difference{SubjectsTable.String(row), "is there, and no record tells of it"}
		}
		if err := SubjectsTable.differ(row, subjects[0]); err != nil {
			return err
		}
		subjects = subjects[1:]
	}
	return DeadLettersTable.compare(p.Letters, letters)
}

// Rows are what the records come to, of a projection that is of no subject, once all are folded. got are the rows that
// are there: what no record says word for word, but by a digest, is taken from them where it fits.
func (f *Refold) Rows(t *Table, got []Row) (all []Row) {
	switch t {
	case SumsTable:
		for _, s := range f.sums.list() {
			all = append(all, s.Row())
		}
	case FingerprintsTable:
		for _, c := range f.causes {
			all = append(all, f.cause(*c, got).Row())
		}
	case RunsTable:
		for _, r := range f.runs {
			all = append(all, r.words(got).Row())
		}
	case ItemsTable:
		for id, r := range f.runs {
			for _, i := range r.items {
				all = append(all, (&RunItem{id, *i}).Row())
			}
		}
	}
	return all
}

// cause is the fingerprint with the pattern that is there, where it is the one that its ID is a digest of: what this
// version makes of an error may be another one.
func (f *Refold) cause(c Fingerprint, got []Row) *Fingerprint {
	for _, r := range got {
		if r[0] != c.ID {
			continue
		}
		there := c
		there.Pattern = fmt.Sprint(r[4])
		if there.name() == c.ID {
			return &there
		}
	}
	return &c
}

// words is the run with the words of its filter that are there, where the digest of its start fits.
func (r *foldedRun) words(got []Row) *BulkRun {
	run := r.BulkRun
	for _, row := range got {
		var there BulkRun
		if row[0] == run.ID && json.Unmarshal([]byte(fmt.Sprint(row[2])), &there) == nil &&
			querySum(there.Filter.Query) == r.query {
			run.Filter.Query = there.Filter.Query
		}
	}
	return &run
}

// Compare holds the rows of a projection that is of no subject against the records, once all are folded.
func (f *Refold) Compare(t *Table, got []Row) error {
	if t == SumsTable { // what is 0 need not be there
		got = slices.DeleteFunc(got, func(r Row) bool { return strings.Trim(fmt.Sprint(r[t.Keys:]...), "0 ") == "" })
	}
	return t.compare(got, f.Rows(t, got))
}

// Anew returns the rows of a page's subjects, and of their dead letters, as the records have them. Those that nothing
// is told of are not among them.
func (f *Refold) Anew(p *SubjectPage) (subjects, letters []Row, err error) {
	records, there := map[int64][]KeyedRecord{}, map[int64]Row{}
	for _, r := range p.Records {
		records[r.Key] = append(records[r.Key], r)
	}
	for _, d := range p.Letters {
		there[d[0].(int64)] = d
	}
	for _, row := range p.Subjects {
		key := row[0].(int64)
		s := Subject{fmt.Sprint(row[1]), fmt.Sprint(row[2]), fmt.Sprint(row[3])}
		if l := f.lives[s]; len(records[key]) == 0 && (l == nil || !l.waits()) {
			continue
		}
		subject, born, err := f.subject(key, s, records[key])
		if err != nil {
			return nil, nil, err
		}
		subjects = append(subjects, subject)
		for i := range born {
			letter := born[i].Row()
			if before, known := there[born[i].DeadLetter.Record]; known {
				letter[9] = before[9] // when it was seen
			}
			letters = append(letters, letter)
			f.letters++
		}
	}
	return subjects, letters, nil
}
