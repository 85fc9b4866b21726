package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"retry-worker/internal/journal"
)

// choice is what a filter lets through of the open dead letters with a record of at most through.
type choice struct {
	*search
	through int64
	// causes and subjects are those that the query finds: fingerprints of causes, and keys of subjects where they are few.
	causes   map[string]bool
	subjects map[int64]bool
	wide     bool
}

func newChoice(ctx context.Context, tx *snapshot, f journal.DeadLetterFilter, through int64) (*choice, error) {
	f.State = ""
	p, err := f.Plan("", 1)
	if err != nil {
		return nil, err
	}
	s, err := newSearch(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	c := &choice{search: s, through: min(through, s.before-1), causes: map[string]bool{}, subjects: map[int64]bool{}}
	if !p.Searches {
		return c, nil
	}
	return c, firstError(c.findCauses, c.findSubjects)
}

// findCauses finds all causes that hold the words.
func (c *choice) findCauses() error {
	if len(c.plan.Words) == 0 {
		return nil
	}
	condition, args := c.words(nil)
	return scan(c.ctx, c.tx, "SELECT id FROM fingerprints WHERE true"+condition, func(v []driver.Value) error {
		id, err := as[string](v[0])
		c.causes[id] = true
		return err
	}, args...)
}

// findSubjects finds the subjects that begin as is searched for, where they are few.
func (c *choice) findSubjects() error {
	for _, prefix := range c.plan.Prefixes {
		few, err := c.isRare(prefix)
		if err != nil || !few {
			c.wide = true
			return err
		}
		condition, args := within(prefix)
		err = scan(c.ctx, c.tx, "SELECT key FROM subjects WHERE "+condition, func(v []driver.Value) error {
			key, err := as[int64](v[0])
			c.subjects[key] = true
			return err
		}, args...)
		if err != nil {
			return err
		}
	}
	return nil
}

// columns behind the record that tell whether the query finds a dead letter.
func (c *choice) columns() string {
	switch {
	case !c.plan.Searches:
		return "id, subject"
	case c.wide:
		return "id, subject, fingerprint, (SELECT s.id FROM subjects s WHERE s.key = dead_letters.subject)"
	default:
		return "id, subject, fingerprint"
	}
}

// finds tells whether the query finds the dead letter with those columns.
func (c *choice) finds(v []driver.Value) (bool, error) {
	if !c.plan.Searches {
		return true, nil
	}
	var id, cause, name string
	var subject int64
	err := errors.Join(into(&id, v[0]), into(&subject, v[1]), into(&cause, v[2]))
	if err != nil || id == c.plan.ID || c.causes[cause] || !c.wide {
		return id == c.plan.ID || c.causes[cause] || c.subjects[subject], err
	}
	if v[3] == nil {
		return false, nil
	}
	err = into(&name, v[3])
	for _, prefix := range c.plan.Prefixes {
		if strings.HasPrefix(name, prefix) {
			return true, err
		}
	}
	return false, err
}

// kinds of dead letters that the filter lets through: the seek that finds each, and its arguments.
func (c *choice) kinds() (seek string, keys [][]any, err error) {
	f := &c.plan.Filter
	if f.Fingerprint != "" {
		keys, err = c.keys(findKindsOf, append(c.filter(), f.Fingerprint)...)
		return "dead_letters_by_cause WHERE fingerprint = ? AND state = ? AND team = ? AND reason = ?", keys, err
	}
	keys, err = c.keys(findKinds, c.filter()...)
	return "dead_letters_by_kind WHERE state = ? AND policy = ? AND team = ? AND reason = ?", keys, err
}

// following are the first that come behind the record after, in order, at most limit.
func (c *choice) following(after int64, limit int) ([]letter, error) {
	after = max(after, c.above)
	if c.plan.Searches {
		return c.searched(after, limit)
	}
	seek, keys, err := c.kinds()
	if err != nil {
		return nil, err
	}
	found := &newest{limit: limit} // by the records' negatives: the oldest
	query := "SELECT -record, id, subject FROM dead_letters INDEXED BY " + seek + " AND record > ? AND record <= ?" + c.age + " ORDER BY record LIMIT ?"
	err = prepare(c.ctx, c.tx, query, func(ask asking) error {
		for _, key := range keys {
			through := c.through
			if floor := found.floor(); floor > math.MinInt64 {
				through = min(through, -floor)
			}
			if err := ask(found.take, append(key, after, through, limit)...); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range found.rows {
		found.rows[i].record = -found.rows[i].record
	}
	return found.rows, err
}

// errEnough ends a scan.
var errEnough = errors.New("enough was found")

// searched is following where there is a query: it looks through what is open from there on.
func (c *choice) searched(after int64, limit int) (all []letter, err error) {
	f := &c.plan.Filter
	query := "SELECT record, " + c.columns() + ` FROM dead_letters INDEXED BY dead_letters_by_state WHERE state = 'open' AND record > ? AND record <= ?
		AND ? IN ('', policy) AND ? IN ('', team) AND ? IN ('', reason) AND ? IN ('', fingerprint)` + c.age + " ORDER BY record"
	err = scan(c.ctx, c.tx, query, func(v []driver.Value) error {
		found, err := c.finds(v[1:])
		if err != nil || !found {
			return err
		}
		var l letter
		err = errors.Join(into(&l.record, v[0]), into(&l.id, v[1]), into(&l.subject, v[2]))
		if all = append(all, l); err == nil && len(all) == limit {
			err = errEnough
		}
		return err
	}, after, c.through, f.Policy, string(f.Team), string(f.Reason), f.Fingerprint)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return all, err
}

// What becomes of a dead letter, bit by bit.
const (
	fateAtLimit = 1 << iota
	fateWaits
	fateGone
	fateBusy
)

// fate is the expression for it.
const fate = `(retry_count >= max_retries) * 1 + (review_job_key <> 0 AND delivery <> 'nobody') * 2 + (delivery = 'nobody') * 4 + %s * 8`

// tallies sums up what is chosen.
func (c *choice) tallies(recent time.Time) ([]journal.DeadLetterTally, error) {
	occupied := "0"
	err := scan(c.ctx, c.tx, "SELECT 1 FROM bulk_runs WHERE state IN "+unfinished+" LIMIT 1", func([]driver.Value) error {
		occupied = strings.ReplaceAll(isBusy, "d.id", "dead_letters.id")
		return nil
	})
	if err != nil {
		return nil, err
	}
	seek, keys, err := c.kinds()
	if err != nil {
		return nil, err
	}
	query := "SELECT record, created_at, " + fmt.Sprintf(fate, occupied) + ", policy"
	if c.plan.Searches {
		query += ", " + c.columns()
	}
	query += " FROM dead_letters INDEXED BY " + seek + " AND record > ? AND record <= ?" + c.age
	sums := journal.DeadLetterSums{}
	err = prepare(c.ctx, c.tx, query, func(ask asking) error {
		for _, key := range keys {
			if err := ask(c.add(sums, key, recent), append(key, c.above, c.through)...); err != nil {
				return err
			}
		}
		return nil
	})
	return sums.Tallies(), err
}

// add takes dead letters of one kind, the last parts of whose key are team and reason.
func (c *choice) add(sums journal.DeadLetterSums, key []any, recent time.Time) func(v []driver.Value) error {
	t := journal.DeadLetterTally{}
	since := int64(math.MinInt64)
	if !recent.IsZero() {
		since = ceiling(recent)
	}
	return func(v []driver.Value) error {
		if found, err := c.finds(v[4:]); err != nil || !found {
			return err
		}
		var record, created, bits int64
		err := errors.Join(into(&record, v[0]), into(&created, v[1]), into(&bits, v[2]), into(&t.Policy, v[3]),
			into((*string)(&t.Team), key[2]), into((*string)(&t.Reason), key[3]))
		t.AtLimit, t.Waits, t.Gone, t.Busy, t.Recent = bits&fateAtLimit != 0, bits&fateWaits != 0, bits&fateGone != 0, bits&fateBusy != 0, created >= since
		born := journal.FromMilli(created)
		sums.Add(t, 1, born, born, record)
		return err
	}
}
