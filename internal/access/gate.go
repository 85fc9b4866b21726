package access

import (
	"context"
	"crypto/rand"
	_ "embed" // the words are part of the program
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"retry-worker/internal/text"
	"retry-worker/internal/web"
)

// Refusal is the error of a request that is not carried out.
type Refusal struct {
	Status int `json:"-"`
	// Code is of a closed set, for programs, and for pages to translate.
	Code string `json:"error" doc:"Why, as a code of a closed set."`
	// Message is one line in English that says what to do.
	Message string `json:"message"`
	// RetryAfter is how long to wait before trying again; 0: waiting does not help.
	RetryAfter time.Duration `json:"-"`
	// Body is the API's answer; if nil, Code and Message are.
	Body json.RawMessage `json:"-"`
}

func (r *Refusal) Error() string { return strings.TrimPrefix(r.Code+": "+r.Message, ": ") }

// after returns r with how long to wait.
func (r *Refusal) after(wait time.Duration) *Refusal {
	r.RetryAfter = wait
	return r
}

// The codes of refusals that pages answer in their own way.
const (
	CodeLoginRequired   = "login_required"
	CodeTooManyAttempts = "too_many_attempts"
)

//go:embed refusals.txt
var refusals string

// refuse returns the refusal of that name in refusals.txt, with args filled into its message. A name is a code, which a
// variant may follow behind a period.
func refuse(name string, args ...any) *Refusal {
	_, line, known := strings.Cut("\n"+refusals, "\n"+name+" ")
	if !known {
		panic("access: no refusal " + name)
	}
	line, _, _ = strings.Cut(line, "\n")
	number, message, _ := strings.Cut(line, " ")
	status, _ := strconv.Atoi(number)
	code, _, _ := strings.Cut(name, ".")
	return &Refusal{Status: status, Code: code, Message: fmt.Sprintf(message, args...)}
}

// Options configure a Gate.
type Options struct {
	// Tokens returns the tokens in force (smallfile.Watcher.Current). If it and Provider are nil, everybody is admin,
	// and only requests to a loopback name are answered.
	Tokens func() *Tokens
	// Provider lets people log in, too; nil: none.
	Provider *Provider
	// Now is the clock by which tokens and sessions end.
	Now func() time.Time
	// Ended returns the store of sessions that ended early; nil until the journal is open. Required with Tokens.
	Ended func() EndedSessions
	// Public lists path prefixes that everybody may read, such as /assets/; each ends with a slash.
	Public []string
	// LoginPage writes the status and the page with the log-in form, which posts `token` and `next` to /login. Required
	// with Tokens.
	LoginPage func(http.ResponseWriter, *http.Request, Login)
	// Refuse writes the page for a browser whose request is refused; nil: none. Requests under /api/, or that accept no
	// HTML, get JSON: {"error": Code, "message": Message}. Headers (Retry-After, WWW-Authenticate, Allow) are set
	// before. From may not know the identity yet.
	Refuse func(http.ResponseWriter, *http.Request, Refusal)
	// Log records who is let in and who is not; nil: none.
	Log *zap.Logger
}

// Gate decides which requests reach the console and the API. It is safe for concurrent use.
type Gate struct {
	Options
	crossOrigin *http.CrossOriginProtection
	asked       limits[netip.Prefix]
	wrong       limits[netip.Prefix]
	changed     limits[string] // by name
	strangers   *zap.Logger
	openID      *openID // nil where there is no provider
	// localForm is everybody's form token if there are no tokens. A restart makes open forms stale.
	localForm string
}

// New returns a Gate.
func New(o Options) *Gate {
	g := &Gate{Options: o, crossOrigin: http.NewCrossOriginProtection(), localForm: rand.Text(),
		asked:   limits[netip.Prefix]{every: time.Second / perSecond, burst: burst},
		wrong:   limits[netip.Prefix]{every: perGuess, burst: guessesAtOnce},
		changed: limits[string]{every: perChange, burst: changesAtOnce}}
	if g.Log == nil {
		g.Log = zap.NewNop()
	}
	// Of the lines that strangers cause, at most 10 of a kind are logged each second, and every 100th after that, so
	// that nobody can fill a disk.
	g.strangers = g.Log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(c, time.Second, 10, 100)
	}))
	if o.Provider != nil {
		g.openID = newOpenID(*o.Provider, o.Now, g.providerFailed)
		if g.Tokens == nil {
			g.Tokens = func() *Tokens { return &Tokens{} }
		}
	}
	return g
}

// Accounts returns the accounts with a valid token, and those that came by the provider since the start; everybody's if
// there are no tokens. others reports whether the provider may know more.
func (g *Gate) Accounts() (known []Identity, others bool) {
	if g.Tokens == nil {
		return []Identity{everybody}, false
	}
	for _, t := range g.Tokens().all {
		if !t.Expired(g.Now()) {
			known = append(known, t.Identity)
		}
	}
	if g.openID == nil {
		return known, false
	}
	g.openID.people.Range(func(_, id any) bool {
		known = append(known, id.(Identity))
		return true
	})
	return known, true
}

// asker is who sends a request, and how they came in.
type asker struct {
	Identity
	session *session        // nil without a log-in
	form    string          // the form token; empty if forms need none (a bearer, nobody)
	again   func() Identity // looks the identity up again
}

// FormToken returns what each form of a page must post as `form_token`; empty if forms need none.
func FormToken(ctx context.Context) string { return askerIn(ctx).form }

// SessionEnds returns when the session in ctx ends; the zero time if there is none (no tokens, a bearer).
func SessionEnds(ctx context.Context) time.Time {
	if s := askerIn(ctx).session; s != nil {
		return s.ends()
	}
	return time.Time{}
}

// Still reports whether the identity in ctx may do the action by the tokens in force now, for answers that take long.
func Still(ctx context.Context, action Action) bool {
	a := askerIn(ctx)
	if a.again == nil {
		return a.Role.May(action)
	}
	return a.again().Role.May(action)
}

// Middleware finds out who sends a request, for From, and requires a role for whatever is not public. It answers /login
// and /logout itself, sets the security headers, and refuses
//   - without tokens: requests to another name than this machine's own;
//   - changes that another site's page asks for (http.CrossOriginProtection), without tokens too;
//   - changes under /api/ that are not application/json, and other changes that are not a form with its form token.
//     next finds the form parsed (r.PostForm, up to 64 KiB);
//   - fields that a form or a page's address has twice, except check boxes.
//
// Without a role, a request for a page is redirected to the log-in form, any other is answered 401.
func (g *Gate) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header(), r)
		a, refusal := g.admit(w, r)
		if refusal != nil {
			g.Deny(w, r, refusal)
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), contextKey{}, a))
		if a.Role != "" {
			web.Keep(r)
		}
		switch {
		case r.URL.Path == "/login":
			g.login(w, r)
		case g.openID != nil && r.URL.Path == beginPath:
			g.atProvider(w, r, g.sendToProvider)
		case g.openID != nil && r.URL.Path == callbackPath:
			g.atProvider(w, r, g.comeBack)
		case a.Role == "" && !g.public(r) && r.URL.Path != "/logout": // whose session may have ended
			g.Deny(w, r, refuse(CodeLoginRequired))
		default:
			g.changes(w, r, next)
		}
	})
}

// admit returns who sends a request, or why it may not come in at all.
func (g *Gate) admit(w http.ResponseWriter, r *http.Request) (*asker, *Refusal) {
	if g.Tokens == nil && !ownHost(r) {
		return nil, refuse("forbidden_host")
	}
	if g.crossOrigin.Check(r) != nil {
		return nil, refuse("forbidden_origin")
	}
	if refusal := once(r.URL.Query()); refusal != nil && !isAPI(r) { // the API checks its own
		return nil, refusal
	}
	if g.public(r) { // so that a page that says what is down has its styles
		return &asker{}, nil
	}
	return g.identify(w, r)
}

// changes passes a request to next, or refuses a change that is not JSON or a form as it must be, or one too many.
func (g *Gate) changes(w http.ResponseWriter, r *http.Request, next http.Handler) {
	var refusal error
	switch change := !reads(r) && r.Method != http.MethodOptions; {
	case change && isAPI(r):
		refusal = checkJSON(r)
	case change:
		refusal = checkForm(w, r)
		if refusal == nil && r.Method == http.MethodPost && r.URL.Path != "/logout" {
			refusal = g.Pace(r.Context())
		}
	}
	switch {
	case refusal != nil:
		g.Deny(w, r, refusal)
	case r.URL.Path == "/logout":
		g.logout(w, r)
	default:
		next.ServeHTTP(w, r)
	}
}

// Pace returns a *Refusal if the account in ctx makes more changes than a person does. It is for changes that can be
// repeated, each time a record, and for every form of a page.
func (g *Gate) Pace(ctx context.Context) error {
	id := From(ctx)
	if g.changed.wait(id.Name, g.Now()) == 0 {
		return nil
	}
	return refuse("too_many_changes", id.Name).after(perChange)
}

// identify returns who sends a request; an asker without a role is nobody.
func (g *Gate) identify(w http.ResponseWriter, r *http.Request) (*asker, *Refusal) {
	if g.Tokens == nil {
		return &asker{Identity: everybody, form: g.localForm}, nil
	}
	if headers := r.Header.Values("Authorization"); len(headers) > 0 {
		return g.bearer(w, r, headers)
	}
	value := sessionCookie.value(r)
	s, err := g.session(r.Context(), value)
	if err != nil && r.URL.Path == "/logout" && r.Method == http.MethodPost {
		sessionCookie.set(w, r, "", 0) // this browser forgets it at least
	}
	switch {
	case errors.Is(err, errAway):
		return nil, providerAway()
	case err != nil:
		return nil, g.unkept(err, "so it is not known whether this log-in still holds")
	case s == nil:
		return &asker{}, nil
	case s.value != value: // the provider has said something else since
		sessionCookie.set(w, r, s.value, s.ends().Sub(g.Now()))
	}
	return &asker{Identity: s.account.Identity, session: s, form: s.form(), again: func() (now Identity) {
		if s, _ := g.session(r.Context(), value); s != nil { // otherwise nobody, or not known
			now = s.account.Identity
		}
		return now
	}}, nil
}

// session returns the session of a cookie's value; nil if there is none, or it has ended.
func (g *Gate) session(ctx context.Context, value string) (*session, error) {
	s := g.sessionOf(value)
	if s == nil {
		return nil, nil
	}
	if ended, err := g.hasEnded(ctx, s); ended || err != nil {
		return nil, err
	}
	if s.Grant == nil {
		return s, nil
	}
	now, err := g.openID.current(ctx, s)
	if now != nil {
		g.openID.people.Store(now.account.Name, now.account.Identity)
	}
	return now, err
}

// bearer returns the program whose token the header has.
func (g *Gate) bearer(w http.ResponseWriter, r *http.Request, headers []string) (*asker, *Refusal) {
	scheme, secret, _ := strings.Cut(headers[0], " ")
	if len(headers) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return nil, refuse("invalid_authorization")
	}
	secret = strings.TrimSpace(secret)
	t, refusal := g.tokenBy(r, secret)
	if refusal != nil {
		if refusal.Status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Bearer realm="retry-worker", error="invalid_token"`)
		}
		return nil, refusal
	}
	return &asker{Identity: t.Identity, again: func() (now Identity) {
		if t := g.Tokens().find(secret); t != nil && !t.Expired(g.Now()) {
			now = t.Identity
		}
		return now
	}}, nil
}

// tokenBy returns the token of a secret. It looks it up first, in constant time, so that a right one never waits,
// however many guess. Wrong ones that come too fast are only told to wait.
func (g *Gate) tokenBy(r *http.Request, secret string) (*Token, *Refusal) {
	t := g.Tokens().find(secret)
	if t != nil && !t.Expired(g.Now()) {
		return t, nil
	}
	if wait := g.wrong.wait(web.Network(peer(r)), g.Now()); wait > 0 {
		g.warn(peer(r), "login_slowed", "an address tries tokens too fast; it has to wait")
		return nil, refuse(CodeTooManyAttempts, seconds(wait)).after(wait)
	}
	g.warn(peer(r), "token_refused", "a token was refused: unknown, or past its last day")
	if t != nil { // only its holder learns that it has expired
		return nil, refuse("token_expired", t.Name, t.Until())
	}
	return nil, refuse("token_unknown")
}

// seconds returns d in seconds, rounded up.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// isAPI reports whether a request is for the API, where errors are JSON and nothing is redirected.
func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }

func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// wantsPage reports whether a browser asks for a page.
func wantsPage(r *http.Request) bool {
	return !isAPI(r) && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// public reports whether everybody may read the path. One that the router would tidy up is not public.
func (g *Gate) public(r *http.Request) bool {
	return reads(r) && path.Clean(r.URL.Path) == r.URL.Path &&
		slices.ContainsFunc(g.Public, func(prefix string) bool { return strings.HasPrefix(r.URL.Path, prefix) })
}

// checkJSON refuses what is not JSON, which another site's page cannot send without the browser asking first.
func checkJSON(r *http.Request) error {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if charset := params["charset"]; err == nil && kind == "application/json" &&
		(charset == "" || strings.EqualFold(charset, "utf-8")) {
		return nil
	}
	return refuse("unsupported_media_type.json")
}

func retryAfter(w http.ResponseWriter, refusal *Refusal) {
	if refusal != nil && refusal.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds(refusal.RetryAfter)))
	}
}

// Deny answers with err, a *Refusal. A browser that wants a page and is not logged in is led to the log-in form.
func (g *Gate) Deny(w http.ResponseWriter, r *http.Request, err error) {
	refusal, known := errors.AsType[*Refusal](err)
	if !known {
		panic("not a refusal: " + err.Error())
	}
	if refusal.Code == CodeLoginRequired {
		if reads(r) && wantsPage(r) {
			http.Redirect(w, r, "/login?next="+url.QueryEscape(safeNext(r.URL.RequestURI())), http.StatusSeeOther)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="retry-worker"`)
	}
	if refusal.Status == http.StatusForbidden {
		who := From(r.Context())
		g.warn(peer(r), "request_forbidden", "a request was refused: its sender may not do that", zap.String("code", refusal.Code),
			zap.String("token", who.Name), zap.String("role", string(who.Role)))
	}
	retryAfter(w, refusal)
	if g.Refuse != nil && wantsPage(r) {
		g.Refuse(w, r, *refusal)
		return
	}
	body := refusal.Body
	if body == nil {
		body = text.JSON(refusal)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(refusal.Status)
	_, _ = w.Write(append(text.InertJSON(body), '\n')) // nobody is left to report an error to
}

// MayServeWithoutTokens returns nil if addr (host:port) can be reached from this machine only. Otherwise the error
// tells the user why the console does not start there without tokens, and what to do.
func MayServeWithoutTokens(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err == nil && IsLoopback(host) {
		return nil
	}
	return fmt.Errorf("RETRY_WORKER_HTTP_ADDR is %q, expected a loopback address such as 127.0.0.1:8095 as long as "+
		"neither RETRY_WORKER_AUTH_TOKENS_FILE nor RETRY_WORKER_OIDC_ISSUER is set: "+
		"other machines reach this one, patients' claims are served there, and nobody has to log in; "+
		"`retry-worker token new --name NAME --role admin --file FILE` makes the first", addr)
}

// IsLoopback reports whether a host, without its port, is localhost or a loopback address. It looks up no name, since
// others decide what a name resolves to.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// ownHost reports whether a request was sent to localhost or a loopback address. Another site's page can read answers
// from here, but only under its own host's name (DNS rebinding).
func ownHost(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if inner, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	return IsLoopback(host)
}

// secure sets the security headers of an answer. A page may load from its own server only; inline scripts and styles do
// not run. An API answer may load nothing.
func secure(h http.Header, r *http.Request) {
	policy := "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	if !isAPI(r) {
		policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
			"connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// Not no-referrer: under that, browsers send the Origin of a form as "null", which the cross-origin protection
	// refuses where they send no Sec-Fetch-Site (plain HTTP on another address than loopback).
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if OverTLS(r) && !ownHost(r) { // under localhost it would hold for every other program of this machine
		h.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains") // a year
	}
}
