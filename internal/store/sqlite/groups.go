package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// findGroups are the causes with the most dead letters: ?1 are the states, ?5 and ?6 how many the one before had, and which it
// was, ?7 how many are wanted. What is counted there is no dead letter but how many there are of a cause.
const findGroups = `SELECT fingerprint, total FROM (SELECT c.fingerprint, sum(c.n) AS total
		FROM dead_letter_causes c LEFT JOIN fingerprints f ON f.id = c.fingerprint
		WHERE c.n > 0 AND c.fingerprint NOT IN ('', '-') AND c.state IN (SELECT value FROM json_each(?1)) AND ?3 IN ('', c.team) AND ?4 IN ('', c.reason)
			AND (?2 = '' OR ?2 = coalesce(f.policy, (SELECT d.policy FROM dead_letters d INDEXED BY dead_letters_by_cause
				WHERE d.fingerprint = c.fingerprint AND d.state = c.state AND d.team = c.team AND d.reason = c.reason LIMIT 1)))%s
		GROUP BY c.fingerprint)
	WHERE total < ?5 OR total = ?5 AND fingerprint > ?6 ORDER BY total DESC, fingerprint LIMIT ?7`

// DeadLetterGroups implements journal.DeadLetterReader.
func (r *Reader) DeadLetterGroups(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) (all []journal.DeadLetterGroup, next string, err error) {
	p, err := f.Groups(cursor, limit)
	if err != nil {
		return nil, "", err
	}
	err = r.read(ctx, "group dead letters", func(tx *snapshot) error {
		all, next = nil, ""
		if p.Unknown() {
			return nil
		}
		g := &grouping{&search{ctx: ctx, tx: tx, plan: p.DeadLetterPlan}}
		if all, err = g.find(p); err != nil {
			return err
		}
		if len(all) > p.Limit {
			all = all[:p.Limit]
			next = p.Cursor(all[p.Limit-1].N, all[p.Limit-1].Cause.ID)
		}
		return g.describe(all)
	})
	return all, next, err
}

// grouping is one page's.
type grouping struct{ *search }

// find finds the causes of the page, and one more.
func (g *grouping) find(p *journal.DeadLetterGroupPlan) (all []journal.DeadLetterGroup, err error) {
	condition, args := g.words(append(g.filter(), p.Most, p.After, p.Limit+1))
	switch {
	case !p.Searches && p.Filter.Fingerprint != "":
		condition = " AND c.fingerprint = ?8"
	case p.Searches:
		condition = " AND c.fingerprint IN (SELECT id FROM fingerprints WHERE true" + condition + ")"
	}
	err = scan(g.ctx, g.tx, fmt.Sprintf(findGroups, condition), func(v []driver.Value) error {
		var d journal.DeadLetterGroup
		err := errors.Join(into(&d.Cause.ID, v[0]), into(&d.N, v[1]))
		all = append(all, d)
		return err
	}, args...)
	return all, err
}

// findParts are the kinds that a cause ?1 has, those with the most first, with the ids of the first and the last of each.
const findParts = `SELECT team, n,
		(SELECT id FROM dead_letters d INDEXED BY dead_letters_by_cause WHERE d.fingerprint = c.fingerprint AND d.state = c.state
			AND d.team = c.team AND d.reason = c.reason ORDER BY record LIMIT 1),
		(SELECT id FROM dead_letters d INDEXED BY dead_letters_by_cause WHERE d.fingerprint = c.fingerprint AND d.state = c.state
			AND d.team = c.team AND d.reason = c.reason ORDER BY record DESC LIMIT 1)
	FROM dead_letter_causes c WHERE fingerprint = ?1 AND n > 0 AND state IN (SELECT value FROM json_each(?2))
		AND ?3 IN ('', team) AND ?4 IN ('', reason)`

// describe fills in what is told of each group beside how many there are.
func (g *grouping) describe(all []journal.DeadLetterGroup) error {
	f := &g.plan.Filter
	var ids []string
	of := map[string]*journal.DeadLetterGroup{} // by the ids of their ends
	err := prepare(g.ctx, g.tx, findParts, func(ask asking) error {
		for i := range all {
			teams := journal.TeamCounts{}
			err := ask(func(v []driver.Value) error {
				var team, first, last string
				var n int64
				err := errors.Join(into(&team, v[0]), into(&n, v[1]), into(&first, v[2]), into(&last, v[3]))
				teams[decision.Team(team)] += n
				ids, of[first], of[last] = append(ids, first, last), &all[i], &all[i]
				return err
			}, all[i].Cause.ID, array(g.plan.States), string(f.Team), string(f.Reason))
			if err != nil {
				return err
			}
			all[i].Teams = teams.Teams()
		}
		return nil
	})
	if err != nil {
		return err
	}
	ends, err := items(g.ctx, g.tx, ids...)
	if err != nil {
		return err
	}
	slices.SortFunc(ends, func(a, b journal.DeadLetterItem) int { return cmp.Compare(a.Record, b.Record) })
	for i := range ends {
		of[ends[i].ID].End(&ends[i])
	}
	return g.name(all)
}

// name fills in what is known of the causes.
func (g *grouping) name(all []journal.DeadLetterGroup) error {
	at, ids := map[string]*journal.DeadLetterGroup{}, make([]string, len(all))
	for i := range all {
		at[all[i].Cause.ID], ids[i] = &all[i], all[i].Cause.ID
	}
	return fingerprints.list(g.ctx, g.tx, "WHERE id IN (SELECT value FROM json_each(?))", func(v []driver.Value) error {
		var f journal.Fingerprint
		err := fingerprints.read(&f, v)
		at[f.ID].Name(&f)
		return err
	}, array(ids))
}
