package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

func (p *Pages) subject(v *visit) *page {
	return p.claim(v, journal.Subject{Tenant: cmp.Or(v.r.URL.Query().Get("tenant"), journal.DefaultTenant),
		Policy: v.r.PathValue("policy"), ID: v.r.PathValue("id")})
}

// claim returns the page of a subject: its story, and what can be done now.
func (p *Pages) claim(v *visit, s journal.Subject) *page {
	var story journal.Story
	known := text.Printable(s.Tenant) && text.Printable(s.Policy) && text.Printable(s.ID)
	if known {
		var err error
		story, known, err = v.o.Story(v.r.Context(), s)
		check(err)
	}
	if !known {
		check(&problem{status: http.StatusNotFound, key: "subject_unknown"})
	}
	chapters, shown := v.chapters(&story)
	now, tenant := v.standing(&story), s.Tenant
	if tenant == journal.DefaultTenant {
		tenant = ""
	}
	var letter *journal.DeadLetter
	var desk view
	id := ""
	if n := len(story.DeadLetters); n > 0 {
		letter = &story.DeadLetters[n-1]
		desk, id = v.desk(letter, &story), letter.ID
	}
	var last *journal.Attempt
	if n := len(story.Attempts); n > 0 {
		last = &story.Attempts[n-1]
	}
	return &page{name: "subject", title: s.ID, summary: now.Status.Word + ". " + now.Means,
		data: view{"Subject": s, "Tenant": tenant, "Now": now, "Last": last,
			"Context": v.OtherContext(story.Context()), "Worth": v.Money(story.Context().Cents()),
			"Deadline": v.Due(deadline(&story)), "Letter": letter, "Desk": desk, "Around": v.around(id),
			"Steps": v.steps(&story, chapters), "Chapters": chapters, "Shown": shown,
			"Operate": p.Operate, "Claim": p.claimURL(s, story.Context()),
			"Audit": address("/audit", field{"policy", s.Policy}, field{"id", s.ID}, field{"tenant", tenant})}}
}

// Waits says that a portal is not up, or closed, and that a retry would wait for it; empty if it is open or not known.
func (v *visit) Waits(name string) string {
	d, _, err := v.o.Destination(name)
	if err != nil { // or not known yet
		return ""
	}
	state := string(d.State.Phase)
	if d.State.Phase == destination.Up {
		if d.Settings.Calendar.IsOpen(v.Now) {
			return ""
		}
		state = "closed"
	}
	return v.T("form.waits", v.Portal(name), v.T("portal."+state))
}

// claimURL returns the address of a claim's page in the hospital's own system; empty if a value that it needs is not
// known, or was redacted.
func (p *Pages) claimURL(s journal.Subject, of decision.Context) string {
	var known []string
	for _, c := range append(slices.Clone(of), decision.ContextValue{Variable: "id", Value: s.ID}) {
		if c.Value != "" && !strings.HasPrefix(c.Value, "[") {
			known = append(known, "{"+c.Variable+"}", strings.ReplaceAll(url.QueryEscape(c.Value), "+", "%20"))
		}
	}
	to := strings.NewReplacer(known...).Replace(p.Claim)
	if strings.Contains(to, "{") {
		return ""
	}
	return to
}

// HintLang returns the language of the catalogue's texts, if it is known: the default's are Portuguese.
func (v *visit) HintLang() string {
	if v.Catalogue.Source == catalogue.DefaultSource {
		return string(Portuguese)
	}
	return ""
}

// Source returns the file that the catalogue was read from, or says that it is built in.
func (v *visit) Source() string {
	if v.Catalogue.Source == catalogue.DefaultSource {
		return v.T("catalogue.built_in")
	}
	return v.Catalogue.Source
}

// overdue is how long after its time a retry that was not heard of is overdue: processes need seconds.
const overdue = 15 * time.Minute

// standing is how a subject stands now.
type standing struct {
	Status Badge
	Means  string // says in a sentence what the status means, and what comes next
	// Next is when the next retry is, behind the words NextIs, which say whether that lies ahead.
	NextIs  string
	Next    Moment
	Retries string
	Ended   bool // whether nothing is left to be done about it
}

func (v *visit) standing(story *journal.Story) (s standing) {
	s.Status, s.Means, s.Ended = Badge{"off", v.T("status.none")}, v.T("state.none"), true
	if n := len(story.Episodes); n > 0 {
		v.lastEpisode(&s, &story.Episodes[n-1])
		if m := len(story.Attempts); m > 0 {
			s.Retries = v.retries(story.Episodes[n-1].Retries, story.Attempts[m-1].Decision.MaxRetries)
		}
	}
	if len(story.Held) > 0 {
		s.Status, s.NextIs, s.Next = Badge{"wait", v.T("mark.held")}, "", Moment{}
		s.Means = v.T("state.held", v.Portal(story.Held[0].Destination), v.Brief(story.Held[0].Since))
	}
	return s
}

func (v *visit) lastEpisode(s *standing, e *journal.Episode) {
	state := e.StateAt(v.Now)
	s.Ended, s.Retries = !state.Open() && state != journal.Due, v.Number(e.Retries)
	s.Status, s.Means = v.badge("status", state.Status()), v.T("state."+string(state))
	switch state {
	case journal.Dead:
		s.Status.Word = v.T("state.word.dead")
	case journal.Scheduled, journal.Reprocessing:
		s.NextIs, s.Next = v.T("state.next"), v.In(e.NextRetryTime)
	case journal.Due:
		s.NextIs = v.T("state.next_due")
		if s.Next = v.Ago(e.NextRetryTime); v.Now.Sub(e.NextRetryTime) > overdue {
			s.Status.Tone, s.Means = "warn", v.T("state.overdue")
		}
	}
}

// desk returns what the reader may do about a story's last dead letter, and what helps to decide.
func (v *visit) desk(d *journal.DeadLetter, story *journal.Story) view {
	process := v.o.Process(d)
	desk := view{"Process": process, "MayAccept": d.Accepts && process != deadletter.Nobody,
		"MayNot": v.mayNotDecide(d.Team), "Hint": "", "Advice": nil, "Form": nil, "Assign": nil,
		// Whether the reader's own decision led here.
		"JustDone": v.r.URL.Query().Get("done") == d.ID && !d.Review.At.IsZero() && d.State != journal.DeadLetterOpen}
	died := func(a journal.Attempt) bool { return a.Record == d.Record }
	if i := slices.IndexFunc(story.Attempts, died); i >= 0 {
		of := &story.Attempts[i].Decision
		desk["Hint"] = of.Hint(v.hint(story.Subject.Policy, of.MatchedRule))
	}
	if d.State != journal.DeadLetterOpen {
		return desk
	}
	desk["Assign"] = v.assignForm(d)
	if d.Fingerprint != "" {
		c := v.cause(d.Fingerprint)
		desk["Advice"] = v.advice(&c, v.o.Prospects(&c)) // nil for an unknown cause
	}
	if d.Later.By == "" {
		desk["Form"] = v.reviewForm(d, story)
	}
	return desk
}

// mayNot returns the text of a key, which says that the reader's role may not do something; empty if it may.
func (v *visit) mayNot(do access.Action, team decision.Team, key string) string {
	if v.who.May(do, string(team)) {
		return ""
	}
	return v.T(key, v.Role())
}

// mayNotDecide says why the reader may not decide on a team's dead letters; empty if he may.
func (v *visit) mayNotDecide(team decision.Team) string {
	switch {
	case !v.who.Role.May(access.Review):
		return v.T("form.may_not", v.Role())
	case !v.who.May(access.Review, string(team)):
		return v.T("form.other_team", v.team(team), v.ownTeams())
	}
	return ""
}

// Did returns what was decided: retry, discard or accepted.
func (v *visit) Did(n *journal.ReviewNote) string {
	switch {
	case n.Discard:
		return "discard"
	case n.Accepted != nil:
		return "accepted"
	}
	return "retry"
}

// TakesEffect returns when a decision can no longer be undone.
func (v *visit) TakesEffect(l journal.Later) Moment { return v.In(l.At.Add(journal.UndoFor)) }

// Retry says which retry of a dead letter is next.
func (v *visit) Retry(d *journal.DeadLetter) string { return v.retry(d.RetryCount+1, d.MaxRetries) }

// hint returns the hint that the catalogue in force has for the rule that matched; empty if it has none.
func (v *visit) hint(policy, matched string) string {
	p, ok := v.Catalogue.Policies[policy]
	if !ok {
		return ""
	}
	return v.Says(p.Rules.Named(matched).Hint)
}

// reviewForm returns what may be decided on an open dead letter: How is next, force or fresh, and When backoff or now,
// as they were sent, or are chosen at first.
func (v *visit) reviewForm(d *journal.DeadLetter, story *journal.Story) view {
	how, when, wait := "", deadletter.Backoff, "" // beyond the limit the person must choose how
	if d.Outcome == decision.PermanentError {     // a person has corrected the cause
		when = deadletter.Now
	}
	if !d.AtLimit() {
		how = "next"
	}
	if sent := &v.Sent; sent.Verb == string(journal.BulkRetry) && sent.Wrong != "" {
		how, when = sent.form.Get("how"), sent.form.Get("when")
	}
	if p := v.Catalogue.Policies[story.Subject.Policy]; p != nil {
		_, rule := p.Limits(deadletter.OwnPolicy(p, story, d.Episode))
		const almostOne = 1 - 1e-9 // the range that jitter gives the wait
		wait = v.fromTo(rule.After(0, d.RetryCount).Delay, rule.After(almostOne, d.RetryCount).Delay)
	}
	return view{"How": how, "When": when, "Wait": wait, "Recent": v.recentReasons(),
		"MayRestart": v.who.May(access.Restart, string(d.Team))}
}

// key returns a key of the engine, or another number, as text; empty for 0.
func key(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
