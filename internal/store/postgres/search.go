package postgres

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

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

// letter is a dead letter that was found: each has a record of its own.
type letter struct {
	state  string
	record int64
}

// search is one page's.
type search struct {
	ctx   context.Context
	tx    pgx.Tx
	plan  *journal.DeadLetterPlan
	found []letter
	// before and above are the records between which all that are asked for lie.
	before, above int64
	// floor is the last record that was looked at, where not all could be; 0 where all were.
	floor int64
}

func newSearch(ctx context.Context, tx pgx.Tx, p *journal.DeadLetterPlan) (*search, error) {
	s := &search{ctx: ctx, tx: tx, plan: p, before: p.Before, above: math.MinInt64}
	if !p.Aged() {
		return s, nil
	}
	// The ledger tells where they are: a dead letter is born in the instant of its record.
	err := query(ctx, tx, func(v *values) {
		v.integer("purged")
		since, until := v.integer("since"), v.integer("until")
		if p.Since > math.MinInt64 {
			s.above = since - 1
		}
		if p.Until < math.MaxInt64 {
			s.before = min(s.before, until)
		}
	}, boundsText, max(p.Since, -farthest), min(p.Until, farthest))
	return s, err
}

// farthest instant that a calculation may start from, in milliseconds.
const farthest = 1 << 61

// within is the condition on dead letters d to lie where they are looked for, and to be of the plan's age.
func (s *search) within(c *clause) string {
	condition := " AND d.record < " + c.argument(s.before)
	if s.plan.Since > math.MinInt64 {
		condition += " AND d.record > " + c.argument(s.above) + " AND d.created_at >= " + c.argument(s.plan.Since)
	}
	if s.plan.Until < math.MaxInt64 {
		condition += " AND d.created_at < " + c.argument(s.plan.Until)
	}
	return condition
}

// newest of what was found, each once, at most one more than a page holds.
func (s *search) newest() []letter {
	slices.SortFunc(s.found, func(a, b letter) int { return cmp.Compare(b.record, a.record) })
	all := slices.DeleteFunc(slices.Compact(s.found), func(l letter) bool { return l.record < s.floor })
	return all[:min(len(all), s.plan.Limit+1)]
}

func (s *search) take(v *values) {
	var l letter
	v.text("state", &l.state)
	v.number("record", &l.record)
	s.found = append(s.found, l)
}

// find gathers what the plan asks for.
func (s *search) find() error {
	if !s.plan.Searches {
		var c clause
		return query(s.ctx, s.tx, s.take, s.base(&c, s.plan.Limit+1), c.arguments...)
	}
	for _, step := range []func() error{s.seekOnly, s.byID, s.byCause, s.bySubject} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// seekOnly has the transaction's statements seek row by row in indexes, whatever the statistics say: just after much was
// written these are old, and other plans take seconds. Compiling a plan takes longer than running it.
func (s *search) seekOnly() error {
	_, err := s.tx.Exec(s.ctx, `SELECT set_config('jit', 'off', true), set_config('enable_hashjoin', 'off', true),
		set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true)`)
	return err
}

// base finds the newest that the filter lets through without its query.
func (s *search) base(c *clause, limit int) string {
	most := c.argument(limit)
	return "SELECT d.state, d.record, d.subject FROM (" + s.kindsOf(c) + ") k CROSS JOIN LATERAL (SELECT d.state, d.record, d.subject FROM dead_letters d" +
		" WHERE " + s.ofKind() + s.within(c) + " ORDER BY d.record DESC LIMIT " + most + ") d ORDER BY d.record DESC LIMIT " + most
}

// kindsOf asks for the kinds of dead letters that the filter lets through: each is sought in one index. A cause is of one
// policy.
func (s *search) kindsOf(c *clause) string {
	f := s.plan.Filter
	switch {
	case f.Fingerprint != "":
		text := "SELECT k.* FROM dead_letter_causes k WHERE k.n > 0 AND k.fingerprint = " + c.argument(f.Fingerprint) +
			" AND " + s.matches(c, "k", journal.DeadLetterFilter{Team: f.Team, Reason: f.Reason})
		if f.Policy != "" {
			text += " AND " + c.argument(f.Policy) + " = (SELECT d.policy FROM dead_letters d WHERE " + s.ofKind() + " LIMIT 1)"
		}
		return text
	case f.Policy == "" && f.Team == "" && f.Reason == "":
		return "SELECT k.state FROM unnest(" + s.states(c) + ") AS k (state)"
	default:
		return "SELECT k.* FROM dead_letter_counts k WHERE k.n > 0 AND " + s.matches(c, "k", f)
	}
}

// ofKind is the condition on dead letters d to be of a kind k.
func (s *search) ofKind() string {
	f := &s.plan.Filter
	switch {
	case f.Fingerprint != "":
		return "d.fingerprint = k.fingerprint AND d.state = k.state AND d.team = k.team AND d.reason = k.reason"
	case f.Policy == "" && f.Team == "" && f.Reason == "":
		return `d.state = k.state COLLATE "C"`
	default:
		return "d.state = k.state AND d.policy = k.policy AND d.team = k.team AND d.reason = k.reason"
	}
}

// states that are asked for, as an argument.
func (s *search) states(c *clause) string {
	all := make([]string, len(s.plan.States))
	for i, state := range s.plan.States {
		all[i] = string(state)
	}
	return "string_to_array(" + c.argument(strings.Join(all, ",")) + ", ',')"
}

// matches is the condition that a filter is on state, policy, team and reason of what has that alias.
func (s *search) matches(c *clause, alias string, f journal.DeadLetterFilter) string {
	condition := alias + ".state = ANY(" + s.states(c) + ")"
	for _, part := range [...][2]string{{"policy", f.Policy}, {"team", string(f.Team)}, {"reason", string(f.Reason)}} {
		if part[1] != "" {
			condition += " AND " + alias + "." + part[0] + " = " + c.argument(part[1])
		}
	}
	return condition
}

// byID finds the dead letter with the id that is asked for.
func (s *search) byID() error {
	if s.plan.ID == "" {
		return nil
	}
	all, err := items(s.ctx, s.tx, loadByID, s.plan.ID)
	for i := range all {
		if d := &all[i]; s.plan.Passes(&d.DeadLetter, d.Subject.Policy, d.Fingerprint) {
			s.found = append(s.found, letter{string(d.State), d.Record})
		}
	}
	return err
}

// byCause finds the dead letters of the causes whose pattern or reason holds all the words.
func (s *search) byCause() error {
	if len(s.plan.Words) == 0 {
		return nil
	}
	var c clause
	condition := s.words(&c)
	most := c.argument(s.plan.Limit + 1)
	kinds := s.matches(&c, "k", journal.DeadLetterFilter{Team: s.plan.Filter.Team, Reason: s.plan.Filter.Reason})
	seek := ` FROM dead_letters d WHERE d.fingerprint = k.fingerprint AND d.state = k.state AND d.team = k.team AND d.reason = k.reason` +
		s.within(&c)
	// No more kinds can be on a page than it holds, those with the newest; nor what is older than the newest of the last one.
	text := "WITH f AS MATERIALIZED (SELECT f.id FROM fingerprints f WHERE " + condition + " ORDER BY f.last_seen DESC LIMIT " + c.argument(fewCauses) +
		"), k AS MATERIALIZED (SELECT k.fingerprint, k.state, k.team, k.reason, d.record FROM f JOIN dead_letter_causes k ON k.fingerprint = f.id" +
		" CROSS JOIN LATERAL (SELECT d.record" + seek + " ORDER BY d.record DESC LIMIT 1) d WHERE k.n > 0 AND " + kinds +
		" ORDER BY d.record DESC LIMIT " + most +
		"), least AS MATERIALIZED (SELECT CASE count(*) WHEN " + most + " THEN min(record) ELSE 0 END AS record FROM k)" +
		" SELECT d.state, d.record FROM k CROSS JOIN LATERAL (SELECT d.state, d.record" + seek +
		" AND d.record >= (SELECT record FROM least) ORDER BY d.record DESC LIMIT " + most + ") d ORDER BY d.record DESC LIMIT " + most
	return query(s.ctx, s.tx, s.take, text, c.arguments...)
}

// words is the condition on causes f to be of the filter's policy and fingerprint, and to hold all the words.
func (s *search) words(c *clause) string {
	condition, f := "true", &s.plan.Filter
	if f.Policy != "" {
		condition = "f.policy = " + c.argument(f.Policy)
	}
	if f.Fingerprint != "" {
		condition += " AND f.id = " + c.argument(f.Fingerprint)
	}
	for _, word := range s.plan.Words {
		condition += " AND (strpos(f.pattern, " + c.argument(word) + ") > 0 OR strpos(f.reason, " + c.argument(word) +
			") > 0 OR strpos(f.reason, " + c.argument(strings.ToUpper(word)) + ") > 0)"
	}
	return condition
}

// end of a subquery d and of the query about it: the newest before the cursor.
func (s *search) end(c *clause) string {
	most := c.argument(s.plan.Limit + 1)
	return s.within(c) + " ORDER BY d.record DESC LIMIT " + most + ") d ORDER BY d.record DESC LIMIT " + most
}

// bySubject finds the dead letters of the subjects whose id begins with one of the prefixes.
func (s *search) bySubject() error {
	for _, prefix := range s.plan.Prefixes {
		if few, err := s.isRare(prefix); err != nil || !few {
			if err == nil {
				err = s.lookThrough()
			}
			return err
		}
	}
	for _, prefix := range s.plan.Prefixes {
		var c clause
		text := "WITH s AS MATERIALIZED (SELECT s.key FROM subjects s WHERE " + begins(&c, prefix) + ") SELECT d.state, d.record FROM (SELECT d.state, d.record" +
			" FROM s CROSS JOIN LATERAL (SELECT * FROM dead_letters d WHERE d.subject = s.key OFFSET 0) d WHERE " +
			s.ofFilter(&c) + s.end(&c)
		if err := query(s.ctx, s.tx, s.take, text, c.arguments...); err != nil {
			return err
		}
	}
	return nil
}

// begins is the condition on a subject's id to begin with a prefix.
func begins(c *clause, prefix string) string {
	condition := "s.id >= " + c.argument(prefix)
	if end, ok := journal.AfterPrefix(prefix); ok {
		condition += " AND s.id < " + c.argument(end)
	}
	return condition
}

// isRare tells whether only few subjects begin with the prefix.
func (s *search) isRare(prefix string) (bool, error) {
	var c clause
	n := int64(0)
	text := "SELECT count(*) FROM (SELECT FROM subjects s WHERE " + begins(&c, prefix) + " LIMIT " + c.argument(fewSubjects+1) + ") s"
	err := query(s.ctx, s.tx, func(v *values) { v.number("count", &n) }, text, c.arguments...)
	return n <= fewSubjects, err
}

// ofFilter is the condition on dead letters d to be of the filter's state, policy, team, reason and cause.
func (s *search) ofFilter(c *clause) string {
	condition := s.matches(c, "d", s.plan.Filter)
	if of := s.plan.Filter.Fingerprint; of != "" {
		condition += " AND d.fingerprint = " + c.argument(of)
	}
	return condition
}

// lookThrough looks at the newest dead letters for subjects that begin with a prefix, until it has found enough, or has
// looked at scanned of them: the next page goes on there. Most find enough among the first.
func (s *search) lookThrough() error {
	before := len(s.found)
	for _, most := range [...]int{scanned / 10, scanned} {
		s.found = s.found[:before]
		n, lowest, err := s.look(most)
		s.floor = 0
		if err != nil || len(s.found)-before > s.plan.Limit || n < most {
			return err
		}
		s.floor = lowest
	}
	return nil
}

// look looks at so many dead letters: how many there were, and the record of the last.
func (s *search) look(most int) (n int, lowest int64, err error) {
	var c clause
	hits := make([]string, len(s.plan.Prefixes))
	base := s.base(&c, most)
	for i, prefix := range s.plan.Prefixes {
		hits[i] = "(" + begins(&c, prefix) + ")"
	}
	text := "WITH d AS MATERIALIZED (" + base + ") SELECT d.state, d.record, (SELECT " + strings.Join(hits, " OR ") +
		" FROM subjects s WHERE s.key = d.subject) FROM d ORDER BY d.record DESC"
	err = query(s.ctx, s.tx, func(v *values) {
		var l letter
		var hit bool
		v.text("state", &l.state)
		v.number("record", &l.record)
		if v.truth("hit", &hit); hit {
			s.found = append(s.found, l)
		}
		n, lowest = n+1, l.record
	}, text, c.arguments...)
	return n, lowest, err
}
