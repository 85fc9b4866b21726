package console

import (
	"slices"
	"strings"
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

// policies answers GET /policies with the catalogue in force: the default policy first, the others by name.
func (p *Pages) policies(v *visit) *page {
	names := v.Catalogue.Policies.Names()
	slices.SortStableFunc(names, func(a, b string) int {
		return falseFirst(a != decision.DefaultPolicy, b != decision.DefaultPolicy)
	})
	all := journal.Views(names, func(name *string) *decision.Policy { return v.Catalogue.Policies[*name] })
	return &page{name: "policies", section: "policies", title: v.T("policies.title"),
		data: map[string]any{"V": v, "Policies": all}, summary: v.T("policies.summary", v.Catalogue.Version)}
}

// Backoff says how long the waits of a policy's retries are.
func (v *visit) Backoff(r *decision.BackoffRule) string {
	var s string
	switch {
	case len(r.List) > 0:
		s = strings.Join(journal.Views(r.List, func(d *time.Duration) string { return v.exact(*d) }), ", ")
	case r.Factor > 1:
		s = v.T("backoff.exponential", v.exact(r.Base), v.short(r.Factor, 2), v.exact(r.Max))
	default:
		s = v.T("backoff.constant", v.exact(r.Base))
	}
	if r.Jitter > 0 {
		s += ", ± " + v.short(100*r.Jitter, 1) + " %"
	}
	return s
}

// apart separates numbers and units of a duration. Both languages have the same units.
var apart = strings.NewReplacer("ms", " ms ", "m", " min ", "h", " h ", "s", " s ")

// exact returns a duration with all its parts: 2 h 35 min.
func (l Lang) exact(d time.Duration) string {
	return l.point(strings.TrimSpace(apart.Replace(text.Duration(d))))
}

// Ladder returns a policy's retries with their waits.
func (v *visit) Ladder(p *decision.Policy) *catalogue.Plan {
	return catalogue.PlanAt(p, decision.OwnPolicy{}, "", time.Time{})
}

// Between returns the range of a wait that varies at random.
func (v *visit) Between(r catalogue.Range) string {
	return v.fromTo(time.Duration(r.Earliest), time.Duration(r.Latest))
}

// RuleClass returns the class that a rule gives an error.
func (v *visit) RuleClass(r *classify.Rule) Badge { return v.class(r.Class, r.Presumed()) }

// class returns the badge of an error's class. A presumed class is called so.
func (v *visit) class(of decision.ErrorClassification, presumed bool) Badge {
	b := v.badge("class", of)
	if presumed {
		b.Word = v.T("class.presumed")
	}
	return b
}
