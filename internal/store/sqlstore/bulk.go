package sqlstore

import (
	"context"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

const unfinished = "('running', 'paused')"

// run returns the bulk run of that id, without Counts, and reports whether there is one.
func (s *snapshot) run(id string) (journal.BulkRun, bool, error) {
	return first(collect(s, "SELECT body FROM bulk_runs WHERE id = ?", []any{id}, fromJSON[journal.BulkRun]))
}

// count sets the run's Counts.
func (s *snapshot) count(r *journal.BulkRun) (err error) {
	const query = "SELECT outcome, count(*) FROM bulk_items WHERE run = ? GROUP BY outcome"
	r.Counts, err = counted[journal.BulkOutcome](s, query, r.ID)
	return err
}

func (s *snapshot) bulkRuns(clause string, args ...any) (all []journal.BulkRun, err error) {
	all, err = collect(s, "SELECT body FROM bulk_runs "+clause, args, fromJSON[journal.BulkRun])
	for i := range all {
		if err == nil {
			err = s.count(&all[i])
		}
	}
	return all, err
}

func (r *Reader) bulkRuns(ctx context.Context, doing, clause string, args ...any) ([]journal.BulkRun, error) {
	return reading(ctx, r, doing, func(s *snapshot) ([]journal.BulkRun, error) { return s.bulkRuns(clause, args...) })
}

// BulkRun implements deadletter.BulkStore.
func (r *Reader) BulkRun(ctx context.Context, id string) (run journal.BulkRun, found bool, err error) {
	return first(r.bulkRuns(ctx, "read a bulk run", "WHERE id = ?", id))
}

// BulkRuns implements deadletter.BulkStore.
func (r *Reader) BulkRuns(ctx context.Context, after string, limit int) ([]journal.BulkRun, error) {
	var w where
	if after != "" {
		w.and("id < ?", after)
	}
	return r.bulkRuns(ctx, "list bulk runs", w.String()+" ORDER BY id DESC LIMIT ?", append(w.args, max(limit, 0))...)
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

// items returns the items i that the clause selects.
func (s *snapshot) items(clause string, args ...any) ([]journal.BulkItem, error) {
	const query = `SELECT i.run, i.number, i.record, i.outcome, i.code, i.changed, i.decided, d.id,
		s.tenant, s.policy, s.id
		FROM bulk_items i JOIN dead_letters d ON d.record = i.record JOIN subjects s ON s.key = d.subject`
	return collect(s, query+clause, args, func(scan scanner, i *journal.BulkItem) error {
		return scan(&i.Run, &i.Number, &i.Record, &i.Outcome, &i.Code, milli{&i.ChangedAt}, milli{&i.DecidedAt}, &i.DeadLetter,
			&i.Subject.Tenant, &i.Subject.Policy, &i.Subject.ID)
	})
}

// DeadLettersOpen implements deadletter.BulkStore.
func (r *Reader) DeadLettersOpen(
	ctx context.Context, f journal.DeadLetterFilter, through int64, limit int,
) (open []deadletter.Item, upTo int64, err error) {
	err = r.read(ctx, "read the open dead letters", func(s *snapshot) error {
		if upTo = through; upTo == 0 {
			head, err := s.head("")
			if err != nil {
				return err
			}
			upTo = head.Record
		}
		p, _ := deadletter.NewQuery(f, "", 1) // only a cursor can fail
		w := s.finds(p)
		w.and("d.state = 'open' AND d.record <= ?", upTo)
		open, err = collect(s, "SELECT "+letterColumns+" FROM dead_letters d "+
			"JOIN subjects s ON s.key = d.subject"+w.String()+" ORDER BY d.record LIMIT ?", append(w.args, limit),
			func(scan scanner, i *deadletter.Item) error { return scanDeadLetter(scan, &i.Subject, &i.DeadLetter) })
		return err
	})
	return open, upTo, err
}
