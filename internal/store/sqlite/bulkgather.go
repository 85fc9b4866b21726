package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"retry-worker/internal/journal"
)

const (
	// mostGathered dead letters are added in one transaction.
	mostGathered = 1000

	loadGathered = "SELECT gathered, numbered, started_at, state IN " + unfinished + " FROM bulk_runs WHERE id = ?"
	// addItem adds ?3, of the subject ?4, to the run ?1 as number ?2, unless it is open no longer. ?5 is the code it is
	// refused with where another run has planned it.
	addItem = `INSERT INTO bulk_items (run, number, dead_letter, subject, outcome, code, changed_at, decided_at)
		SELECT ?1, ?2, ?3, ?4, CASE WHEN busy THEN 'refused' ELSE 'planned' END, CASE WHEN busy THEN ?5 ELSE '' END, ?6, 0
		FROM (SELECT ` + isBusy + ` AS busy FROM dead_letters d WHERE d.id = ?3 AND d.state = 'open') RETURNING number`
	// isBusy tells whether a run that has not ended has planned the dead letter d.
	isBusy = `EXISTS (SELECT 1 FROM bulk_items i INDEXED BY bulk_items_of_letter CROSS JOIN bulk_runs r ON r.id = i.run
		WHERE i.dead_letter = d.id AND i.outcome = 'planned' AND r.state IN ` + unfinished + `)`
	moveGathered = "UPDATE bulk_runs SET gathered = ?2, numbered = ?3 WHERE id = ?1"
	endGathered  = `UPDATE bulk_runs SET gathered = through, numbered = ?2, started_at = ?3,
		state = CASE state WHEN 'preparing' THEN 'running' ELSE state END WHERE id = ?1`
)

// GatherBulkItems implements journal.BulkStore. It finds what is next beside who writes, and has the writer's turn only to
// add it.
func (db *DB) GatherBulkItems(ctx context.Context, run string, limit int, busyCode string, at time.Time) (done bool, err error) {
	r, known, err := db.BulkRun(ctx, run)
	if err != nil || !known || !r.StartedAt.IsZero() || r.State.Ended() {
		return err == nil, err
	}
	limit = min(max(limit, 1), mostGathered)
	g := &gathering{run: run, code: busyCode, at: journal.Milli(at)}
	err = db.read(ctx, "find a bulk run's dead letters", func(tx *snapshot) error { return g.find(ctx, tx, &r, limit) })
	if err != nil {
		return false, err
	}
	err = db.write(ctx, func(c *connection) (_ bool, err error) {
		done, err = g.save(c, len(g.next) < limit)
		return true, asFailed("add to a bulk run", err)
	})
	return done && err == nil, err
}

// gathering is what one call adds to a run.
type gathering struct {
	run, code string
	at        int64
	// after is the record up to which all are in it, next what follows.
	after int64
	next  []letter
}

// find looks for the next of a run.
func (g *gathering) find(ctx context.Context, tx *snapshot, r *journal.BulkRun, limit int) error {
	err := tx.QueryRowContext(ctx, "SELECT gathered FROM bulk_runs WHERE id = ?", g.run).Scan(&g.after)
	if err != nil {
		return err
	}
	g.next = nil
	s, err := newChoice(ctx, tx, r.Filter, r.Through)
	if err != nil {
		return err
	}
	g.next, err = s.following(g.after, limit)
	return err
}

// save adds what was found, unless another call has done so meanwhile; last tells that no more follow.
func (g *gathering) save(c *connection, last bool) (done bool, err error) {
	row, err := c.row(loadGathered, g.run)
	if err != nil || row == nil {
		return err == nil, err
	}
	var after, number, started, active int64
	err = errors.Join(into(&after, row[0]), into(&number, row[1]), into(&started, row[2]), into(&active, row[3]))
	switch {
	case err != nil:
		return false, err
	case started != 0 || active == 0:
		return true, nil
	case after != g.after:
		return false, nil
	}
	for _, l := range g.next {
		added, err := c.row(addItem, g.run, number+1, l.id, l.subject, g.code, g.at)
		if err != nil {
			return false, err
		}
		if added != nil {
			number++
		}
		after = l.record
	}
	if last {
		return true, c.exec(endGathered, g.run, number, g.at)
	}
	return false, c.exec(moveGathered, g.run, after, number)
}

// DeadLetterTallies implements journal.BulkStore.
func (r *Reader) DeadLetterTallies(ctx context.Context, f journal.DeadLetterFilter, through int64, recent time.Time) (all []journal.DeadLetterTally, upTo int64, err error) {
	f.State = ""
	if _, err := f.Plan("", 1); err != nil {
		return nil, 0, err
	}
	err = r.read(ctx, "sum up dead letters", func(tx *snapshot) error {
		if upTo = through; upTo == 0 {
			if err := scan(ctx, tx, loadHead, func(v []driver.Value) error { return into(&upTo, v[1]) }); err != nil {
				return err
			}
		}
		s, err := newChoice(ctx, tx, f, upTo)
		if err != nil {
			return err
		}
		all, err = s.tallies(recent)
		return err
	})
	return all, upTo, err
}
