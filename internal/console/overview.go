package console

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
)

// overviewData is what is open, how old it is, and who should act: the reader's team first.
type overviewData struct {
	Open, Reprocessing int64
	// Worth is the amount of all open ones; Due links to those that are late, and those due today.
	Worth      string
	Due        []link
	AlertAbove int64
	Oldest     Moment
	// Own is what waits for the reader's team; nil if he has none, or nothing waits for it.
	Own   *teamRow
	Teams []teamRow
	// Mine are the teams that the reader may choose as his own.
	Mine []option
	// Success is nil if there is no success rate.
	Success *successRate
	V       *visit
	// Runs have not ended. Causes have the most open dead letters; Groups is the address of all causes.
	Runs   []runRow
	Causes []causeRow
	Groups string
	// New are the causes that were reported as new or as back within the last day.
	New []journal.Cause
	// Shortcuts are those of the list of the reader's team.
	Shortcuts []viewLink
	// Only admins see Health, the dashboard's address Grafana, and Untold, the teams without an address for notices.
	Health          *healthData
	Grafana, Untold string
}

// healthData is the state of the worker's parts, with the messages of the outbox that wait in each queue, and in all.
type healthData struct {
	Health
	Backlog map[string]int64
	Waiting int64
}

// teamRow is what waits for one team.
type teamRow struct {
	deadletter.Count
	Description string
	Due         []link
	Reasons     []deadletter.Count
}

// Waiting returns the address of the list of what waits for a team and a reason; empty means any.
func (v *visit) Waiting(t decision.Team, r decision.Reason) string {
	return listURL(journal.DeadLetterFilter{Team: t, Reason: r})
}

func (p *Pages) overview(v *visit) *page {
	all, own := journal.DeadLetterFilter{}, journal.DeadLetterFilter{Team: v.mine}
	again := journal.DeadLetterFilter{State: string(journal.DeadLetterReprocessing)}
	kpis, due := must(v.o.figures.of(v.r.Context(), v.o, v.Catalogue.Policies.Names(), v.Now)), v.due(&all)
	biggest, _, err := v.o.Groups(v.r.Context(), own, "", mostCauses)
	check(err)
	fresh, _, err := v.o.ListCauses(v.r.Context(), journal.CauseFilter{Told: v.Now.Add(-statistics.Daily)}, "", mostCauses)
	check(err)
	recent, _, err := v.o.Runs(v.r.Context(), "", recentRuns)
	check(err)
	d := &overviewData{V: v, AlertAbove: deadletter.AlertAbove, Success: v.success(kpis), Due: due.of(v, all),
		Reprocessing: sumOf(v.counts(again), &again).N, Causes: v.causeRows(biggest, own), Groups: groupsURL(own),
		New: fresh, Shortcuts: v.shortcuts(own),
		Runs: each(active(recent), v.runRow)}
	v.waiting(d, v.counts(all))
	for i := range d.Teams {
		d.Teams[i].Due = due.of(v, journal.DeadLetterFilter{Team: d.Teams[i].Team})
	}
	if len(d.Teams) > 0 && d.Teams[0].Team == v.mine {
		d.Own = &d.Teams[0]
	}
	if v.who.Role == access.Admin {
		d.Grafana, d.Untold = p.Grafana, v.Teams(v.Catalogue.Untold())
		d.Health = p.health(v)
	}
	return &page{name: "overview", section: "overview", title: v.T("overview.title"), data: d,
		summary: v.Count("letters.open", d.Open)}
}

// figuresKept is how long figures are kept: tens of thousands of sums make them, and every change of the journal asks
// for them.
const figuresKept = 10 * time.Second

// figures caches the figures that the journal's sums make. Safe for concurrent use.
type figures struct {
	mu    sync.Mutex
	at    time.Time
	known []statistics.KPI
}

// of returns the figures at instant now, at most figuresKept old. Callers wait while another one makes them.
func (f *figures) of(ctx context.Context, from journal.Statistics, policies []string, now time.Time) ([]statistics.KPI, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if age := now.Sub(f.at); !f.at.IsZero() && age >= 0 && age < figuresKept {
		return f.known, nil
	}
	all, err := statistics.KPIs(ctx, from, policies, "", now)
	if err == nil {
		f.at, f.known = now, all
	}
	return all, err
}

// successRate is a policy's success rate (R19) of 24 hours.
type successRate struct {
	Policy, Value, Samples string
	Badge                  Badge
}

// success returns the default policy's success rate, or else the first policy's that has one; nil if none has.
func (v *visit) success(all []statistics.KPI) *successRate {
	var k *statistics.KPI
	for i := range all {
		if all[i].Name == statistics.SuccessRate && all[i].Value != nil && (k == nil || all[i].Policy == decision.DefaultPolicy) {
			k = &all[i]
		}
	}
	if k == nil {
		return nil
	}
	met := Badge{"ok", v.T("overview.success.met")}
	if slices.ContainsFunc(k.Goals, func(g statistics.Goal) bool { return !*g.Holds }) {
		met = Badge{"warn", v.T("overview.success.missed")}
	}
	return &successRate{k.Policy, v.percent(*k.Value), v.Count("overview.success.samples", k.Samples), met}
}

// waiting adds up the open dead letters by team and reason: the reader's team first, then the largest.
func (v *visit) waiting(d *overviewData, counts []deadletter.Count) {
	var all deadletter.Count
	for i := range counts {
		n := &counts[i]
		all.Add(n)
		t := rowOf(&d.Teams, func(t *teamRow) bool { return t.Team == n.Team })
		t.Team, t.Description = n.Team, v.Catalogue.Teams[n.Team].Description
		t.Add(n)
		r := rowOf(&t.Reasons, func(r *deadletter.Count) bool { return r.Reason == n.Reason })
		r.Reason = n.Reason
		r.Add(n)
	}
	d.Open, d.Oldest, d.Worth = all.N, v.Ago(all.Oldest), v.Money(all.Cents)
	names := []string{string(v.mine)}
	for name := range v.Catalogue.Teams {
		names = append(names, string(name))
	}
	d.Mine = options(names, string(v.mine), func(s string) string { return v.team(decision.Team(s)) })
	slices.SortFunc(d.Teams, func(a, b teamRow) int {
		return cmp.Or(falseFirst(a.Team != v.mine, b.Team != v.mine), cmp.Compare(b.N, a.N), cmp.Compare(v.team(a.Team), v.team(b.Team)))
	})
	for _, t := range d.Teams {
		slices.SortFunc(t.Reasons, func(a, b deadletter.Count) int {
			return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Reason, b.Reason))
		})
	}
}

// falseFirst compares a and b: false comes before true.
func falseFirst(a, b bool) int {
	rank := map[bool]int{true: 1}
	return rank[a] - rank[b]
}

// rowOf returns the row that is wanted, or a new one if there is none.
func rowOf[T any](rows *[]T, wanted func(*T) bool) *T {
	for i := range *rows {
		if wanted(&(*rows)[i]) {
			return &(*rows)[i]
		}
	}
	*rows = append(*rows, *new(T))
	return &(*rows)[len(*rows)-1]
}

// Teams returns the names of teams.
func (v *visit) Teams(teams []decision.Team) string {
	return strings.Join(each(teams, func(t *decision.Team) string { return v.team(*t) }), ", ")
}

// each returns what of returns for each element.
func each[T, V any](all []T, of func(*T) V) []V {
	views := make([]V, len(all))
	for i := range all {
		views[i] = of(&all[i])
	}
	return views
}

// mostUntold bounds the failed notices that the overview names.
const mostUntold = 3

// health returns the state of the worker's parts, with the oldest of the notices that have not reached their team.
func (p *Pages) health(v *visit) *healthData {
	d := &healthData{Health: p.Health(), Backlog: must(v.o.Backlog(v.r.Context()))}
	d.Notices = d.Notices[:min(len(d.Notices), mostUntold)]
	for _, n := range d.Backlog {
		d.Waiting += n
	}
	return d
}

// down returns how many portals are down, for pages to warn of; 0 on the portals' own pages, and for strangers.
func (v *visit) down(section string) (n int64) {
	if v.o == nil || v.who.Role == 0 || section == "portals" {
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
