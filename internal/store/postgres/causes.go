package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

const (
	// causesAtOnce are computed in one transaction, and at most causeRounds of them when a journal is opened; what is left,
	// and what workers of a version before write meanwhile, is computed the next time.
	causesAtOnce = 500
	causeRounds  = 4000
	// findUnknown are dead letters of a worker that did not keep their cause, with the attempt that tells it: the one they
	// were born with, or the last before a process reported the failure.
	findUnknown = `SELECT d.id, s.policy, a.error, a.outcome, a.reason, a.matched_rule
		FROM dead_letters d JOIN subjects s ON s.key = d.subject
		LEFT JOIN LATERAL (SELECT error, outcome, reason, matched_rule FROM attempts WHERE subject = d.subject AND record <= d.record
			ORDER BY record = d.record DESC, number DESC, revision DESC LIMIT 1) a ON true
		WHERE d.fingerprint = '-' ORDER BY d.id LIMIT $1`
	nameCauses = `UPDATE dead_letters d SET fingerprint = c.cause, policy = c.policy
		FROM unnest($1::text[], $2::text[], $3::text[]) AS c (id, cause, policy) WHERE d.id = c.id`
)

// nameCauses fills in policy and fingerprint of dead letters that have none yet, in small transactions, each in its turn with
// those who write.
func (d *DB) nameCauses(ctx context.Context) error {
	for range causeRounds {
		n := 0
		err := pgx.BeginFunc(ctx, d.writer, func(tx pgx.Tx) (err error) {
			ids, _, _, err := unknownCauses(ctx, tx)
			if err != nil || len(ids) == 0 {
				return err
			}
			if _, err := tx.Exec(ctx, headText+" FOR UPDATE"); err != nil {
				return err
			}
			ids, causes, policies, err := unknownCauses(ctx, tx)
			if err == nil {
				n = len(ids)
				_, err = tx.Exec(ctx, nameCauses, ids, causes, policies)
			}
			return err
		})
		if err != nil || n < causesAtOnce {
			return err
		}
	}
	return nil
}

// unknownCauses are the ids of dead letters without a fingerprint, and what their fingerprints and policies are.
func unknownCauses(ctx context.Context, tx pgx.Tx) (ids, causes, policies []string, err error) {
	err = query(ctx, tx, func(v *values) {
		var id, policy, outcome, reason string
		var a journal.Attempt
		v.text("id", &id)
		v.text("policy", &policy)
		known := !v.null(0)
		v.text("error", &a.Error)
		v.text("outcome", &outcome)
		v.text("reason", &reason)
		v.text("matched_rule", &a.Decision.MatchedRule)
		a.Decision.Outcome, a.Decision.Reason = decision.Outcome(outcome), decision.Reason(reason)
		cause := ""
		if known {
			cause = journal.FingerprintOf(policy, &a).ID
		}
		ids, causes, policies = append(ids, id), append(causes, cause), append(policies, policy)
	}, findUnknown, causesAtOnce)
	return ids, causes, policies, err
}
