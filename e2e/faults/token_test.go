package faults_test

import (
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/gatewaytest"
	"retry-worker/internal/zeebe"
)

// tokenRows: the identity provider, and what the gateway says to its tokens.
func tokenRows() []row {
	return []row{
		{"cold start: 20 loops and 100 calls wait for a token", playColdStart},
		{"token expires while the identity provider is down", playTokenExpires},
		{"gateway no longer takes the token", playTokenRevoked},
		{"gateway takes no token at all, then does", playTokensRefused},
		{"identity provider hangs", playProviderHangs},
		{"identity provider down at the start; read-only root, no HOME", playReadOnlyRoot},
	}
}

const clientSecret = "canary-secret"

// provider is the identity provider whose tokens alone the scene's gateway takes.
func (s *scene) provider(lifetime time.Duration) *gatewaytest.IDP {
	p := gatewaytest.StartIDP(gatewaytest.IDPOptions{
		ClientID: "worker", ClientSecret: clientSecret, Audience: "zeebe-api", Lifetime: lifetime,
	})
	s.t.Cleanup(p.Close)
	s.RequireToken(p.Accepts)
	return p
}

func byToken(p *gatewaytest.IDP) func(*setup) {
	return func(c *setup) {
		c.PollTimeout = 100 * time.Millisecond // so that calls are made all the time
		c.OAuth = &zeebe.OAuth{
			ClientID: "worker", ClientSecret: clientSecret, Audience: "zeebe-api", URL: p.URL(), RequestTimeout: 10 * time.Second,
		}
	}
}

func untilProvider(t *testing.T, p *gatewaytest.IDP, what string, met func(gatewaytest.IDPCounts) bool) {
	t.Helper()
	if err := p.WaitFor(within(t), met); err != nil {
		t.Fatalf("not seen: %s: %v", what, err)
	}
}

// playColdStart: however many calls wait, one token is asked for.
func playColdStart(t *testing.T) result {
	const loops, calls = 20, 100
	s := newScene(t, gatewaytest.Options{})
	idp := s.provider(5 * time.Minute)
	idp.SetFault(&gatewaytest.IDPFault{Delay: 500 * time.Millisecond})
	s.claims(inHand)
	w := s.worker("w1", byToken(idp), func(c *setup) {
		for range loops - 1 {
			c.types = append(c.types, "another-"+string(rune('a'+len(c.types))))
		}
	})
	var together sync.WaitGroup
	for range calls {
		together.Go(func() {
			if _, err := w.client.Topology(within(t)); err != nil {
				t.Errorf("a call that waited for the token: %v", err)
			}
		})
	}
	together.Wait()
	s.settled(inHand)
	w.leave()
	if c := idp.Counts(); c.Requests != 1 {
		t.Errorf("%d token requests for %d calls and %d loops, want one", c.Requests, calls, loops)
	}
	if n := s.Calls(gatewaytest.Topology, codes.Unauthenticated) + s.Calls(gatewaytest.ActivateJobs, codes.Unauthenticated); n > 0 {
		t.Errorf("%d calls were sent without a token", n)
	}
	return s.result(0).soon(t, recovery)
}

// playTokenExpires: the token is used on as long as it lasts; then nothing is sent, the provider is asked
// now and then by one request at a time, and all goes on by itself when it answers.
func playTokenExpires(t *testing.T) result {
	const lifetime = 10 * time.Second // renewed a fifth of it early
	s := newScene(t, gatewaytest.Options{})
	idp := s.provider(lifetime)
	w := s.worker("w1", byToken(idp))
	s.claims(inHand)
	s.settled(inHand)
	idp.SetFault(&gatewaytest.IDPFault{Status: http.StatusServiceUnavailable, Delay: 50 * time.Millisecond})
	untilProvider(t, idp, "an early renewal that fails", func(c gatewaytest.IDPCounts) bool { return c.Faulted == 1 })
	s.claims(inHand)
	ended := func(f figures) bool { return !f.ups[len(f.ups)-1] }
	w.until("answers by the token that still lasts", func(f figures) bool { return f.answered() == 2*inHand || ended(f) })
	if n := w.figures().answered(); n < 2*inHand { // the unit tests of the token source are exact
		t.Logf("the machine is too busy for two seconds to suffice: %d of %d answered when the token ended", n, 2*inHand)
	}
	w.until("the token's end", ended)
	s.claims(inHand)
	untilProvider(t, idp, "another request", func(c gatewaytest.IDPCounts) bool { return c.Faulted >= 2 })
	idp.SetFault(nil)
	s.settled(3 * inHand)
	w.leave()
	// Pauses of 1 s, 2 s, 4 s: at most four requests from the renewal to the recovery, and the first.
	if c := idp.Counts(); c.MostUnderWay != 1 || c.Requests > 5 {
		t.Errorf("%d token requests, %d at once, want at most 5, one at a time", c.Requests, c.MostUnderWay)
	}
	if n := s.Calls(gatewaytest.ActivateJobs, codes.Unauthenticated); n > 1 { // one may be under way when it ends
		t.Errorf("%d polls were sent with a token that had ended", n)
	}
	s.noSecretIn(w)
	return s.result(0).soon(t, recovery)
}

// noSecretIn fails where the log shows the client's secret or a token.
func (s *scene) noSecretIn(w *inside) {
	s.t.Helper()
	for _, line := range w.logs.All() {
		for _, v := range line.ContextMap() {
			if text, ok := v.(string); ok && (strings.Contains(text, clientSecret) || strings.Contains(text, "token-1")) {
				s.t.Errorf("the log shows a secret: %s %s", line.Message, text)
			}
		}
	}
}

// playTokenRevoked: UNAUTHENTICATED, however often, leads to one new token, and no job waits for its
// time-out because of it.
func playTokenRevoked(t *testing.T) result {
	const jobs = 500
	s := newScene(t, gatewaytest.Options{})
	s.SetCommandLatency(5 * time.Millisecond)
	idp := s.provider(5 * time.Minute)
	s.claims(jobs)
	w := s.worker("w1", byToken(idp))
	s.settled(jobs / 4)
	idp.Revoke()
	s.settled(jobs)
	w.leave()
	if c := idp.Counts(); c.Requests != 2 {
		t.Errorf("%d token requests, want the first and one more", c.Requests)
	}
	refused := 0
	for m := gatewaytest.ActivateJobs; m <= gatewaytest.SetVariables; m++ {
		refused += s.Calls(m, codes.Unauthenticated)
	}
	if refused == 0 {
		t.Error("the gateway refused no call: the row shows nothing")
	}
	return s.result(0).soon(t, recovery)
}

// playTokensRefused: a gateway that refuses every token does not make a storm at the provider.
func playTokensRefused(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{})
	idp := s.provider(5 * time.Minute)
	s.RequireToken(func(string) bool { return false })
	began := time.Now()
	w := s.worker("w1", byToken(idp))
	s.claims(inHand)
	untilProvider(t, idp, "another token asked for", func(c gatewaytest.IDPCounts) bool { return c.Issued >= 3 })
	if took := time.Since(began); took < time.Second {
		t.Errorf("three tokens within %s, want pauses of a second and more", took)
	}
	s.RequireToken(idp.Accepts)
	s.settled(inHand)
	w.leave()
	if c := idp.Counts(); c.MostUnderWay != 1 {
		t.Errorf("%d token requests at once, want one", c.MostUnderWay)
	}
	if n := s.Calls(gatewaytest.ActivateJobs, codes.Unauthenticated); n > 4 {
		t.Errorf("%d polls were sent with tokens that the gateway had refused already", n)
	}
	return s.result(0).soon(t, recovery)
}

// playProviderHangs: a provider that never answers holds neither jobs nor a stop.
func playProviderHangs(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{})
	idp := s.provider(5 * time.Minute)
	idp.SetFault(&gatewaytest.IDPFault{Hang: true, Times: 1})
	s.claims(inHand)
	w := s.worker("w1", byToken(idp), func(c *setup) { c.OAuth.RequestTimeout = 2 * time.Second })
	s.settled(inHand)
	w.leave()
	if c := idp.Counts(); c.Requests != 2 {
		t.Errorf("%d token requests, want the one that hung and another", c.Requests)
	}
	return s.result(0).soon(t, recovery)
}

// playReadOnlyRoot is the built program where it can write nothing and has no HOME, started before the
// identity provider.
func playReadOnlyRoot(t *testing.T) result {
	s := newScene(t, gatewaytest.Options{})
	idp := s.provider(2 * time.Second)
	idp.Down()
	jail := newJail(t)
	p := s.programBy("jailed", jail.command(),
		"ZEEBE_CLIENT_ID=worker", "ZEEBE_CLIENT_SECRET="+clientSecret, "ZEEBE_TOKEN_AUDIENCE=zeebe-api",
		"ZEEBE_AUTHORIZATION_SERVER_URL="+idp.URL(), jailJournal)
	p.logged("no token from the identity provider")
	s.claims(inHand)
	idp.Up()
	s.settled(inHand)
	untilProvider(t, idp, "renewals", func(c gatewaytest.IDPCounts) bool { return c.Issued >= 3 })
	s.claims(inHand)
	s.settled(2 * inHand)
	p.signal(syscall.SIGTERM)
	p.ends(soonGone)
	if c := idp.Counts(); c.MostUnderWay != 1 {
		t.Errorf("%d token requests at once, want one", c.MostUnderWay)
	}
	if text := p.out.all(); strings.Contains(text, clientSecret) || strings.Contains(text, "token-1") {
		t.Errorf("the log shows a secret:\n%s", text)
	}
	jail.unchanged()
	r := s.result(0).soon(t, recovery)
	r.remark = jail.how
	return r
}
