package sqlstore

import (
	"cmp"
	"context"
	"math"
	"slices"
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
		return s.notice(team, top, nil, func(p *deadletter.Query) ([]noticed, error) { return s.news(p, after) })
	})
}

// OpenDeadLetters implements deadletter.NoticeStore.
func (s *Store) OpenDeadLetters(
	ctx context.Context, team decision.Team, top int, older ...time.Time,
) (deadletter.NoticeCount, error) {
	return reading(ctx, &s.Reader, "count a team's open dead letters", func(s *snapshot) (deadletter.NoticeCount, error) {
		return s.notice(team, top, older, s.open)
	})
}

// noticed is how many open dead letters a cause and a reason have, and the oldest of them.
type noticed struct {
	kind
	letter
}

// notice sums up what causes finds.
func (s *snapshot) notice(
	team decision.Team, top int, older []time.Time, causes func(p *deadletter.Query) ([]noticed, error),
) (sum deadletter.NoticeCount, err error) {
	head, err := s.head("")
	if err != nil {
		return sum, err
	}
	sum.Through = head.Record
	p, err := deadletter.NewQuery(journal.DeadLetterFilter{Team: team}, "", 1)
	if err != nil {
		return sum, err
	}
	for _, t := range older {
		var n int64
		// The index of kinds has the instant.
		_, err := s.one(`SELECT count(*) FROM (SELECT DISTINCT policy, reason FROM dead_letter_counts WHERE state = 'open' AND team = ? AND n > 0) AS c
			CROSS JOIN dead_letters d WHERE d.state = 'open' AND d.policy = c.policy AND d.team = ? AND d.reason = c.reason AND d.at < ?`,
			[]any{string(team), string(team), journal.CeilMilli(t)}, &n)
		if err != nil {
			return sum, err
		}
		sum.Older = append(sum.Older, n)
	}
	all, err := causes(p)
	if err != nil {
		return sum, err
	}
	slices.SortFunc(all, func(a, b noticed) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.at, b.at), cmp.Compare(a.Record, b.Record))
	})
	oldest := letter{Place: journal.Place{Record: math.MaxInt64}}
	for i := range all {
		sum.Cents += all[i].kind.Cents
		if sum.N += all[i].N; all[i].Record < oldest.Record {
			oldest = all[i].letter
		}
	}
	sum.Causes, sum.Oldest = int64(len(all)), journal.FromMilli(oldest.at)
	for i := range all[:min(len(all), max(top, 1))] {
		c := deadletter.NoticeCause{Reason: all[i].Reason, N: all[i].N, Cents: all[i].kind.Cents, Oldest: journal.FromMilli(all[i].at),
			Cause: journal.Fingerprint{Policy: all[i].Policy}}
		known, err := s.causes("WHERE id = ?", all[i].Fingerprint)
		if err != nil {
			return sum, err
		}
		for i := range known {
			c.Cause = known[i].Uncounted()
		}
		sum.Top = append(sum.Top, c)
	}
	return sum, nil
}

// open are the causes of all that are open.
func (s *snapshot) open(p *deadletter.Query) (all []noticed, err error) {
	kinds, err := s.kinds(p, true)
	if err != nil {
		return nil, err
	}
	at := map[journal.CauseCount]int{}
	for _, k := range kinds {
		first, err := s.oldest(p, &k)
		if err != nil {
			return nil, err
		}
		all = merge(all, at, noticed{k, first})
	}
	return all, nil
}

// merge adds to the count of the same cause and reason.
func merge(all []noticed, at map[journal.CauseCount]int, n noticed) []noticed {
	key := journal.CauseCount{Fingerprint: n.Fingerprint, Reason: n.Reason}
	i, known := at[key]
	if !known {
		at[key] = len(all)
		return append(all, n)
	}
	all[i].kind.Cents += n.kind.Cents
	if all[i].N += n.N; n.Record < all[i].Record {
		all[i].letter, all[i].Policy = n.letter, n.Policy
	}
	return all
}

// news are the causes of those behind a record.
func (s *snapshot) news(p *deadletter.Query, after int64) (all []noticed, err error) {
	kinds, err := s.kinds(p, false)
	if err != nil {
		return nil, err
	}
	at := map[journal.CauseCount]int{}
	for _, k := range kinds {
		w := k.where()
		w.and("record > ?", after)
		err := s.each("SELECT fingerprint, record, at, cents FROM dead_letters d"+w.String()+" ORDER BY record",
			func(scan scanner) error {
				n := noticed{kind: k}
				n.N = 1
				err := scan(&n.Fingerprint, &n.Record, &n.at, &n.kind.Cents)
				all = merge(all, at, n)
				return err
			}, w.args...)
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
