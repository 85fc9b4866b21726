package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// IDP is a token endpoint for client credentials. Its methods may be called from any goroutine.
type IDP struct {
	client, secret, audience string // audience is not checked if empty
	server                   *httptest.Server

	mu     sync.Mutex
	status int // of the answer instead of a token, with body; 0: none
	body   string
	asked  int             // for a token
	tokens map[string]bool // the valid ones
}

// NewIDP starts an IDP that knows one client, and ends with the test. Its tokens are valid until Revoke.
func NewIDP(tb testing.TB, client, secret, audience string) *IDP {
	tb.Helper()
	p := &IDP{client: client, secret: secret, audience: audience, tokens: map[string]bool{}}
	p.server = httptest.NewServer(http.HandlerFunc(p.serve))
	tb.Cleanup(p.server.Close)
	return p
}

// URL returns the token endpoint.
func (p *IDP) URL() string { return p.server.URL + "/oauth/token" }

// SetFault answers later requests with a status and a body instead of a token; status 0 ends that.
func (p *IDP) SetFault(status int, body string) { p.change(func() { p.status, p.body = status, body }) }

// Revoke invalidates all tokens.
func (p *IDP) Revoke() { p.change(func() { clear(p.tokens) }) }

// Accepts reports whether a token is valid.
func (p *IDP) Accepts(token string) (valid bool) {
	p.change(func() { valid = p.tokens[token] })
	return valid
}

// Requests returns how often a token was asked for.
func (p *IDP) Requests() (n int) {
	p.change(func() { n = p.asked })
	return n
}

func (p *IDP) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// serve issues a token, or says what is wrong with the request as RFC 6749, section 5.2 has it.
func (p *IDP) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if p.status != 0 {
		w.WriteHeader(p.status)
		_, _ = io.WriteString(w, p.body)
		return
	}
	code, problem := http.StatusOK, ""
	switch {
	case r.PostFormValue("grant_type") != "client_credentials":
		code, problem = http.StatusBadRequest, "unsupported_grant_type"
	case r.PostFormValue("client_id") != p.client || r.PostFormValue("client_secret") != p.secret:
		code, problem = http.StatusUnauthorized, "invalid_client"
	case r.PostForm.Has("scope") && r.PostFormValue("scope") == "":
		code, problem = http.StatusBadRequest, "invalid_scope"
	case p.audience != "" && r.PostFormValue("audience") != p.audience:
		code, problem = http.StatusBadRequest, "invalid_target"
	}
	body := map[string]any{"error": problem}
	if problem == "" {
		token := fmt.Sprintf("token-%d", p.asked)
		p.tokens[token] = true
		body = map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 300}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
