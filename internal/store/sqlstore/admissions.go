package sqlstore

import (
	"context"

	"retry-worker/internal/journal"
)

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
