package access

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	// beginPath leads to the provider, callbackPath is where it sends people back to.
	beginPath    = "/login/oidc"
	callbackPath = "/login/callback"
	// pendingLife is how long a person may take at the provider.
	pendingLife = 10 * time.Minute
)

// pending is a log-in that was begun, as the browser keeps it, sealed, until the provider sends it back.
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
		retryAfter(w, refusal)
		g.LoginPage(w, r, g.loginOf("/", refusal))
	}
}

// loginOf returns what the log-in page shows.
func (g *Gate) loginOf(next string, refusal *Refusal) Login {
	return Login{Next: next, Refusal: refusal, Provider: g.openID != nil, Tokens: g.Tokens().Len() > 0}
}

// sendToProvider begins a log-in: by authorisation code, with PKCE.
func (g *Gate) sendToProvider(w http.ResponseWriter, r *http.Request) *Refusal {
	p := pending{rand.Text(), rand.Text(), oauth2.GenerateVerifier(), safeNext(r.URL.Query().Get("next")),
		g.Now().Add(pendingLife)}
	err := g.openID.ask(r.Context(), func(_ context.Context, provider *oidc.Provider) error {
		pendingCookie.set(w, r, g.openID.seal("login", p), pendingLife)
		to := g.openID.oauth(provider, callbackOf(r)).AuthCodeURL(p.State, oidc.Nonce(p.Nonce),
			oauth2.S256ChallengeOption(p.Verifier))
		http.Redirect(w, r, to, http.StatusSeeOther)
		return nil
	})
	return g.notLoggedIn(r, err)
}

// comeBack ends a log-in that the provider sends back, and begins the session.
func (g *Gate) comeBack(w http.ResponseWriter, r *http.Request) *Refusal {
	var p pending
	q := r.URL.Query()
	known := g.openID.open("login", pendingCookie.value(r), &p) && g.Now().Before(p.Ends)
	pendingCookie.set(w, r, "", 0)
	if !known || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(p.State)) != 1 {
		return &Refusal{Status: http.StatusBadRequest, Code: CodeLoginStale,
			Message: "this log-in was begun in another browser or window, or too long ago; begin again"}
	}
	if q.Get("code") == "" {
		return g.notLoggedIn(r, fmt.Errorf("the provider answers %.60q", q.Get("error")))
	}
	s, err := g.openID.logIn(r.Context(), callbackOf(r), q.Get("code"), &p)
	if err != nil {
		return g.notLoggedIn(r, err)
	}
	if err := g.end(r.Context(), askerIn(r.Context()).session); err != nil {
		return g.unkept(err, "so the log-in before this one could not be ended")
	}
	g.welcome(w, r, s)
	goOn(w, p.Next) // not a redirect: it would be the provider's, which the session's cookie does not follow
	return nil
}

// logIn gets a person's grant for the code that the provider gave him.
func (o *openID) logIn(ctx context.Context, redirect, code string, begun *pending) (s *session, err error) {
	err = o.ask(ctx, func(ctx context.Context, p *oidc.Provider) error {
		t, err := o.oauth(p, redirect).Exchange(ctx, code, oauth2.VerifierOption(begun.Verifier))
		if err != nil {
			return fmt.Errorf("exchange the code: %w", err)
		}
		raw, _ := t.Extra("id_token").(string)
		verified, claims, err := o.verified(ctx, p, raw)
		switch {
		case err != nil:
			return err
		case subtle.ConstantTimeCompare([]byte(verified.Nonce), []byte(begun.Nonce)) != 1:
			return errors.New("the token is of another log-in: its nonce is not the one that was sent")
		}
		g, err := o.granted(verified, claims, t.RefreshToken)
		if err == nil {
			s = o.begin(g)
		}
		return err
	})
	return s, err
}

// notLoggedIn returns the refusal of a log-in that came to err; nil for none.
func (g *Gate) notLoggedIn(r *http.Request, err error) *Refusal {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errAway):
		return providerAway()
	}
	g.Hooks.LoginFailed(peer(r), err)
	return &Refusal{Status: http.StatusUnauthorized, Code: CodeLoginRefused,
		Message: "the OpenID provider's answer does not let you in; the worker's log says why"}
}

func providerAway() *Refusal {
	return &Refusal{Status: http.StatusServiceUnavailable, Code: CodeProviderUnavailable, RetryAfter: providerRest,
		Message: errAway.Error() + " now, so it is not known who asks; try again in a moment"}
}

// callbackOf returns where the provider sends the browser back to, which it compares with what it was told.
func callbackOf(r *http.Request) string {
	if OverTLS(r) {
		return "https://" + r.Host + callbackPath
	}
	return "http://" + r.Host + callbackPath
}
