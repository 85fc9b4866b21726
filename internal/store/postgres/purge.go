package postgres

import (
	"context"
	"slices"
	"time"

	"retry-worker/internal/journal"
)

var _ journal.Purger = (*DB)(nil)

// LastRecordBefore implements journal.Purger.
func (d *DB) LastRecordBefore(ctx context.Context, t time.Time) (last int64, err error) {
	err = query(ctx, d.pool, func(v *values) { v.number("record", &last) }, `SELECT coalesce(
		(SELECT first - 1 FROM ledger WHERE latest >= $1::bigint ORDER BY latest, number LIMIT 1),
		(SELECT record FROM ledger_head WHERE one = 1), 0)`, ceiling(t))
	if err != nil {
		return 0, storeError("find the last record before an instant", err, false)
	}
	return last, nil
}

// purgeRecordsText deletes records up to $1, at most $2. It tells how many, which was the last, and the keys of
// the subjects they belong to.
const purgeRecordsText = `WITH head AS MATERIALIZED (SELECT purged FROM ledger_head WHERE one = 1),
gone AS MATERIALIZED (SELECT count(*) AS records, coalesce(max(record), 0) AS last FROM (
	(SELECT record FROM attempts WHERE record > (SELECT purged FROM head) AND record <= $1::bigint ORDER BY record LIMIT $2::bigint)
	UNION ALL
	(SELECT record FROM entries WHERE record > (SELECT purged FROM head) AND record <= $1::bigint ORDER BY record LIMIT $2::bigint)
	ORDER BY record LIMIT $2::bigint) r),
a AS (DELETE FROM attempts WHERE record > (SELECT purged FROM head) AND record <= (SELECT last FROM gone) RETURNING subject),
e AS (DELETE FROM entries WHERE record > (SELECT purged FROM head) AND record <= (SELECT last FROM gone) RETURNING tenant, policy, id),
of AS (SELECT subject AS key FROM a UNION
	SELECT s.key FROM e JOIN subjects s ON s.id = e.id AND s.policy = e.policy AND s.tenant = e.tenant)
SELECT records, last, (SELECT coalesce(array_agg(key), '{}') FROM of) FROM gone`

// purgeRestText deletes what is left over of the subjects with the keys $1, once the records up to $2 are gone:
// a subject with its last record; before that, the episodes before the first that still has an attempt, and the
// dead letters of purged records that no episode names.
const purgeRestText = `WITH own AS MATERIALIZED (
	SELECT s.key, (SELECT min(episode) FROM attempts WHERE subject = s.key) AS first, EXISTS (SELECT FROM entries
		WHERE id <> '' AND id = s.id AND policy = s.policy AND tenant = s.tenant) AS told
	FROM unnest($1::bigint[]) AS k (key) JOIN subjects s ON s.key = k.key),
s AS (DELETE FROM subjects USING own WHERE subjects.key = own.key AND own.first IS NULL AND NOT own.told),
e AS (DELETE FROM episodes USING own WHERE episodes.subject = own.key
	AND CASE WHEN own.first IS NULL THEN NOT own.told ELSE episodes.number < own.first END),
d AS (DELETE FROM dead_letters d USING own WHERE d.subject = own.key AND (own.first IS NULL AND NOT own.told
	OR d.record <= $2::bigint AND NOT EXISTS (SELECT FROM episodes e
		WHERE e.subject = own.key AND e.dead_letter = d.id AND e.number >= coalesce(own.first, e.number)))),
r AS (DELETE FROM answered WHERE first <= $2::bigint AND last <= $2::bigint)
UPDATE ledger_head SET purged = $2::bigint WHERE one = 1`

// purgeRunsText leaves bulk runs that have not ended, and those that a dead letter is there of. It must come after purgeRest,
// whose dead letters take their items with them.
const purgeRunsText = `DELETE FROM bulk_runs r WHERE r.state IN ('cancelled', 'done') AND r.begun <= $1::bigint
	AND NOT EXISTS (SELECT FROM bulk_items i WHERE i.run = r.id)`

// Purge implements journal.Purger. The records are deleted beside those who write; the head is taken, as they
// take it, for what is left over of their subjects only: one of them may be told of again meanwhile.
func (d *DB) Purge(ctx context.Context, through int64, limit int) (n int, err error) {
	err = d.onWriter(ctx, "purge records", func(t *transaction) error {
		t.send(beginIt)
		t.send(lockPurge)
		t.send(purgeRecords, scalar(through), scalar(int64(max(limit, 0))))
		var last int64
		var keys []byte
		err := t.await(func() error {
			if err := t.done(); err != nil {
				return err
			}
			if err := t.done(); err != nil {
				return err
			}
			return t.rows(func(v *values) { n, last, keys = int(v.integer("records")), v.integer("last"), slices.Clone(v.raw[2]) })
		})
		if err != nil || n == 0 {
			return err
		}
		t.send(takeHead)
		t.send(purgeRest, keys, scalar(last))
		t.send(purgeRuns, scalar(last))
		t.send(commitIt)
		t.committing = true
		return t.await(t.settle)
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
