package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

const (
	// causesAtOnce are computed in one transaction, and at most causeRounds of them when a journal is opened; what is left
	// is computed the next time.
	causesAtOnce = 500
	causeRounds  = 4000
	// findUnknown are dead letters of a worker that did not keep their cause, with the attempt that tells it: the one they
	// were born with, or the last before a process reported the failure.
	findUnknown = `SELECT d.id, s.policy, a.error, a.outcome, a.reason, a.matched_rule
		FROM dead_letters d INDEXED BY dead_letters_by_cause CROSS JOIN subjects s ON s.key = d.subject
		LEFT JOIN attempts a ON a.record = (SELECT record FROM attempts WHERE subject = d.subject AND record <= d.record
			ORDER BY record = d.record DESC, number DESC, revision DESC LIMIT 1)
		WHERE d.fingerprint = '-' LIMIT ?`
	nameCause = "UPDATE dead_letters SET fingerprint = ? WHERE id = ?"
)

// nameCauses computes the fingerprints of dead letters that have none yet, in small transactions.
func (db *DB) nameCauses(ctx context.Context) error {
	for range causeRounds {
		n := 0
		err := db.write(ctx, func(c *connection) (_ bool, err error) {
			n, err = c.nameCauses()
			return n > 0, asFailed("compute the causes of dead letters", err)
		})
		if err != nil || n < causesAtOnce {
			return err
		}
	}
	return nil
}

func (c *connection) nameCauses() (int, error) {
	s, err := c.prepared(findUnknown)
	if err != nil {
		return 0, err
	}
	causes := map[string]string{}
	s.with(int64(causesAtOnce))
	err = s.query(context.Background(), func(v []driver.Value) error {
		var id, policy string
		err := errors.Join(into(&id, v[0]), into(&policy, v[1]))
		if causes[id] = ""; v[2] == nil {
			return err
		}
		var text, outcome, reason, rule string
		err = errors.Join(err, into(&text, v[2]), into(&outcome, v[3]), into(&reason, v[4]), into(&rule, v[5]))
		causes[id] = journal.FingerprintOf(policy, &journal.Attempt{Error: text, Decision: decision.Decision{
			Outcome: decision.Outcome(outcome), Reason: decision.Reason(reason), MatchedRule: rule}}).ID
		return err
	})
	for id, cause := range causes {
		err = firstError(func() error { return err }, func() error { return c.exec(nameCause, cause, id) })
	}
	return len(causes), err
}
