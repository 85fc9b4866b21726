package console

import (
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/text"
)

// policies answers GET /policies with the catalogue in force: the default policy first, the others by name.
func (p *Pages) policies(v *visit) *page {
	names := v.Catalogue.Policies.Names()
	slices.SortStableFunc(names, func(a, b string) int {
		return falseFirst(a != decision.DefaultPolicy, b != decision.DefaultPolicy)
	})
	return &page{name: "policies",
		data: view{"Policies": names}, summary: v.T("policies.summary", v.Catalogue.Version)}
}

// apart separates numbers and units of a duration. Both languages have the same units.
var apart = strings.NewReplacer("ms", " ms ", "m", " min ", "h", " h ", "s", " s ")

// exact returns a duration with all its parts: 2 h 35 min.
func (l Lang) exact(d time.Duration) string {
	return l.point(strings.TrimSpace(apart.Replace(text.Duration(d))))
}

// class returns the badge of an error's class. A presumed class is called so.
func (l Lang) class(of decision.ErrorClassification, presumed bool) Badge {
	b := l.badge("class", of)
	if presumed {
		b.Word = l.T("class.presumed")
	}
	return b
}
