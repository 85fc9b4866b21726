package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"retry-worker/internal/journal"
)

var (
	selectRuns = "SELECT " + bulkRuns.names("r.") +
		", (SELECT json_group_object(outcome, n) FROM bulk_counts WHERE run = r.id AND n <> 0) FROM bulk_runs r "
	loadRun = selectRuns + "WHERE r.id = ?"
)

// readRun reads a row of selectRuns.
func readRun(values []driver.Value) (journal.BulkRun, error) {
	var row bulkRow
	var counts string
	err := bulkRuns.read(&row, values[:len(bulkRuns.columns)])
	err = errors.Join(err, into(&counts, values[len(bulkRuns.columns)]))
	r := row.BulkRun
	if err == nil {
		err = json.Unmarshal([]byte(counts), &r.Counts)
	}
	for _, n := range r.Counts {
		r.Total += n
	}
	return r, err
}

func (r *Reader) bulkRuns(ctx context.Context, doing, where string, args ...any) (all []journal.BulkRun, err error) {
	err = r.read(ctx, doing, func(tx *snapshot) error {
		all = nil
		return scan(ctx, tx, selectRuns+where, func(values []driver.Value) error {
			run, err := readRun(values)
			all = append(all, run)
			return err
		}, args...)
	})
	return all, err
}

// BulkRun implements journal.BulkStore.
func (r *Reader) BulkRun(ctx context.Context, id string) (journal.BulkRun, bool, error) {
	all, err := r.bulkRuns(ctx, "read a bulk run", "WHERE r.id = ?", id)
	if err != nil || len(all) == 0 {
		return journal.BulkRun{}, false, err
	}
	return all[0], true, nil
}

// BulkRuns implements journal.BulkStore.
func (r *Reader) BulkRuns(ctx context.Context, cursor string, limit int) (all []journal.BulkRun, next string, err error) {
	after, err := journal.AfterBulkRun(cursor)
	if err != nil {
		return nil, "", err
	}
	limit = min(max(limit, 1), journal.MaxDeadLetterPage)
	all, err = r.bulkRuns(ctx, "list bulk runs", "WHERE ?1 = '' OR r.id < ?1 ORDER BY r.id DESC LIMIT ?2", after, limit+1)
	all, next = journal.BulkRunPage(all, limit)
	return all, next, err
}

// ActiveBulkRuns implements journal.BulkStore.
func (r *Reader) ActiveBulkRuns(ctx context.Context) ([]journal.BulkRun, error) {
	return r.bulkRuns(ctx, "list the bulk runs that have not ended", "WHERE r.state IN "+unfinished+" ORDER BY r.id")
}

// unfinished are the states of runs that have not ended.
const unfinished = "('preparing', 'running', 'paused')"

// BulkItems implements journal.BulkStore.
func (r *Reader) BulkItems(ctx context.Context, run string, outcome journal.BulkOutcome, after int64, limit int) (all []journal.BulkItem, err error) {
	const head = `SELECT i.number, i.dead_letter, s.tenant, s.policy, s.id, i.outcome, i.code, i.changed_at, i.decided_at
		FROM bulk_items i %s CROSS JOIN subjects s ON s.key = i.subject WHERE i.run = ? AND i.number > ? %s ORDER BY i.number LIMIT ?`
	query, args := fmt.Sprintf(head, "", ""), []any{run, after}
	if outcome != "" {
		query, args = fmt.Sprintf(head, "INDEXED BY bulk_items_by_outcome", "AND i.outcome = ?"), append(args, string(outcome))
	}
	err = r.read(ctx, "list a bulk run's dead letters", func(tx *snapshot) error {
		all = nil
		return scan(ctx, tx, query, func(v []driver.Value) error {
			i, err := readBulkItem(v)
			all = append(all, i)
			return err
		}, append(args, max(limit, 0))...)
	})
	return all, err
}

func readBulkItem(v []driver.Value) (journal.BulkItem, error) {
	var i journal.BulkItem
	var outcome string
	var changed, decided int64
	err := errors.Join(into(&i.Number, v[0]), into(&i.DeadLetter, v[1]), into(&i.Subject.Tenant, v[2]), into(&i.Subject.Policy, v[3]),
		into(&i.Subject.ID, v[4]), into(&outcome, v[5]), into(&i.Code, v[6]), into(&changed, v[7]), into(&decided, v[8]))
	i.Outcome, i.ChangedAt, i.DecidedAt = journal.BulkOutcome(outcome), journal.FromMilli(changed), journal.FromMilli(decided)
	return i, err
}

const (
	refuseItem = "UPDATE bulk_items SET outcome = 'refused', code = ?, changed_at = ? WHERE run = ? AND number = ? AND outcome = 'planned'"
	holdRun    = "UPDATE bulk_runs SET hold = ?1, held_at = ?2 WHERE id = ?3 AND state = 'running' AND hold <> ?1"
)

// RefuseBulkItem implements journal.BulkStore.
func (db *DB) RefuseBulkItem(ctx context.Context, run string, number int64, code string, at time.Time) error {
	return db.write(ctx, func(c *connection) (bool, error) {
		return true, asFailed("refuse a dead letter of a bulk run", c.exec(refuseItem, code, journal.Milli(at), run, number))
	})
}

// HoldBulkRun implements journal.BulkStore.
func (db *DB) HoldBulkRun(ctx context.Context, run, why string, at time.Time) error {
	held := journal.Milli(at)
	if why == "" {
		held = 0
	}
	return db.write(ctx, func(c *connection) (bool, error) {
		return true, asFailed("hold a bulk run", c.exec(holdRun, why, held, run))
	})
}
