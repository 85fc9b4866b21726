package sqlstore

import (
	"bytes"
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
	return reading(ctx, &s.Reader, "read the outbox", func(s *snapshot) ([]journal.Message, error) {
		return s.messages("WHERE queue = ? AND sequence > ? ORDER BY sequence LIMIT ?", queue, after, max(limit, 0))
	})
}

// selectMessages selects messages of the outbox, each with its digest from the ledger.
var selectMessages = "SELECT sequence, id, queue, key, subject, type, body, at, " +
	digestSQL("sequence", "message", "messages") + " FROM outbox "

// readMessage reads a row of selectMessages, and sets Forged if it does not match its digest.
func readMessage(scan scanner, m *journal.Message) error {
	var signed []byte
	err := scan(&m.Sequence, &m.ID, &m.Queue, &m.Key, &m.Subject, &m.Type, &m.Body, milli{&m.At}, &signed)
	digest := m.Digest()
	m.Forged = !bytes.Equal(signed, digest[:])
	return err
}

func (s *snapshot) messages(clause string, args ...any) ([]journal.Message, error) {
	return collect(s, selectMessages+clause, args, readMessage)
}

// Backlog implements journal.Outbox.
func (s *Store) Backlog(ctx context.Context) (map[string]int64, error) {
	return reading(ctx, &s.Reader, "count what waits in the outbox", func(s *snapshot) (map[string]int64, error) {
		return counted[string](s, "SELECT queue, count(*) FROM outbox WHERE queue <> '"+sessions+"' GROUP BY queue")
	})
}

// Lease implements journal.Outbox.
func (s *Store) Lease(ctx context.Context, name, holder string, span time.Duration) (held bool, err error) {
	ms := (span + time.Millisecond - 1).Milliseconds()
	err = s.write(ctx, "take a lease", func(w *writer) (bool, error) {
		if ms <= 0 {
			_, err := w.exec("DELETE FROM leases WHERE name = ? AND holder = ?", name, holder)
			if err == nil {
				held, err = w.one("SELECT holder FROM leases WHERE name = ?", []any{name}, &holder)
			}
			held = !held
			return true, err
		}
		now, args := w.Now, []any{name, holder, ms, ms, ms}
		if now == "" {
			now, args = "?", slices.Insert(args, 2, any(time.Now().UnixMilli()))
		}
		n, err := w.exec("INSERT INTO leases (name, holder, expires_at) VALUES (?, ?, "+now+` + ?)
			ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
			WHERE leases.holder = excluded.holder OR leases.expires_at <= excluded.expires_at - ?
				OR leases.expires_at > excluded.expires_at + ?`, args...) // this clock may have been read before another's
		held = n > 0
		return held, err
	})
	return held && err == nil, err
}

// Watermarks implements deadletter.NoticeStore.
func (s *Store) Watermarks(ctx context.Context) ([]deadletter.Watermark, error) {
	const query = "SELECT team, channel, kind, record, day, at FROM notice_marks ORDER BY team, channel, kind"
	return list(ctx, &s.Reader, "read how far teams were told", query, nil, func(scan scanner, m *deadletter.Watermark) error {
		return scan(&m.Team, &m.Channel, &m.Kind, &m.Record, &m.Day, milli{&m.At})
	})
}

// MoveWatermark implements deadletter.NoticeStore. It locks the ledger's head.
func (s *Store) MoveWatermark(
	ctx context.Context, from, to deadletter.Watermark, m *journal.Message,
) (moved bool, err error) {
	err = s.change(ctx, "note how far a team was told", func(w *writer, head journal.Head) (*journal.Changes, error) {
		free, err := w.mayMove(&from, m)
		if err != nil || !free {
			return nil, err
		}
		_, err = w.exec(`INSERT INTO notice_marks (team, channel, kind, record, day, at) VALUES (?, ?, ?, ?, ?, ?)
			ON CONFLICT (team, channel, kind) DO UPDATE SET record = excluded.record, day = excluded.day, at = excluded.at`,
			string(to.Team), to.Channel, string(to.Kind), to.Record, to.Day, journal.Milli(to.At))
		c := &journal.Changes{}
		if m != nil {
			c.Outbox = []journal.Message{*m}
		}
		c.Seal(head, to.At)
		moved = true
		return c, err
	})
	return moved && err == nil, err
}

// mayMove reports whether the watermark is still from, and no message with m's queue and key waits.
func (w *writer) mayMove(from *deadletter.Watermark, m *journal.Message) (bool, error) {
	var now deadletter.Watermark
	var at int64
	_, err := w.one("SELECT record, day, at FROM notice_marks WHERE team = ? AND channel = ? AND kind = ?",
		[]any{string(from.Team), from.Channel, string(from.Kind)}, &now.Record, &now.Day, &at)
	if err != nil || now.Record != from.Record || now.Day != from.Day || at != journal.Milli(from.At) {
		return false, err
	}
	if m == nil {
		return true, nil
	}
	var one int64
	waits, err := w.one("SELECT 1 FROM outbox WHERE queue = ? AND key = ? LIMIT 1", []any{m.Queue, m.Key}, &one)
	return !waits, err
}

// TellCause implements deadletter.NoticeStore. It locks the ledger's head.
func (s *Store) TellCause(ctx context.Context, c *journal.Cause) (told bool, err error) {
	err = s.change(ctx, "note that a cause is new", func(w *writer, _ journal.Head) (*journal.Changes, error) {
		var last time.Time
		told, err = w.one("SELECT (SELECT max(told) FROM fingerprints) FROM fingerprints WHERE id = ? AND began = ? AND told < began",
			[]any{c.ID, journal.Milli(c.Began)}, milli{&last})
		if err != nil || !told {
			return nil, err
		}
		if c.News.At = journal.FromMilli(journal.Milli(c.News.At)); !c.News.At.After(last) {
			c.News.At = last.Add(time.Millisecond)
		}
		row := c.Row()
		_, err = w.exec("UPDATE fingerprints SET told = ?, news = ? WHERE id = ?", row[9], row[10], c.ID)
		return &journal.Changes{}, err
	})
	return told && err == nil, err
}

// sessions is the queue of ended sessions. No relay reads it. A message is removed after its At, when the session would
// have expired.
const sessions = "sessions"

// EndSession implements access.EndedSessions.
func (s *Store) EndSession(ctx context.Context, id [sha256.Size]byte, until, now time.Time) error {
	return s.change(ctx, "end a session", func(w *writer, head journal.Head) (*journal.Changes, error) {
		ended, err := w.messages("WHERE queue = ?", sessions)
		m := journal.Message{ID: hex.EncodeToString(id[:]), Queue: sessions, At: until}
		c := &journal.Changes{}
		for i := range ended {
			if !ended[i].At.After(now) {
				c.Published = append(c.Published, ended[i].Sequence)
			}
		}
		if !slices.ContainsFunc(ended, func(e journal.Message) bool { return e.ID == m.ID }) {
			c.Outbox = []journal.Message{m}
		}
		c.Seal(head, now)
		return c, err
	})
}

// SessionEnded implements access.EndedSessions.
func (s *Store) SessionEnded(ctx context.Context, id [sha256.Size]byte) (bool, error) {
	return reading(ctx, &s.Reader, "look for an ended session", func(s *snapshot) (bool, error) {
		var one int64
		return s.one("SELECT 1 FROM outbox WHERE queue = ? AND id = ?", []any{sessions, hex.EncodeToString(id[:])}, &one)
	})
}

// AddAdmissions implements journal.Outbox.
func (s *Store) AddAdmissions(ctx context.Context, all []journal.Admission) error {
	return s.write(ctx, "count what gates let through", func(w *writer) (bool, error) {
		b, newest := &batch{Dialect: w.Dialect}, int64(0)
		for _, a := range all {
			b.add("INSERT INTO admissions (minute, destination, n) VALUES (?, ?, ?) "+
				"ON CONFLICT (minute, destination) DO UPDATE SET n = admissions.n + excluded.n", a.Minute, a.Destination, a.Count)
			newest = max(newest, a.Minute)
		}
		b.add("DELETE FROM admissions WHERE minute < ?", newest-journal.AdmissionsKept)
		return true, w.execute(b)
	})
}

// Admissions implements journal.Holding.
func (r *Reader) Admissions(ctx context.Context, since int64) ([]journal.Admission, error) {
	const query = "SELECT minute, destination, n FROM admissions WHERE minute >= ? ORDER BY minute, destination"
	return list(ctx, r, "read what gates let through", query, []any{since}, func(scan scanner, a *journal.Admission) error {
		return scan(&a.Minute, &a.Destination, &a.Count)
	})
}
