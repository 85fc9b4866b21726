package gateway

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// IDP is a token endpoint for client credentials. Its methods may be called from any goroutine.
type IDP struct {
	client, secret, audience string // audience is not checked if empty
	port                     *port

	mu       sync.Mutex
	server   *http.Server // nil while down
	lifetime time.Duration
	fault    IDPFault
	counts   IDPCounts
	tokens   map[string]bool // whether each is valid
}

// IDPFault is something that goes wrong with token requests.
type IDPFault struct {
	Status int           // of the answer, instead of a token; 0: a token
	Body   string        // of that answer
	Delay  time.Duration // passes before the answer
	Hang   bool          // no answer until the client gives up
	Times  int           // how often it happens; 0: until it is replaced
}

// IDPCounts are the totals of an identity provider.
type IDPCounts struct {
	Requests, Issued, Faulted int
	UnderWay, MostUnderWay    int // requests now, and at once at most
}

// NewIDP starts an identity provider that knows one client, and ends with the test. Its tokens last 5 minutes.
func NewIDP(tb testing.TB, client, secret, audience string) *IDP {
	tb.Helper()
	p := &IDP{
		client: client, secret: secret, audience: audience, lifetime: 5 * time.Minute,
		tokens: map[string]bool{},
	}
	var err error
	if p.port, err = reservePort(); err != nil {
		tb.Fatal(err)
	}
	p.Up()
	tb.Cleanup(func() {
		p.Down()
		p.port.release()
	})
	return p
}

// URL returns the token endpoint.
func (p *IDP) URL() string { return "http://" + p.port.addr + "/oauth/token" }

// Up listens again at the same address. It panics where that fails.
func (p *IDP) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	listener, err := net.Listen("tcp", p.port.addr)
	if err != nil {
		panic(fmt.Errorf("listen: %w", err))
	}
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: time.Minute}
	go func(s *http.Server) { _ = s.Serve(listener) }(p.server) // ends with the server
}

// Down cuts all connections and refuses new ones until Up. Tokens stay valid.
func (p *IDP) Down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		_ = p.server.Close()
		p.server = nil
	}
}

// SetFault makes requests go wrong from now on; the zero fault ends it.
func (p *IDP) SetFault(f IDPFault) { p.change(func() { p.fault = f }) }

// SetLifetime of the tokens issued from now on, whole seconds.
func (p *IDP) SetLifetime(d time.Duration) { p.change(func() { p.lifetime = d }) }

// Revoke makes all tokens issued so far invalid.
func (p *IDP) Revoke() { p.change(func() { clear(p.tokens) }) }

// Accepts reports whether a token was issued here and is valid.
func (p *IDP) Accepts(token string) (valid bool) {
	p.change(func() { valid = p.tokens[token] })
	return valid
}

// Counts returns the totals at this instant.
func (p *IDP) Counts() (c IDPCounts) {
	p.change(func() { c = p.counts })
	return c
}

func (p *IDP) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *IDP) serve(w http.ResponseWriter, r *http.Request) {
	var fault IDPFault
	p.change(func() {
		p.counts.Requests++
		p.counts.UnderWay++
		p.counts.MostUnderWay = max(p.counts.MostUnderWay, p.counts.UnderWay)
		if fault = p.fault; fault != (IDPFault{}) {
			p.counts.Faulted++
		}
		if fault.Times == 1 {
			p.fault = IDPFault{}
		}
		p.fault.Times = max(0, p.fault.Times-1)
	})
	defer p.change(func() { p.counts.UnderWay-- })
	_ = r.ParseForm() // the body must be read for a client that leaves to be noticed
	if fault.Hang {
		<-r.Context().Done()
		return
	}
	if pause(r.Context(), fault.Delay) != nil {
		return
	}
	if fault.Status != 0 {
		w.WriteHeader(fault.Status)
		_, _ = w.Write([]byte(fault.Body))
		return
	}
	p.answer(w, r)
}

// answer issues a token, or says what is wrong with the request in the words of RFC 6749, section 5.2.
func (p *IDP) answer(w http.ResponseWriter, r *http.Request) {
	form, code, problem := r.PostForm, http.StatusOK, ""
	switch {
	case form.Get("grant_type") != "client_credentials":
		code, problem = http.StatusBadRequest, "unsupported_grant_type"
	case form.Get("client_id") != p.client || form.Get("client_secret") != p.secret:
		code, problem = http.StatusUnauthorized, "invalid_client"
	case form.Has("scope") && form.Get("scope") == "":
		code, problem = http.StatusBadRequest, "invalid_scope"
	case p.audience != "" && form.Get("audience") != p.audience:
		code, problem = http.StatusBadRequest, "invalid_target"
	}
	body := map[string]any{"error": problem}
	if problem == "" {
		body = p.issue()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func (p *IDP) issue() (body map[string]any) {
	p.change(func() {
		p.counts.Issued++
		token := fmt.Sprintf("token-%d", p.counts.Issued)
		p.tokens[token] = true
		time.AfterFunc(p.lifetime, func() { p.change(func() { delete(p.tokens, token) }) })
		body = map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": int(p.lifetime / time.Second)}
	})
	return body
}
