package sqlstore

import (
	"cmp"
	"context"
	"math"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// weighed are the dead letters that get their chances in one transaction, which is short.
const weighed = 200

// Weigh implements journal.Outbox. It writes where a chance is another one.
func (s *Store) Weigh(ctx context.Context, probability func(*journal.Fingerprint, string) float64) error {
	const query = `SELECT d.record, d.chance, d.policy, d.fingerprint, coalesce(f.reason, ''), coalesce(r.body ->> 'dest', '')
		FROM (SELECT * FROM dead_letters WHERE state = 'open' AND record > ? ORDER BY record LIMIT ?) d
		LEFT JOIN fingerprints f ON f.id = d.fingerprint
		LEFT JOIN records r ON r.record = d.record AND r.kind = 'attempt' ORDER BY d.record`
	for after, n := int64(0), weighed; n == weighed; {
		b := &batch{Dialect: s.Dialect}
		n = 0
		err := s.read(ctx, "read what dead letters are of", func(of *snapshot) error {
			return of.each(query, func(scan scanner) error {
				var chance int64
				var cause journal.Fingerprint
				var destination string
				err := scan(&after, &chance, &cause.Policy, &cause.ID, &cause.Reason, &destination)
				if now := journal.ChanceOf(probability(&cause, destination)); now != chance {
					b.add("UPDATE dead_letters SET chance = ? WHERE record = ?", now, after)
				}
				n++
				return err
			}, after, weighed)
		})
		if err == nil && len(b.statements) > 0 {
			err = s.write(ctx, "weigh dead letters", func(w *writer) (bool, error) {
				_, err := w.head(w.Lock) // as whoever else writes: none waits for a row that another has
				return true, cmp.Or(err, w.execute(b))
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// OpenDeadLetters implements deadletter.NoticeStore.
func (s *Store) OpenDeadLetters(
	ctx context.Context, team decision.Team, after int64, top int, older ...time.Time,
) (deadletter.NoticeCount, error) {
	return reading(ctx, &s.Reader, "count a team's open dead letters", func(s *snapshot) (deadletter.NoticeCount, error) {
		sum, err := s.notice(team, after, top)
		for _, t := range older {
			var n int64
			if err == nil {
				_, err = s.one("SELECT count(*) FROM dead_letters WHERE state = 'open' AND team = ? AND record > ? AND at < ?",
					[]any{string(team), after, journal.CeilMilli(t)}, &n)
			}
			sum.Older = append(sum.Older, n)
		}
		return sum, err
	})
}

// notice sums up the open dead letters of a team behind a record.
func (s *snapshot) notice(team decision.Team, after int64, top int) (sum deadletter.NoticeCount, err error) {
	head, err := s.head("")
	if err != nil {
		return sum, err
	}
	sum.Through = head.Record
	oldest := int64(math.MaxInt64)
	err = s.each(`SELECT g.fingerprint, g.reason, CAST(g.n AS BIGINT), CAST(g.cents AS BIGINT), g.first, d.at, d.policy
		FROM (SELECT fingerprint, reason, count(*) AS n, sum(cents) AS cents, min(record) AS first FROM dead_letters
			WHERE state = 'open' AND team = ? AND record > ? GROUP BY fingerprint, reason) AS g
		JOIN dead_letters d ON d.record = g.first ORDER BY g.n DESC, d.at, g.first`,
		func(scan scanner) error {
			var c deadletter.NoticeCause
			var first int64
			err := scan(&c.Cause.ID, &c.Reason, &c.N, &c.Cents, &first, milli{&c.Oldest}, &c.Cause.Policy)
			sum.N, sum.Causes, sum.Cents = sum.N+c.N, sum.Causes+1, sum.Cents+c.Cents
			if first < oldest {
				oldest, sum.Oldest = first, c.Oldest
			}
			if len(sum.Top) < max(top, 1) {
				sum.Top = append(sum.Top, c)
			}
			return err
		}, string(team), after)
	for i := range sum.Top {
		c := &sum.Top[i].Cause
		if err == nil {
			*c, err = s.cause(c.ID, journal.Fingerprint{Policy: c.Policy})
		}
	}
	return sum, err
}
