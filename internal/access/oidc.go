package access

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"go.uber.org/zap"
	"golang.org/x/oauth2"
)

const (
	// askAgain is how long a provider's answer is valid at most: whoever is removed there is out here by then.
	askAgain = 15 * time.Minute
	// providerTime bounds one request to the provider, providerRest is the pause after one that failed.
	providerTime = 5 * time.Second
	providerRest = 5 * time.Second
	// maxCookieBytes limits a cookie's value: browsers keep 4096 bytes with its name.
	maxCookieBytes = 3800
)

// catalogueName matches the names that a catalogue's teams can have.
var catalogueName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// errAway says that the provider cannot be asked.
var errAway = errors.New("the OpenID provider cannot be reached")

// Provider is an OpenID provider that knows people, their roles and their teams. Package config reads its tags.
type Provider struct {
	Issuer       string `group:"Console and API" env:"RETRY_WORKER_OIDC_ISSUER" with:"RETRY_WORKER_OIDC_CLIENT_ID RETRY_WORKER_OIDC_CLIENT_SECRET_FILE" desc:"OpenID provider that people log in by: https://…; empty: none"`
	ClientID     string `env:"RETRY_WORKER_OIDC_CLIENT_ID" with:"RETRY_WORKER_OIDC_ISSUER" desc:"id of the provider's client; its redirect address is …/login/callback"`
	ClientSecret string `env:"RETRY_WORKER_OIDC_CLIENT_SECRET" with:"RETRY_WORKER_OIDC_ISSUER" file:"only" desc:"file with the client's secret, which seals the sessions too"`
	RoleClaim    string `env:"RETRY_WORKER_OIDC_ROLE_CLAIM" default:"roles" desc:"claim that holds viewer, operator or admin, or a list with some of them; dots lead into objects: realm_access.roles"`
	TeamClaim    string `env:"RETRY_WORKER_OIDC_TEAM_CLAIM" with:"RETRY_WORKER_OIDC_ISSUER" desc:"claim that holds a person's team, or a list of them; empty: the provider binds nobody to teams"`
}

// Check reads the provider's description.
func (p *Provider) Check(ctx context.Context) error {
	_, err := oidc.NewProvider(oidc.ClientContext(ctx, newOpenID(*p, time.Now, nil).client), p.Issuer)
	return err
}

// openID logs people in by a provider. Safe for concurrent use.
type openID struct {
	Provider
	now    func() time.Time
	failed func(error)
	seals  cipher.AEAD // by the client's secret, which every replica has
	client *http.Client
	// failures counts the requests without an answer, or with a 5xx.
	failures atomic.Int64

	connecting sync.Mutex     // held while the provider's description is asked for
	provider   *oidc.Provider // nil until it has answered
	rest       time.Time      // no request is sent before

	mu     sync.Mutex
	newest map[string]*renewal
	people sync.Map // the Identity of everybody who came since the start, by name
}

// renewal is the newest grant of a session that this process knows. Its lock is held while the provider is asked.
type renewal struct {
	ends time.Time // of the session, for good

	mu    sync.Mutex
	grant grant
	rest  time.Time // no request is sent before
	err   error     // of the last request
}

// grant is what the provider said about a person. The browser keeps it, sealed.
type grant struct {
	Identity
	Subject string
	// Refresh is the token to ask the provider again; if it is empty, the grant ends for good.
	Refresh string
	// Asked is when the provider answered last, Until when that answer ends.
	Asked, Until time.Time
}

func newOpenID(p Provider, now func() time.Time, failed func(error)) *openID {
	o := &openID{Provider: p, now: now, failed: failed, newest: map[string]*renewal{},
		seals: sealer([]byte(p.ClientSecret), []byte(p.Issuer+" "+p.ClientID), "oidc")}
	o.client = &http.Client{Timeout: providerTime, Transport: o,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the client's secret goes to the provider alone
		}}
	return o
}

// RoundTrip sends a request, and counts it in failures if the provider does not answer, or with a 5xx.
func (o *openID) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || response.StatusCode >= http.StatusInternalServerError {
		o.failures.Add(1)
	}
	return response, err
}

// ask runs f with the provider. It returns errAway if the provider cannot be reached, and otherwise f's error.
func (o *openID) ask(ctx context.Context, f func(ctx context.Context, p *oidc.Provider) error) error {
	p, err := o.connected()
	if err != nil {
		return err
	}
	before := o.failures.Load()
	if err = f(oidc.ClientContext(ctx, o.client), p); err != nil && o.failures.Load() != before {
		o.failed(err)
		return errAway
	}
	return err
}

// connected returns the provider. The first call reads the provider's description.
func (o *openID) connected() (*oidc.Provider, error) {
	o.connecting.Lock()
	defer o.connecting.Unlock()
	if o.provider != nil {
		return o.provider, nil
	}
	if o.now().Before(o.rest) {
		return nil, errAway
	}
	// Not a request's context: the provider fetches keys with it later, too.
	p, err := oidc.NewProvider(oidc.ClientContext(context.Background(), o.client), o.Issuer)
	if err != nil {
		o.rest = o.now().Add(providerRest)
		o.failed(err)
		return nil, errAway
	}
	o.provider = p
	return p, nil
}

// oauth returns the settings of requests to the provider, which sends the browser back to redirect.
func (o *openID) oauth(p *oidc.Provider, redirect string) *oauth2.Config {
	c := &oauth2.Config{ClientID: o.ClientID, ClientSecret: o.ClientSecret, Endpoint: p.Endpoint(), RedirectURL: redirect,
		Scopes: []string{oidc.ScopeOpenID, "profile", "email"}}
	var known struct {
		Scopes []string `json:"scopes_supported"`
	}
	if p.Claims(&known) == nil && slices.Contains(known.Scopes, oidc.ScopeOfflineAccess) {
		c.Scopes = append(c.Scopes, oidc.ScopeOfflineAccess)
	}
	return c
}

// granting gets tokens from the provider, verifies the ID token for this client, and returns the grant of the person
// whom it names. Its error may be check's.
func (o *openID) granting(
	ctx context.Context, redirect string, get func(context.Context, *oauth2.Config) (*oauth2.Token, error),
	check func(*oidc.IDToken, grant) error,
) (g grant, err error) {
	err = o.ask(ctx, func(ctx context.Context, p *oidc.Provider) error {
		tokens, err := get(ctx, o.oauth(p, redirect))
		if err != nil {
			return fmt.Errorf("get tokens: %w", err)
		}
		raw, _ := tokens.Extra("id_token").(string)
		t, err := p.Verifier(&oidc.Config{ClientID: o.ClientID, Now: o.now}).Verify(ctx, raw)
		if err != nil {
			return fmt.Errorf("verify the token: %w", err)
		}
		claims := map[string]any{}
		if err := t.Claims(&claims); err != nil {
			return fmt.Errorf("read the token's claims: %w", err)
		}
		g = grant{Subject: t.Subject, Refresh: tokens.RefreshToken, Asked: o.now(), Until: o.now().Add(askAgain)}
		if t.Expiry.Before(g.Until) {
			g.Until = t.Expiry
		}
		if err := o.grants(&g, claims); err != nil {
			return err
		}
		if len(o.granted(newSession(o.now()), g).value) > maxCookieBytes {
			return fmt.Errorf("%s has so many teams that no cookie holds them: let the claim %s name the catalogue's teams alone",
				g.Name, o.TeamClaim)
		}
		return check(t, g)
	})
	return g, err
}

// grants reads name, role and teams from verified claims.
func (o *openID) grants(g *grant, claims map[string]any) error {
	for _, name := range []any{claims["preferred_username"], claims["email"], g.Subject} {
		if text, _ := name.(string); CheckName(text) == nil {
			g.Name = text
			break
		}
	}
	if g.Name == "" {
		return fmt.Errorf("neither preferred_username nor email nor sub is a name: expected %s", nameWords)
	}
	held := claimed(claims, o.RoleClaim)
	for _, role := range roles {
		if slices.Contains(held, string(role)) {
			g.Role = role
		}
	}
	if g.Role == "" {
		return fmt.Errorf("%s has no role: the claim %s holds none of viewer, operator and admin", g.Name,
			o.RoleClaim)
	}
	if o.TeamClaim == "" {
		return nil
	}
	teams := slices.DeleteFunc(claimed(claims, o.TeamClaim), func(name string) bool {
		return !catalogueName.MatchString(name) // a group that cannot be a team
	})
	if g.Teams = Teams(strings.Join(teams, ",")); g.Teams == "" && g.Role != Admin {
		g.Teams = NoTeam
	}
	return nil
}

// claimed returns the texts of the claim at path, whose dots lead into objects; none if the claim holds none.
func claimed(claims map[string]any, path string) (texts []string) {
	var value any = claims
	for part := range strings.SplitSeq(path, ".") {
		object, _ := value.(map[string]any)
		value = object[part]
	}
	list, is := value.([]any)
	if !is {
		list = []any{value}
	}
	for _, item := range list {
		if text, is := item.(string); is {
			texts = append(texts, text)
		}
	}
	return texts
}

// granted returns s with a grant.
func (o *openID) granted(s session, g grant) *session {
	s.Grant, s.account = &g, &Token{Identity: g.Identity}
	if s.value = "." + seal(o.seals, "session", s); len(s.value) > maxCookieBytes && g.Refresh != "" {
		g.Refresh = "" // too long for a cookie: the person is sent to the provider again when the grant ends
		s.value = "." + seal(o.seals, "session", s)
	}
	return &s
}

// current returns the session with the newest grant; nil if the provider grants nothing any more. It asks the provider
// again when half of the last answer's time is over. A refusal does not end the session before the rest is over:
// another replica may have used the refresh token, and given the browser its answer. The error is errAway.
func (o *openID) current(ctx context.Context, s *session) (*session, error) {
	r := o.renewal(s)
	if !r.mu.TryLock() {
		if o.now().Before(s.Grant.Until) { // another request asks the provider, which may be slow
			return s, nil
		}
		r.mu.Lock()
	}
	defer r.mu.Unlock()
	if r.grant.Asked.Before(s.Grant.Asked) {
		r.grant = *s.Grant
	}
	now := o.now()
	if due := r.grant.Asked.Add(r.grant.Until.Sub(r.grant.Asked) / 2); !now.Before(due) && r.grant.Refresh != "" &&
		!now.Before(r.rest) {
		var fresh grant
		if fresh, r.err = o.renew(ctx, r.grant); r.err == nil {
			r.grant = fresh
		} else {
			r.rest = o.now().Add(providerRest)
		}
	}
	switch g := r.grant; {
	case now.Before(g.Until) && g.Asked.Equal(s.Grant.Asked):
		return s, nil
	case now.Before(g.Until):
		return o.granted(*s, g), nil
	case errors.Is(r.err, errAway):
		return nil, errAway
	default:
		return nil, nil
	}
}

// renewal returns the renewal of a session, and removes those of sessions that have ended.
func (o *openID) renewal(s *session) *renewal {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r := o.newest[s.ID]; r != nil {
		return r
	}
	maps.DeleteFunc(o.newest, func(_ string, r *renewal) bool { return !o.now().Before(r.ends) })
	r := &renewal{grant: *s.Grant, ends: s.ends()}
	o.newest[s.ID] = r
	return r
}

// renew asks the provider for the person's newest grant.
func (o *openID) renew(ctx context.Context, old grant) (grant, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*providerTime) // its answer is for later requests too
	defer cancel()
	return o.granting(ctx, "", func(ctx context.Context, c *oauth2.Config) (*oauth2.Token, error) {
		return c.TokenSource(ctx, &oauth2.Token{RefreshToken: old.Refresh}).Token()
	}, func(_ *oidc.IDToken, fresh grant) error {
		if fresh.Subject != old.Subject {
			return errors.New("renew the log-in: the provider names another person")
		}
		return nil
	})
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

// atProvider answers GET requests by do, and with the log-in form if that refuses.
func (g *Gate) atProvider(w http.ResponseWriter, r *http.Request, do func(http.ResponseWriter, *http.Request) *Refusal) {
	if r.Method != http.MethodGet {
		g.refuseMethod(w, r, http.MethodGet)
	} else if refusal := do(w, r); refusal != nil {
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
		return refuse("login_stale")
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
	return refuse("login_refused")
}

func providerAway() *Refusal { return refuse("provider_unavailable").after(providerRest) }

// callbackOf returns where the provider sends the browser back to. The provider takes only what its settings name.
func callbackOf(r *http.Request) string {
	if OverTLS(r) {
		return "https://" + r.Host + callbackPath
	}
	return "http://" + r.Host + callbackPath
}
