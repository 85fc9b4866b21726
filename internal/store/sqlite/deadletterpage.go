package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"retry-worker/internal/journal"
)

const (
	// fewSubjects may begin with what is searched for, for all their dead letters to be looked at; where more do, the dead
	// letters are looked through from the newest on, at most scanned for a page.
	fewSubjects = 2000
	scanned     = 4000
	// fewCauses, those seen last, are looked at of those that hold the words that are searched for.
	fewCauses = 2000
)

// DeadLetterPage implements journal.DeadLetterReader. It seeks each kind of dead letters that the filter lets through in an
// index, from the newest on, and merges what it finds.
func (r *Reader) DeadLetterPage(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) (all []journal.DeadLetterItem, next string, err error) {
	p, err := f.Plan(cursor, limit)
	if err != nil {
		return nil, "", err
	}
	err = r.read(ctx, "list dead letters", func(tx *snapshot) error {
		s, err := newSearch(ctx, tx, p)
		if err != nil {
			return err
		}
		found := &newest{limit: p.Limit + 1}
		if err := s.find(found); err != nil {
			return err
		}
		found.above(s.floor)
		next = ""
		switch {
		case len(found.rows) > p.Limit:
			found.rows = found.rows[:p.Limit]
			next = p.Cursor(found.rows[p.Limit-1].record)
		case s.floor > 0: // further ones were not looked at
			next = p.Cursor(s.floor)
		}
		all, err = items(ctx, tx, found.ids()...)
		return err
	})
	return all, next, err
}

// letter is a dead letter that was found.
type letter struct {
	record  int64
	id      string
	subject int64
}

// newest are the newest letters found, in order; each has a record of its own.
type newest struct {
	limit int
	rows  []letter
}

func (n *newest) add(l letter) {
	at, known := slices.BinarySearchFunc(n.rows, l.record, func(l letter, record int64) int { return cmp.Compare(record, l.record) })
	if known || at >= n.limit {
		return
	}
	n.rows = slices.Insert(n.rows[:min(len(n.rows), n.limit-1)], at, l)
}

// floor is the record that another must be above to be among them.
func (n *newest) floor() int64 {
	if len(n.rows) < n.limit {
		return math.MinInt64
	}
	return n.rows[n.limit-1].record
}

// above leaves out what is below a record.
func (n *newest) above(record int64) {
	n.rows = slices.DeleteFunc(n.rows, func(l letter) bool { return l.record < record })
}

func (n *newest) ids() []string {
	ids := make([]string, len(n.rows))
	for i := range ids {
		ids[i] = n.rows[i].id
	}
	return ids
}

// search is one page's.
type search struct {
	ctx  context.Context
	tx   *snapshot
	plan *journal.DeadLetterPlan
	// before and above are the records between which all that are asked for lie.
	before, above int64
	// age is the condition on what their instants of birth are; empty where there is none.
	age string
	// floor is the last record that was looked at, where not all could be; 0 where all were.
	floor int64
}

func newSearch(ctx context.Context, tx *snapshot, p *journal.DeadLetterPlan) (*search, error) {
	above, before, err := bornWithin(ctx, tx, p)
	return &search{ctx: ctx, tx: tx, plan: p, before: min(p.Before, before), above: above, age: bornAt(p)}, err
}

// The seeks. The last three arguments are the record before, the one above, and how many; a condition on the age may stand behind.
const (
	seekState = `SELECT record, id, subject FROM dead_letters INDEXED BY dead_letters_by_state
		WHERE state = ? AND record < ? AND record > ?%s ORDER BY record DESC LIMIT ?`
	seekKind = `SELECT record, id, subject FROM dead_letters INDEXED BY dead_letters_by_kind
		WHERE state = ? AND policy = ? AND team = ? AND reason = ? AND record < ? AND record > ?%s ORDER BY record DESC LIMIT ?`
	seekCause = `SELECT record, id, 0 FROM dead_letters INDEXED BY dead_letters_by_cause
		WHERE fingerprint = ? AND state = ? AND team = ? AND reason = ? AND record < ? AND record > ?%s ORDER BY record DESC LIMIT ?`
	// findKinds are the kinds that there are any of, those with the most first. ?1 are the states.
	findKinds = `SELECT state, policy, team, reason FROM dead_letter_counts WHERE n > 0 AND state IN (SELECT value FROM json_each(?1))
		AND ?2 IN ('', policy) AND ?3 IN ('', team) AND ?4 IN ('', reason) ORDER BY n DESC`
	// findKindsOf are those of the cause ?5, which is of one policy.
	findKindsOf = `SELECT fingerprint, state, team, reason FROM dead_letter_causes c WHERE fingerprint = ?5 AND n > 0
		AND state IN (SELECT value FROM json_each(?1)) AND ?3 IN ('', team) AND ?4 IN ('', reason)
		AND (?2 = '' OR ?2 = (SELECT d.policy FROM dead_letters d INDEXED BY dead_letters_by_cause
			WHERE d.fingerprint = c.fingerprint AND d.state = c.state AND d.team = c.team AND d.reason = c.reason LIMIT 1)) ORDER BY n DESC`
)

// findCauses are the kinds of dead letters that the causes with certain words have, those with the newest first: no more of
// them can be on a page than it holds. ?5 is how many causes are looked at, ?6 the record before, ?7 the one above, ?8 how many
// kinds are wanted.
const findCauses = `WITH f AS MATERIALIZED (SELECT id FROM fingerprints WHERE ?2 IN ('', policy)%s ORDER BY last_seen DESC LIMIT ?5)
	SELECT fingerprint, state, team, reason FROM (SELECT c.fingerprint, c.state, c.team, c.reason,
			(SELECT d.record FROM dead_letters d INDEXED BY dead_letters_by_cause WHERE d.fingerprint = c.fingerprint AND d.state = c.state
				AND d.team = c.team AND d.reason = c.reason AND d.record < ?6 AND d.record > ?7%s ORDER BY d.record DESC LIMIT 1) AS newest
		FROM f CROSS JOIN dead_letter_causes c ON c.fingerprint = f.id
		WHERE c.n > 0 AND c.state IN (SELECT value FROM json_each(?1)) AND ?3 IN ('', c.team) AND ?4 IN ('', c.reason))
	WHERE newest IS NOT NULL ORDER BY newest DESC LIMIT ?8`

// find gathers what the plan asks for.
func (s *search) find(found *newest) error {
	if !s.plan.Searches {
		return s.base(found)
	}
	return firstError(
		func() error { return s.byID(found) },
		func() error { return s.byCause(found) },
		func() error { return s.bySubject(found) })
}

// base finds what the filter lets through without its query.
func (s *search) base(found *newest) error {
	f := &s.plan.Filter
	if f.Fingerprint != "" {
		keys, err := s.keys(findKindsOf, append(s.filter(), f.Fingerprint)...)
		if err != nil {
			return err
		}
		return s.seek(found, strings.Replace(seekCause, "0", "subject", 1), keys)
	}
	if f.Policy == "" && f.Team == "" && f.Reason == "" {
		var keys [][]any
		for _, state := range s.plan.States {
			keys = append(keys, []any{string(state)})
		}
		return s.seek(found, seekState, keys)
	}
	keys, err := s.keys(findKinds, s.filter()...)
	if err != nil {
		return err
	}
	return s.seek(found, seekKind, keys)
}

// filter are the arguments of findKinds.
func (s *search) filter() []any {
	f := &s.plan.Filter
	return []any{array(s.plan.States), f.Policy, string(f.Team), string(f.Reason)}
}

// keys are the rows of a query, as arguments of a seek.
func (s *search) keys(query string, args ...any) (keys [][]any, err error) {
	err = scan(s.ctx, s.tx, query, func(values []driver.Value) error {
		key := make([]any, len(values))
		for i := range values {
			key[i] = values[i]
		}
		keys = append(keys, key)
		return nil
	}, args...)
	return keys, err
}

// seek adds the newest of each key; what cannot be among them is not read.
func (s *search) seek(found *newest, query string, keys [][]any) error {
	return prepare(s.ctx, s.tx, fmt.Sprintf(query, s.age), func(ask asking) error {
		for _, key := range keys {
			if err := ask(found.take, append(key, s.before, max(found.floor(), s.above), found.limit)...); err != nil {
				return err
			}
		}
		return nil
	})
}

func (n *newest) take(values []driver.Value) error {
	var l letter
	err := errors.Join(into(&l.record, values[0]), into(&l.id, values[1]), into(&l.subject, values[2]))
	if err == nil {
		n.add(l)
	}
	return err
}

// byID finds the dead letter with the id that is asked for.
func (s *search) byID(found *newest) error {
	if s.plan.ID == "" {
		return nil
	}
	all, err := items(s.ctx, s.tx, s.plan.ID)
	for i := range all {
		if d := &all[i]; s.plan.Passes(&d.DeadLetter, d.Subject.Policy, d.Fingerprint) {
			found.add(letter{record: d.Record, id: d.ID})
		}
	}
	return err
}

// byCause finds the dead letters of the causes whose pattern or reason holds all the words.
func (s *search) byCause(found *newest) error {
	if len(s.plan.Words) == 0 {
		return nil
	}
	condition, args := s.words(append(s.filter(), fewCauses, s.before, s.above, found.limit))
	keys, err := s.keys(fmt.Sprintf(findCauses, condition, s.age), args...)
	if err != nil {
		return err
	}
	return s.seek(found, seekCause, keys)
}

// words is the condition on causes to hold all the words, behind what is asked for already.
func (s *search) words(args []any) (string, []any) {
	var words strings.Builder
	if of := s.plan.Filter.Fingerprint; of != "" {
		args = append(args, of)
		fmt.Fprintf(&words, " AND id = ?%d", len(args))
	}
	for _, word := range s.plan.Words {
		args = append(args, word, strings.ToUpper(word))
		fmt.Fprintf(&words, " AND (instr(pattern, ?%[1]d) > 0 OR instr(reason, ?%[1]d) > 0 OR instr(reason, ?%[2]d) > 0)", len(args)-1, len(args))
	}
	return words.String(), args
}

// bySubject finds the dead letters of the subjects whose id begins with one of the prefixes.
func (s *search) bySubject(found *newest) error {
	for _, prefix := range s.plan.Prefixes {
		few, err := s.isRare(prefix)
		switch {
		case err != nil:
			return err
		case !few:
			return s.lookThrough(found)
		}
	}
	for _, prefix := range s.plan.Prefixes {
		if err := s.ofSubjects(found, prefix); err != nil {
			return err
		}
	}
	return nil
}

// within is the condition on a subject's id to begin with a prefix.
func within(prefix string) (string, []any) {
	if end, ok := journal.AfterPrefix(prefix); ok {
		return "id >= ? AND id < ?", []any{prefix, end}
	}
	return "id >= ?", []any{prefix}
}

// isRare tells whether only few subjects begin with the prefix.
func (s *search) isRare(prefix string) (bool, error) {
	condition, args := within(prefix)
	n := int64(0)
	err := scan(s.ctx, s.tx, "SELECT count(*) FROM (SELECT 1 FROM subjects WHERE "+condition+" LIMIT ?)", func(values []driver.Value) error {
		return into(&n, values[0])
	}, append(args, fewSubjects+1)...)
	return n <= fewSubjects, err
}

// ofSubjects looks at all dead letters of the few subjects that begin with the prefix.
func (s *search) ofSubjects(found *newest, prefix string) error {
	condition, args := within(prefix)
	query := `SELECT d.record, d.id, d.subject FROM subjects s CROSS JOIN dead_letters d INDEXED BY dead_letters_of_subject ON d.subject = s.key
		WHERE s.` + strings.ReplaceAll(condition, "AND id", "AND s.id") + ` AND d.state IN (SELECT value FROM json_each(?)) AND ? IN ('', d.policy)
		AND ? IN ('', d.team) AND ? IN ('', d.reason) AND ? IN ('', d.fingerprint) AND d.record < ? AND d.record > ?` + s.age +
		` ORDER BY d.record DESC LIMIT ?`
	args = append(append(args, s.filter()...), s.plan.Filter.Fingerprint, s.before, max(found.floor(), s.above), found.limit)
	return scan(s.ctx, s.tx, query, found.take, args...)
}

// lookThrough looks at the newest dead letters for subjects that begin with a prefix, until it has found enough, or has
// looked at scanned of them: the next page goes on there.
func (s *search) lookThrough(found *newest) error {
	all := &newest{limit: scanned}
	if err := s.base(all); err != nil {
		return err
	}
	return prepare(s.ctx, s.tx, "SELECT id FROM subjects WHERE key = ?", func(ask asking) error {
		hits := 0
		for _, l := range all.rows {
			err := ask(func(values []driver.Value) error {
				id, err := as[string](values[0])
				if slices.ContainsFunc(s.plan.Prefixes, func(prefix string) bool { return strings.HasPrefix(id, prefix) }) {
					found.add(l)
					hits++
				}
				return err
			}, l.subject)
			if err != nil || hits == found.limit {
				return err
			}
		}
		if len(all.rows) == scanned {
			s.floor = all.rows[scanned-1].record
		}
		return nil
	})
}
