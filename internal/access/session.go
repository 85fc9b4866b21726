package access

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap"
)

const (
	// sessionLife is how long a session lasts, used or not: a working day with its overtime.
	sessionLife = 12 * time.Hour
	// skew is how far the clocks of replicas, which read one another's sessions, may differ.
	skew = time.Minute
)

// session is one browser's log-in. It lives in its cookie alone, as `NAME.SEALED`: sealed by the token of that name, or
// by the provider if the name is empty. So every replica can check it, a restart does not end it, and it ends when its
// token is taken out, replaced or expires. The role is the token's at each request.
type session struct {
	ID    string // 128 random bits
	Began time.Time
	// Grant is what an OpenID provider said; nil for a session of a token.
	Grant *grant `json:",omitempty"`

	account *Token // for the provider's people one that no file has
	value   string // of the cookie
}

// newSession returns a session that begins at now.
func newSession(now time.Time) session {
	return session{ID: rand.Text(), Began: now.Truncate(time.Second)}
}

// of returns s as one of the token's sessions.
func (s session) of(t *Token) *session {
	s.account, s.value = t, t.Name+"."+seal(t.seals(), "session", s)
	return &s
}

// ends returns when s ends: after sessionLife, or with its token if that comes first.
func (s *session) ends() time.Time {
	ends := s.Began.Add(sessionLife)
	if t := s.account.Expires; !t.IsZero() && t.Before(ends) {
		return t
	}
	return ends
}

// sessionOf returns the session of a cookie's value; nil if it is not ours, or its time is over. It asks no provider.
func (g *Gate) sessionOf(value string) *session {
	s := &session{value: value}
	end := strings.LastIndexByte(value, '.')
	if end < 0 {
		return nil
	}
	name, sealed := value[:end], value[end+1:]
	switch t := g.Tokens().named(name); {
	case t != nil && open(t.seals(), "session", sealed, s):
		s.account = t
	case name == "" && g.openID != nil && open(g.openID.seals, "session", sealed, s):
		s.account = &Token{Identity: s.Grant.Identity}
	default:
		return nil
	}
	if now := g.Now(); s.Began.After(now.Add(skew)) || !now.Before(s.ends()) {
		return nil
	}
	return s
}

// form returns what the session's forms carry, so that no other page can fill them in.
func (s *session) form() string {
	sum := sha256.Sum256([]byte("form " + s.ID))
	return cookieText.EncodeToString(sum[:])
}

// seals returns what seals the token's sessions.
func (t *Token) seals() cipher.AEAD { return sealer(t.hash[:], nil, "session") }

// sealer returns what seals and opens values for cookies, with a key made of a secret.
func sealer(secret, salt []byte, purpose string) cipher.AEAD {
	key := must(hkdf.Key(sha256.New, secret, salt, "retry-worker "+purpose+" v2", sha256.Size))
	return must(cipher.NewGCMWithRandomNonce(must(aes.NewCipher(key))))
}

// must returns the value of what cannot fail: a key of the right length, JSON of texts and instants.
func must[T any](value T, err error) T {
	if err != nil {
		panic("access: " + err.Error())
	}
	return value
}

var cookieText = base64.RawURLEncoding

// seal encrypts a value, so that only who has the secret can read or make it.
func seal(by cipher.AEAD, purpose string, v any) string {
	return cookieText.EncodeToString(by.Seal(nil, nil, must(json.Marshal(v)), []byte(purpose)))
}

// open reads what seal made for the purpose into v, and reports whether it could. There is only one way to write it.
func open(by cipher.AEAD, purpose, sealed string, v any) bool {
	b, err := cookieText.DecodeString(sealed)
	if err != nil || cookieText.EncodeToString(b) != sealed {
		return false
	}
	text, err := by.Open(nil, nil, b, []byte(purpose))
	return err == nil && json.Unmarshal(text, v) == nil
}

// OverTLS reports whether the browser speaks TLS, to us or to a proxy that says so. A client that lies gets stricter
// rules, and a cookie that its own browser refuses.
func OverTLS(r *http.Request) bool {
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-Proto"), ",") // the proxy nearest to the browser
	return r.TLS != nil || strings.EqualFold(strings.TrimSpace(first), "https")
}

// cookie names a cookie. A browser sends it along where another site links here, such as a web mail, or redirects here,
// as the OpenID provider does, but not with another site's form or script.
type cookie string

const (
	sessionCookie cookie = "retry-worker-session"
	pendingCookie cookie = "retry-worker-login"
)

// nameIn returns the cookie's name in a request and its answer. Over TLS it has the prefix that makes a browser take it
// from this host only, and over TLS only.
func (c cookie) nameIn(r *http.Request) string {
	if OverTLS(r) {
		return "__Host-" + string(c)
	}
	return string(c)
}

// set gives the browser the cookie; an empty value deletes it.
func (c cookie) set(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	seconds := max(1, int(life/time.Second))
	if value == "" {
		seconds = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: c.nameIn(r), Value: value, Path: "/", MaxAge: seconds,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: OverTLS(r),
	})
}

// value returns the value of the request's cookie; empty if there is none. Over TLS only the one with the prefix
// counts, which neither a neighbouring host nor plain HTTP can set. Several with one name count as none: somebody
// forged one.
func (c cookie) value(r *http.Request) string {
	if all := r.CookiesNamed(c.nameIn(r)); len(all) == 1 {
		return all[0].Value
	}
	return ""
}

// EndedSessions stores which sessions ended early, for every replica and across restarts. It knows a session by a hash,
// which lets nobody in. It is safe for concurrent use.
type EndedSessions interface {
	// EndSession stores that a session has ended, and removes those whose time is over at now.
	EndSession(ctx context.Context, id [sha256.Size]byte, until, now time.Time) error
	// SessionEnded reports whether EndSession was called for the session.
	SessionEnded(ctx context.Context, id [sha256.Size]byte) (bool, error)
}

// storeTime bounds one call of EndedSessions.
const storeTime = 3 * time.Second

func (s *session) id() [sha256.Size]byte { return sha256.Sum256([]byte(s.ID)) }

// hasEnded reports whether a session was ended early. Until the journal is open, none counts as ended, but nothing in
// the journal is served either.
func (g *Gate) hasEnded(ctx context.Context, s *session) (bool, error) {
	store := g.Ended()
	if store == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return store.SessionEnded(ctx, s.id())
}

// end makes every copy of the session's cookie invalid; s may be nil.
func (g *Gate) end(ctx context.Context, s *session) error {
	if s == nil {
		return nil
	}
	store := g.Ended()
	if store == nil {
		return errors.New("the journal is not open")
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	return store.EndSession(ctx, s.id(), s.ends().Add(skew), g.Now())
}

// unkept returns the refusal for an EndedSessions that failed with err; what says what that means for the person.
func (g *Gate) unkept(err error, what string) *Refusal {
	g.strangers.Error("the record of ended sessions cannot be reached; nobody is let in by a session until it can",
		zap.String("event", "sessions_unavailable"), zap.Error(err))
	return refuse("sessions_unavailable", what).after(5 * time.Second)
}

// maxFormBytes limits a form that a page posts, maxLoginBytes the log-in form, which strangers can post.
const (
	maxFormBytes  = 64 << 10
	maxLoginBytes = 8 << 10
)

// FormTokenField is the field with FormToken's value that each form of a page has.
const FormTokenField = "form_token"

// Login is what the log-in page shows.
type Login struct {
	// Next is the path on this server to go to after the log-in; the form posts it as `next`.
	Next string
	// Provider: people may log in at /login/oidc?next=…; Tokens: they may log in by a token.
	Provider, Tokens bool
	// Refusal is why the last attempt failed; nil before the first. The page answers with its Status, or 200.
	Refusal *Refusal
}

// login answers /login: it shows the form and takes what it posts.
func (g *Gate) login(w http.ResponseWriter, r *http.Request) {
	switch {
	case !reads(r) && r.Method != http.MethodPost:
		g.refuseMethod(w, r, "GET, HEAD, POST")
	case r.Method == http.MethodPost && g.Tokens != nil:
		g.logIn(w, r)
	case From(r.Context()).Role != "": // as always without tokens
		http.Redirect(w, r, safeNext(r.URL.Query().Get("next")), http.StatusSeeOther)
	default:
		g.loginPage(w, r, safeNext(r.URL.Query().Get("next")), nil)
	}
}

// loginPage answers with the page with the log-in form, and with why the last attempt failed if refusal is not nil.
func (g *Gate) loginPage(w http.ResponseWriter, r *http.Request, next string, refusal *Refusal) {
	retryAfter(w, refusal)
	g.LoginPage(w, r, Login{Next: next, Refusal: refusal, Provider: g.openID != nil, Tokens: g.Tokens().Len() > 0})
}

// refuseMethod answers a request whose method its path does not take.
func (g *Gate) refuseMethod(w http.ResponseWriter, r *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	g.Deny(w, r, refuse("method_not_allowed", allowed))
}

// logIn begins a session. It asks for no form token, which belongs to a session: the cross-origin protection keeps
// other sites from logging a browser in.
func (g *Gate) logIn(w http.ResponseWriter, r *http.Request) {
	if refusal := parseForm(w, r, maxLoginBytes); refusal != nil {
		g.Deny(w, r, refusal)
		return
	}
	next := safeNext(r.PostForm.Get("next"))
	secret := strings.TrimSpace(r.PostForm.Get("token"))
	t, refusal := g.tokenBy(r, secret)
	if refusal != nil {
		g.loginPage(w, r, next, refusal)
		return
	}
	if refusal := g.welcome(w, r, newSession(g.Now()).of(t), next); refusal != nil {
		g.Deny(w, r, refusal)
	}
}

// welcome gives the browser a new session in place of the one it had, and leads it to next.
func (g *Gate) welcome(w http.ResponseWriter, r *http.Request, s *session, next string) *Refusal {
	if err := g.end(r.Context(), askerIn(r.Context()).session); err != nil {
		return g.unkept(err, "so the log-in before this one could not be ended")
	}
	sessionCookie.set(w, r, s.value, s.ends().Sub(g.Now()))
	g.Log.Info("somebody logged in", zap.String("event", "logged_in"), zap.String("token", s.account.Name),
		zap.String("role", string(s.account.Role)))
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// logout ends the browser's session: it deletes the cookie, of which no copy is valid from then on.
func (g *Gate) logout(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		g.refuseMethod(w, r, http.MethodPost)
		return
	}
	sessionCookie.set(w, r, "", 0)
	if err := g.end(r.Context(), askerIn(r.Context()).session); err != nil {
		g.Deny(w, r, g.unkept(err, "so only this browser was logged out, and a copy of its cookie would still hold"))
		return
	}
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// safeNext returns next if it is a path of this server, and otherwise /, so that no link to the log-in leads to another
// site.
func safeNext(next string) string {
	const most = 2000
	u, err := url.Parse(next) // refuses control characters, which browsers skip
	switch {
	case err != nil, len(next) > most, !strings.HasPrefix(next, "/"), strings.HasPrefix(next, "//"),
		strings.Contains(next, `\`),
		strings.HasPrefix(u.Path, "//"), // /%2fevil, which RequestURI may write as //evil
		u.Path == "/login", strings.HasPrefix(u.Path, "/login/"), u.Path == "/logout":
		return "/"
	}
	return u.RequestURI()
}

// checkForm refuses what is not a form of our own pages. A program needs no form token, since no browser sends its
// token by itself, as it sends a cookie.
func checkForm(w http.ResponseWriter, r *http.Request) error {
	if refusal := parseForm(w, r, maxFormBytes); refusal != nil {
		return refusal
	}
	a := askerIn(r.Context())
	if a.form != "" && subtle.ConstantTimeCompare([]byte(r.PostForm.Get(FormTokenField)), []byte(a.form)) != 1 {
		return refuse("form_expired")
	}
	return nil
}

func parseForm(w http.ResponseWriter, r *http.Request, most int64) *Refusal {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil ||
		kind != "application/x-www-form-urlencoded" {
		return refuse("unsupported_media_type.form")
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	err := r.ParseForm()
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return refuse("body_too_large", most)
	}
	if err != nil {
		return refuse("invalid_form")
	}
	return once(r.Form)
}

// once refuses fields that are given twice, in the body or the address, since readers differ in which of the two they
// take. Only ids, the check boxes, is given once for each that is ticked.
func once(fields url.Values) *Refusal {
	for name, values := range fields {
		if len(values) > 1 && name != "ids" {
			return refuse("invalid_form.twice", name, len(values))
		}
	}
	return nil
}
