package console

import (
	"slices"
	"strings"
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/text"
)

// policiesData is the page of the catalogue in force.
type policiesData struct {
	V *visit
	// Policies are sorted by name, the default one first.
	Policies []*decision.Policy
}

func (p *Pages) policies(v *visit) (*page, error) {
	c := v.Catalogue
	d := &policiesData{V: v}
	for _, name := range c.Policies.Names() {
		d.Policies = append(d.Policies, c.Policies[name])
	}
	slices.SortStableFunc(d.Policies, func(a, b *decision.Policy) int {
		return falseFirst(a.Name != decision.DefaultPolicy, b.Name != decision.DefaultPolicy)
	})
	return &page{name: "policies", section: "policies", title: v.T("policies.title"), data: d,
		summary: v.T("policies.summary", c.Version)}, nil
}

// Backoff says how long the waits of a policy's retries are.
func (v *visit) Backoff(r *decision.BackoffRule) string {
	var s string
	switch {
	case len(r.List) > 0:
		s = strings.Join(each(r.List, func(d *time.Duration) string { return v.exact(*d) }), ", ")
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
