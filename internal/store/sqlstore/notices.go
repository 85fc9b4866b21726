package sqlstore

import (
	"context"
	"math"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// NewDeadLetters implements deadletter.NoticeStore.
func (s *Store) NewDeadLetters(
	ctx context.Context, team decision.Team, after int64, top int,
) (deadletter.NoticeCount, error) {
	return reading(ctx, &s.Reader, "count a team's new dead letters", func(s *snapshot) (deadletter.NoticeCount, error) {
		return s.notice(team, after, top)
	})
}

// OpenDeadLetters implements deadletter.NoticeStore.
func (s *Store) OpenDeadLetters(
	ctx context.Context, team decision.Team, top int, older ...time.Time,
) (deadletter.NoticeCount, error) {
	return reading(ctx, &s.Reader, "count a team's open dead letters", func(s *snapshot) (deadletter.NoticeCount, error) {
		sum, err := s.notice(team, 0, top)
		for _, t := range older {
			var n int64
			if err == nil {
				_, err = s.one("SELECT count(*) FROM dead_letters WHERE state = 'open' AND team = ? AND at < ?",
					[]any{string(team), journal.CeilMilli(t)}, &n)
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
