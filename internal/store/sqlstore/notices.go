package sqlstore

import (
	"cmp"
	"context"

	"retry-worker/internal/journal"
)

// weighed is how many dead letters are updated in one transaction, to keep it short.
const weighed = 200

// Weigh implements journal.Outbox. It writes only changed chances.
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
				_, err := w.head(w.Lock) // like every writer, so that none waits for another's row
				return true, cmp.Or(err, w.execute(b))
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
