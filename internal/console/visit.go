package console

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
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

// visit is one request: who reads, in which language and zone, and when.
type visit struct {
	w   http.ResponseWriter
	r   *http.Request
	who access.Identity
	Lang
	zone      *time.Location
	Now       time.Time
	Catalogue *catalogue.Catalogue
	tag       string // Pages.tag
	// Sent is the form that the page shows again.
	Sent *sent
	// mine is the team that the reader works for; empty if that is not known.
	mine decision.Team
	// patterns holds the patterns of causes that were looked up for this page, by fingerprint.
	patterns map[string]string
}

func (p *Pages) visit(w http.ResponseWriter, r *http.Request) *visit {
	lang, chosen := langOf(r)
	v := &visit{w: w, r: r, who: access.From(r.Context()), Lang: lang, zone: p.Zone, Now: p.Now().UTC(),
		Catalogue: p.Catalogue(), patterns: map[string]string{}, Sent: sentOf(r)}
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

func (v *visit) Role() string { return v.Or("role."+v.who.Role.String(), v.who.Role.String()) }

// ownTeams names the teams that the reader is bound to.
func (v *visit) ownTeams() string {
	names := strings.Split(string(v.who.Teams), ",")
	return strings.Join(each(names, func(name *string) string { return v.team(decision.Team(*name)) }), ", ")
}

// page is the answer of an address.
type page struct {
	status int // 0 is 200
	// name is the template's; section is the part of the navigation that it belongs to.
	name, section string
	title         string
	// summary is one sentence. A screen reader speaks it when it changes while the page is open.
	summary string
	data    any
	// fixed pages do not update themselves; nor do those with a status, which answer what was just sent.
	fixed bool
	// redirect is the address to go to instead of all this.
	redirect string
}

// frame is what surrounds every page.
type frame struct {
	V                       *visit
	OtherLang               Lang
	OtherURL                string
	Title, Section, Summary string
	Body                    template.HTML
	Version                 string
	// Zone is the hospital's, by its IANA name; ZoneName is what people call it.
	Zone, ZoneName string
	// Bare reports whether nobody is logged in.
	Bare bool
	// Ends is when the session does; empty if there is none.
	Ends string
	// Rows reports whether the page lists dead letters, without an error.
	Rows bool
	// Health is the worker's, Down the number of portals that are down; the page warns of what does not work.
	Health Health
	Down   int64
	Admin  bool
	// Mine is the address of the list of what waits for the reader's team.
	Mine string
}

//go:embed templates/*.html
var templateFiles embed.FS

// templates holds the templates by language, whose texts they have. They are parsed at first use, since most processes
// never show a page; this package's tests prove that they can be.
var templates = func() map[Lang]func() *template.Template {
	all := map[Lang]func() *template.Template{}
	for _, l := range Langs() {
		all[l] = sync.OnceValue(func() *template.Template {
			return template.Must(template.New("").Funcs(template.FuncMap{
				"t": l.T, "asset": assetURL,
				"path": url.PathEscape, "subject": subjectURL, "reason": l.reason, "policy": l.policy, "team": l.team,
				"badge": l.badge, "dict": dict, "lasting": l.lasting, "exact": l.exact,
				"tone":    func(tone, word string) Badge { return Badge{tone, word} },
				"decimal": func(x float64) string { return l.short(x, 1) },
				"line":    func(s string) template.HTML { return inert(strings.TrimSpace(s), lineShown, false) },
				"detail":  func(s string) template.HTML { return inert(strings.TrimSpace(s), detailShown, false) },
				"whole":   func(s string) template.HTML { return inert(s, mostShown, true) },
				"name":    func(s string) template.HTML { return inert(s, nameShown, false) },
				"refused": func(code string) string { return l.Or("refused."+code, code) },
				"number":  func(n any) string { return l.Number(reflect.ValueOf(n).Int()) },
				"count":   func(key string, n any) string { return l.Count(key, reflect.ValueOf(n).Int()) },
			}).ParseFS(templateFiles, "templates/*.html"))
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

// answer writes the page, or the one that says what went wrong. Without either, the request was answered already.
func (p *Pages) answer(v *visit, pg *page, err error) {
	switch {
	case errors.Is(err, deadletter.ErrBadCursor): // the cursor is not of this list
		http.Redirect(v.w, v.r, v.here(field{"cursor", ""}), http.StatusSeeOther)
	case err != nil:
		p.fail(v, err)
	case pg == nil:
	case pg.redirect != "":
		http.Redirect(v.w, v.r, pg.redirect, http.StatusSeeOther)
	default:
		pg.status = cmp.Or(pg.status, v.Sent.Status)
		p.write(v, pg)
	}
}

func (p *Pages) write(v *visit, pg *page) {
	var body, whole bytes.Buffer
	if err := templates[v.Lang]().ExecuteTemplate(&body, pg.name, pg.data); err != nil {
		p.broken(v, err)
		return
	}
	f := p.frame(v, pg, body.Bytes())
	if err := templates[v.Lang]().ExecuteTemplate(&whole, "frame", f); err != nil {
		p.broken(v, err)
		return
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", string(v.Lang))
	h.Add("Vary", "Accept-Language, Cookie")
	if f.Version != "" {
		h.Set("ETag", `"`+f.Version+`"`)
	}
	if pg.status != 0 {
		v.w.WriteHeader(pg.status)
	}
	_, _ = v.w.Write(whole.Bytes()) // an error means that the client has gone
}

// broken answers a fault in the templates, in plain text.
func (p *Pages) broken(v *visit, err error) {
	p.Log.Error("a page could not be rendered", zap.String("path", v.r.URL.Path), zap.Error(err))
	http.Error(v.w, v.T("problem.broken.text"), http.StatusInternalServerError)
}

func (p *Pages) frame(v *visit, pg *page, body []byte) *frame {
	other := map[Lang]Lang{Portuguese: English, English: Portuguese}[v.Lang]
	f := &frame{
		V: v, Title: pg.title, Section: pg.section, Summary: pg.summary, Body: template.HTML(body),
		Zone: v.zone.String(), ZoneName: v.Or("zone."+v.zone.String(), v.zone.String()),
		OtherLang: other, OtherURL: v.otherURL(other), Ends: exact(access.SessionEnds(v.r.Context())),
		Bare: v.who.Role == 0, Admin: v.who.Role == access.Admin, Rows: pg.name == "dead-letters" && pg.status == 0,
		Health: p.Health(), Down: p.down(v, pg.section), Mine: v.Waiting(v.mine, ""),
	}
	if !pg.fixed && pg.status == 0 {
		f.Version = v.tag
	}
	return f
}

// otherURL returns the address of this page in another language. A page that answers a form cannot be fetched again:
// for the log-in it returns the form's address, for others the overview's.
func (v *visit) otherURL(l Lang) string {
	switch {
	case v.r.Method == http.MethodGet, v.r.Method == http.MethodHead:
		return v.here(field{"lang", string(l)})
	case v.r.URL.Path == "/login":
		return "/login?lang=" + string(l)
	}
	return "/?lang=" + string(l)
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
	if denied, is := errors.AsType[*access.Refusal](err); is { // which changed nothing
		return &problem{denied.Status, "refused." + denied.Code, nil}
	}
	if known, is := errors.AsType[*problem](err); is {
		return known
	}
	refusal := journal.RefusalOf(err)
	switch {
	case refusal != nil && unknown[refusal.Code] != "":
		return &problem{status: http.StatusNotFound, key: unknown[refusal.Code]}
	case errors.Is(err, gate.ErrUnknown):
		return &problem{status: http.StatusNotFound, key: "portal_unknown"}
	}
	return &problem{status: http.StatusServiceUnavailable, key: "unreadable", cause: err}
}

// unsure returns a problem for a change that may have been made in spite of err.
func unsure(key string, err error) error { return &problem{http.StatusServiceUnavailable, key, err} }

// problemData is what the page of a problem shows.
type problemData struct {
	Status int
	Key    string
	// Detail is a refusal's own message; it may be empty.
	Detail string
	// Again is the address to try again; empty if that makes no sense.
	Again string
	// Written is what the reader wrote before the session ended, for him to copy.
	Written string
}

// maxWritten bounds the bytes of a refused form that are read.
const maxWritten = 16 << 10

// Refuse answers a request that access.Gate refuses with a page.
func (p *Pages) Refuse(w http.ResponseWriter, r *http.Request, refusal access.Refusal) {
	p.fail(p.visit(w, r), &refusal)
}

func (p *Pages) fail(v *visit, err error) {
	known, r := problemOf(err), v.r
	if known.cause != nil && r.Context().Err() == nil {
		p.Log.Error("a page could not be rendered", zap.String("path", r.URL.Path), zap.Error(known.cause))
	}
	d := &problemData{Status: known.status, Key: known.key}
	refusal, refused := errors.AsType[*access.Refusal](err)
	if refused && v.Or("problem."+d.Key+".title", "") == "" {
		d.Key, d.Detail = "refused", refusal.Message
	}
	switch {
	case known.status == http.StatusServiceUnavailable && r.Method == http.MethodGet:
		d.Again = r.URL.RequestURI()
		v.w.Header().Set("Retry-After", "5")
	case refused && refusal.Code == access.CodeLoginRequired && r.Method == http.MethodPost:
		r.Body = http.MaxBytesReader(v.w, r.Body, maxWritten)
		if r.ParseForm() == nil {
			d.Written = cmp.Or(r.PostForm.Get("reason"), r.PostForm.Get("why"), r.PostForm.Get("text"))
		}
		d.Again = "/login"
	}
	p.write(v, &page{status: known.status, name: "problem", title: v.T("problem." + d.Key + ".title"), data: d})
}

type loginData struct {
	Next string
	// Provider is the address of the log-in with the hospital's account; empty if that is not possible. Tokens reports
	// whether a token can be used.
	Provider string
	Tokens   bool
	// Wrong is why the last attempt failed; empty before the first.
	Wrong string
}

// Login writes the page with the log-in form.
func (p *Pages) Login(w http.ResponseWriter, r *http.Request, l access.Login) {
	v := p.visit(w, r)
	d, status := &loginData{Next: l.Next, Tokens: l.Tokens || !l.Provider}, http.StatusOK
	if l.Provider {
		d.Provider = address("/login/oidc", field{"next", l.Next})
	}
	if l.Refusal != nil {
		status = l.Refusal.Status
		d.Wrong = v.Or("login."+l.Refusal.Code, l.Refusal.Message)
		if l.Refusal.Code == access.CodeTooManyAttempts {
			d.Wrong = v.T("login.too_many_attempts", v.span(l.Refusal.RetryAfter.Round(time.Second)))
		}
	}
	p.write(v, &page{status: status, name: "login", title: v.T("login.title"), data: d})
}

// sent is a form that was refused, and why. The answer to a POST is a redirect, so that Back and reload do not repeat
// it; a cookie keeps the form for the page that it leads to. The zero value means that no form was refused.
type sent struct {
	// Page is a random id that the address of the page with the form has, too.
	Page string `json:"p"`
	// Verb is the last part of the form's address.
	Verb string     `json:"v"`
	Form url.Values `json:"f"`
	// Wrong says what is wrong. Field is the field that it is about; it may be empty. Status is the page's.
	Wrong  string `json:"w,omitempty"`
	Field  string `json:"o,omitempty"`
	Status int    `json:"s,omitempty"`
}

// Value returns what was sent in a field of that verb's form; empty if another form was sent.
func (s *sent) Value(verb, name string) string {
	if s.Verb != verb {
		return ""
	}
	return s.Form.Get(name)
}

// Is reports whether one of these fields of that verb's form is wrong.
func (s *sent) Is(verb string, fields ...string) bool {
	return s.Verb == verb && slices.Contains(fields, s.Field)
}

const (
	sentCookie = "sent"
	// sentSeconds is how long the browser keeps it.
	sentSeconds = 600
	// maxSentText bounds the bytes of a field, so that all fit into a cookie: browsers keep 4 KB.
	maxSentText = 2100
	// againField is the field of an address that holds sent.Page.
	againField = "again"
)

// sentFields lists the fields that a form shows again: what people write and choose.
var sentFields = []string{"reason", "how", "when", "deadline", "late", "protocolNumber", "text", "assignee", "followUp",
	"classification", "team", "until", "perMinute", "why", "everything", "total", "ready"}

// verb returns the last part of the address, which says what a form is to do.
func (v *visit) verb() string { return path.Base(v.r.URL.Path) }

// again leads to the page at an address, which shows the form as it was sent. Values longer than any field takes are
// cut.
func (v *visit) again(to string, s sent) *page {
	s.Page, s.Verb, s.Form = rand.Text(), v.verb(), url.Values{}
	if s.Wrong != "" {
		s.Status = cmp.Or(s.Status, http.StatusUnprocessableEntity)
	}
	for _, name := range sentFields {
		if v.r.PostForm.Has(name) {
			value := v.r.PostForm.Get(name)
			s.Form.Set(name, strings.ToValidUTF8(value[:min(len(value), maxSentText)], ""))
		}
	}
	text, _ := json.Marshal(s) // cannot fail
	v.keep(sentCookie, string(text), sentSeconds)
	address, _ := url.Parse(to) // the pages' own
	q := address.Query()
	q.Set(againField, s.Page)
	address.RawQuery = q.Encode()
	return &page{redirect: address.String()}
}

// refused leads back to the page of a refused form, with the text of prefix and the refusal's code. If err is no
// refusal, the change may have been made: the problem with the key mayBe says so.
func (v *visit) refused(err error, to, prefix, mayBe string) (*page, error) {
	r := journal.RefusalOf(err)
	switch {
	case r == nil:
		return nil, unsure(mayBe, err)
	case unknown[r.Code] != "":
		return nil, err
	}
	code := string(r.Code)
	s := sent{Wrong: v.Or(prefix+code, v.Or("form.wrong."+code, r.Message)),
		Field: cmp.Or(fieldsOfDecisions[r.Code], deadletter.FieldOf(r.Code))}
	if r.Code == journal.InvalidRunState {
		s.Status = http.StatusConflict
	}
	return v.again(to, s), nil
}

// sentOf returns the form that a request's page shows again; the zero value if there is none.
func sentOf(r *http.Request) *sent {
	var s sent
	page := r.URL.Query().Get(againField)
	if page == "" || json.Unmarshal([]byte(kept(r, sentCookie)), &s) != nil || s.Page != page {
		return &sent{}
	}
	return &s
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
