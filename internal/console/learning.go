package console

import (
	"strings"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/kpi"
)

// learningData is the page of what was learnt (R26).
type learningData struct {
	Policies []learntPolicy
	Causes   []learntCause
	More     bool // other causes are not shown
}

// learntPolicy is how well a policy's chances were foretold, and what early hand-over came to.
type learntPolicy struct {
	ID string
	// Policy by name, and sentences on it.
	Policy string
	Says   []string
	// Tenths of the chance in which something was foretold. Bars are their picture, in which 100 is all: where the chance
	// lies, and how high what succeeded stands; Title says it in words.
	Title  string
	Bars   []rect
	Tenths []learntTenth
}

type learntTenth struct{ Chance, Succeeded, Foretold string }

// learntCause is a cause of which retries are known.
type learntCause struct {
	Cause             journal.Cause
	Name              string // its reason in words
	Closed, Recovered int64
	Share             string
	Hopeless          bool
	Taught            string
}

// learntCauses are looked at for the page.
const learntCauses = 200

// learning answers GET /learning.
func (p *Pages) learning(v *visit, o *open) (*page, error) {
	all, err := audit.Learnings(v.r.Context(), o, "", v.now)
	if err != nil {
		return nil, err
	}
	d := &learningData{}
	for i := range all {
		d.Policies = append(d.Policies, v.learntPolicy(&all[i]))
	}
	causes, next, err := o.ListCauses(v.r.Context(), journal.CauseFilter{}, "", learntCauses)
	if err != nil {
		return nil, err
	}
	d.More = next != ""
	for i := range causes {
		c := &causes[i]
		row := learntCause{Cause: *c, Name: v.reason(c.Reason)}
		if row.Closed, row.Recovered, row.Hopeless = o.Prospects(c); row.Closed > 0 {
			row.Share = v.percent(float64(row.Recovered) / float64(row.Closed))
		}
		row.Taught = v.taught(c.Taught)
		if row.Closed > 0 || row.Taught != "" {
			d.Causes = append(d.Causes, row)
		}
	}
	return &page{name: "learning", section: "policies", title: v.T("learning.title"), data: d,
		summary: v.Count("learning.summary", int64(len(d.Causes)))}, nil
}

func (v *visit) learntPolicy(l *kpi.Learning) learntPolicy {
	p := learntPolicy{ID: "learnt-" + l.Policy, Policy: v.policy(l.Policy)}
	if l.Brier != nil {
		p.Says = append(p.Says, v.T("learning.foretold", v.Number(l.Foretold), v.Number(l.Succeeded)),
			v.T("learning.brier", v.short(*l.Brier, 3), v.short(*l.BaseBrier, 3)))
	}
	if l.HandedOver > 0 {
		p.Says = append(p.Says, v.T("learning.handed", v.Number(l.HandedOver), v.Number(l.SavedRetries)))
	}
	if l.Explored > 0 {
		p.Says = append(p.Says, v.T("learning.explored", v.Number(l.Explored), v.Number(l.ExploredRecovered)))
	}
	var words []string
	for _, t := range l.Reliability {
		share := float64(t.Succeeded) / float64(t.Foretold)
		height := max(100*share, 1)
		p.Bars = append(p.Bars, rect{X: 100 * t.From, Y: 100 - height, Height: height})
		row := learntTenth{v.T("learning.tenth", v.short(100*t.From, 0), v.short(100*t.From+10, 0)),
			v.percent(share), v.Number(t.Foretold)}
		p.Tenths, words = append(p.Tenths, row), append(words, row.Chance+" "+row.Succeeded)
	}
	p.Title = v.T("learning.picture", strings.Join(words, ", "))
	return p
}
