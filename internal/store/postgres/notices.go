package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

var _ journal.NoticeStore = (*DB)(nil)

var noticeTable = tableOf("notice_marks", func(f fields, m *journal.NoticeMark) {
	f.text("team", (*string)(&m.Team))
	f.text("channel", &m.Channel)
	f.text("kind", (*string)(&m.Kind))
	f.number("record", &m.Record)
	f.text("day", &m.Day)
	f.instant("at", &m.At)
}, zero[journal.NoticeMark])

// NoticeMarks implements journal.NoticeStore.
func (d *DB) NoticeMarks(ctx context.Context) (all []journal.NoticeMark, err error) {
	err = each(ctx, d.pool, noticeTable, func(m *journal.NoticeMark) { all = append(all, *m) }, "ORDER BY t.team, t.channel, t.kind")
	if err != nil {
		return nil, storeError("read how far teams were told", err, false)
	}
	return all, nil
}

// The causes of open dead letters of the team $1, at most $2 of them, and in each row the sums of all. Both seek: the first in
// the index of each kind behind the record $3, the second the oldest of each cause.
const (
	newCauses = `SELECT g.policy, g.reason, g.fingerprint, g.n, g.oldest, g.total, g.causes, g.first, f.reason AS cause, f.classification, f.pattern
		FROM (SELECT d.policy, d.reason, d.fingerprint, count(*) AS n, min(d.created_at) AS oldest,
				(sum(count(*)) OVER ())::bigint AS total, count(*) OVER () AS causes, min(min(d.created_at)) OVER () AS first
			FROM dead_letter_counts c CROSS JOIN LATERAL (SELECT * FROM dead_letters d
				WHERE d.state = 'open' AND d.policy = c.policy AND d.team = c.team AND d.reason = c.reason AND d.record > $3::bigint) d
			WHERE c.state = 'open' AND c.team = $1::text AND c.n > 0
			GROUP BY d.policy, d.reason, d.fingerprint ORDER BY n DESC, oldest, d.fingerprint, d.reason COLLATE "C" LIMIT $2::bigint) g
		LEFT JOIN fingerprints f ON f.id = g.fingerprint ORDER BY g.n DESC, g.oldest, g.fingerprint, g.reason COLLATE "C"`
	openCauses = `WITH g AS MATERIALIZED (SELECT c.reason, c.fingerprint, c.n, o.record AS oldest,
				(sum(c.n) OVER ())::bigint AS total, count(*) OVER () AS causes
			FROM dead_letter_causes c CROSS JOIN LATERAL (SELECT d.record FROM dead_letters d
				WHERE d.fingerprint = c.fingerprint AND d.state = 'open' AND d.team = c.team AND d.reason = c.reason ORDER BY d.record LIMIT 1) o
			WHERE c.state = 'open' AND c.team = $1::text AND c.n > 0),
		t AS MATERIALIZED (SELECT *, (SELECT min(oldest) FROM g) AS first FROM g ORDER BY n DESC, oldest, fingerprint, reason COLLATE "C" LIMIT $2::bigint)
		SELECT coalesce(f.policy, d.policy) AS policy, t.reason, t.fingerprint, t.n, d.created_at, t.total, t.causes, e.created_at, f.reason AS cause, f.classification, f.pattern
		FROM t JOIN dead_letters d ON d.state = 'open' AND d.record = t.oldest
		JOIN dead_letters e ON e.state = 'open' AND e.record = t.first
		LEFT JOIN fingerprints f ON f.id = t.fingerprint ORDER BY t.n DESC, t.oldest, t.fingerprint, t.reason COLLATE "C"`
	countOlder = `SELECT coalesce(sum(o.n), 0)::bigint FROM dead_letter_counts c CROSS JOIN LATERAL (SELECT count(*) AS n FROM dead_letters d
			WHERE d.state = 'open' AND d.policy = c.policy AND d.team = c.team AND d.reason = c.reason
				AND d.record <= coalesce((SELECT first - 1 FROM ledger WHERE latest >= $2::bigint ORDER BY latest, number LIMIT 1), 9223372036854775807)) o
		WHERE c.state = 'open' AND c.team = $1::text AND c.n > 0`
)

// NewDeadLetters implements journal.NoticeStore.
func (d *DB) NewDeadLetters(ctx context.Context, team decision.Team, after int64, top int) (journal.NoticeCount, error) {
	return d.count(ctx, "count a team's new dead letters", newCauses, nil, string(team), max(top, 1), after)
}

// OpenDeadLetters implements journal.NoticeStore.
func (d *DB) OpenDeadLetters(ctx context.Context, team decision.Team, top int, older ...time.Time) (journal.NoticeCount, error) {
	return d.count(ctx, "count a team's open dead letters", openCauses, older, string(team), max(top, 1))
}

// count runs one of the statements, at one moment; its first argument is the team.
func (d *DB) count(ctx context.Context, doing, statement string, older []time.Time, arguments ...any) (sum journal.NoticeCount, err error) {
	moment := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, d.pool, moment, func(tx pgx.Tx) error {
		sum = journal.NoticeCount{}
		err := query(ctx, tx, func(v *values) { v.number("record", &sum.Through) }, "SELECT record FROM ledger_head WHERE one = 1")
		for i := 0; err == nil && i < len(older); i++ {
			err = query(ctx, tx, func(v *values) { sum.Older = append(sum.Older, v.integer("count")) }, countOlder, arguments[0], ceiling(older[i]))
		}
		if err != nil {
			return err
		}
		return query(ctx, tx, func(v *values) { readCause(&sum, v) }, statement, arguments...)
	})
	if err != nil {
		return journal.NoticeCount{}, storeError(doing, err, false)
	}
	return sum, nil
}

func readCause(sum *journal.NoticeCount, v *values) {
	var c journal.NoticeCause
	v.text("policy", &c.Cause.Policy)
	v.text("reason", (*string)(&c.Reason))
	v.text("fingerprint", &c.Cause.ID)
	v.number("n", &c.N)
	v.instant("oldest", &c.Oldest)
	v.number("total", &sum.N)
	v.number("causes", &sum.Causes)
	v.instant("first", &sum.Oldest)
	if v.null(0) {
		c.Cause.ID = ""
	}
	v.text("cause", (*string)(&c.Cause.Reason))
	v.text("classification", (*string)(&c.Cause.Classification))
	v.text("pattern", &c.Cause.Pattern)
	sum.Top = append(sum.Top, c)
}

const (
	// mayMove tells whether the mark is as it was, and nothing waits where a message is to go (an empty queue: none is).
	mayMove = `SELECT NOT EXISTS (SELECT FROM outbox WHERE queue = $7::text AND key = $8::text)
		AND coalesce((SELECT record = $4::bigint AND day = $5::text AND at = $6::bigint FROM notice_marks
			WHERE team = $1::text AND channel = $2::text AND kind = $3::text), $4::bigint = 0 AND $5::text = '' AND $6::bigint = 0)`
	addMessage = "INSERT INTO outbox (id, queue, key, type, body, at) VALUES ($1, $2, $3, $4, $5, $6)"
	keepMark   = `INSERT INTO notice_marks (team, channel, kind, record, day, at) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (team, channel, kind) DO UPDATE SET record = excluded.record, day = excluded.day, at = excluded.at`
)

// MoveNoticeMark implements journal.NoticeStore, in its turn with those who write: the outbox's sequences follow the commits.
func (d *DB) MoveNoticeMark(ctx context.Context, from, to journal.NoticeMark, m *journal.Message) (moved bool, err error) {
	err = pgx.BeginFunc(ctx, d.writer, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, headText+" FOR UPDATE"); err != nil {
			return err
		}
		var queue, key string
		if m != nil {
			queue, key = m.Queue, m.Key
		}
		err := query(ctx, tx, func(v *values) { v.truth("free", &moved) }, mayMove,
			string(from.Team), from.Channel, string(from.Kind), from.Record, from.Day, journal.Milli(from.At), queue, key)
		if err != nil || !moved {
			return err
		}
		_, err = tx.Exec(ctx, keepMark, string(to.Team), to.Channel, string(to.Kind), to.Record, to.Day, journal.Milli(to.At))
		if err == nil && m != nil {
			_, err = tx.Exec(ctx, addMessage, m.ID, m.Queue, m.Key, m.Type, m.Body, journal.Milli(m.At))
		}
		return err
	})
	if err != nil {
		return false, storeError("note how far a team was told", err, false)
	}
	return moved, nil
}
