package console

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
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
)

// subjectData is one subject's whole story, and what can be done now.
type subjectData struct {
	Subject journal.Subject
	Tenant  string // empty where it is the one that everybody has
	Status  Badge
	// Means is what the status means, and what comes next, as a sentence.
	Means string
	// Next retry, behind the words that say whether it lies ahead.
	NextIs  string
	Next    Moment
	Retries string
	Context []fact
	// Error of the last failure, and what the claim is worth.
	Error, Worth string
	// Waits says that its portal is not up, and that a retry waits for it; empty where it is.
	Waits string
	// Deadline by which it must have been sent, as long as it is to be.
	Deadline Moment
	Letter   *letterData
	Steps    []step
	Chapters []chapter
	Audit    string
	Around   around
	// Operate is its process instance there; empty where that is not known.
	Operate string
	// Claim is its page in the hospital's own system; empty where that is not known.
	Claim string
	// Shown says how much of a long story is shown; empty where all is.
	Shown string
	// HintLang is the language of the catalogue's hints; empty where it is not known.
	HintLang string
	// Possibly tells that the portal may have taken the claim (R33).
	Possibly bool
}

// letterData is the subject's latest dead letter: why it is there, who acts, what was decided, and the forms.
type letterData struct {
	journal.DeadLetter
	Open bool
	Born Moment
	Hint string
	// Advice is on its cause, where retries hardly help; nil where it is not so.
	Advice  *advice
	Process Badge
	// ProcessText is what that means.
	ProcessText string
	Review      *reviewData
	Form        *reviewForm
	// Notes are what people said without deciding.
	Notes *noteData
	// JustDone tells that the reader's own decision led here.
	JustDone bool
	// Wrong is why what was sent was not done; empty where nothing was sent, or it was done.
	Wrong string

	unattended bool
}

// reviewData is what a person decided.
type reviewData struct {
	Discard    bool
	By, Reason string
	// Accepted tells that it was closed because the other side has it, with the Protocol that it has there if that is known.
	Accepted bool
	Protocol string
	// Deadline is the new one, if any.
	At, Next, Deadline Moment
	Retry              string
	Delivery           *Badge
	DeliveryText       string
	Ahead              bool
	// Run is the page of the bulk run that decided; empty where a person decided on this one alone.
	Run string
}

// reviewForm is what the reader may do about an open dead letter that nobody is discarding.
type reviewForm struct {
	ID string
	// Place is the list that the decision leads on in, as the forms' address carries it; empty for none.
	Place string
	// Recent are the reader's last reasons, a button each.
	Recent recent
	// MayNot says why the reader may do nothing, empty where he may; MayRestart that the whole ladder may begin again, and
	// AtLimit that a retry is beyond the limit.
	MayNot                string
	MayRestart, AtLimit   bool
	NextRetry, MaxRetries string
	// OnceMore is a retry beyond the limit.
	OnceMore string
	// Missed is the deadline that has passed (R29), empty where none has; Due tells that there is one. Deadline is what was
	// sent as a new one, Late that it goes though it is late.
	Missed, Deadline string
	Due, Late        bool
	// Wait is the policy's backoff in words; empty where the catalogue no longer has the policy.
	Wait string
	// SaysNow and SaysWait say when a retry goes, by either choice.
	SaysNow, SaysWait string
	// Unattended tells that no process waits: a retry would be carried out by nobody.
	Unattended bool
	// What was sent.
	Reason, How, When string
	// WrongField is reason, how, when, deadline or deadline_missed; empty where it is none of them.
	WrongField string
	// Verb is that of the form which was sent: retry, discard or accept; empty where none was.
	Verb, Protocol string
	// Accepts tells that the process takes what the other side has already; else CannotAccept says why not.
	Accepts      bool
	CannotAccept string
	// Probably tells that it was refused as sent twice, after a submission that was not answered (R33).
	Probably bool
	Token    string
}

func (p *Pages) subject(v *visit, o *open) (*page, error) {
	s := journal.Subject{
		Tenant: cmp.Or(v.r.URL.Query().Get("tenant"), journal.DefaultTenant), Policy: v.r.PathValue("policy"),
		ID: v.r.PathValue("id"),
	}
	sent := v.sent()
	story, found, err := o.Story(v.r.Context(), s)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, &problem{status: http.StatusNotFound, key: "subject_unknown"}
	}
	d := &subjectData{Subject: s, HintLang: v.hintLang()}
	if s.Tenant != journal.DefaultTenant {
		d.Tenant = s.Tenant
	}
	d.Audit = address("/audit", field{"policy", s.Policy}, field{"id", s.ID}, field{"tenant", d.Tenant})
	state, letter := v.standing(d, &story), ""
	if n := len(story.DeadLetters); n > 0 {
		letter = story.DeadLetters[n-1].ID
	}
	if d.Around, err = v.around(o, letter); err != nil {
		return nil, err
	}
	if n := len(story.DeadLetters); n > 0 {
		d.Letter = v.letter(&story, &story.DeadLetters[n-1], o)
		if d.Letter.Advice, err = v.adviceOn(o, &d.Letter.DeadLetter); err != nil {
			return nil, err
		}
		d.Letter.Notes = v.notes(o, &d.Letter.DeadLetter, d.Around.Place, &sent)
		d.Letter.Wrong = sent.Wrong
		if d.Letter.Open && d.Letter.Later.By == "" {
			d.Letter.Form = v.form(d.Letter, v.catalogue.Policies[s.Policy], d.Around.Place, &sent)
		}
	}
	if n := len(story.Attempts); n > 0 {
		last := &story.Attempts[n-1]
		d.Operate, d.Waits = p.inOperate(last.ProcessInstanceKey), v.waits(o, last.Destination)
		if state.Open() || state == journal.Due {
			d.Error = last.Error
		}
		d.Possibly = last.Decision.PossiblyAccepted && (state.Open() || state == journal.Due)
	}
	d.Context, d.Deadline = v.context(s.Policy, story.Context()), v.Due(deadline(&story))
	d.Worth, d.Claim = v.Money(story.Context().Cents()), p.claimURL(s, story.Context())
	d.Shown = v.shorten(&story)
	d.Chapters = v.chapters(&story)
	d.Steps = v.steps(&story, d.Chapters)
	pg := &page{name: "subject", section: "dead-letters", title: s.ID, data: d, summary: d.Status.Word + ". " + d.Means}
	pg.status = sent.Status
	return pg, nil
}

// waits says that a portal is not up, and a retry would wait for it; empty where that is not so.
func (v *visit) waits(o *open, name string) string {
	d, _, err := o.Destination(name)
	if err != nil || d.State.Phase == destination.Up { // or nobody knows yet
		return ""
	}
	return v.T("form.waits", v.portal(name), v.T("portal."+string(d.State.Phase)))
}

// inOperate is the page of a process instance there; empty where that is not known.
func (p *Pages) inOperate(instance int64) string {
	if p.Operate == "" || instance == 0 {
		return ""
	}
	return p.Operate + "/processes/" + key(instance)
}

var claimPlace = regexp.MustCompile(`\{[^{}]*\}`)

// claimURL is a claim's page in the hospital's own system; empty where it takes what is not known, or was taken out.
func (p *Pages) claimURL(s journal.Subject, of decision.Context) string {
	known := map[string]string{"{id}": s.ID}
	for i := range of {
		known["{"+of[i].Variable+"}"] = of[i].Value
	}
	missing := false
	to := claimPlace.ReplaceAllStringFunc(p.Claim, func(place string) string {
		value := known[place]
		missing = missing || value == "" || strings.HasPrefix(value, "[")
		return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
	})
	if missing {
		return ""
	}
	return to
}

// mostEvents of a story that its page shows; the audit has them all.
const mostEvents = 200

// shorten leaves the last of a long story, and says so.
func (v *visit) shorten(story *journal.Story) string {
	all := len(story.Attempts) + len(story.Entries)
	if all <= mostEvents {
		return ""
	}
	records := make([]int64, 0, all)
	for i := range story.Attempts {
		records = append(records, story.Attempts[i].Record)
	}
	for i := range story.Entries {
		records = append(records, story.Entries[i].Record)
	}
	slices.Sort(records)
	from := records[all-mostEvents]
	story.Attempts = slices.DeleteFunc(slices.Clone(story.Attempts),
		func(a journal.Attempt) bool { return a.Record < from })
	story.Entries = slices.DeleteFunc(slices.Clone(story.Entries), func(e journal.Entry) bool { return e.Record < from })
	return v.T("events.last", v.Number(mostEvents), v.Number(int64(all)))
}

// hintLang is the language of the catalogue's own words where that is known: the default's are Portuguese.
func (v *visit) hintLang() string {
	if v.catalogue.Source == catalogue.DefaultSource {
		return string(Portuguese)
	}
	return ""
}

// source says which file the catalogue was read from, or that it is the program's own.
func (v *visit) source() string {
	if v.catalogue.Source == catalogue.DefaultSource {
		return v.T("catalogue.built_in")
	}
	return v.catalogue.Source
}

// overdue is a retry that was not heard of for so long after its time: processes need seconds.
const overdue = 15 * time.Minute

// standing says how the subject stands now.
func (v *visit) standing(d *subjectData, story *journal.Story) journal.State {
	n, held := len(story.Episodes), ""
	if len(story.Held) > 0 {
		held = v.T("state.held", v.portal(story.Held[0].Destination), v.brief(story.Held[0].Since))
	}
	if n == 0 {
		if d.Status, d.Means = (Badge{"off", v.T("status.none")}), v.T("state.none"); held != "" {
			d.Status, d.Means = Badge{"wait", v.T("mark.held")}, held
		}
		return ""
	}
	e := &story.Episodes[n-1]
	state := e.StateAt(v.now)
	d.Status, d.Means = v.badge("status", state.Status()), v.T("state."+string(state))
	d.Retries = v.Number(e.Retries)
	if m := len(story.Attempts); m > 0 {
		d.Retries = v.retries(e.Retries, story.Attempts[m-1].Decision.MaxRetries)
	}
	switch {
	case held != "":
		d.Status, d.Means = Badge{"wait", v.T("mark.held")}, held
	case state == journal.Dead:
		d.Status.Word = v.T("state.word.dead")
	case state == journal.Scheduled, state == journal.Reprocessing:
		d.NextIs, d.Next = v.T("state.next"), v.In(e.NextRetryTime)
	case state == journal.Due:
		d.NextIs = v.T("state.next_due")
		if d.Next = v.Ago(e.NextRetryTime); v.now.Sub(e.NextRetryTime) > overdue {
			d.Status.Tone, d.Means = "warn", v.T("state.overdue")
		}
	}
	return state
}

// letter is what is known of a dead letter.
func (v *visit) letter(story *journal.Story, dl *journal.DeadLetter, o *open) *letterData {
	l := &letterData{DeadLetter: *dl, Open: dl.State == journal.DeadLetterOpen, Born: v.Ago(dl.CreatedAt)}
	died := func(a journal.Attempt) bool { return a.Record == dl.Record }
	if i := slices.IndexFunc(story.Attempts, died); i >= 0 {
		d := &story.Attempts[i].Decision
		l.Hint = d.Hint(v.hint(story.Subject.Policy, d.MatchedRule))
	}
	if process := o.Process(dl); l.Open {
		l.unattended = process == deadletter.Nobody
		l.Process, l.ProcessText = v.badge("process", process), v.T("process."+string(process)+".text")
	}
	if !dl.Review.At.IsZero() {
		l.Review = v.review(dl)
	}
	l.JustDone = v.r.URL.Query().Get("done") == dl.ID && l.Review != nil && !l.Open
	return l
}

func (v *visit) review(dl *journal.DeadLetter) *reviewData {
	n := &dl.Review
	r := &reviewData{Discard: n.Discard, By: n.By, Reason: n.Reason, At: v.At(n.At)}
	switch {
	case n.Discard:
	case n.Accepted != nil:
		r.Accepted, r.Protocol = true, n.Accepted.Protocol
	default:
		r.Ahead = n.NextRetryTime.After(v.now) && dl.State == journal.DeadLetterReprocessing
		r.Next, r.Deadline = v.At(n.NextRetryTime), v.At(n.Deadline)
		r.Retry = v.T("review.retry_number", v.retry(dl.RetryCount+1, dl.MaxRetries))
		if n.Fresh {
			r.Retry = v.T("review.fresh")
		}
		if r.Ahead {
			r.Next = v.In(n.NextRetryTime)
		}
	}
	if dl.Run != "" {
		r.Run = runURL(dl.Run)
	}
	if dl.Delivery != journal.DeliveryNone {
		r.Delivery, r.DeliveryText = new(v.badge("delivery", dl.Delivery)), v.T("delivery."+string(dl.Delivery)+".text")
	}
	return r
}

// hint of the rule that matched, as the catalogue in force has it; empty where it has none.
func (v *visit) hint(policy, matched string) string {
	p, ok := v.catalogue.Policies[policy]
	if !ok || matched == "" {
		return ""
	}
	for _, r := range p.Rules.Rules() {
		if r.Name == matched || slices.Contains(r.Codes, matched) {
			return r.Hint
		}
	}
	return ""
}

// form is what may be done by the reader, with what was sent if that was wrong.
func (v *visit) form(l *letterData, p *decision.Policy, at string, sent *sent) *reviewForm {
	f := &reviewForm{When: deadletter.Backoff}
	if l.Outcome == decision.PermanentError { // which a person has corrected
		f.When = deadletter.Now
	}
	if sent.Wrong != "" {
		f = sentForm(sent.Form, sent.Verb)
		f.WrongField = sent.Field
	} else if !l.AtLimit() {
		f.How = "next" // beyond the limit it must be said
	}
	f.AtLimit = l.AtLimit()
	f.ID, f.Place, f.Recent, f.Token = l.ID, at, v.recentReasons(), access.FormToken(v.r.Context())
	f.Unattended = l.unattended
	if f.Accepts = l.Accepts && !l.unattended; !f.Accepts {
		f.CannotAccept = v.T("form.accept.not")
	}
	f.Probably = l.Reason == decision.ReasonProbablyAccepted
	f.MayRestart = v.who.May(access.Restart, string(l.Team))
	switch {
	case !v.who.Role.May(access.Review):
		f.MayNot = v.T("form.may_not", v.role())
	case !v.who.May(access.Review, string(l.Team)):
		f.MayNot = v.T("form.other_team", v.team(l.Team), v.ownTeams())
	}
	f.NextRetry, f.MaxRetries = v.retry(l.RetryCount+1, l.MaxRetries), v.Number(l.MaxRetries)
	f.OnceMore = v.Count("form.how.force", l.MaxRetries)
	if f.Due = !l.Deadline.IsZero(); f.Due && v.Past(l.Deadline) {
		f.Missed = v.clock(l.Deadline)
	}
	if p != nil {
		f.Wait = v.wait(&p.Backoff, l.RetryCount)
	}
	f.SaysNow, f.SaysWait = v.T("form.says.now"), v.T("form.says.wait", cmp.Or(f.Wait, "…"))
	return f
}

// wait before retry number n (from 0), as far as the jitter may draw.
func (l Lang) wait(r *decision.BackoffRule, n int64) string {
	const almostOne = 1 - 1e-9
	return l.fromTo(r.After(0, n).Delay, r.After(almostOne, n).Delay)
}

// key of the engine as text.
func key(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
