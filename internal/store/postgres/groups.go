package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// DeadLetterGroups implements journal.DeadLetterReader. What is counted are no dead letters, but how many there are of each
// cause; the ends of those on the page are sought.
func (r *Reader) DeadLetterGroups(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) (all []journal.DeadLetterGroup, next string, err error) {
	p, err := f.Groups(cursor, limit)
	if err != nil || p.Unknown() {
		return nil, "", err
	}
	err = r.atOnce(ctx, func(tx pgx.Tx) error {
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
	if err != nil {
		return nil, "", storeError("group dead letters", err, false)
	}
	return all, next, nil
}

// grouping is one page's.
type grouping struct{ *search }

// kinds is the condition on kinds k of causes.
func (g *grouping) kinds(c *clause) string {
	f := &g.plan.Filter
	return "k.n > 0 AND k.fingerprint NOT IN ('', '-') AND " + g.matches(c, "k", journal.DeadLetterFilter{Team: f.Team, Reason: f.Reason})
}

// find finds the causes of the page, and one more.
func (g *grouping) find(p *journal.DeadLetterGroupPlan) (all []journal.DeadLetterGroup, err error) {
	var c clause
	f := &p.Filter
	condition := g.kinds(&c)
	if f.Policy != "" {
		condition += " AND " + c.argument(f.Policy) + ` = coalesce(f.policy, (SELECT d.policy FROM dead_letters d
			WHERE d.fingerprint = k.fingerprint AND d.state = k.state AND d.team = k.team AND d.reason = k.reason LIMIT 1))`
	}
	if f.Fingerprint != "" {
		condition += " AND k.fingerprint = " + c.argument(f.Fingerprint)
	}
	if p.Searches {
		condition += " AND " + g.words(&c)
	}
	most := c.argument(p.Most)
	text := `SELECT g.fingerprint, g.total FROM (SELECT k.fingerprint, sum(k.n)::bigint AS total
			FROM dead_letter_causes k LEFT JOIN fingerprints f ON f.id = k.fingerprint WHERE ` + condition + ` GROUP BY k.fingerprint) g
		WHERE g.total < ` + most + " OR g.total = " + most + " AND g.fingerprint > " + c.argument(p.After) +
		" ORDER BY g.total DESC, g.fingerprint LIMIT " + c.argument(p.Limit+1)
	err = query(g.ctx, g.tx, func(v *values) {
		var d journal.DeadLetterGroup
		v.text("fingerprint", &d.Cause.ID)
		v.number("total", &d.N)
		all = append(all, d)
	}, text, c.arguments...)
	return all, err
}

// describe fills in what is told of each group beside how many there are.
func (g *grouping) describe(all []journal.DeadLetterGroup) error {
	at, ids := map[string]*journal.DeadLetterGroup{}, make([]string, len(all))
	for i := range all {
		at[all[i].Cause.ID], ids[i] = &all[i], all[i].Cause.ID
	}
	if err := g.seekOnly(); err != nil || len(all) == 0 {
		return err
	}
	states, records, err := g.ends(at, ids)
	if err != nil {
		return err
	}
	ends, err := items(g.ctx, g.tx, loadFound, states, records)
	if err != nil {
		return err
	}
	for i := len(ends) - 1; i >= 0; i-- { // the oldest first
		at[ends[i].Fingerprint].End(&ends[i])
	}
	return each(g.ctx, g.tx, fingerprintTable, func(f *journal.Fingerprint) { at[f.ID].Name(f) }, "WHERE t.id = ANY($1)", ids)
}

// ends are the states and records of the first and the last of each kind of the causes; it fills in their teams.
func (g *grouping) ends(at map[string]*journal.DeadLetterGroup, ids []string) (states []string, records []int64, err error) {
	var c clause
	seek := ` FROM dead_letters d WHERE d.fingerprint = k.fingerprint AND d.state = k.state AND d.team = k.team AND d.reason = k.reason ORDER BY d.record`
	text := "SELECT k.fingerprint, k.state, k.team, k.n, (SELECT d.record" + seek + " LIMIT 1), (SELECT d.record" + seek +
		" DESC LIMIT 1) FROM dead_letter_causes k WHERE " + g.kinds(&c) + " AND k.fingerprint = ANY(" + c.argument(ids) + ")"
	teams := map[string]journal.TeamCounts{}
	err = query(g.ctx, g.tx, func(v *values) {
		var id, state, team string
		v.text("fingerprint", &id)
		v.text("state", &state)
		v.text("team", &team)
		if teams[id] == nil {
			teams[id] = journal.TeamCounts{}
		}
		teams[id][decision.Team(team)] += v.integer("n")
		states, records = append(states, state, state), append(records, v.integer("first"), v.integer("last"))
	}, text, c.arguments...)
	for id, counts := range teams {
		at[id].Teams = counts.Teams()
	}
	return states, records, err
}
