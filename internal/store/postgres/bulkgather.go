package postgres

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"retry-worker/internal/journal"
)

const (
	// mostGathered dead letters are added in one transaction.
	mostGathered = 1000

	// lockGathering: one at a time adds to runs, so that none plans what another just planned.
	lockGathering = "SELECT pg_advisory_xact_lock(7234297712310424)"
	loadGathered  = "SELECT gathered, numbered, started_at <> 0 OR state NOT IN " + unfinished + " FROM bulk_runs WHERE id = $1 FOR UPDATE"
	// addItems adds $3, of the subjects $4, to the run $1 behind number $2, but for those that are open no longer. $5 is the
	// code they are refused with where another run has planned them.
	addItems = `INSERT INTO bulk_items (run, number, dead_letter, subject, outcome, code, changed_at, decided_at)
		SELECT $1::text, $2::bigint + row_number() OVER (ORDER BY n.place), d.id, n.subject, CASE WHEN b.busy THEN 'refused' ELSE 'planned' END,
			CASE WHEN b.busy THEN $5::text ELSE '' END, $6::bigint, 0
		FROM unnest($3::text[], $4::bigint[]) WITH ORDINALITY AS n (id, subject, place)
		JOIN dead_letters d ON d.id = n.id AND d.state = 'open'
		CROSS JOIN LATERAL (SELECT ` + isBusy + ` AS busy) b`
	// isBusy tells whether a run that has not ended has planned the dead letter d.
	isBusy = `EXISTS (SELECT FROM bulk_items i JOIN bulk_runs r ON r.id = i.run
		WHERE i.dead_letter = d.id AND i.outcome = 'planned' AND r.state IN ` + unfinished + `)`
	moveGathered = "UPDATE bulk_runs SET gathered = $2, numbered = $3 WHERE id = $1"
	endGathered  = `UPDATE bulk_runs SET gathered = through, numbered = $2, started_at = $3,
		state = CASE state WHEN 'preparing' THEN 'running' ELSE state END WHERE id = $1`
)

// GatherBulkItems implements journal.BulkStore. It finds what is next beside who writes, and takes locks only to add it.
func (d *DB) GatherBulkItems(ctx context.Context, run string, limit int, busyCode string, at time.Time) (done bool, err error) {
	r, known, err := d.BulkRun(ctx, run)
	if err != nil || !known || !r.StartedAt.IsZero() || r.State.Ended() {
		return err == nil, err
	}
	limit = min(max(limit, 1), mostGathered)
	g := &gathering{run: run, code: busyCode, at: journal.Milli(at)}
	err = d.atOnce(ctx, func(tx pgx.Tx) error { return g.find(ctx, tx, &r, limit) })
	if err != nil {
		return false, storeError("find a bulk run's dead letters", err, false)
	}
	err = pgx.BeginFunc(ctx, d.writer, func(tx pgx.Tx) (err error) {
		done, err = g.save(ctx, tx, len(g.ids) < limit)
		return err
	})
	if err != nil {
		return false, storeError("add to a bulk run", err, false)
	}
	return done, nil
}

// atOnce reads one moment of the journal.
func (r *Reader) atOnce(ctx context.Context, read func(tx pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, r.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, read)
}

// gathering is what one call adds to a run.
type gathering struct {
	run, code string
	at        int64
	// after is the record up to which all are in it, last that of the last that follows.
	after, last int64
	ids         []string
	subjects    []int64
}

// find looks for the next of a run.
func (g *gathering) find(ctx context.Context, tx pgx.Tx, r *journal.BulkRun, limit int) error {
	err := query(ctx, tx, func(v *values) { v.number("gathered", &g.after) }, "SELECT gathered FROM bulk_runs WHERE id = $1", g.run)
	if err != nil {
		return err
	}
	s, err := newChoice(ctx, tx, r.Filter, r.Through)
	if err != nil {
		return err
	}
	g.last = g.after
	var c clause
	text := s.following(&c, g.after, limit)
	return query(ctx, tx, func(v *values) {
		var id string
		v.number("record", &g.last)
		v.text("id", &id)
		g.ids, g.subjects = append(g.ids, id), append(g.subjects, v.integer("subject"))
	}, text, c.arguments...)
}

// save adds what was found, unless another call has done so meanwhile; last tells that no more follow.
func (g *gathering) save(ctx context.Context, tx pgx.Tx, last bool) (done bool, err error) {
	if _, err := tx.Exec(ctx, lockGathering); err != nil {
		return false, err
	}
	var after, number int64
	done = true // also where it is gone
	if err := query(ctx, tx, func(v *values) {
		v.number("gathered", &after)
		v.number("numbered", &number)
		v.truth("done", &done)
	}, loadGathered, g.run); err != nil || done || after != g.after {
		return done, err
	}
	added, err := tx.Exec(ctx, addItems, g.run, number, g.ids, g.subjects, g.code, g.at)
	if err != nil {
		return false, err
	}
	number += added.RowsAffected()
	if last {
		_, err = tx.Exec(ctx, endGathered, g.run, number, g.at)
		return true, err
	}
	_, err = tx.Exec(ctx, moveGathered, g.run, g.last, number)
	return false, err
}

// choice is what a filter lets through of the open dead letters with a record of at most through.
type choice struct {
	*search
	// few tells of each prefix that few subjects begin with it.
	few []bool
}

func newChoice(ctx context.Context, tx pgx.Tx, f journal.DeadLetterFilter, through int64) (*choice, error) {
	f.State = ""
	p, err := f.Plan("", 1)
	if err != nil {
		return nil, err
	}
	if p.Before = through; through < math.MaxInt64 {
		p.Before++
	}
	s, err := newSearch(ctx, tx, p)
	if err == nil {
		err = s.seekOnly()
	}
	c := &choice{search: s}
	for i := 0; err == nil && i < len(p.Prefixes); i++ {
		var rare bool
		rare, err = s.isRare(p.Prefixes[i])
		c.few = append(c.few, rare)
	}
	return c, err
}

// found is the condition on dead letters d to be what the query finds.
func (s *choice) found(c *clause) string {
	if !s.plan.Searches {
		return ""
	}
	ways := []string{"d.id = " + c.argument(s.plan.ID)}
	if len(s.plan.Words) > 0 {
		ways = append(ways, "d.fingerprint IN (SELECT f.id FROM fingerprints f WHERE "+s.words(c)+")")
	}
	for i, prefix := range s.plan.Prefixes {
		if s.few[i] {
			ways = append(ways, "d.subject IN (SELECT s.key FROM subjects s WHERE "+begins(c, prefix)+")")
		} else {
			ways = append(ways, "EXISTS (SELECT FROM subjects s WHERE s.key = d.subject AND "+begins(c, prefix)+")")
		}
	}
	return " AND (" + strings.Join(ways, " OR ") + ")"
}

// following asks for the first that come behind the record after, in order, at most limit. Where there is a query, it looks
// through what is open from there on.
func (s *choice) following(c *clause, after int64, limit int) string {
	end := s.within(c) + " AND d.record > " + c.argument(after) + " ORDER BY d.record LIMIT " + c.argument(limit)
	if s.plan.Searches {
		return "SELECT d.record, d.id, d.subject FROM dead_letters d WHERE " + s.ofFilter(c) + s.found(c) + end
	}
	return "SELECT d.record, d.id, d.subject FROM (" + s.kindsOf(c) + ") k CROSS JOIN LATERAL (SELECT d.record, d.id, d.subject FROM dead_letters d" +
		" WHERE " + s.ofKind() + end + ") d ORDER BY d.record LIMIT " + c.argument(limit)
}

// DeadLetterTallies implements journal.BulkStore.
func (r *Reader) DeadLetterTallies(ctx context.Context, f journal.DeadLetterFilter, through int64, recent time.Time) (all []journal.DeadLetterTally, upTo int64, err error) {
	f.State = ""
	if _, err := f.Plan("", 1); err != nil {
		return nil, 0, err
	}
	err = r.atOnce(ctx, func(tx pgx.Tx) error {
		if upTo = through; upTo == 0 {
			if err := query(ctx, tx, func(v *values) { upTo = readHead(v).Record }, headText); err != nil {
				return err
			}
		}
		s, err := newChoice(ctx, tx, f, upTo)
		if err == nil {
			all, err = s.tallies(recent)
		}
		return err
	})
	if err != nil {
		return nil, 0, storeError("sum up dead letters", err, false)
	}
	return all, upTo, nil
}

// tallies sums up what is chosen.
func (s *choice) tallies(recent time.Time) ([]journal.DeadLetterTally, error) {
	busy, since := "false", int64(math.MinInt64)
	err := query(s.ctx, s.tx, func(*values) { busy = isBusy }, "SELECT 1 FROM bulk_runs WHERE state IN "+unfinished+" LIMIT 1")
	if err != nil {
		return nil, err
	}
	if !recent.IsZero() {
		since = ceiling(recent)
	}
	var c clause
	// The sum of many records is a numeric, whatever they are.
	text := `SELECT d.policy, d.team, d.reason, d.retry_count >= d.max_retries, d.review_job_key <> 0 AND d.delivery <> 'nobody', d.delivery = 'nobody',
		d.created_at >= ` + c.argument(since) + `, ` + busy + `, count(*), min(d.created_at), max(d.created_at), (sum(d.record) % 9223372036854775808)::bigint
		FROM (` + s.kindsOf(&c) + `) k JOIN dead_letters d ON ` + s.ofKind() + s.within(&c) + s.found(&c) + ` GROUP BY 1, 2, 3, 4, 5, 6, 7, 8`
	sums := journal.DeadLetterSums{}
	err = query(s.ctx, s.tx, func(v *values) {
		var t journal.DeadLetterTally
		v.text("policy", &t.Policy)
		v.text("team", (*string)(&t.Team))
		v.text("reason", (*string)(&t.Reason))
		v.truth("limit", &t.AtLimit)
		v.truth("waits", &t.Waits)
		v.truth("gone", &t.Gone)
		v.truth("recent", &t.Recent)
		v.truth("busy", &t.Busy)
		n := v.integer("n")
		var oldest, newest time.Time
		v.instant("oldest", &oldest)
		v.instant("newest", &newest)
		sums.Add(t, n, oldest, newest, v.integer("sum"))
	}, text, c.arguments...)
	return sums.Tallies(), err
}
