package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// unknownCause is the fingerprint of a dead letter that nobody has computed yet.
const unknownCause = "-"

// loadItems loads dead letters by their ids, a JSON array, in its order.
var loadItems = "SELECT " + deadLetters.names("d.") + `, s.tenant, s.policy, s.id, a.error, a.classification, a.matched_rule, e.first_failure
FROM json_each(?1) j CROSS JOIN dead_letters d ON d.id = j.value CROSS JOIN subjects s ON s.key = d.subject
LEFT JOIN attempts a ON a.record = d.record AND a.subject = d.subject
LEFT JOIN episodes e ON e.subject = d.subject AND e.number = d.episode
ORDER BY j.key`

// DeadLetter implements journal.DeadLetterReader.
func (r *Reader) DeadLetter(ctx context.Context, id string) (item journal.DeadLetterItem, found bool, err error) {
	err = r.read(ctx, "read a dead letter", func(tx *snapshot) error {
		all, err := items(ctx, tx, id)
		if found = len(all) > 0; found {
			item = all[0]
		}
		return err
	})
	return item, found && err == nil, err
}

func items(ctx context.Context, tx *snapshot, ids ...string) ([]journal.DeadLetterItem, error) {
	all := make([]journal.DeadLetterItem, 0, len(ids))
	err := scan(ctx, tx, loadItems, func(values []driver.Value) error {
		i, err := readItem(values)
		all = append(all, i)
		return err
	}, array(ids))
	return all, err
}

// array is texts as JSON.
func array[S ~string](all []S) string {
	text, err := json.Marshal(all)
	if err != nil { // cannot be: texts
		return "[]"
	}
	return string(text)
}

func readItem(values []driver.Value) (journal.DeadLetterItem, error) {
	row, i := deadLetterRow{}, journal.DeadLetterItem{}
	err := deadLetters.read(&row, values)
	i.DeadLetter, i.Fingerprint = row.DeadLetter, row.Fingerprint
	if i.Fingerprint == unknownCause {
		i.Fingerprint = ""
	}
	v := values[len(deadLetters.columns):]
	err = errors.Join(err, into(&i.Subject.Tenant, v[0]), into(&i.Subject.Policy, v[1]), into(&i.Subject.ID, v[2]))
	if v[3] != nil { // a process reported the failure: there is no attempt
		var class string
		err = errors.Join(err, into(&i.Error, v[3]), into(&class, v[4]), into(&i.MatchedRule, v[5]))
		i.Classification = decision.ErrorClassification(class)
	}
	if v[6] != nil { // purged
		var first int64
		err = errors.Join(err, into(&first, v[6]))
		i.FirstFailure = journal.FromMilli(first)
	}
	return i, err
}

// loadCounts seeks the oldest of each kind that is open.
const loadCounts = `SELECT c.policy, c.state, c.team, c.reason, c.n, CASE c.state WHEN 'open' THEN
	(SELECT (SELECT created_at FROM dead_letters WHERE id = d.id) FROM dead_letters d INDEXED BY dead_letters_by_kind
		WHERE d.state = 'open' AND d.policy = c.policy AND d.team = c.team AND d.reason = c.reason ORDER BY d.record LIMIT 1) END
FROM dead_letter_counts c WHERE c.n > 0 ORDER BY c.policy, c.state, c.team, c.reason`

// DeadLetterCounts implements journal.DeadLetterReader.
func (r *Reader) DeadLetterCounts(ctx context.Context) (all []journal.DeadLetterCount, err error) {
	err = r.read(ctx, "count the dead letters", func(tx *snapshot) error {
		all = nil
		return scan(ctx, tx, loadCounts, func(v []driver.Value) error {
			var c journal.DeadLetterCount
			var state, team, why string
			err := errors.Join(into(&c.Policy, v[0]), into(&state, v[1]), into(&team, v[2]), into(&why, v[3]), into(&c.N, v[4]))
			c.State, c.Team, c.Reason = journal.DeadLetterState(state), decision.Team(team), decision.Reason(why)
			if v[5] != nil {
				var oldest int64
				err = errors.Join(err, into(&oldest, v[5]))
				c.Oldest = journal.FromMilli(oldest)
			}
			all = append(all, c)
			return err
		})
	})
	return all, err
}
