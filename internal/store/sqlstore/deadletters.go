package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// letter is where a dead letter stands in a list.
type letter = journal.Place

const letterColumns = "d.deadline, d.cents, d.record"

func scanLetter(scan scanner, l *letter) error { return scan(&l.Deadline, &l.Cents, &l.Record) }

// finds is what dead letters d of subjects s have that a query finds, whatever their state. Of a list of causes ids and
// subjects are not searched for.
func (s *snapshot) finds(p *deadletter.Query, causes bool) (w where) {
	w.fits(&p.Filter)
	w.picks(&p.Filter)
	if p.Before != math.MaxInt64 {
		w.and("d.record < ?", p.Before)
	}
	if p.Aged() {
		w.and("d.at >= ? AND d.at < ?", p.Since, p.Until)
	}
	if !p.Searches {
		return w
	}
	any := where{}
	if !causes {
		any.and("d.id = ?", p.ID)
		for _, prefix := range p.Prefixes {
			if end, ok := deadletter.AfterPrefix(prefix); ok {
				any.and("s.id >= ? AND s.id < ?", prefix, end)
			} else {
				any.and("s.id >= ?", prefix)
			}
		}
	}
	if len(p.Words) > 0 {
		var of where
		for _, word := range p.Words {
			of.and("("+s.Contains+"(pattern, ?) > 0 OR "+s.Contains+"(reason, ?) > 0 OR "+s.Contains+"(reason, ?) > 0)",
				word, word, strings.ToUpper(word))
		}
		any.and("d.fingerprint IN (SELECT id FROM fingerprints"+of.String()+")", of.args...)
	}
	w.and("("+strings.Join(any.conditions, " OR ")+")", any.args...)
	return w
}

// letters finds the first dead letters that a query finds, in an order, from behind a place (nil: from the first on).
func (s *snapshot) letters(p *deadletter.Query, sort string, after *journal.Place, limit int) (all []letter, err error) {
	order, behind := orderBy(sort, after)
	for _, state := range p.States { // each is a stretch of an index in that order
		w := where{conditions: []string{"d.state = ?"}, args: []any{string(state)}}
		w.add(s.finds(p, false))
		w.add(behind)
		some, err := collect(s, "SELECT "+letterColumns+" FROM dead_letters d JOIN subjects s ON s.key = d.subject"+w.String()+
			" ORDER BY "+order+" LIMIT ?", append(w.args, limit), scanLetter)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	slices.SortFunc(all, func(a, b letter) int { return deadletter.Compare(sort, &a, &b) })
	return all[:min(len(all), limit)], nil
}

// orderBy returns the columns of an order, and what rows behind a place have.
func orderBy(sort string, after *journal.Place) (order string, behind where) {
	keys := deadletter.Keys(sort)
	columns, alternatives := make([]string, len(keys)), make([]string, len(keys))
	same := ""
	var args, sameArgs []any
	for i, k := range keys {
		column, operator := "d."+k.Column, " > ?"
		if columns[i] = column; k.Descending {
			columns[i], operator = column+" DESC", " < ?"
		}
		if after == nil {
			continue
		}
		if i == 0 && len(keys) > 1 { // where the index begins
			behind.and(column+operator[:2]+"= ?", k.Of(after))
		}
		alternatives[i] = same + column + operator
		args = append(append(args, sameArgs...), k.Of(after))
		same, sameArgs = same+column+" = ? AND ", append(sameArgs, k.Of(after))
	}
	if after != nil {
		behind.and("("+strings.Join(alternatives, " OR ")+")", args...)
	}
	return strings.Join(columns, ", "), behind
}

// DeadLetterPage implements deadletter.Reader.
func (r *Reader) DeadLetterPage(
	ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int,
) (all []deadletter.Item, next string, err error) {
	p, err := deadletter.NewQuery(f, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	err = r.read(ctx, "list dead letters", func(s *snapshot) error {
		found, err := s.letters(p, p.Filter.Sort, p.After, p.Limit+1)
		if err != nil {
			return err
		}
		if next = ""; len(found) > p.Limit {
			found = found[:p.Limit]
			next = p.Cursor(found[p.Limit-1])
		}
		all, err = s.letterItems(found)
		return err
	})
	return all, next, err
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
	records := make([]int64, len(found))
	for i := range found {
		records[i] = found[i].Record
	}
	err := inLists(records, func(in string, args []any) error {
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
	const query = `SELECT policy, state, team, reason, count(*), CAST(sum(cents) AS BIGINT),
			CASE state WHEN 'open' THEN min(at) ELSE 0 END
		FROM dead_letters GROUP BY policy, state, team, reason ORDER BY policy, state, team, reason`
	return reading(ctx, r, "count the dead letters", func(s *snapshot) ([]deadletter.Count, error) {
		return collect(s, query, nil, func(scan scanner, c *deadletter.Count) error {
			return scan(&c.Policy, &c.State, &c.Team, &c.Reason, &c.N, &c.Cents, milli{&c.Oldest})
		})
	})
}

// DeadLettersDue implements deadletter.Reader.
func (r *Reader) DeadLettersDue(ctx context.Context, of string, since, until time.Time) ([]journal.CauseCount, error) {
	w := where{conditions: []string{"d.state = 'open'"}}
	w.picks(&journal.DeadLetterFilter{Context: of})
	if !until.IsZero() {
		w.and("d.deadline >= ? AND d.deadline < ?", journal.CeilMilli(since), journal.CeilMilli(until))
	}
	return reading(ctx, r, "sum up what is due", func(s *snapshot) ([]journal.CauseCount, error) {
		return collect(s, "SELECT d.fingerprint, d.policy, d.team, d.reason, count(*), CAST(sum(d.cents) AS BIGINT) "+
			"FROM dead_letters d"+w.String()+" GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4", w.args,
			func(scan scanner, c *journal.CauseCount) error {
				c.State = journal.DeadLetterOpen
				return scan(&c.Fingerprint, &c.Policy, &c.Team, &c.Reason, &c.N, &c.Cents)
			})
	})
}
