package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"go.uber.org/zap"
	"golang.org/x/oauth2"
)

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
	if refusal != nil {
		retryAfter(w, refusal)
	}
	g.LoginPage(w, r, Login{Next: next, Refusal: refusal, Provider: g.openID != nil, Tokens: g.Tokens().Len() > 0})
}

// refuseMethod answers a request whose method its path does not take.
func (g *Gate) refuseMethod(w http.ResponseWriter, r *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	g.refuse(w, r, Refusal{Status: http.StatusMethodNotAllowed, Code: CodeMethodNotAllowed,
		Message: "this address does not take that method; use " + allowed})
}

// logIn begins a session. It asks for no form token, which belongs to a session: the cross-origin protection keeps
// other sites from logging a browser in.
func (g *Gate) logIn(w http.ResponseWriter, r *http.Request) {
	if refusal := parseForm(w, r, maxLoginBytes); refusal != nil {
		g.refuse(w, r, *refusal)
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
		g.refuse(w, r, *refusal)
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
		g.refuse(w, r, *g.unkept(err, "so only this browser was logged out, and a copy of its cookie would still hold"))
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
		return &Refusal{Status: http.StatusForbidden, Code: CodeFormExpired,
			Message: "this form belongs to another log-in, or to the time before a restart; load its page again and repeat"}
	}
	return nil
}

func parseForm(w http.ResponseWriter, r *http.Request, most int64) *Refusal {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil ||
		kind != "application/x-www-form-urlencoded" {
		return &Refusal{Status: http.StatusUnsupportedMediaType, Code: CodeUnsupportedMediaType,
			Message: "this address takes a form: send it with Content-Type: application/x-www-form-urlencoded; programs use " +
				"/api/v1"}
	}
	r.Body = http.MaxBytesReader(w, r.Body, most)
	err := r.ParseForm()
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return &Refusal{Status: http.StatusRequestEntityTooLarge, Code: CodeBodyTooLarge,
			Message: fmt.Sprintf("the form has more than %d bytes", most)}
	}
	if err != nil {
		return &Refusal{Status: http.StatusBadRequest, Code: CodeInvalidForm,
			Message: "the form cannot be read; send it again"}
	}
	return once(r.Form)
}

// box is the field of check boxes, given once for each that is ticked.
const box = "ids"

// once refuses fields that are given twice, in the body or the address, except check boxes: readers differ in which of
// the two they take.
func once(fields url.Values) *Refusal {
	for name, values := range fields {
		if len(values) > 1 && name != box {
			return &Refusal{Status: http.StatusBadRequest, Code: CodeInvalidForm,
				Message: fmt.Sprintf("the field %.60q is given %d times, expected once", name, len(values))}
		}
	}
	return nil
}

const (
	// beginPath leads to the provider, callbackPath is where it sends people back to.
	beginPath    = "/login/oidc"
	callbackPath = "/login/callback"
	// pendingLife is how long a person may take at the provider.
	pendingLife = 10 * time.Minute
)

// pending is a log-in that has begun. The browser keeps it, sealed, until the provider sends the person back.
type pending struct {
	State, Nonce, Verifier, Next string
	Ends                         time.Time
}

// providerLogin answers beginPath and callbackPath.
func (g *Gate) providerLogin(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		g.refuseMethod(w, r, http.MethodGet)
		return
	}
	next := g.sendToProvider
	if r.URL.Path == callbackPath {
		next = g.comeBack
	}
	if refusal := next(w, r); refusal != nil {
		g.loginPage(w, r, "/", refusal)
	}
}

// sendToProvider begins a log-in by authorisation code, with PKCE.
func (g *Gate) sendToProvider(w http.ResponseWriter, r *http.Request) *Refusal {
	p := pending{rand.Text(), rand.Text(), oauth2.GenerateVerifier(), safeNext(r.URL.Query().Get("next")),
		g.Now().Add(pendingLife)}
	err := g.openID.ask(r.Context(), func(_ context.Context, provider *oidc.Provider) error {
		pendingCookie.set(w, r, seal(g.openID.seals, "login", p), pendingLife)
		to := g.openID.oauth(provider, callbackOf(r)).AuthCodeURL(p.State, oidc.Nonce(p.Nonce),
			oauth2.S256ChallengeOption(p.Verifier))
		http.Redirect(w, r, to, http.StatusSeeOther)
		return nil
	})
	return g.notLoggedIn(r, err)
}

// comeBack completes the log-in of a person whom the provider sends back, and begins the session.
func (g *Gate) comeBack(w http.ResponseWriter, r *http.Request) *Refusal {
	var p pending
	q := r.URL.Query()
	known := open(g.openID.seals, "login", pendingCookie.value(r), &p) && g.Now().Before(p.Ends)
	pendingCookie.set(w, r, "", 0)
	if !known || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(p.State)) != 1 {
		return &Refusal{Status: http.StatusBadRequest, Code: CodeLoginStale,
			Message: "this log-in was begun in another browser or window, or too long ago; begin again"}
	}
	if q.Get("code") == "" {
		return g.notLoggedIn(r, fmt.Errorf("the provider answers %.60q", q.Get("error")))
	}
	granted, err := g.openID.granting(r.Context(), callbackOf(r),
		func(ctx context.Context, c *oauth2.Config) (*oauth2.Token, error) {
			return c.Exchange(ctx, q.Get("code"), oauth2.VerifierOption(p.Verifier))
		}, func(t *oidc.IDToken, _ grant) error {
			if subtle.ConstantTimeCompare([]byte(t.Nonce), []byte(p.Nonce)) != 1 {
				return errors.New("the token belongs to another log-in: its nonce is not the one that was sent")
			}
			return nil
		})
	if err != nil {
		return g.notLoggedIn(r, err)
	}
	return g.welcome(w, r, g.openID.granted(newSession(g.Now()), granted), p.Next)
}

// notLoggedIn returns the refusal of a log-in that failed with err; nil for a nil err.
func (g *Gate) notLoggedIn(r *http.Request, err error) *Refusal {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errAway):
		return providerAway()
	}
	g.warn(peer(r), "oidc_refused", "OpenID log-in refused", zap.Error(err))
	return &Refusal{Status: http.StatusUnauthorized, Code: CodeLoginRefused,
		Message: "the OpenID provider's answer does not let you in; the worker's log says why"}
}

func providerAway() *Refusal {
	return &Refusal{Status: http.StatusServiceUnavailable, Code: CodeProviderUnavailable, RetryAfter: providerRest,
		Message: errAway.Error() + " now, so it is not known who asks; try again in a moment"}
}

// callbackOf returns where the provider sends the browser back to. The provider takes only what its settings name.
func callbackOf(r *http.Request) string {
	if OverTLS(r) {
		return "https://" + r.Host + callbackPath
	}
	return "http://" + r.Host + callbackPath
}
