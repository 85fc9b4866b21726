package grafana

import (
	"fmt"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// goal is what a rule wants of a figure, or raises an alert at (R19).
func goal(kpi string, rule decision.BusinessRule, kind string) float64 {
	for _, k := range journal.KPIs(nil, []string{decision.DefaultPolicy}, time.Time{}) {
		for _, g := range k.Goals {
			if k.Name == kpi && g.Rule == rule && g.Kind == kind {
				return g.Limit
			}
		}
	}
	panic(fmt.Sprintf("%s has no %s of %s", kpi, kind, rule)) // a slip in this package, which its test finds
}

func target005(kpi string) float64 { return goal(kpi, decision.RNBIL005, journal.Target) }
func target004(kpi string) float64 { return goal(kpi, decision.RNBIL004, journal.Target) }
func alert005(kpi string) float64  { return goal(kpi, decision.RNBIL005, journal.Alert) }
func alert004(kpi string) float64  { return goal(kpi, decision.RNBIL004, journal.Alert) }

// kpi reads a figure from the database, which is the same in every replica.
func kpi(name string) query {
	return query{fmt.Sprintf("max by (policy) (%s)", of("retry_worker_kpi", fmt.Sprintf(`kpi=%q`, name), chosen)), "{{policy}}"}
}
