package catalogue

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
)

// kinds of backoff, as their keys.
var kinds = []string{"exponential", "constant", "list"}

// backoff makes the rule of doc, with its defaults, and reports what contradicts itself.
func (b *builder) backoff(path string, doc *backoff) decision.BackoffRule {
	given := slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return !b.has(join(path, kind)) })
	if b.has(path) && len(given) != 1 {
		b.problem(path, countOf(given), "exactly one of "+strings.Join(kinds, ", "))
	}
	rule := decision.BackoffRule{
		Factor: 1, Jitter: float64(doc.Jitter), Min: time.Duration(doc.Min), Max: time.Duration(doc.Max),
		Rounding: time.Duration(doc.Rounding)}
	shortest, longest := b.delays(path, doc, &rule)
	if rule.Min == 0 {
		rule.Min = time.Duration(float64(shortest) * (1 - rule.Jitter))
	}
	if rule.Max == 0 && doc.Exponential == nil {
		rule.Max = time.Duration(float64(longest) * (1 + rule.Jitter))
	}
	if rule.Rounding == 0 {
		rule.Rounding = rule.Precision()
	}
	if at := path + ".rounding"; rule.Max > 0 && rule.Rounding > rule.Max && b.has(at) {
		b.mismatch(at, "at most the longest wait ("+duration(rule.Max.Truncate(time.Millisecond)).String()+")")
		return rule
	}
	for field, bound := range map[string]*time.Duration{".min": &rule.Min, ".max": &rule.Max} {
		if !b.has(path+field) && *bound > 0 { // as the delays that it comes from are rounded
			*bound = max(bound.Round(rule.Rounding), time.Millisecond)
		}
	}
	b.bounds(path, doc, &rule)
	b.precision(path, &rule)
	return rule
}

func countOf(given []string) string {
	if len(given) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d (%s)", len(given), strings.Join(given, ", "))
}

// delays fills in what the delays are made of; shortest and longest are the nominal ones.
func (b *builder) delays(path string, doc *backoff, rule *decision.BackoffRule) (shortest, longest time.Duration) {
	switch {
	case doc.Exponential != nil:
		rule.Base, rule.Factor = time.Duration(doc.Exponential.Base), doc.Exponential.Factor
		if !b.has(path + ".max") {
			b.problem(path+".max", "nothing", "the longest wait, as an exponential backoff grows")
		}
		return rule.Base, 0
	case len(doc.List) > 0:
		for _, d := range doc.List {
			rule.List = append(rule.List, time.Duration(d))
		}
		return slices.Min(rule.List), slices.Max(rule.List)
	default:
		rule.Base = time.Duration(doc.Constant)
		return rule.Base, rule.Base
	}
}

// bounds reports delays that lie outside min and max.
func (b *builder) bounds(path string, doc *backoff, rule *decision.BackoffRule) {
	lowest, most := duration(rule.Min), duration(rule.Max)
	if lowest == 0 || most == 0 {
		return
	}
	if lowest > most {
		at := path + ".min"
		if doc.Min == 0 {
			at = path + ".max"
		}
		b.mismatch(at, fmt.Sprintf("min ≤ max, where min is %s and max %s", lowest, most))
		return
	}
	if doc.Exponential != nil && doc.Exponential.Base > most {
		b.mismatch(path+".exponential.base", "at most max ("+most.String()+")")
	}
	outside := func(d duration) bool { return doc.Min > 0 && d < doc.Min || doc.Max > 0 && d > doc.Max }
	between := "between min (" + lowest.String() + ") and max (" + most.String() + ")"
	if doc.Constant != 0 && outside(doc.Constant) {
		b.mismatch(path+".constant", between)
	}
	for i, d := range doc.List {
		if d != 0 && outside(d) {
			b.mismatch(itemOf(path+".list", i), between)
		}
	}
}

// precision reports times that are finer than the policy computes (R7).
func (b *builder) precision(path string, rule *decision.BackoffRule) {
	exact := rule.Precision()
	for _, bound := range []struct {
		field string
		value time.Duration
	}{{".min", rule.Min}, {".max", rule.Max}, {".rounding", rule.Rounding}} {
		if bound.value%exact != 0 && b.has(path+bound.field) {
			b.mismatch(path+bound.field, "a multiple of "+duration(exact).String()+", as finely as a policy with a min of a "+
				"minute or more computes")
		}
	}
}
