package sqlstore

import (
	"context"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// mostGathered dead letters are added in one transaction.
const mostGathered = 1000

const unfinished = "('preparing', 'running', 'paused')"

// run is the bulk run of that id; false where there is none.
func (s *snapshot) run(id string) (journal.BulkRun, bool, error) {
	all, err := s.bulkRuns("WHERE id = ?", id)
	if err != nil || len(all) == 0 {
		return journal.BulkRun{}, false, err
	}
	return all[0], true, nil
}

func (s *snapshot) bulkRuns(clause string, args ...any) (all []journal.BulkRun, err error) {
	all, err = collect(s, "SELECT body FROM bulk_runs "+clause, args, fromJSON[journal.BulkRun])
	for i := range all {
		r := &all[i]
		r.Counts = map[journal.BulkOutcome]int64{}
		if err == nil {
			err = s.each("SELECT outcome, count(*) FROM bulk_items WHERE run = ? GROUP BY outcome", func(scan scanner) error {
				var outcome journal.BulkOutcome
				var n int64
				err := scan(&outcome, &n)
				r.Counts[outcome], r.Total = n, r.Total+n
				return err
			}, r.ID)
		}
	}
	return all, err
}

func (r *Reader) bulkRuns(ctx context.Context, doing, clause string, args ...any) ([]journal.BulkRun, error) {
	return reading(ctx, r, doing, func(s *snapshot) ([]journal.BulkRun, error) { return s.bulkRuns(clause, args...) })
}

// BulkRun implements deadletter.BulkStore.
func (r *Reader) BulkRun(ctx context.Context, id string) (run journal.BulkRun, found bool, err error) {
	err = r.read(ctx, "read a bulk run", func(s *snapshot) error {
		run, found, err = s.run(id)
		return err
	})
	return run, found && err == nil, err
}

// BulkRuns implements deadletter.BulkStore.
func (r *Reader) BulkRuns(
	ctx context.Context, cursor string, limit int,
) (all []journal.BulkRun, next string, err error) {
	after, err := deadletter.AfterRun(cursor)
	if err != nil {
		return nil, "", err
	}
	limit = min(max(limit, 1), deadletter.MostItems)
	var w where
	if after != "" {
		w.and("id < ?", after)
	}
	all, err = r.bulkRuns(ctx, "list bulk runs", w.String()+" ORDER BY id DESC LIMIT ?", append(w.args, limit+1)...)
	all, next = deadletter.RunPage(all, limit)
	return all, next, err
}

// ActiveBulkRuns implements deadletter.BulkStore.
func (r *Reader) ActiveBulkRuns(ctx context.Context) ([]journal.BulkRun, error) {
	return r.bulkRuns(ctx, "list the bulk runs that have not ended", "WHERE state IN "+unfinished+" ORDER BY id")
}

// BulkItems implements deadletter.BulkStore.
func (r *Reader) BulkItems(
	ctx context.Context, run string, outcome journal.BulkOutcome, after int64, limit int,
) ([]journal.BulkItem, error) {
	var w where
	w.and("i.run = ? AND i.number > ?", run, after)
	w.is("i.outcome", string(outcome))
	return reading(ctx, r, "list a bulk run's dead letters", func(s *snapshot) ([]journal.BulkItem, error) {
		return s.items(w.String()+" ORDER BY i.number LIMIT ?", append(w.args, max(limit, 0))...)
	})
}

func (s *snapshot) items(clause string, args ...any) ([]journal.BulkItem, error) {
	return collect(s, "SELECT i.body, COALESCE(d.id, ''), COALESCE(s.tenant, ''), COALESCE(s.policy, ''), COALESCE(s.id, '') "+
		"FROM bulk_items i LEFT JOIN dead_letters d ON d.record = i.letter LEFT JOIN subjects s ON s.key = d.subject "+clause,
		args, func(scan scanner, i *journal.BulkItem) error {
			return scan(asJSON{i}, &i.DeadLetter, &i.Subject.Tenant, &i.Subject.Policy, &i.Subject.ID)
		})
}

// GatherBulkItems implements deadletter.BulkStore. It finds what is next beside who writes, and has the writer's turn
// only to add it.
func (s *Store) GatherBulkItems(ctx context.Context, run string, limit int,
	step func(journal.Head, *journal.Gathering) *journal.Changes) (done bool, err error) {
	limit = min(max(limit, 1), mostGathered)
	var gathered journal.Place
	var next []letter
	err = s.read(ctx, "find a bulk run's dead letters", func(s *snapshot) error {
		r, gathers, err := s.gathering(run)
		if done = !gathers; err != nil || done {
			return err
		}
		gathered = r.Gathered
		after := &gathered
		if gathered == (journal.Place{}) {
			after = nil
		}
		next, err = s.letters(deadletter.OpenQuery(r.Filter, r.Through), deadletter.ByDeadline, after, limit)
		return err
	})
	if err != nil || done {
		return done && err == nil, err
	}
	err = s.change(ctx, "add to a bulk run", func(w *writer, head journal.Head) (*journal.Changes, error) {
		r, gathers, err := w.gathering(run)
		if done = !gathers; err != nil || done || r.Gathered != gathered { // by another call
			return nil, err
		}
		g := &journal.Gathering{Run: &r, Through: gathered, Last: len(next) < limit}
		if done = g.Last; !done {
			g.Through = next[len(next)-1]
		}
		if g.Found, err = w.candidates(next); err != nil {
			return nil, err
		}
		return step(head, g), nil
	})
	return done && err == nil, err
}

// gathering is the bulk run of that id; false where it gathers nothing any more.
func (s *snapshot) gathering(id string) (journal.BulkRun, bool, error) {
	r, found, err := s.run(id)
	return r, found && r.StartedAt.IsZero() && !r.State.Ended(), err
}

// candidates are those of the dead letters that are still open.
func (w *writer) candidates(found []letter) (all []journal.Candidate, err error) {
	for i := range found {
		c := journal.Candidate{Record: found[i].Record}
		open, err := w.one("SELECT "+isBusy+" FROM dead_letters d WHERE d.record = ? AND d.state = 'open'", []any{c.Record},
			&c.Busy)
		if err != nil {
			return nil, err
		}
		if open {
			all = append(all, c)
		}
	}
	return all, nil
}

// isBusy is true where a run that has not ended has planned the dead letter d.
const isBusy = `EXISTS (SELECT 1 FROM bulk_items i JOIN bulk_runs b ON b.id = i.run
	WHERE i.letter = d.record AND i.outcome = 'planned' AND b.state IN ` + unfinished + ")"

// DeadLetterTallies implements deadletter.BulkStore.
func (r *Reader) DeadLetterTallies(
	ctx context.Context, f journal.DeadLetterFilter, through int64, now time.Time,
) (all []deadletter.Tally, upTo int64, err error) {
	err = r.read(ctx, "sum up dead letters", func(s *snapshot) error {
		if upTo = through; upTo == 0 {
			head, err := s.head("")
			if err != nil {
				return err
			}
			upTo = head.Record
		}
		var err error
		all, err = s.tallies(deadletter.OpenQuery(f, upTo), now)
		return err
	})
	return all, upTo, err
}

// delivery of the dead letter d.
const delivery = "COALESCE(d.body->>'delivery', '')"

// tallies sums up what a query finds of the open ones.
func (s *snapshot) tallies(p *deadletter.Query, now time.Time) ([]deadletter.Tally, error) {
	w := s.finds(p, false)
	w.and("d.state = 'open'")
	sums := deadletter.Sums{}
	args := []any{journal.Milli(now), journal.CeilMilli(now.Add(-deadletter.ExpectedFor))}
	err := s.each(`SELECT d.policy, d.team, d.reason, CAST(d.body->>'retryCount' AS BIGINT) >= CAST(d.body->>'maxRetries' AS BIGINT),
			d.deadline <= ?, d.body->>'reviewJobKey' IS NOT NULL AND `+delivery+` <> 'nobody', `+delivery+` = 'nobody', d.at >= ?,
			`+isBusy+`, count(*), min(d.at), max(d.at), CAST(sum(d.record) AS BIGINT), CAST(sum(d.cents) AS BIGINT)
		FROM dead_letters d JOIN subjects s ON s.key = d.subject`+w.String()+" GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9", func(scan scanner) error {
		var t deadletter.Tally
		err := scan(&t.Policy, &t.Team, &t.Reason, &t.AtLimit, &t.Late, &t.Waits, &t.Gone, &t.Recent, &t.Busy, &t.N,
			milli{&t.Oldest}, milli{&t.Newest}, &t.Sum, &t.Cents)
		sums.Merge(t)
		return err
	}, append(args, w.args...)...)
	return sums.Tallies(), err
}
