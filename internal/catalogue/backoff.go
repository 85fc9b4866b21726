package catalogue

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/text"
)

// kinds lists the keys of the kinds of backoff.
var kinds = []string{"exponential", "constant", "list"}

// delay is one raw delay of a backoff, and its path.
type delay struct {
	path string
	of   time.Duration
}

// backoff makes the rule of doc, with defaults, and reports contradictions.
func (b *builder) backoff(path string, doc *backoff) decision.BackoffRule {
	given := slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return !b.has(join(path, kind)) })
	if b.has(path) && len(given) != 1 {
		found := cmp.Or(strings.Join(given, " and "), "none")
		b.problem(path, found, "exactly one of "+strings.Join(kinds, ", "))
	}
	rule := doc.BackoffRule
	rule.Base, rule.Factor = doc.Constant, 1
	delays := []delay{{path + ".constant", rule.Base}}
	switch {
	case doc.Exponential != nil:
		rule.Base, rule.Factor = doc.Exponential.Base, doc.Exponential.Factor
		delays = []delay{{path + ".exponential.base", rule.Base}}
	case len(doc.List) > 0:
		rule.Base, delays = 0, nil
		for i, d := range doc.List {
			delays = append(delays, delay{itemOf(path+".list", i), d})
		}
	}
	b.bounds(path, &rule, delays, doc.Exponential != nil)
	return rule
}

// bounds sets the bounds that are not given, to the shortest and longest delay with jitter, and reports delays outside
// the given bounds. A growing backoff may begin below min, and has no default for max.
func (b *builder) bounds(path string, rule *decision.BackoffRule, delays []delay, grows bool) {
	byLength := func(x, y delay) int { return cmp.Compare(x.of, y.of) }
	if rule.Min == 0 {
		rule.Min = time.Duration(float64(slices.MinFunc(delays, byLength).of) * (1 - rule.Jitter))
	}
	if rule.Max == 0 && !grows {
		rule.Max = time.Duration(float64(slices.MaxFunc(delays, byLength).of) * (1 + rule.Jitter))
	}
	exact := rule.Precision()
	rule.Rounding = cmp.Or(rule.Rounding, exact)
	if at := path + ".rounding"; rule.Max > 0 && rule.Rounding > rule.Max && b.has(at) {
		b.mismatch(at, "at most the longest wait ("+text.Duration(rule.Max.Truncate(time.Millisecond))+")")
		return
	}
	for _, bound := range []struct {
		key string
		of  *time.Duration
	}{{".min", &rule.Min}, {".max", &rule.Max}, {".rounding", &rule.Rounding}} {
		switch {
		case !b.has(path+bound.key) && *bound.of > 0: // rounded like the delays
			*bound.of = max(bound.of.Round(rule.Rounding), time.Millisecond)
		case *bound.of%exact != 0: // R7
			b.mismatch(path+bound.key, "a multiple of "+text.Duration(exact)+
				", as finely as a policy with a min of a minute or more computes")
		}
	}
	shortest, longest := text.Duration(rule.Min), text.Duration(rule.Max)
	if rule.Max > 0 && rule.Min > rule.Max {
		at := path + ".min"
		if !b.has(at) {
			at = path + ".max"
		}
		b.mismatch(at, fmt.Sprintf("min ≤ max, where min is %s and max %s", shortest, longest))
		return
	}
	for _, d := range delays {
		if tooShort := b.has(path+".min") && d.of < rule.Min && !grows; d.of > 0 &&
			(tooShort || b.has(path+".max") && d.of > rule.Max) {
			b.mismatch(d.path, fmt.Sprintf("between min (%s) and max (%s)", shortest, longest))
		}
	}
}
