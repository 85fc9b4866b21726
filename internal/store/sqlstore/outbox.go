package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// Pending implements journal.Outbox.
func (s *Store) Pending(ctx context.Context, queue string, after int64, limit int) ([]journal.Message, error) {
	return reading(ctx, &s.Reader, "read the outbox", func(t *tx) []journal.Message {
		return t.messages("WHERE queue = ? AND sequence > ? ORDER BY sequence LIMIT ?", queue, after, max(limit, 0))
	})
}

// Backlog implements journal.Outbox.
func (s *Store) Backlog(ctx context.Context) (map[string]int64, error) {
	return reading(ctx, &s.Reader, "count what waits in the outbox", func(t *tx) map[string]int64 {
		return counted[string](t, "SELECT queue, count(*) FROM outbox WHERE queue <> '"+sessions+"' GROUP BY queue")
	})
}

// Lease implements journal.Outbox.
func (s *Store) Lease(ctx context.Context, name, holder string, span time.Duration) (held bool, err error) {
	ms := (span + time.Millisecond - 1).Milliseconds()
	err = s.write(ctx, "take a lease", func(t *tx) {
		if ms <= 0 {
			t.exec("DELETE FROM leases WHERE name = ? AND holder = ?", name, holder)
			held = !t.one("SELECT holder FROM leases WHERE name = ?", []any{name}, &holder)
			return
		}
		now, args := t.Now, []any{name, holder, ms, ms, ms}
		if now == "" {
			now, args = "?", slices.Insert(args, 2, any(time.Now().UnixMilli()))
		}
		held = t.exec("INSERT INTO leases (name, holder, expires_at) VALUES (?, ?, "+now+` + ?)
			ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
			WHERE leases.holder = excluded.holder OR leases.expires_at <= excluded.expires_at - ?
				OR leases.expires_at > excluded.expires_at + ?`, args...) > 0 // this clock may have been read before another's
	})
	return held && err == nil, err
}

// Watermarks implements deadletter.NoticeStore.
func (s *Store) Watermarks(ctx context.Context) ([]deadletter.Watermark, error) {
	const query = "SELECT team, channel, kind, record, day, at FROM notice_marks ORDER BY team, channel, kind"
	return list(ctx, &s.Reader, "read how far teams were told", query, nil, func(scan scanner, m *deadletter.Watermark) {
		scan(&m.Team, &m.Channel, &m.Kind, &m.Record, &m.Day, milli{&m.At})
	})
}

// MoveWatermark implements deadletter.NoticeStore. It locks the ledger's head.
func (s *Store) MoveWatermark(
	ctx context.Context, from, to deadletter.Watermark, m *journal.Message,
) (moved bool, err error) {
	err = s.change(ctx, "note how far a team was told", func(t *tx, head journal.Head) *journal.Changes {
		if moved = t.mayMove(&from, m); !moved {
			return nil
		}
		t.add(`INSERT INTO notice_marks (team, channel, kind, record, day, at) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (team, channel, kind) DO UPDATE SET record = excluded.record, day = excluded.day, at = excluded.at`,
			string(to.Team), to.Channel, string(to.Kind), to.Record, to.Day, journal.Milli(to.At))
		c := &journal.Changes{}
		if m != nil {
			c.Outbox = []journal.Message{*m}
		}
		c.Seal(head, to.At)
		return c
	})
	return moved && err == nil, err
}

// mayMove reports whether the watermark is still from, and no message with m's queue and key waits.
func (t *tx) mayMove(from *deadletter.Watermark, m *journal.Message) bool {
	var record, at, one int64
	var day string
	t.one("SELECT record, day, at FROM notice_marks WHERE team = ? AND channel = ? AND kind = ?",
		[]any{string(from.Team), from.Channel, string(from.Kind)}, &record, &day, &at)
	return record == from.Record && day == from.Day && at == journal.Milli(from.At) &&
		(m == nil || !t.one("SELECT 1 FROM outbox WHERE queue = ? AND key = ? LIMIT 1", []any{m.Queue, m.Key}, &one))
}

// TellCause implements deadletter.NoticeStore. It locks the ledger's head.
func (s *Store) TellCause(ctx context.Context, c *journal.Cause) (told bool, err error) {
	err = s.write(ctx, "note that a cause is new", func(t *tx) {
		t.head(t.Lock)
		var last time.Time
		told = t.one("SELECT (SELECT max(told) FROM fingerprints) FROM fingerprints "+
			"WHERE id = ? AND began = ? AND told < began", []any{c.ID, journal.Milli(c.Began)}, milli{&last})
		if !told {
			return
		}
		if c.News.At = journal.FromMilli(journal.Milli(c.News.At)); !c.News.At.After(last) {
			c.News.At = last.Add(time.Millisecond)
		}
		row := c.Row()
		t.add("UPDATE fingerprints SET told = ?, news = ? WHERE id = ?", row[9], row[10], c.ID)
	})
	return told && err == nil, err
}

// sessions is the queue of ended sessions. No relay reads it. A message is removed after its At, when the session would
// have expired.
const sessions = "sessions"

// EndSession implements access.EndedSessions.
func (s *Store) EndSession(ctx context.Context, id [sha256.Size]byte, until, now time.Time) error {
	return s.change(ctx, "end a session", func(t *tx, head journal.Head) *journal.Changes {
		c, m := &journal.Changes{}, journal.Message{ID: hex.EncodeToString(id[:]), Queue: sessions, At: until}
		known := false
		for _, ended := range t.messages("WHERE queue = ?", sessions) {
			known = known || ended.ID == m.ID
			if !ended.At.After(now) {
				c.Published = append(c.Published, ended.Sequence)
			}
		}
		if !known {
			c.Outbox = []journal.Message{m}
		}
		c.Seal(head, now)
		return c
	})
}

// SessionEnded implements access.EndedSessions.
func (s *Store) SessionEnded(ctx context.Context, id [sha256.Size]byte) (bool, error) {
	return reading(ctx, &s.Reader, "look for an ended session", func(t *tx) bool {
		var one int64
		return t.one("SELECT 1 FROM outbox WHERE queue = ? AND id = ?", []any{sessions, hex.EncodeToString(id[:])}, &one)
	})
}

// AddAdmissions implements journal.Outbox.
func (s *Store) AddAdmissions(ctx context.Context, all []journal.Admission) error {
	return s.write(ctx, "count what gates let through", func(t *tx) {
		newest := int64(0)
		for _, a := range all {
			t.add("INSERT INTO admissions (minute, destination, n) VALUES (?, ?, ?) "+
				"ON CONFLICT (minute, destination) DO UPDATE SET n = admissions.n + excluded.n", a.Minute, a.Destination, a.Count)
			newest = max(newest, a.Minute)
		}
		t.add("DELETE FROM admissions WHERE minute < ?", newest-journal.AdmissionsKept)
	})
}

// Admissions implements journal.Reader.
func (r *Reader) Admissions(ctx context.Context, since int64) ([]journal.Admission, error) {
	const query = "SELECT minute, destination, n FROM admissions WHERE minute >= ? ORDER BY minute, destination"
	return list(ctx, r, "read what gates let through", query, []any{since}, func(scan scanner, a *journal.Admission) {
		scan(&a.Minute, &a.Destination, &a.Count)
	})
}
