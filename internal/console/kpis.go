package console

import (
	"slices"
	"strings"
	"time"

	"retry-worker/internal/kpi"
)

// kpiTable shows R19's figures: a row each, a column for each policy of which something was recorded.
type kpiTable struct {
	Policies []string
	Rows     []kpiRow
	// Success is the default policy's success rate, or the first that has one; nil where none has.
	Success *kpiCell
}

type kpiRow struct {
	Name, Window string
	Goals        []string
	Cells        []kpiCell
}

// kpiCell is one figure of one policy.
type kpiCell struct {
	Policy string
	// Value in words; empty where nothing happened that it could be made of.
	Value   string
	Samples string
	Badge   Badge
}

// kpiPage shows every figure of every policy.
func (p *Pages) kpiPage(v *visit, o *open) (*page, error) {
	sums, err := o.figures.of(v.r.Context(), o, v.catalogue.Policies.Names(), v.now)
	return &page{name: "kpis", section: "overview", title: v.T("overview.kpis"), data: v.kpiTable(sums.kpis)}, err
}

// kpiTable puts the policies that have samples side by side; those without say nothing.
func (v *visit) kpiTable(all []kpi.KPI) kpiTable {
	var t kpiTable
	for i := range all {
		if all[i].Samples > 0 && !slices.Contains(t.Policies, all[i].Policy) {
			t.Policies = append(t.Policies, all[i].Policy)
		}
	}
	for i := range all {
		k := &all[i]
		if !slices.Contains(t.Policies, k.Policy) {
			continue
		}
		name, cell, window := v.Or("kpi."+k.Name, k.Name), v.kpiCell(k), v.T("kpi.weekly")
		if k.Window <= kpi.Daily.Hours() {
			window = v.T("kpi.daily")
		}
		row := rowOf(&t.Rows, func(r *kpiRow) bool { return r.Name == name })
		row.Name, row.Window, row.Goals = name, window, v.goals(k)
		row.Cells = append(row.Cells, cell)
		if k.Name == kpi.SuccessRate && k.Value != nil && (t.Success == nil || k.Policy == "tiss-submission") {
			t.Success = &cell
		}
	}
	return t
}

func (v *visit) kpiCell(k *kpi.KPI) kpiCell {
	c := kpiCell{Policy: k.Policy, Badge: Badge{"off", v.T("kpi.none")}}
	if k.Value == nil {
		return c
	}
	c.Value, c.Samples = v.quantity(k.Unit, *k.Value), v.Count("kpi.samples", k.Samples)
	c.Badge = Badge{"ok", v.T("kpi.met")}
	for _, g := range k.Goals {
		switch {
		case g.Holds == nil:
		case g.Kind == kpi.Alert && *g.Holds:
			c.Badge = Badge{"bad", v.T("kpi.alert")}
			return c
		case g.Kind == kpi.Target && !*g.Holds:
			c.Badge = Badge{"warn", v.T("kpi.missed")}
		}
	}
	return c
}

// goals in words, those of both rules with the same limit as one: target ≥ 80 % (RN-BIL-005).
func (v *visit) goals(k *kpi.KPI) []string {
	signs := strings.NewReplacer(">=", "≥", "<=", "≤")
	all := make([]string, 0, len(k.Goals))
	for _, g := range k.Goals {
		all = append(all, v.T("kpi.goal."+g.Kind, signs.Replace(g.Compare), v.quantity(k.Unit, g.Limit), g.Rule))
	}
	return all
}

// quantity of a KPI's unit in words.
func (l Lang) quantity(unit string, x float64) string {
	switch unit {
	case "ratio":
		return l.short(100*x, 1) + " %"
	case "minutes":
		return l.span(time.Duration(x * float64(time.Minute)))
	case "seconds":
		return l.short(x, 3) + " s"
	default:
		return l.short(x, 2)
	}
}

// short returns x with at most so many decimals.
func (l Lang) short(x float64, decimals int) string {
	s := l.Decimal(x, decimals)
	if strings.ContainsAny(s, ".,") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".,")
	}
	return s
}
