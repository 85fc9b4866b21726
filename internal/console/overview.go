package console

import (
	"cmp"
	"slices"
	"strings"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/statistics"
)

// teamRow is what waits for one team.
type teamRow struct {
	deadletter.Count
	Due     view
	Reasons []deadletter.Count
}

// Waiting returns the address of the list of what waits for a team and a reason; empty means any.
func (v *visit) Waiting(t decision.Team, r decision.Reason) string {
	return listURL(journal.DeadLetterFilter{Team: t, Reason: r})
}

// overview answers GET / with what is open, how old it is, and who should act: the reader's team first.
func (p *Pages) overview(v *visit) *page {
	all, own := journal.DeadLetterFilter{}, journal.DeadLetterFilter{Team: v.mine}
	again := journal.DeadLetterFilter{State: string(journal.DeadLetterReprocessing)}
	due := v.due(&all)
	biggest, _, err := v.o.Groups(v.r.Context(), own, "", mostCauses)
	check(err)
	news, _, err := v.o.ListCauses(v.r.Context(), journal.CauseFilter{Told: v.Now.Add(-statistics.Daily)}, "", mostCauses)
	check(err)
	recent, _, err := v.o.Runs(v.r.Context(), "", recentRuns)
	check(err)
	counts := v.counts(all)
	sum, teams := sumOf(counts, &all), v.waiting(counts, due)
	rate, met := success(p.Health().KPIs)
	mine := []string{string(v.mine)} // and the teams that the reader may choose as his own
	for name := range v.Catalogue.Teams {
		mine = append(mine, string(name))
	}
	return &page{name: "overview", summary: v.Count("letters.open", sum.N),
		data: view{"Open": sum.N, "Oldest": v.Ago(sum.Oldest), "Worth": v.Money(sum.Cents), "Due": due(all),
			"AlertAbove": deadletter.AlertAbove, "Reprocessing": sumOf(v.counts(again), &again).N, "Success": rate, "Met": met,
			"Teams": teams, "Own": len(teams) > 0 && teams[0].Team == v.mine,
			"Mine":   options(mine, string(v.mine), func(s string) string { return v.team(decision.Team(s)) }),
			"Causes": biggest, "Filter": own, "News": news, "Shortcuts": v.shortcuts(own),
			"Runs": active(recent), "Health": p.health(v)}}
}

// success returns the default policy's success rate of 24 hours (R19), or else the first policy's that has one, and
// whether it meets its goals; nil if none has.
func success(all []statistics.KPI) (k *statistics.KPI, met bool) {
	for i := range all {
		if all[i].Name == statistics.SuccessRate && all[i].Value != nil && (k == nil || all[i].Policy == decision.DefaultPolicy) {
			k = &all[i]
		}
	}
	return k, k != nil && !slices.ContainsFunc(k.Goals, func(g statistics.Goal) bool { return !*g.Holds })
}

// waiting returns what waits for each team: the reader's team first, then the largest.
func (v *visit) waiting(counts []deadletter.Count, due func(journal.DeadLetterFilter) view) []teamRow {
	type count = deadletter.Count
	reasons := map[decision.Team][]count{}
	for _, of := range deadletter.SumBy(counts, func(c *count) count { return count{Team: c.Team, Reason: c.Reason} }) {
		reasons[of.Team] = append(reasons[of.Team], of)
	}
	sums := deadletter.SumBy(counts, func(c *count) count { return count{Team: c.Team} })
	teams := journal.Views(sums, func(of *count) teamRow {
		return teamRow{*of, due(journal.DeadLetterFilter{Team: of.Team}), reasons[of.Team]}
	})
	slices.SortFunc(teams, func(a, b teamRow) int {
		return cmp.Or(falseFirst(a.Team != v.mine, b.Team != v.mine), cmp.Compare(b.N, a.N),
			cmp.Compare(v.team(a.Team), v.team(b.Team)))
	})
	return teams
}

// falseFirst compares a and b: false comes before true.
func falseFirst(a, b bool) int {
	rank := map[bool]int{true: 1}
	return rank[a] - rank[b]
}

// Teams returns the names of teams.
func (v *visit) Teams(teams []decision.Team) string {
	return strings.Join(journal.Views(teams, func(t *decision.Team) string { return v.team(*t) }), ", ")
}

// mostUntold bounds the failed notices that the overview names.
const mostUntold = 3

// health returns the state of the worker's parts, with the messages that wait in the outbox and, for each team and
// channel, the notice that has failed to reach it for longest; nil for whoever is no admin.
func (p *Pages) health(v *visit) view {
	if v.who.Role != access.Admin {
		return nil
	}
	h, waiting := p.Health(), int64(0)
	for _, n := range h.Backlog {
		waiting += n
	}
	var untold []notify.Waiting
	for _, n := range h.Notices {
		same := func(other notify.Waiting) bool { return n.Team == other.Team && n.Channel == other.Channel }
		if n.Failure != "" && !slices.ContainsFunc(untold, same) && len(untold) < mostUntold {
			untold = append(untold, n)
		}
	}
	return view{"Engine": h.Engine, "Journal": h.Journal, "Rejection": h.Rejection, "Backlog": h.Backlog,
		"Waiting": waiting,
		"Notices": untold, "Grafana": p.Grafana, "Untold": v.Teams(v.Catalogue.Untold())}
}

// down returns how many portals are down, for pages to warn of; 0 for strangers.
func (v *visit) down() (n int64) {
	if v.o == nil || v.who.Role == "" {
		return 0
	}
	known, _ := v.o.Destinations.Destinations() // an error means that none is known yet, which the portals' page says
	for i := range known {
		if known[i].State.Phase == destination.Down {
			n++
		}
	}
	return n
}
