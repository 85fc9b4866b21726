package console

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	plaintext "text/template"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

// visit is one request: who reads, in which language and zone, when, and from which journal.
type visit struct {
	w   http.ResponseWriter
	r   *http.Request
	who access.Identity
	Lang
	// at is the page's own address. That of a form's page is above the form's, unless the page says otherwise.
	at        *url.URL
	zone      *time.Location
	Now       time.Time
	Catalogue *catalogue.Catalogue
	o         *open         // nil until the journal is open
	tag       string        // Pages.tag
	Sent      sent          // the form that the page shows again
	mine      decision.Team // that the reader works for; empty if that is not known
}

func (p *Pages) visit(w http.ResponseWriter, r *http.Request) *visit {
	lang, chosen := langOf(r)
	v := &visit{w: w, r: r, who: access.From(r.Context()), Lang: lang, at: r.URL, zone: p.Zone, Now: p.Now().UTC(),
		Catalogue: p.Catalogue(), o: p.open.Load()}
	if r.Method == http.MethodPost {
		v.at = r.URL.JoinPath("..")
	}
	w.Header().Set("Date", v.Now.Format(http.TimeFormat)) // ages in the browser go by it
	if chosen {
		v.keep(langCookie, string(lang), aYear)
	}
	v.readTeam()
	return v
}

// Token returns the token that protects the reader's forms.
func (v *visit) Token() string { return access.FormToken(v.r.Context()) }

func (v *visit) Reader() string { return v.who.Name }

// Says returns a text of the catalogue in the reader's language.
func (v *visit) Says(t text.Translated) string { return t.In(string(v.Lang)) }

// Portal returns what people call a destination.
func (v *visit) Portal(name string) string {
	return cmp.Or(v.Says(v.Catalogue.Destinations.Of(name).Label), name)
}

func (v *visit) Role() string { return v.Or("role."+string(v.who.Role), string(v.who.Role)) }

// ownTeams names the teams that the reader is bound to.
func (v *visit) ownTeams() string {
	names := strings.Split(string(v.who.Teams), ",")
	return strings.Join(journal.Views(names, func(name *string) string { return v.team(decision.Team(*name)) }), ", ")
}

// page is what an address shows.
type page struct {
	status int // 0 is 200
	// name is the template's. title is the text of that name, unless it is given.
	name, title string
	// summary is one sentence. A screen reader speaks it when it changes while the page is open.
	summary string
	data    view
	// fixed pages do not update themselves; nor do those with a status, which answer what was just sent.
	fixed bool
}

// view holds what a template reads, by name. A name that is not there is an error.
type view map[string]any

//go:embed templates/*.html
var templateFiles embed.FS

// templates are those of one language, whose texts they have: as pages, and as sentences of plain text.
type templates struct {
	pages     *template.Template
	sentences *plaintext.Template
}

// templatesIn holds them by language. They are parsed at first use, since most processes never show a page; this
// package's tests prove that they can be.
var templatesIn = func() map[Lang]func() templates {
	all := map[Lang]func() templates{}
	for _, l := range Langs() {
		all[l] = sync.OnceValue(func() templates {
			const pattern, strict = "templates/*.html", "missingkey=error"
			functions := template.FuncMap{
				"t": l.T, "asset": assetURL,
				"path": url.PathEscape, "list": listURL, "listBy": listBy, "groups": groupsURL, "plan": planURL,
				"subject": subjectURL, "portal": portalURL, "ofCause": ofCause, "shared": shared, "dict": dict,
				"reason": l.reason, "policy": l.policy, "team": l.team, "class": l.class, "retry": l.retry,
				"badge": l.badge, "span": l.span, "lasting": l.lasting, "exact": l.exact, "money": l.Money,
				"short": l.short, "percent": l.percent,
				"ladder": func(p *decision.Policy) *catalogue.Plan {
					return catalogue.PlanAt(p, decision.OwnPolicy{}, "", time.Time{})
				},
				"between": func(r catalogue.Range) string { return l.fromTo(time.Duration(r.Earliest), time.Duration(r.Latest)) },
				"takes": func(n int, perMinute float64) string {
					return l.lasting(max(takes(float64(n), perMinute), time.Minute))
				},
				"assigned": func(to string) string { return listURL(journal.DeadLetterFilter{Assignee: to}) },
				"tone":     func(tone, word string) Badge { return Badge{tone, word} },
				"line":     func(s string) template.HTML { return inert(strings.TrimSpace(s), lineShown, false) },
				"detail":   func(s string) template.HTML { return inert(strings.TrimSpace(s), detailShown, false) },
				"whole":    func(s string) template.HTML { return inert(s, mostShown, true) },
				"name":     func(s string) template.HTML { return inert(s, nameShown, false) },
				"refused":  func(code string) string { return l.Or("refused."+code, code) },
				"number":   func(n any) string { return l.Number(reflect.ValueOf(n).Int()) },
				"count":    func(key string, n any) string { return l.Count(key, reflect.ValueOf(n).Int()) },
			}
			return templates{
				template.Must(template.New("").Option(strict).Funcs(functions).ParseFS(templateFiles, pattern)),
				plaintext.Must(plaintext.New("").Option(strict).Funcs(functions).ParseFS(templateFiles, pattern))}
		})
	}
	return all
}()

// dict returns a map of names and values, for templates that take several.
func dict(pairs ...any) map[string]any {
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

// Say returns the sentence that a template says of something. The template also reads what the visit knows.
func (v *visit) Say(name string, of any) string {
	var b strings.Builder
	check(templatesIn[v.Lang]().sentences.ExecuteTemplate(&b, name, struct {
		*visit
		Of any
	}{v, of}))
	return b.String()
}

// to leads the browser to another address, instead of a page.
func (v *visit) to(address string) *page {
	http.Redirect(v.w, v.r, address, http.StatusSeeOther)
	return nil
}

func (p *Pages) write(v *visit, pg *page) {
	if pg.status = cmp.Or(pg.status, v.Sent.status); pg.fixed || pg.status != 0 {
		v.tag = ""
	}
	var body, whole bytes.Buffer
	pg.data["V"] = v
	in := templatesIn[v.Lang]().pages
	err := in.ExecuteTemplate(&body, pg.name, pg.data)
	if err == nil {
		err = in.ExecuteTemplate(&whole, "frame", p.frame(v, pg, body.Bytes()))
	}
	if err != nil { // a fault in the templates
		p.Log.Error("a page could not be rendered", zap.String("path", v.r.URL.Path), zap.Error(err))
		http.Error(v.w, v.T("problem.broken.text"), http.StatusInternalServerError)
		return
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", string(v.Lang))
	h.Add("Vary", "Accept-Language, Cookie")
	if v.tag != "" {
		h.Set("ETag", `"`+v.tag+`"`)
	}
	if pg.status != 0 {
		v.w.WriteHeader(pg.status)
	}
	_, _ = v.w.Write(whole.Bytes()) // an error means that the client has gone
}

// frame returns what surrounds a page. It warns of what does not work.
func (p *Pages) frame(v *visit, pg *page, body []byte) view {
	other, zone := map[Lang]Lang{Portuguese: English, English: Portuguese}[v.Lang], v.zone.String()
	to := v.here(field{"lang", string(other)})
	if v.r.URL.Path == "/login" { // which a form has, too
		to = "/login?lang=" + string(other)
	}
	return view{"V": v, "Title": cmp.Or(pg.title, v.T(pg.name+".title")), "Name": pg.name, "Summary": pg.summary,
		"Body": template.HTML(body), "Version": v.tag, "Zone": zone, "ZoneName": v.Or("zone."+zone, zone), "OtherLang": other,
		"OtherURL": to, "Ends": exact(access.SessionEnds(v.r.Context())), "Bare": v.who.Role == "",
		"Admin": v.who.Role == access.Admin, "Rows": pg.name == "list" && pg.status == 0, "Health": p.Health(),
		"Down": v.down(), "Mine": v.Waiting(v.mine, "")}
}

// problem is why there is no page: a status, and the key of the texts that say what to do.
type problem struct {
	status int
	key    string
	cause  error
}

func (p *problem) Error() string { return "problem." + p.key }
func (p *problem) Unwrap() error { return p.cause }

var notFound = &problem{status: http.StatusNotFound, key: "not_found"}

// unknown holds a problem's key for each refusal that says that something does not exist.
var unknown = map[journal.Code]string{journal.JobNotFound: "letter_unknown", journal.RunNotFound: "run_unknown",
	deadletter.CauseNotFound: "not_found"}

// problemOf returns the problem that err stands for; without a better one, that the journal could not be read.
func problemOf(err error) *problem {
	denied, isDenied := errors.AsType[*access.Refusal](err)
	known, isKnown := errors.AsType[*problem](err)
	refusal := journal.RefusalOf(err)
	switch {
	case isDenied: // which changed nothing
		return &problem{denied.Status, "refused." + denied.Code, nil}
	case errors.Is(err, gate.ErrUnknown):
		return &problem{status: http.StatusNotFound, key: "portal_unknown"}
	case isKnown:
		return known
	case refusal != nil && unknown[refusal.Code] != "":
		return &problem{status: http.StatusNotFound, key: unknown[refusal.Code]}
	}
	return &problem{status: http.StatusServiceUnavailable, key: "unreadable", cause: err}
}

// maxWritten bounds the bytes of a refused form that are read.
const maxWritten = 16 << 10

// Refuse answers a request that access.Gate refuses with a page.
func (p *Pages) Refuse(w http.ResponseWriter, r *http.Request, refusal access.Refusal) {
	p.fail(p.visit(w, r), &refusal)
}

// fail answers with a page that says what went wrong.
func (p *Pages) fail(v *visit, err error) {
	if errors.Is(err, deadletter.ErrBadCursor) { // the cursor is not of this list
		v.to(v.here(field{"cursor", ""}))
		return
	}
	known, r := problemOf(err), v.r
	if known.cause != nil && r.Context().Err() == nil {
		p.Log.Error("a page could not be rendered", zap.String("path", r.URL.Path), zap.Error(known.cause))
	}
	key, detail, again, written := known.key, "", "", ""
	refusal, refused := errors.AsType[*access.Refusal](err)
	if refused && v.Or("problem."+key+".title", "") == "" {
		key, detail = "refused", refusal.Message
	}
	switch {
	case known.status == http.StatusServiceUnavailable && r.Method == http.MethodGet:
		again = r.URL.RequestURI()
		v.w.Header().Set("Retry-After", "5")
	case refused && refusal.Code == access.CodeLoginRequired && r.Method == http.MethodPost: // the session has ended
		r.Body = http.MaxBytesReader(v.w, r.Body, maxWritten)
		if r.ParseForm() == nil {
			written = cmp.Or(r.PostForm.Get("reason"), r.PostForm.Get("why"), r.PostForm.Get("text"))
		}
		again = "/login"
	}
	p.write(v, &page{status: known.status, name: "problem", title: v.T("problem." + key + ".title"),
		data: view{"Status": known.status, "Key": key, "Detail": detail, "Again": again, "Written": written}})
}

// Login writes the page with the log-in form.
func (p *Pages) Login(w http.ResponseWriter, r *http.Request, l access.Login) {
	v := p.visit(w, r)
	provider, wrong, status := "", "", http.StatusOK
	if l.Provider {
		provider = address("/login/oidc", field{"next", l.Next})
	}
	if l.Refusal != nil {
		status, wrong = l.Refusal.Status, v.Or("login."+l.Refusal.Code, l.Refusal.Message)
		if l.Refusal.Code == access.CodeTooManyAttempts {
			wrong = v.T("login.too_many_attempts", v.span(l.Refusal.RetryAfter.Round(time.Second)))
		}
	}
	p.write(v, &page{status: status, name: "login", title: v.T("login.title"),
		data: view{"Next": l.Next, "Provider": provider, "Tokens": l.Tokens || !l.Provider, "Wrong": wrong}})
}

// sent is a form that was refused, which its page shows again, and why. The zero value means that none was.
type sent struct {
	Verb string // the last part of the form's address
	// Wrong says what is wrong. Field is the field that it is about; it may be empty.
	Wrong, Field string
	form         url.Values
	status       int // of the page
}

// Value returns what was sent in a field of that verb's form; empty if another form was sent.
func (s sent) Value(verb, name string) string {
	if s.Verb != verb {
		return ""
	}
	return s.form.Get(name)
}

// Is reports whether one of these fields of that verb's form is wrong.
func (s sent) Is(verb string, fields ...string) bool {
	return s.Verb == verb && slices.Contains(fields, s.Field)
}

// verb returns the last part of the address, which says what a form is to do.
func (v *visit) verb() string { return path.Base(v.r.URL.Path) }

// again answers a form that was refused with its page.
func (v *visit) again(s sent, form func(*visit) *page) *page {
	s.Verb, s.form, s.status = v.verb(), v.r.PostForm, cmp.Or(s.status, http.StatusUnprocessableEntity)
	v.Sent = s
	return form(v)
}

// fieldOf holds the field of a form or a filter that a refusal is about.
var fieldOf = map[journal.Code]string{
	journal.MaxRetriesExceeded: "how", journal.DeadlineMissed: "deadline", deadletter.PolicyNotFound: "when",
	deadletter.InvalidWhen: "when", deadletter.InvalidPace: "perMinute", deadletter.InvalidProtocol: "protocolNumber",
	deadletter.ReasonRequired: "reason", deadletter.ReasonTooLong: "reason", "invalid_state": "state",
	"invalid_since": "since", "invalid_until": "until", "invalid_period": "until", "invalid_follow_up": "followUp",
}

// answer answers a form. It leads to an address after success (nil), and shows the form's page again after a refusal,
// with the text of prefix and the refusal's code. After any other error the change may have been made: the problem with
// the key mayBe says so.
func (v *visit) answer(err error, to, prefix, mayBe string, form func(*visit) *page) *page {
	r := journal.RefusalOf(err)
	switch {
	case err == nil:
		return v.to(to)
	case r == nil:
		check(&problem{http.StatusServiceUnavailable, mayBe, err})
	case unknown[r.Code] != "":
		check(err)
	}
	code := string(r.Code)
	s := sent{Wrong: v.Or(prefix+code, v.Or("form.wrong."+code, r.Message)), Field: fieldOf[r.Code]}
	if r.Code == journal.InvalidRunState {
		s.status = http.StatusConflict
	}
	return v.again(s, form)
}

const aYear = 365 * 24 * 3600 // seconds

// keep makes the browser keep a value for so many seconds, or until it is closed if they are 0.
func (v *visit) keep(name, value string, seconds int) {
	http.SetCookie(v.w, &http.Cookie{Name: name, Value: base64.RawURLEncoding.EncodeToString([]byte(value)), Path: "/",
		SameSite: http.SameSiteLaxMode, HttpOnly: true, Secure: access.OverTLS(v.r), MaxAge: seconds})
}

// kept returns a value that keep made the browser keep; empty if there is none.
func kept(r *http.Request, name string) string {
	c, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	value, _ := base64.RawURLEncoding.DecodeString(c.Value)
	return string(value)
}
