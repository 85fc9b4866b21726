package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"
)

// LastRecordBefore implements journal.Purger.
func (db *DB) LastRecordBefore(ctx context.Context, t time.Time) (last int64, err error) {
	err = db.read(ctx, "find the last record before an instant", func(tx *snapshot) error {
		err := tx.QueryRowContext(ctx, findSince, ceiling(t)).Scan(&last)
		if errors.Is(err, sql.ErrNoRows) {
			return tx.QueryRowContext(ctx, "SELECT record FROM ledger_head WHERE one = 1").Scan(&last)
		}
		last--
		return err
	})
	return last, err
}

// The statements of a purge: ?1 is the record up to which all are purged, ?2 that up to which they shall be.
const (
	findVictims = `SELECT count(*), max(record) FROM (
		SELECT record FROM attempts WHERE record > ?1 AND record <= ?2 UNION ALL
		SELECT record FROM entries WHERE record > ?1 AND record <= ?2 ORDER BY record LIMIT ?3)`
	findAffected = `SELECT json_group_array(key) FROM (
		SELECT subject AS key FROM attempts WHERE record > ?1 AND record <= ?2 UNION
		SELECT s.key FROM entries e CROSS JOIN subjects s ON s.id = e.id AND s.policy = e.policy AND s.tenant = e.tenant
		WHERE e.record > ?1 AND e.record <= ?2)`
	purgeAttempts = "DELETE FROM attempts WHERE record > ?1 AND record <= ?2"
	purgeEntries  = "DELETE FROM entries WHERE record > ?1 AND record <= ?2"
	purgeAnswered = "DELETE FROM answered WHERE first <= ?1 AND last <= ?1"
	// purgeRuns leaves runs that have not ended, and those that a dead letter is there of.
	purgeRuns = `DELETE FROM bulk_runs WHERE state IN ('cancelled', 'done') AND begun <= ?1
		AND NOT EXISTS (SELECT 1 FROM bulk_items WHERE run = bulk_runs.id)`
	movePurged = "UPDATE ledger_head SET purged = ? WHERE one = 1"
)

// affected are the subjects (?1, their keys as JSON) of which a record was purged: the first episode that still
// has an attempt, and whether an entry names it still.
const affected = `WITH own (key, first, told) AS MATERIALIZED (
	SELECT s.key, (SELECT min(episode) FROM attempts WHERE subject = s.key),
		EXISTS (SELECT 1 FROM entries WHERE id <> '' AND id = s.id AND policy = s.policy AND tenant = s.tenant)
	FROM json_each(?1) j CROSS JOIN subjects s ON s.key = j.value)
`

// What else is purged of the subjects affected, in this order; ?2 is the last record that was purged.
const (
	purgeDeadLetters = affected + `DELETE FROM dead_letters WHERE id IN (SELECT d.id FROM own CROSS JOIN dead_letters d ON d.subject = own.key
		WHERE own.first IS NULL AND NOT own.told OR d.record <= ?2 AND NOT EXISTS (SELECT 1 FROM episodes e
			WHERE e.subject = own.key AND e.dead_letter = d.id AND e.number >= coalesce(own.first, e.number)))`
	purgeEpisodes = affected + `DELETE FROM episodes WHERE (subject, number) IN (SELECT e.subject, e.number
		FROM own CROSS JOIN episodes e ON e.subject = own.key
		WHERE CASE WHEN own.first IS NULL THEN NOT own.told ELSE e.number < own.first END)`
	purgeSubjects = affected + "DELETE FROM subjects WHERE key IN (SELECT key FROM own WHERE first IS NULL AND NOT told)"
)

// Purge implements journal.Purger. A subject goes with its last record; before that, the episodes before the
// first that still has an attempt, and the dead letters of purged records that no episode names.
func (db *DB) Purge(ctx context.Context, through int64, limit int) (n int, err error) {
	err = db.write(ctx, func(c *connection) (bool, error) {
		if n, err = c.purge(through, max(limit, 0)); err != nil {
			return false, failed("purge records", err)
		}
		return n > 0, nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// purge deletes in one transaction; it returns how many records that were.
func (c *connection) purge(through int64, limit int) (int, error) {
	var purged, n, last int64
	row, err := c.row(lastPurged)
	if err == nil && row == nil {
		err = errNoHead
	}
	if err == nil {
		err = into(&purged, row[0])
	}
	if err == nil {
		row, err = c.row(findVictims, purged, through, int64(limit))
	}
	if err == nil {
		err = into(&n, row[0])
	}
	if err != nil || n == 0 {
		return 0, err
	}
	if err := into(&last, row[1]); err != nil {
		return 0, err
	}
	row, err = c.row(findAffected, purged, last)
	if err != nil {
		return 0, err
	}
	return int(n), c.forget(purged, last, row[0])
}

// forget deletes the records behind purged up to last, and what is left over of the subjects with keys of.
func (c *connection) forget(purged, last int64, of driver.Value) error {
	return firstError(
		func() error { return c.exec(purgeAttempts, purged, last) },
		func() error { return c.exec(purgeEntries, purged, last) },
		func() error { return c.exec(purgeAnswered, last) },
		func() error { return c.exec(purgeDeadLetters, of, last) },
		func() error { return c.exec(purgeEpisodes, of) },
		func() error { return c.exec(purgeSubjects, of) },
		func() error { return c.exec(purgeRuns, last) },
		func() error { return c.exec(movePurged, last) })
}
