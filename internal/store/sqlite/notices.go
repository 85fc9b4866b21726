package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

var _ journal.NoticeStore = (*DB)(nil)

var noticeMarks = define(table[journal.NoticeMark]{name: "notice_marks", key: 3, upserts: true, columns: []column[journal.NoticeMark]{
	text("team", func(r *journal.NoticeMark) *decision.Team { return &r.Team }),
	text("channel", func(r *journal.NoticeMark) *string { return &r.Channel }),
	text("kind", func(r *journal.NoticeMark) *journal.NoticeKind { return &r.Kind }),
	number("record", func(r *journal.NoticeMark) *int64 { return &r.Record }),
	text("day", func(r *journal.NoticeMark) *string { return &r.Day }),
	instant("at", func(r *journal.NoticeMark) *time.Time { return &r.At }),
}})

// NoticeMarks implements journal.NoticeStore.
func (db *DB) NoticeMarks(ctx context.Context) (all []journal.NoticeMark, err error) {
	err = db.read(ctx, "read how far teams were told", func(tx *snapshot) error {
		all = nil
		return noticeMarks.list(ctx, tx, "ORDER BY team, channel, kind", func(values []driver.Value) error {
			all = append(all, journal.NoticeMark{})
			return noticeMarks.read(&all[len(all)-1], values)
		})
	})
	return all, err
}

// The causes of open dead letters of the team ?1, at most ?2 of them, and in each row the sums of all. Both seek: the first in
// the index of each kind behind the record ?3, the second the oldest of each cause.
const (
	newCauses = `SELECT g.policy, g.reason, g.fingerprint, g.n, g.oldest, g.total, g.causes, g.first, f.reason, f.classification, f.pattern
		FROM (SELECT d.policy, d.reason, d.fingerprint, count(*) AS n, min(d.created_at) AS oldest,
				sum(count(*)) OVER () AS total, count(*) OVER () AS causes, min(min(d.created_at)) OVER () AS first
			FROM dead_letter_counts c CROSS JOIN dead_letters d INDEXED BY dead_letters_by_kind
			WHERE c.state = 'open' AND c.team = ?1 AND c.n > 0
				AND d.state = 'open' AND d.policy = c.policy AND d.team = c.team AND d.reason = c.reason AND d.record > ?3
			GROUP BY d.policy, d.reason, d.fingerprint ORDER BY n DESC, oldest, d.fingerprint, d.reason LIMIT ?2) g
		LEFT JOIN fingerprints f ON f.id = g.fingerprint ORDER BY g.n DESC, g.oldest, g.fingerprint, g.reason`
	openCauses = `WITH g AS MATERIALIZED (SELECT c.reason, c.fingerprint, c.n,
				(SELECT record FROM dead_letters d INDEXED BY dead_letters_by_cause
					WHERE d.fingerprint = c.fingerprint AND d.state = 'open' AND d.team = c.team AND d.reason = c.reason ORDER BY d.record LIMIT 1) AS oldest,
				sum(c.n) OVER () AS total, count(*) OVER () AS causes
			FROM dead_letter_causes c WHERE c.state = 'open' AND c.team = ?1 AND c.n > 0),
		t AS MATERIALIZED (SELECT *, (SELECT min(oldest) FROM g) AS first FROM g ORDER BY n DESC, oldest, fingerprint, reason LIMIT ?2)
		SELECT coalesce(f.policy, d.policy), t.reason, t.fingerprint, t.n, d.created_at, t.total, t.causes, e.created_at, f.reason, f.classification, f.pattern
		FROM t JOIN dead_letters d INDEXED BY dead_letters_by_state ON d.state = 'open' AND d.record = t.oldest
		JOIN dead_letters e INDEXED BY dead_letters_by_state ON e.state = 'open' AND e.record = t.first
		LEFT JOIN fingerprints f ON f.id = t.fingerprint ORDER BY t.n DESC, t.oldest, t.fingerprint, t.reason`
	countOlder = `SELECT count(*) FROM dead_letter_counts c CROSS JOIN dead_letters d INDEXED BY dead_letters_by_kind
		WHERE c.state = 'open' AND c.team = ?1 AND c.n > 0
			AND d.state = 'open' AND d.policy = c.policy AND d.team = c.team AND d.reason = c.reason
			AND d.record <= coalesce((SELECT first - 1 FROM ledger WHERE latest >= ?2 ORDER BY latest, number LIMIT 1), 9223372036854775807)`
)

// NewDeadLetters implements journal.NoticeStore.
func (db *DB) NewDeadLetters(ctx context.Context, team decision.Team, after int64, top int) (journal.NoticeCount, error) {
	return db.count(ctx, "count a team's new dead letters", newCauses, nil, string(team), max(top, 1), after)
}

// OpenDeadLetters implements journal.NoticeStore.
func (db *DB) OpenDeadLetters(ctx context.Context, team decision.Team, top int, older ...time.Time) (journal.NoticeCount, error) {
	return db.count(ctx, "count a team's open dead letters", openCauses, older, string(team), max(top, 1))
}

// count runs one of the statements; its first argument is the team.
func (db *DB) count(ctx context.Context, doing, statement string, older []time.Time, args ...any) (sum journal.NoticeCount, err error) {
	err = db.read(ctx, doing, func(tx *snapshot) error {
		sum = journal.NoticeCount{}
		if err := tx.QueryRowContext(ctx, "SELECT record FROM ledger_head WHERE one = 1").Scan(&sum.Through); err != nil {
			return err
		}
		for _, t := range older {
			var n int64
			if err := tx.QueryRowContext(ctx, countOlder, args[0], ceiling(t)).Scan(&n); err != nil {
				return err
			}
			sum.Older = append(sum.Older, n)
		}
		return scan(ctx, tx, statement, func(v []driver.Value) error { return readCause(&sum, v) }, args...)
	})
	return sum, err
}

func readCause(sum *journal.NoticeCount, v []driver.Value) error {
	var c journal.NoticeCause
	var why string
	var oldest, first int64
	err := errors.Join(into(&c.Cause.Policy, v[0]), into(&why, v[1]), into(&c.Cause.ID, v[2]), into(&c.N, v[3]), into(&oldest, v[4]),
		into(&sum.N, v[5]), into(&sum.Causes, v[6]), into(&first, v[7]))
	c.Reason, c.Oldest, sum.Oldest = decision.Reason(why), journal.FromMilli(oldest), journal.FromMilli(first)
	if v[8] != nil {
		var cause, class string
		err = errors.Join(err, into(&cause, v[8]), into(&class, v[9]), into(&c.Cause.Pattern, v[10]))
		c.Cause.Reason, c.Cause.Classification = decision.Reason(cause), decision.ErrorClassification(class)
	} else {
		c.Cause.ID = ""
	}
	sum.Top = append(sum.Top, c)
	return err
}

const (
	loadMark = "SELECT record, day, at FROM notice_marks WHERE team = ? AND channel = ? AND kind = ?"
	waits    = "SELECT 1 FROM outbox WHERE queue = ? AND key = ? LIMIT 1"
)

// MoveNoticeMark implements journal.NoticeStore.
func (db *DB) MoveNoticeMark(ctx context.Context, from, to journal.NoticeMark, m *journal.Message) (moved bool, err error) {
	err = db.write(ctx, func(c *connection) (bool, error) {
		free, err := c.mayMove(&from, m)
		if err != nil || !free {
			return false, asFailed("look how far a team was told", err)
		}
		if err := insert(c, noticeMarks, []journal.NoticeMark{to}); err != nil {
			return false, err
		}
		if m != nil {
			if err := insert(c, outbox, []journal.Message{*m}); err != nil {
				return false, err
			}
		}
		moved = true
		return true, nil
	})
	return moved && err == nil, err
}

// mayMove tells whether the mark is as it was, and nothing waits where m is to go.
func (c *connection) mayMove(from *journal.NoticeMark, m *journal.Message) (bool, error) {
	row, err := c.row(loadMark, string(from.Team), from.Channel, string(from.Kind))
	if err != nil {
		return false, err
	}
	var now journal.NoticeMark
	if row != nil {
		var at int64
		err = errors.Join(into(&now.Record, row[0]), into(&now.Day, row[1]), into(&at, row[2]))
		now.At = journal.FromMilli(at)
	}
	if err != nil || now.Record != from.Record || now.Day != from.Day || !now.At.Equal(from.At) {
		return false, err
	}
	if m == nil {
		return true, nil
	}
	row, err = c.row(waits, m.Queue, m.Key)
	return row == nil, err
}
