package gatewaytest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// IDPOptions say how an identity provider behaves. Empty fields are not
// checked in requests.
type IDPOptions struct {
	ClientID, ClientSecret string
	Audience               string
	Lifetime               time.Duration // of tokens, whole seconds; 0: 5 minutes
}

// IDPFault is something that goes wrong with token requests. Status, Body and
// Hang take the place of a token.
type IDPFault struct {
	Status int           // such as 500 or 401; 0 with a Body is 200
	Body   string        // instead of JSON
	Delay  time.Duration // passes before the answer
	Hang   bool          // no answer until the client gives up
	Times  int           // how often it happens; 0 until it is replaced
}

// IDPCounts are an identity provider's totals.
type IDPCounts struct {
	Requests      int // that arrived
	Issued        int // tokens
	Refused       int // requests that were wrong: client, secret, grant, audience, an empty scope
	Faulted       int // requests a fault happened to
	UnderWay      int // requests now
	MostUnderWay  int // requests at once, at most
	LastGrantType string
}

// IDP is a stub OAuth 2.0 token endpoint for client credentials. Its methods
// may be called from any goroutine.
type IDP struct {
	options IDPOptions
	port    *port

	mu      sync.Mutex
	server  *http.Server // nil while down
	served  chan struct{}
	closed  bool
	offset  time.Duration
	fault   *IDPFault
	left    int // firings of the fault, where it has Times
	counts  IDPCounts
	tokens  map[string]time.Time // until when each is valid
	changed chan struct{}        // closed and replaced at every change
}

// StartIDP starts an identity provider that listens on a free port of
// 127.0.0.1. It panics where it cannot.
func StartIDP(o IDPOptions) *IDP {
	if o.Lifetime == 0 {
		o.Lifetime = 5 * time.Minute
	}
	p := &IDP{options: o, tokens: map[string]time.Time{}, changed: make(chan struct{})}
	var err error
	p.port, err = portAt("")
	must("take a port", err)
	p.Up()
	return p
}

// URL is the token endpoint.
func (p *IDP) URL() string { return "http://" + p.port.addr + "/oauth/token" }

// Up listens again at the same address. Idempotent; nothing after Close. It
// panics where somebody took the port.
func (p *IDP) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil || p.closed {
		return
	}
	l, err := p.port.listen()
	must("listen", err)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /oauth/token", p.serve)
	server, served := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}, make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // ends by Close only
	}()
	p.server, p.served = server, served
}

// Down cuts all connections and refuses new ones until Up. Tokens stay valid.
// Idempotent.
func (p *IDP) Down() {
	p.mu.Lock()
	server, served := p.server, p.served
	p.server = nil
	p.mu.Unlock()
	if server != nil {
		_ = server.Close()
		<-served
	}
}

// Close takes it down for good. Idempotent.
func (p *IDP) Close() {
	p.Down()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		p.port.release()
	}
}

// SetFault makes requests go wrong from now on; nil ends it.
func (p *IDP) SetFault(f *IDPFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.left = f, 0
	if f != nil {
		p.left = f.Times
	}
}

// SetLifetime changes the lifetime of tokens issued from now on, whole seconds.
func (p *IDP) SetLifetime(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.options.Lifetime = d
}

// Advance moves its clock by d, so that tokens expire. What clients were told
// in expires_in they count on their own clocks.
func (p *IDP) Advance(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offset += d
}

// Revoke makes all tokens issued so far invalid.
func (p *IDP) Revoke() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.tokens)
}

// Accepts tells whether a token was issued here and is still valid.
func (p *IDP) Accepts(token string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	until, issued := p.tokens[token]
	return issued && p.now().Before(until)
}

func (p *IDP) now() time.Time { return time.Now().Add(p.offset) }

// Counts are the totals at this instant.
func (p *IDP) Counts() IDPCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// WaitFor returns when met first holds of the counts, or with the context's
// error.
func (p *IDP) WaitFor(ctx context.Context, met func(IDPCounts) bool) error {
	for {
		p.mu.Lock()
		counts, changed := p.counts, p.changed
		p.mu.Unlock()
		if met(counts) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the stub identity provider: %w; it has %+v", context.Cause(ctx), counts)
		}
	}
}

// count changes the totals and wakes who waits for them.
func (p *IDP) count(change func(*IDPCounts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.counts)
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *IDP) serve(w http.ResponseWriter, r *http.Request) {
	p.count(func(c *IDPCounts) {
		c.Requests++
		c.UnderWay++
		c.MostUnderWay = max(c.MostUnderWay, c.UnderWay)
	})
	defer p.count(func(c *IDPCounts) { c.UnderWay-- })
	if f := p.fires(); f != nil {
		p.count(func(c *IDPCounts) { c.Faulted++ })
		if answered := f.happen(w, r); answered {
			return
		}
	}
	if code, problem := p.examine(r); problem != "" {
		p.count(func(c *IDPCounts) { c.Refused++ })
		answerJSON(w, code, map[string]any{"error": problem})
		return
	}
	answerJSON(w, http.StatusOK, p.issue())
}

// fires is the fault that happens to this request, if any.
func (p *IDP) fires() *IDPFault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil || (p.fault.Times > 0 && p.left == 0) {
		return nil
	}
	p.left--
	return p.fault
}

// happen plays the fault; false means that it only took time.
func (f *IDPFault) happen(w http.ResponseWriter, r *http.Request) bool {
	_ = r.ParseForm() // the body must be read for a client that leaves to be noticed
	if f.Hang {
		<-r.Context().Done()
		return true
	}
	if pause(r.Context(), f.Delay) != nil {
		return true
	}
	if f.Status == 0 && f.Body == "" {
		return false
	}
	code := f.Status
	if code == 0 {
		code = http.StatusOK
	}
	w.WriteHeader(code)
	_, _ = w.Write([]byte(f.Body))
	return true
}

// examine finds what is wrong with a request, in the words of RFC 6749 §5.2.
func (p *IDP) examine(r *http.Request) (code int, problem string) {
	if err := r.ParseForm(); err != nil {
		return http.StatusBadRequest, "invalid_request"
	}
	p.count(func(c *IDPCounts) { c.LastGrantType = r.PostForm.Get("grant_type") })
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	switch o := p.options; {
	case r.PostForm.Get("grant_type") != "client_credentials":
		return http.StatusBadRequest, "unsupported_grant_type"
	case o.ClientID != "" && (id != o.ClientID || secret != o.ClientSecret):
		return http.StatusUnauthorized, "invalid_client"
	case r.PostForm.Has("scope") && r.PostForm.Get("scope") == "":
		return http.StatusBadRequest, "invalid_scope"
	case o.Audience != "" && r.PostForm.Get("audience") != o.Audience:
		return http.StatusBadRequest, "invalid_target"
	}
	return 0, ""
}

// issue makes a token and the answer that carries it.
func (p *IDP) issue() map[string]any {
	p.mu.Lock()
	lifetime := p.options.Lifetime
	token := fmt.Sprintf("token-%d", p.counts.Issued+1)
	p.tokens[token] = p.now().Add(lifetime)
	p.mu.Unlock()
	p.count(func(c *IDPCounts) { c.Issued++ })
	return map[string]any{
		"access_token": token, "token_type": "Bearer", "expires_in": int(lifetime / time.Second),
	}
}

func answerJSON(w http.ResponseWriter, code int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
