package sqlstore

import (
	"context"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

const unfinished = "('running', 'paused')"

// runs returns bulk runs, without Counts.
func (t *tx) runs(clause string, args ...any) []journal.BulkRun {
	return collect(t, "SELECT body FROM bulk_runs "+clause, args,
		func(scan scanner, r *journal.BulkRun) { scan(asJSON{r}) })
}

// count sets the run's Counts.
func (t *tx) count(r *journal.BulkRun) {
	const query = "SELECT outcome, count(*) FROM bulk_items WHERE run = ? GROUP BY outcome"
	r.Counts = counted[journal.BulkOutcome](t, query, r.ID)
}

func (r *Reader) runs(ctx context.Context, doing, clause string, args ...any) ([]journal.BulkRun, error) {
	return reading(ctx, r, doing, func(t *tx) []journal.BulkRun {
		all := t.runs(clause, args...)
		for i := range all {
			t.count(&all[i])
		}
		return all
	})
}

// BulkRun implements deadletter.BulkStore.
func (r *Reader) BulkRun(ctx context.Context, id string) (run journal.BulkRun, found bool, err error) {
	return first(r.runs(ctx, "read a bulk run", "WHERE id = ?", id))
}

// BulkRuns implements deadletter.BulkStore.
func (r *Reader) BulkRuns(ctx context.Context, after string, limit int) ([]journal.BulkRun, error) {
	var w where
	if after != "" {
		w.and("id < ?", after)
	}
	return r.runs(ctx, "list bulk runs", w.String()+" ORDER BY id DESC LIMIT ?", append(w.args, max(limit, 0))...)
}

// ActiveBulkRuns implements deadletter.BulkStore.
func (r *Reader) ActiveBulkRuns(ctx context.Context) ([]journal.BulkRun, error) {
	return r.runs(ctx, "list the bulk runs that have not ended", "WHERE state IN "+unfinished+" ORDER BY id")
}

// BulkItems implements deadletter.BulkStore.
func (r *Reader) BulkItems(
	ctx context.Context, run string, outcome journal.BulkOutcome, after int64, limit int,
) ([]journal.BulkItem, error) {
	var w where
	w.and("i.run = ? AND i.number > ?", run, after)
	w.is("i.outcome", string(outcome))
	return reading(ctx, r, "list a bulk run's dead letters", func(t *tx) []journal.BulkItem {
		return t.items(w.String()+" ORDER BY i.number LIMIT ?", append(w.args, max(limit, 0))...)
	})
}

// items returns the items i that the clause selects.
func (t *tx) items(clause string, args ...any) []journal.BulkItem {
	const query = `SELECT i.run, i.number, i.record, i.outcome, i.code, i.changed, i.decided, d.id,
		s.tenant, s.policy, s.id
		FROM bulk_items i JOIN dead_letters d ON d.record = i.record JOIN subjects s ON s.key = d.subject`
	return collect(t, query+clause, args, func(scan scanner, i *journal.BulkItem) {
		scan(&i.Run, &i.Number, &i.Record, &i.Outcome, &i.Code, milli{&i.ChangedAt}, milli{&i.DecidedAt}, &i.DeadLetter,
			&i.Subject.Tenant, &i.Subject.Policy, &i.Subject.ID)
	})
}

// DeadLettersOpen implements deadletter.BulkStore.
func (r *Reader) DeadLettersOpen(
	ctx context.Context, f journal.DeadLetterFilter, through int64, limit int,
) (open []deadletter.Item, upTo int64, err error) {
	open, err = reading(ctx, r, "read the open dead letters", func(t *tx) []deadletter.Item {
		if upTo = through; upTo == 0 {
			upTo = t.head("").Record
		}
		p, _ := deadletter.NewQuery(f, "", 1) // only a cursor can fail
		w := t.finds(p)
		w.and("d.state = 'open' AND d.record <= ?", upTo)
		return collect(t, "SELECT "+letterColumns+" FROM dead_letters d JOIN subjects s ON s.key = d.subject"+w.String()+
			" ORDER BY d.record LIMIT ?", append(w.args, limit),
			func(scan scanner, i *deadletter.Item) { scan(ofLetter(&i.DeadLetter)...) })
	})
	return open, upTo, err
}
