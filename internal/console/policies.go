package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
	"retry-worker/internal/worker"
)

// policiesData is the catalogue in force, and what it says of an error that somebody tries.
type policiesData struct {
	Version, Source string
	HintLang        string
	Policies        []policyView
	Try             tryForm
	Result          *tryResult
}

// policyView is one policy.
type policyView struct {
	Name, Description string
	Limits            []fact
	Ladder            []rung
	// Notes are sentences on the ladder.
	Notes []string
	Rules []ruleRow
}

// rung is one retry of the ladder.
type rung struct {
	Number     int64
	Wait, From string
	MayPass    bool
}

type ruleRow struct {
	Name   string
	Class  Badge
	Reason decision.Reason
	Team   string
	Hint   string
}

// exampleID is one that every policy of the default catalogue takes.
const exampleID = "CLM-2026-1"

// tryForm is what an error is tried with.
type tryForm struct {
	Policies                      []option
	ID, Error, RetryCount, Status string
	MaxAttempts, Delay            string
	NonRetryable                  bool
	Token                         string
}

// tryResult is what the policy says of it.
type tryResult struct {
	// Rejected says what is wrong with the input; then nothing else is set.
	Rejected string
	Retry    bool
	Text     string
	Wait     string
	Next     Moment
	Why      *why
	// Evidence in the error, what decided first.
	Evidence []worker.Evidence
}

// tryFields are those of a form that tries an error.
var tryFields = []string{"policy", "id", "error", "retryCount", "httpStatus", "maxAttempts", "delay", "nonRetryable"}

// try answers POST /policies: it leads back to the page, which says what a policy would do. A text that is too long for
// that is answered at once.
func (p *Pages) try(v *visit) (*page, error) {
	if len(v.r.PostForm.Get("error")) > maxSentText {
		return v.tried(v.r.PostForm), nil
	}
	return v.again("/policies#result", sent{}, tryFields...), nil
}

func (p *Pages) policies(v *visit) (*page, error) {
	if s := v.sent(); s.Form != nil {
		return v.tried(s.Form), nil
	}
	d := v.policiesData(v.r.URL.Query().Get("policy"))
	d.Try.ID, d.Try.RetryCount = exampleID, "0"
	return v.policiesPage(d, false), nil
}

func (v *visit) policiesPage(d *policiesData, fixed bool) *page {
	return &page{name: "policies", section: "policies", title: v.T("policies.title"), data: d, fixed: fixed,
		summary: v.T("policies.summary", d.Version)}
}

// policiesData are the policies, and the form of which one is selected; the default one where none is.
func (v *visit) policiesData(selected string) *policiesData {
	c := v.catalogue
	d := &policiesData{Version: c.Version, Source: v.source(), HintLang: v.hintLang(),
		Try: tryForm{Token: access.FormToken(v.r.Context())}}
	names := c.Policies.Names()
	if i := slices.Index(names, decision.DefaultPolicy); i > 0 { // the one that holds where none is named comes first
		names = slices.Insert(slices.Delete(names, i, i+1), 0, decision.DefaultPolicy)
	}
	for _, name := range names {
		chosen := name == cmp.Or(selected, decision.DefaultPolicy)
		d.Policies = append(d.Policies, v.policyView(c.Policies[name]))
		d.Try.Policies = append(d.Try.Policies, option{name, v.policy(name), chosen})
	}
	return d
}

func (v *visit) policyView(p *decision.Policy) policyView {
	l := catalogue.PlanOf(p, decision.OwnPolicy{})
	view := policyView{Name: p.Name, Description: p.Description, Limits: v.limits(p)}
	v.ladder(&view, l)
	for _, r := range p.Rules.Rules() {
		view.Rules = append(view.Rules, v.rule(&r))
	}
	return view
}

// limits are what ends the retries, and what unknown and empty errors do.
func (v *visit) limits(p *decision.Policy) []fact {
	total := v.T("limits.none")
	if p.TotalLimit > 0 {
		total = v.T("limits.from_first", v.exact(p.TotalLimit))
	}
	retries := v.Count("limits.retries", p.MaxRetries)
	if p.Own != nil {
		retries = v.T("limits.own")
	}
	unknown := cmp.Or(p.UnknownError, decision.RetryUnknown)
	backoff := v.backoff(&p.Backoff)
	if p.MaxRetries == 0 && p.Own == nil {
		retries, backoff = v.T("limits.none_f"), v.T("limits.none")
	}
	return []fact{
		{v.T("limits.max"), retries}, {v.T("limits.backoff"), backoff}, {v.T("limits.total"), total},
		{v.T("limits.unknown"), v.Or("limits.unknown."+string(unknown), string(unknown))},
		{v.T("limits.empty"), v.Or("limits.empty."+string(p.EmptyError), string(p.EmptyError))},
		{v.T("limits.team"), v.team(p.LimitTeam)},
	}
}

// backoff rule in words.
func (v *visit) backoff(r *decision.BackoffRule) string {
	var s string
	switch {
	case len(r.List) > 0:
		waits := make([]string, 0, len(r.List))
		for _, d := range r.List {
			waits = append(waits, v.exact(d))
		}
		s = strings.Join(waits, ", ")
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

// apart sets the units of a duration apart, which both languages share.
var apart = strings.NewReplacer("ms", " ms ", "m", " min ", "h", " h ", "s", " s ")

// exact is a length of time with all its parts: 2 h 35 min.
func (l Lang) exact(d time.Duration) string {
	return l.point(strings.TrimSpace(apart.Replace(text.Duration(d))))
}

// ladder is the policy's plan.
func (v *visit) ladder(view *policyView, l *catalogue.Plan) {
	for _, r := range l.Retries {
		view.Ladder = append(view.Ladder,
			rung{Number: r.Number, Wait: v.between(r.Wait), From: v.between(r.FromFirst), MayPass: r.MayPassLimit})
	}
	if len(l.Retries) == 0 {
		view.Notes = append(view.Notes, v.T("ladder.final"))
	}
	if l.Job != nil {
		view.Notes = append(view.Notes, v.T("ladder.own"))
	}
	passes := slices.ContainsFunc(view.Ladder, func(r rung) bool { return r.MayPass })
	if limit := time.Duration(l.TotalLimit); limit > 0 && !passes && l.NeverScheduled == 0 && len(l.Retries) > 0 {
		view.Notes = append(view.Notes, v.T("ladder.within", v.exact(limit)))
	}
	if l.NeverScheduled > 0 {
		view.Notes = append(view.Notes, v.Count("ladder.never", l.NeverScheduled))
	}
}

// between the earliest and the latest.
func (v *visit) between(r catalogue.Range) string {
	return v.fromTo(time.Duration(r.Earliest), time.Duration(r.Latest))
}

func (v *visit) rule(r *classify.Rule) ruleRow {
	row := ruleRow{Name: r.Name, Class: v.badge("class", r.Class), Reason: r.Reason, Hint: r.Hint}
	if r.Presumed() {
		row.Class.Word = v.T("class.presumed")
	}
	if r.Class == decision.Permanent {
		row.Team = v.team(r.Team)
	}
	return row
}

// tried says what a policy would do: a dry run, which needs no journal and remembers nothing.
func (v *visit) tried(form url.Values) *page {
	get := form.Get
	d := v.policiesData(get("policy"))
	d.Try.ID, d.Try.Error, d.Try.NonRetryable = get("id"), get("error"), get("nonRetryable") != ""
	d.Try.RetryCount, d.Try.Status = strings.TrimSpace(get("retryCount")), strings.TrimSpace(get("httpStatus"))
	d.Try.MaxAttempts, d.Try.Delay = strings.TrimSpace(get("maxAttempts")), strings.TrimSpace(get("delay"))
	decided, _ := worker.DryRun(v.catalogue.Policies, get("policy"), d.Try.variables(), v.now, nil)
	d.Result = v.result(&decided)
	d.Result.Evidence = worker.Explain(v.catalogue.Policies, get("policy"), d.Try.variables())
	pg := v.policiesPage(d, true)
	if d.Result.Rejected != "" {
		pg.status = http.StatusUnprocessableEntity
	}
	return pg
}

// variables are the fields as a process would have them: what is empty is absent, and a number is one.
func (f *tryForm) variables() decision.Variables {
	number := func(s string) decision.Value {
		if s == "" {
			return ""
		}
		return decision.Typed(s)
	}
	v := decision.Variables{
		ID: decision.Text(f.ID), Error: decision.Text(f.Error), RetryCount: number(f.RetryCount),
		HTTPStatus:  number(f.Status),
		MaxAttempts: number(f.MaxAttempts), Delay: number(f.Delay),
	}
	if f.NonRetryable {
		v.NonRetryable = "true"
	}
	return v
}

// result of a dry run in words.
func (v *visit) result(d *decision.Decision) *tryResult {
	if d.Rejection != nil {
		return &tryResult{Rejected: journal.RejectionMessage(d.Rejection)}
	}
	r := &tryResult{Retry: d.ShouldRetry(), Text: v.consequence(d), Why: v.why(d.Policy, d)}
	if r.Retry {
		r.Wait, r.Next = v.span(d.Wait()), v.At(d.NextRetryTime)
	}
	return r
}
