package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"retry-worker/internal/journal"
)

var _ journal.DeadLetterReader = (*Reader)(nil)

// unknownCause is the fingerprint of a dead letter that nobody has computed yet.
const unknownCause = "-"

// itemText reads dead letters with what is known of their subjects; what chooses them goes in front of WHERE.
func itemText(from, where string) string {
	return "SELECT " + deadLettersTable.columns("d") + `, s.tenant, s.policy, s.id, a.error, a.classification, a.matched_rule, e.first_failure
FROM ` + from + ` JOIN subjects s ON s.key = d.subject
LEFT JOIN attempts a ON a.record = d.record AND a.subject = d.subject
LEFT JOIN episodes e ON e.subject = d.subject AND e.number = d.episode
` + where
}

var (
	loadByID = itemText("dead_letters d", "WHERE d.id = $1")
	// loadFound loads what was found: states and records.
	loadFound = itemText(`unnest($1::text[], $2::bigint[]) AS f (state, record)
JOIN dead_letters d ON d.state = f.state COLLATE "C" AND d.record = f.record`, "ORDER BY d.record DESC")
)

// DeadLetter implements journal.DeadLetterReader.
func (r *Reader) DeadLetter(ctx context.Context, id string) (journal.DeadLetterItem, bool, error) {
	all, err := items(ctx, r.pool, loadByID, id)
	if err != nil {
		return journal.DeadLetterItem{}, false, storeError("read a dead letter", err, false)
	}
	if len(all) == 0 {
		return journal.DeadLetterItem{}, false, nil
	}
	return all[0], true, nil
}

func items(ctx context.Context, q querier, text string, arguments ...any) (all []journal.DeadLetterItem, err error) {
	err = query(ctx, q, func(v *values) {
		var row journal.KeyedDeadLetter
		deadLetterFields(v, &row)
		i := journal.DeadLetterItem{DeadLetter: row.DeadLetter, Fingerprint: row.Fingerprint}
		if i.Fingerprint == unknownCause {
			i.Fingerprint = ""
		}
		tenancy(v, &i.Subject)
		v.text("error", &i.Error) // null where a process reported the failure: there is no attempt
		v.text("classification", (*string)(&i.Classification))
		v.text("matched_rule", &i.MatchedRule)
		v.instant("first_failure", &i.FirstFailure) // null where it is purged
		all = append(all, i)
	}, text, arguments...)
	return all, err
}

// countsText seeks the oldest of each kind that is open.
const countsText = `SELECT c.policy, c.state, c.team, c.reason, c.n, CASE WHEN c.state = 'open' THEN
	(SELECT d.created_at FROM dead_letters d WHERE d.state = 'open' AND d.policy = c.policy AND d.team = c.team AND d.reason = c.reason
		ORDER BY d.record LIMIT 1) END
FROM dead_letter_counts c WHERE c.n > 0 ORDER BY c.policy, c.state, c.team COLLATE "C", c.reason COLLATE "C"`

// DeadLetterCounts implements journal.DeadLetterReader.
func (r *Reader) DeadLetterCounts(ctx context.Context) (all []journal.DeadLetterCount, err error) {
	err = query(ctx, r.pool, func(v *values) {
		var c journal.DeadLetterCount
		v.text("policy", &c.Policy)
		v.text("state", (*string)(&c.State))
		v.text("team", (*string)(&c.Team))
		v.text("reason", (*string)(&c.Reason))
		v.number("n", &c.N)
		v.instant("oldest", &c.Oldest)
		all = append(all, c)
	}, countsText)
	if err != nil {
		return nil, storeError("count the dead letters", err, false)
	}
	return all, nil
}

// DeadLetterPage implements journal.DeadLetterReader. It seeks each kind of dead letters that the filter lets through in an
// index, from the newest on, and merges what it finds.
func (r *Reader) DeadLetterPage(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) (all []journal.DeadLetterItem, next string, err error) {
	p, err := f.Plan(cursor, limit)
	if err != nil {
		return nil, "", err
	}
	moment := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, r.pool, moment, func(tx pgx.Tx) (err error) {
		all, next, err = page(ctx, tx, p)
		return err
	})
	if err != nil {
		return nil, "", storeError("list dead letters", err, false)
	}
	return all, next, nil
}

func page(ctx context.Context, tx pgx.Tx, p *journal.DeadLetterPlan) (all []journal.DeadLetterItem, next string, err error) {
	s, err := newSearch(ctx, tx, p)
	if err == nil {
		err = s.find()
	}
	if err != nil {
		return nil, "", err
	}
	found := s.newest()
	switch {
	case len(found) > p.Limit:
		found = found[:p.Limit]
		next = p.Cursor(found[p.Limit-1].record)
	case s.floor > 0: // further ones were not looked at
		next = p.Cursor(s.floor)
	}
	states, records := make([]string, len(found)), make([]int64, len(found))
	for i := range found {
		states[i], records[i] = found[i].state, found[i].record
	}
	if len(found) > 0 {
		all, err = items(ctx, tx, loadFound, states, records)
	}
	return all, next, err
}
