package postgres

import (
	"context"
	"encoding/json"
	"time"

	"retry-worker/internal/journal"
)

var _ journal.BulkStore = (*DB)(nil)

// bulkRow is a bulk run, and the last record of the commit it was begun in.
type bulkRow struct {
	journal.BulkRun
	begun int64
}

var bulkRunsTable = tableOf("bulk_runs", bulkRunFields, zero[bulkRow])

// bulkKept are the columns that stay as a run was begun.
var bulkKept = []string{"action", "filter_policy", "filter_team", "filter_reason", "filter_fingerprint", "filter_since", "filter_until",
	"filter_query", "through", "reason", "begun_by", "force", "fresh", "now", "per_minute", "created_at", "begun"}

func bulkRunFields(f fields, r *bulkRow) {
	f.text("id", &r.ID)
	f.text("state", (*string)(&r.State))
	f.text("action", (*string)(&r.Action))
	f.text("filter_policy", &r.Filter.Policy)
	f.text("filter_team", (*string)(&r.Filter.Team))
	f.text("filter_reason", (*string)(&r.Filter.Reason))
	f.text("filter_fingerprint", &r.Filter.Fingerprint)
	f.instant("filter_since", &r.Filter.Since)
	f.instant("filter_until", &r.Filter.Until)
	f.text("filter_query", &r.Filter.Query)
	f.number("through", &r.Through)
	f.text("reason", &r.Reason)
	f.text("begun_by", &r.By)
	f.truth("force", &r.Force)
	f.truth("fresh", &r.Fresh)
	f.truth("now", &r.Now)
	f.number("per_minute", &r.PerMinute)
	f.text("hold", &r.Hold)
	f.instant("held_at", &r.HeldAt)
	f.text("changed_by", &r.ChangedBy)
	f.instant("changed_at", &r.ChangedAt)
	f.instant("created_at", &r.CreatedAt)
	f.instant("started_at", &r.StartedAt)
	f.instant("ended_at", &r.EndedAt)
	f.number("begun", &r.begun)
}

// begun are the bulk runs of a commit as rows.
func begun(head journal.Head, c *journal.Changes) []bulkRow {
	rows := make([]bulkRow, 0, len(c.Runs))
	for i := range c.Runs {
		rows = append(rows, bulkRow{c.Runs[i], head.Record + int64(len(c.Link.Digests))})
	}
	return last(rows, func(r *bulkRow) string { return r.ID })
}

// runsOf are the bulk runs that are asked for.
func runsOf(lookups []journal.Lookup) (ids []string) {
	for i := range lookups {
		if id := lookups[i].Run; id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

var selectRuns = "SELECT " + bulkRunsTable.columns("r") +
	", (SELECT json_object_agg(outcome, n)::text FROM bulk_counts WHERE run = r.id AND n <> 0) FROM bulk_runs r "

// readRun reads a row of selectRuns.
func readRun(v *values) journal.BulkRun {
	var row bulkRow
	var counts string
	bulkRunFields(v, &row)
	v.text("counts", &counts)
	r := row.BulkRun
	r.Counts = map[journal.BulkOutcome]int64{}
	if err := json.Unmarshal([]byte(counts), &r.Counts); err != nil && counts != "" && v.err == nil {
		v.err = err
	}
	for _, n := range r.Counts {
		r.Total += n
	}
	return r
}

// giveRun reads a row of loadRuns.
func giveRun(v *values, lookups []journal.Lookup, histories []journal.History) {
	r := readRun(v)
	for i := range lookups {
		if lookups[i].Run == r.ID {
			histories[i].Run = new(r)
		}
	}
}

func (r *Reader) bulkRuns(ctx context.Context, doing, where string, arguments ...any) (all []journal.BulkRun, err error) {
	err = query(ctx, r.pool, func(v *values) { all = append(all, readRun(v)) }, selectRuns+where, arguments...)
	if err != nil {
		return nil, storeError(doing, err, false)
	}
	return all, nil
}

// BulkRun implements journal.BulkStore.
func (r *Reader) BulkRun(ctx context.Context, id string) (journal.BulkRun, bool, error) {
	all, err := r.bulkRuns(ctx, "read a bulk run", "WHERE r.id = $1", id)
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
	all, err = r.bulkRuns(ctx, "list bulk runs", "WHERE $1::text = '' OR r.id < $1 ORDER BY r.id DESC LIMIT $2", after, limit+1)
	all, next = journal.BulkRunPage(all, limit)
	return all, next, err
}

// unfinished are the states of runs that have not ended.
const unfinished = "('preparing', 'running', 'paused')"

// ActiveBulkRuns implements journal.BulkStore.
func (r *Reader) ActiveBulkRuns(ctx context.Context) ([]journal.BulkRun, error) {
	return r.bulkRuns(ctx, "list the bulk runs that have not ended", "WHERE r.state IN "+unfinished+" ORDER BY r.id")
}

// BulkItems implements journal.BulkStore.
func (r *Reader) BulkItems(ctx context.Context, run string, outcome journal.BulkOutcome, after int64, limit int) (all []journal.BulkItem, err error) {
	var c clause
	where := "i.run = " + c.argument(run) + " AND i.number > " + c.argument(after)
	if outcome != "" {
		where += " AND i.outcome = " + c.argument(string(outcome))
	}
	err = query(ctx, r.pool, func(v *values) {
		var i journal.BulkItem
		v.number("number", &i.Number)
		v.text("dead_letter", &i.DeadLetter)
		tenancy(v, &i.Subject)
		v.text("outcome", (*string)(&i.Outcome))
		v.text("code", &i.Code)
		v.instant("changed_at", &i.ChangedAt)
		v.instant("decided_at", &i.DecidedAt)
		all = append(all, i)
	}, "SELECT i.number, i.dead_letter, s.tenant, s.policy, s.id, i.outcome, i.code, i.changed_at, i.decided_at"+
		" FROM (SELECT * FROM bulk_items i WHERE "+where+" ORDER BY i.number LIMIT "+c.argument(max(limit, 0))+") i"+
		" JOIN subjects s ON s.key = i.subject ORDER BY i.number", c.arguments...)
	if err != nil {
		return nil, storeError("list a bulk run's dead letters", err, false)
	}
	return all, nil
}

// RefuseBulkItem implements journal.BulkStore.
func (d *DB) RefuseBulkItem(ctx context.Context, run string, number int64, code string, at time.Time) error {
	return d.change(ctx, "refuse a dead letter of a bulk run", `UPDATE bulk_items SET outcome = 'refused', code = $1, changed_at = $2
		WHERE run = $3 AND number = $4 AND outcome = 'planned'`, code, journal.Milli(at), run, number)
}

// HoldBulkRun implements journal.BulkStore.
func (d *DB) HoldBulkRun(ctx context.Context, run, why string, at time.Time) error {
	held := journal.Milli(at)
	if why == "" {
		held = 0
	}
	return d.change(ctx, "hold a bulk run", "UPDATE bulk_runs SET hold = $1, held_at = $2 WHERE id = $3 AND state = 'running' AND hold <> $1",
		why, held, run)
}

// change runs one statement in a transaction of its own; doing it again is safe.
func (d *DB) change(ctx context.Context, doing, statement string, arguments ...any) error {
	if _, err := d.writer.Exec(ctx, statement, arguments...); err != nil {
		return storeError(doing, err, false)
	}
	return nil
}
