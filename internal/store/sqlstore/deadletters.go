package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

const (
	// fewSubjects may begin with what is searched for, and fewKeys be the kinds of the causes with its words, for their
	// dead letters to be sought; where more do, the dead letters are looked through from the newest on, scanned for a
	// page.
	fewSubjects = 2000
	fewKeys     = 200
	fewLetters  = 2000 // of those that a filter finds one by one: as with subjects
	scanned     = 4000
)

// letter is a dead letter that was found.
type letter struct {
	journal.Place
	fingerprint string
}

const letterColumns = "deadline, cents, record, fingerprint"

func scanLetter(scan scanner, l *letter) error {
	return scan(&l.Deadline, &l.Cents, &l.Record, &l.fingerprint)
}

// kind is what dead letters are counted and sought by.
type kind struct {
	journal.CauseCount
	caused bool // sought by its cause
}

// where is what rows of a kind have.
func (k *kind) where() where {
	var w where
	w.and("state = ? AND policy = ? AND team = ? AND reason = ?", string(k.State), k.Policy, string(k.Team),
		string(k.Reason))
	if k.caused {
		w.and("fingerprint = ?", k.Fingerprint)
	}
	return w
}

// kinds are those that there are dead letters of and the filter lets through, those with the most first.
func (s *snapshot) kinds(p *deadletter.Query, byCause bool) (all []kind, err error) {
	f, cause, n, from := &p.Filter, "''", "sum(n)", "dead_letter_counts"
	if byCause = byCause || f.Fingerprint != ""; byCause {
		cause = "fingerprint"
	}
	var w where
	var args []any
	if !p.Picks() {
		w.and("n > 0")
	} else { // of which there are no counts
		n = "count(*)"
		from, args = whoArePicked(&p.Filter)
		from += " AS c CROSS JOIN dead_letters d"
		w.and("d.record = c.picked")
	}
	w.fits(f, "")
	err = s.each("SELECT "+cause+" AS cause, policy, state, team, reason, CAST("+n+" AS BIGINT) AS total, CAST(sum(cents) AS BIGINT) FROM "+
		from+w.String()+
		" GROUP BY 1, policy, state, team, reason ORDER BY total DESC, 1, policy, state, team, reason",
		func(scan scanner) error {
			k := kind{caused: byCause}
			err := scan(&k.Fingerprint, &k.Policy, &k.State, &k.Team, &k.Reason, &k.N, &k.Cents)
			if slices.Contains(p.States, k.State) {
				all = append(all, k)
			}
			return err
		}, append(args, w.args...)...)
	return all, err
}

// seeks are how many kinds are sought in one statement.
const seeks = 32

// seek finds the next dead letters of the kinds behind a place (nil: from the first on), at most limit, in that order.
func (s *snapshot) seek(
	p *deadletter.Query, kinds []kind, sort string, after *journal.Place, limit int,
) (all []letter, err error) {
	keys, before := deadletter.Keys(sort), "record < ?"
	if keys[0].Column != "record" {
		before = "+record < ?" // or SQLite goes by the index of records, and sorts all it finds there
	}
	for chunk := range slices.Chunk(kinds, seeks) {
		var queries []string
		var args []any
		for _, k := range chunk {
			for _, w := range behind(keys, after) {
				of := k.where()
				of.picks(&p.Filter)
				w.and(before, p.Before)
				if p.Aged() {
					w.and("at >= ? AND at < ?", p.Since, p.Until)
				}
				of.and(strings.Join(w.conditions, " AND "), w.args...)
				queries = append(queries, "SELECT * FROM (SELECT "+letterColumns+" FROM dead_letters"+
					of.String()+" ORDER BY "+orderBy(keys)+" LIMIT ?) AS k")
				args = append(append(args, of.args...), limit)
			}
		}
		some, err := collect(s, strings.Join(queries, " UNION ALL "), args, scanLetter)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return ordered(all, sort, limit), nil
}

// ordered are the first of the dead letters, each once.
func ordered(all []letter, sort string, limit int) []letter {
	slices.SortFunc(all, func(a, b letter) int { return deadletter.Compare(sort, &a.Place, &b.Place) })
	all = slices.CompactFunc(all, func(a, b letter) bool { return a.Record == b.Record })
	return all[:min(len(all), limit)]
}

// behind is what rows behind a place have, as alternatives each of which is one stretch of an index.
func behind(keys []deadletter.Key, after *journal.Place) (all []where) {
	if after == nil {
		return []where{{}}
	}
	for i, k := range keys {
		var w where
		for _, same := range keys[:i] {
			w.and(same.Column+" = ?", same.Of(after))
		}
		operator := " > ?"
		if k.Descending {
			operator = " < ?"
		}
		w.and(k.Column+operator, k.Of(after))
		all = append(all, w)
	}
	return all
}

func orderBy(keys []deadletter.Key) string {
	columns := make([]string, len(keys))
	for i, k := range keys {
		if columns[i] = k.Column; k.Descending {
			columns[i] += " DESC"
		}
	}
	return strings.Join(columns, ", ")
}

// DeadLetterPage implements deadletter.Reader. It seeks each kind of dead letters that the filter lets through in an
// index, from the newest on, and merges what it finds.
func (r *Reader) DeadLetterPage(
	ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int,
) (all []deadletter.Item, next string, err error) {
	p, err := deadletter.NewQuery(f, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	err = r.read(ctx, "list dead letters", func(s *snapshot) error {
		found, floor, err := s.page(p)
		if err != nil {
			return err
		}
		next = ""
		switch {
		case len(found) > p.Limit:
			found = found[:p.Limit]
			next = p.Cursor(found[p.Limit-1].Place)
		case floor != nil: // further ones were not looked at
			next = p.Cursor(*floor)
		}
		all, err = s.letterItems(found)
		return err
	})
	return all, next, err
}

// page finds the dead letters of a page, and one more. floor is the last place that was looked at, where not all could
// be.
func (s *snapshot) page(p *deadletter.Query) (found []letter, floor *journal.Place, err error) {
	q, err := s.searchPicked(p)
	if err == nil && !p.Picks() {
		err = q.findSubjects()
	}
	switch {
	case err != nil:
		return nil, nil, err
	case p.Picks() && !q.many():
		found, err = q.behind(p.After, p.Filter.Sort, p.Limit+1)
		return found, nil, err
	case q.wide:
		return q.lookThrough()
	}
	found, err = s.seek(p, q.kinds, p.Filter.Sort, p.After, p.Limit+1)
	if err == nil {
		found, err = q.direct(found)
	}
	return found, nil, err
}

// recordsOf returns the records that the dead letters were created with.
func recordsOf(all []letter) []int64 {
	records := make([]int64, len(all))
	for i := range all {
		records[i] = all[i].Record
	}
	return records
}

// inLists calls do for lists of parameters that hold the values, and their arguments.
func inLists(values []int64, do func(in string, args []any) error) error {
	for chunk := range slices.Chunk(values, 256) {
		if err := do(list(chunk)); err != nil {
			return err
		}
	}
	return nil
}

// list is a list of parameters, of which there are few lengths, and their values.
func list(values []int64) (string, []any) {
	size := 1
	for size < len(values) {
		size *= 4
	}
	args := make([]any, size)
	for i := range args {
		if args[i] = int64(-1); i < len(values) {
			args[i] = values[i]
		}
	}
	return "(" + strings.Repeat("?, ", size-1) + "?)", args
}

// scanDeadLetter scans a dead letter from s.tenant, s.policy, s.id, d.seen, d.body, and what stands behind them.
func scanDeadLetter(scan scanner, of *journal.Subject, d *journal.DeadLetter, behind ...any) error {
	var seen int64
	var text string
	if err := scan(append([]any{&of.Tenant, &of.Policy, &of.ID, &seen, &text}, behind...)...); err != nil {
		return err
	}
	read, err := readLetter(text, seen)
	if err == nil {
		*d = *read
	}
	return err
}

// keyedLetters reads dead letters d.
func (s *snapshot) keyedLetters(clause string, args ...any) ([]journal.KeyedDeadLetter, error) {
	const query = "SELECT s.tenant, s.policy, s.id, d.seen, d.body, d.subject FROM dead_letters d JOIN subjects s ON " +
		"s.key = d.subject "
	return collect(s, query+clause, args, func(scan scanner, k *journal.KeyedDeadLetter) error {
		return scanDeadLetter(scan, &k.Subject, &k.DeadLetter, &k.Key)
	})
}

// letterItems are dead letters as people see them, in the order that they were found in.
func (s *snapshot) letterItems(found []letter) ([]deadletter.Item, error) {
	const query = `SELECT s.tenant, s.policy, s.id, d.seen, d.body, r.body
		FROM dead_letters d JOIN subjects s ON s.key = d.subject
		LEFT JOIN records r ON r.record = d.record AND r.kind = 'attempt' WHERE d.record IN `
	items := map[int64]deadletter.Item{}
	err := inLists(recordsOf(found), func(in string, args []any) error {
		return s.each(query+in, func(scan scanner) error {
			i, err := readItem(scan)
			items[i.DeadLetter.Record] = i
			return err
		}, args...)
	})
	if err != nil {
		return nil, err
	}
	all := make([]deadletter.Item, 0, len(found))
	for i := range found {
		if item, there := items[found[i].Record]; there {
			all = append(all, item)
		}
	}
	return all, nil
}

// readItem reads a dead letter, and of its attempt what people see; that may be purged.
func readItem(scan scanner) (i deadletter.Item, err error) {
	var attempt *string
	if err := scanDeadLetter(scan, &i.Subject, &i.DeadLetter, &attempt); err != nil || attempt == nil {
		return i, err
	}
	var a journal.Attempt
	if err = json.Unmarshal([]byte(*attempt), &a); err != nil {
		err = fmt.Errorf("%w attempt: %w", journal.ErrUnreadable, err)
	}
	i.Error, i.Classification, i.MatchedRule = a.Error, a.Decision.ErrorClassification, a.Decision.MatchedRule
	return i, err
}

// DeadLetter implements deadletter.Reader.
func (r *Reader) DeadLetter(ctx context.Context, id string) (item deadletter.Item, found bool, err error) {
	err = r.read(ctx, "read a dead letter", func(s *snapshot) error {
		var l letter
		if found, err = s.one("SELECT record FROM dead_letters WHERE id = ?", []any{id}, &l.Record); err != nil || !found {
			return err
		}
		all, err := s.letterItems([]letter{l})
		if found = len(all) > 0; found {
			item = all[0]
		}
		return err
	})
	return item, found && err == nil, err
}

// DeadLettersAsked implements deadletter.Reader.
func (r *Reader) DeadLettersAsked(ctx context.Context, teams []decision.Team, limit int) ([]deadletter.Item, error) {
	w := &where{}
	if w.and("(body ->> 'asked') IS NOT NULL"); len(teams) > 0 {
		oneOf(w, "team", teams)
	}
	return reading(ctx, r, "read the dead letters that are asked about", func(s *snapshot) ([]deadletter.Item, error) {
		query := "SELECT record FROM dead_letters WHERE " + strings.Join(w.conditions, " AND ") + " ORDER BY record LIMIT ?"
		found, err := collect(s, query, append(w.args, limit),
			func(scan scanner, l *letter) error { return scan(&l.Record) })
		if err != nil {
			return nil, err
		}
		return s.letterItems(found)
	})
}

// DeadLetterCounts implements deadletter.Reader.
func (r *Reader) DeadLetterCounts(ctx context.Context) ([]deadletter.Count, error) {
	const query = `SELECT policy, state, team, reason, CAST(sum(n) AS BIGINT), CAST(sum(cents) AS BIGINT),
			COALESCE((SELECT d.at FROM dead_letters d WHERE c.state = 'open' AND d.state = 'open' AND d.policy = c.policy
				AND d.team = c.team AND d.reason = c.reason ORDER BY d.record LIMIT 1), 0)
		FROM dead_letter_counts c WHERE n > 0 GROUP BY policy, state, team, reason ORDER BY policy, state, team, reason`
	return reading(ctx, r, "count the dead letters", func(s *snapshot) ([]deadletter.Count, error) {
		return collect(s, query, nil, func(scan scanner, c *deadletter.Count) error {
			return scan(&c.Policy, &c.State, &c.Team, &c.Reason, &c.N, &c.Cents, milli{&c.Oldest})
		})
	})
}

// ofKinds are the open dead letters d of the kinds c, which lead to them in the indexes of kinds.
const ofKinds = `(SELECT DISTINCT policy, team, reason FROM dead_letter_counts WHERE state = 'open' AND n > 0) AS c
	CROSS JOIN dead_letters d
	WHERE d.state = 'open' AND d.policy = c.policy AND d.team = c.team AND d.reason = c.reason`

// DeadLettersDue implements deadletter.Reader. It looks at no more than what is due, by the index of deadlines, or at what
// has the context.
func (r *Reader) DeadLettersDue(ctx context.Context, of string, since, until time.Time) ([]journal.CauseCount, error) {
	from, args := ofKinds, []any(nil)
	if of != "" {
		from, args = whoArePicked(&journal.DeadLetterFilter{Context: of})
		from += " AS c CROSS JOIN dead_letters d WHERE d.state = 'open' AND d.record = c.picked"
	}
	if !until.IsZero() {
		from += " AND d.deadline >= ? AND d.deadline < ?"
		args = append(args, journal.CeilMilli(since), journal.CeilMilli(until))
	}
	return reading(ctx, r, "sum up what is due", func(s *snapshot) ([]journal.CauseCount, error) {
		return collect(s, "SELECT d.fingerprint, d.policy, d.team, d.reason, count(*), CAST(sum(d.cents) AS BIGINT) FROM "+
			from+" GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4", args, func(scan scanner, c *journal.CauseCount) error {
			c.State = journal.DeadLetterOpen
			return scan(&c.Fingerprint, &c.Policy, &c.Team, &c.Reason, &c.N, &c.Cents)
		})
	})
}
