package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// tampered is the journal after somebody has edited one place of it, behind the product's back.
type tampered struct {
	*testkit.Memory
	dice *rand.Rand
	part int
	did  string // what was edited; empty where there was nothing
	lost int64  // the message that is gone
}

// tables are the projections that are of no subject.
var tables = []*journal.Table{journal.CountsTable, journal.FiguresTable, journal.FingerprintsTable, journal.RunsTable,
	journal.ItemsTable, journal.RunCountsTable}

// tamper: an audit notices any edit of a record, of a link, of a projection or of a message.
func (s *sim) tamper() {
	dice := s.draw("tamper")
	t := &tampered{s.memory, dice, dice.IntN(7), "", 0}
	_, err := audit.Verify(context.Background(), t, audit.VerifyOptions{}, nil)
	if _, noticed := errors.AsType[*audit.Broken](err); t.did != "" && !noticed {
		s.fail("the audit does not notice an edit of %s: %v", t.did, err)
	}
}

// Moment implements audit.Journal.
func (t *tampered) Moment(ctx context.Context, do func(journal.Moment) error) error {
	return t.Memory.Moment(ctx, func(m journal.Moment) error {
		head, _ := m.Head()
		return do(&edited{m, t, 1 + t.dice.Int64N(max(head.Record, 1)), 1 + t.dice.Int64N(max(head.Link, 1)), tables[t.dice.IntN(len(tables))]})
	})
}

// edited is one state of the tampered journal: one record, link, row, run or message of those that it reads is another, or gone.
type edited struct {
	journal.Moment
	*tampered
	record, link int64
	table        *journal.Table
}

// gone takes one out of those.
func gone[T any](t *tampered, what string, from []T, i int) []T {
	t.did = what + " that is gone"
	return slices.Delete(from, i, i+1)
}

func (e *edited) Entries(after int64, limit int) ([]journal.KeyedRecord, error) {
	all, err := e.Moment.Entries(after, limit)
	i := slices.IndexFunc(all, func(r journal.KeyedRecord) bool { return r.Entry.Record == e.record })
	if e.part != 0 || i < 0 {
		return all, err
	}
	r := &all[i].Entry
	switch e.did = fmt.Sprintf("record %d: %+v", r.Record, r); e.dice.IntN(6) {
	case 0:
		r.At = r.At.Add(time.Second)
	case 1:
		r.Kind += "s"
	case 2:
		r.Subject.ID += "0"
	case 3:
		r.Salt += "0"
	case 4:
		all = gone(e.tampered, e.did, all, i)
	default:
		r.Body = altered(r.Body, e.dice)
	}
	return all, err
}

func (e *edited) Links(after int64, limit int) ([]journal.Link, error) {
	all, err := e.Moment.Links(after, limit)
	i := slices.IndexFunc(all, func(l journal.Link) bool { return l.Number == e.link })
	if e.part != 1 || i < 0 {
		return all, err
	}
	all = slices.Clone(all)
	l := &all[i]
	switch e.did = fmt.Sprint("link ", l.Number); e.dice.IntN(4) {
	case 0:
		l.At = l.At.Add(time.Second)
	case 1:
		l.Answered = append(slices.Clone(l.Answered), journal.Run{First: 1, Last: 1})
	case 2:
		all = gone(e.tampered, e.did, all, i)
	default:
		l.Hash[e.dice.IntN(len(l.Hash))] ^= 1
	}
	return all, err
}

func (e *edited) Subjects(after int64, limit int) (journal.SubjectPage, error) {
	page, err := e.Moment.Subjects(after, limit)
	switch e.part {
	case 2:
		page.Subjects = e.rows(journal.SubjectsTable, page.Subjects)
	case 3:
		page.Letters = e.rows(journal.DeadLettersTable, page.Letters)
	}
	return page, err
}

func (e *edited) Answered() ([]journal.Run, error) {
	all, err := e.Moment.Answered()
	if purge, _ := e.LastPurge(); e.part == 4 && len(all) > 0 && purge == nil { // else nobody looks at those of what is purged
		all = gone(e.tampered, "what was answered", all, e.dice.IntN(len(all)))
	}
	return all, err
}

func (e *edited) Messages(after int64, limit int) ([]journal.Message, error) {
	all, err := e.Moment.Messages(after, limit)
	all = slices.DeleteFunc(all, func(m journal.Message) bool { return m.Sequence == e.lost }) // the next page has it not, either
	if e.part != 6 || len(all) == 0 || e.did != "" {
		return all, err
	}
	i := e.dice.IntN(len(all))
	m := &all[i]
	switch e.did = fmt.Sprintf("message %d: %+v", m.Sequence, m); e.dice.IntN(5) {
	case 0:
		e.lost = m.Sequence
		return gone(e.tampered, e.did, all, i), err
	case 1:
		m.Key += "0"
	case 2:
		m.At = m.At.Add(time.Second)
	case 3:
		m.Sequence += 1 << 40
	default:
		m.Body = altered(m.Body, e.dice)
	}
	return all, err
}

func (e *edited) Rows(t *journal.Table) ([]journal.Row, error) {
	all, err := e.Moment.Rows(t)
	if e.part == 5 && t == e.table {
		all = e.rows(t, all)
	}
	return all, err
}

// rows edits one of those, or takes it out.
func (e *edited) rows(t *journal.Table, all []journal.Row) []journal.Row {
	if len(all) == 0 || e.did != "" {
		return all
	}
	slices.SortFunc(all, func(a, b journal.Row) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	i, column := e.dice.IntN(len(all)), e.dice.IntN(len(t.Columns)+1)
	if t == journal.SubjectsTable { // stores name the subjects of records by their rows: one that is another is noticed there
		column = max(column, 4)
	}
	e.did = fmt.Sprintf("%s %v", t.Name, all[i])
	switch {
	case column == len(t.Columns) && t != journal.SubjectsTable:
		return gone(e.tampered, e.did, all, i)
	case column == len(t.Columns), t.Columns[column] == "seen": // a heartbeat
		column = len(t.Columns) - 1
	}
	e.did = t.Columns[column] + " of " + e.did
	switch v := all[i][column].(type) {
	case string:
		all[i][column] = altered(v, e.dice)
	case int64:
		all[i][column] = v + 1
	default:
		all[i][column] = int64(1)
	}
	return all
}

// altered is a text with another character.
func altered(text string, dice *rand.Rand) string {
	if text == "" {
		return "x"
	}
	b := []byte(text)
	b[dice.IntN(len(b))] ^= 1
	return string(b)
}
