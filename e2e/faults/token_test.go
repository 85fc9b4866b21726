package faults_test

import (
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/zeebe"
)

// tokenRows: the identity provider, and what the gateway says to its tokens.
func tokenRows() []row {
	return []row{
		{fault: "cold start: 20 loops and 100 calls wait for a token", play: playColdStart, real: true},
		{fault: "token expires while the identity provider is down", play: playTokenExpires, real: true},
		{fault: "gateway no longer takes the token", play: playTokenRevoked, real: true},
		{fault: "gateway takes no token at all, then does", play: playTokensRefused, real: true},
		{fault: "identity provider hangs", play: playProviderHangs, real: true},
		{fault: "identity provider down at the start; read-only root, no HOME", play: playReadOnlyRoot, real: true},
	}
}

const clientSecret = "canary-secret"

// provider is the identity provider whose tokens alone the gateway takes.
func (f *fixture) provider() *gateway.IDP {
	p := gateway.NewIDP(f.t, "worker", clientSecret, "zeebe-api")
	f.RequireToken(p.Accepts)
	return p
}

func byToken(p *gateway.IDP) func(*setup) {
	return func(c *setup) {
		c.PollTimeout = 100 * time.Millisecond // so that calls are made all the time
		c.OAuth = &zeebe.OAuth{
			ClientID: "worker", ClientSecret: clientSecret, Audience: "zeebe-api", URL: p.URL(), RequestTimeout: 10 * time.Second,
		}
	}
}

func untilProvider(t *testing.T, p *gateway.IDP, what string, met func(gateway.IDPCounts) bool) {
	t.Helper()
	wait.Until(t, what, func() bool { return met(p.Counts()) })
}

// playColdStart: however many calls wait, one token is asked for.
func playColdStart(f *fixture) result {
	const loops, calls = 20, 100
	idp := f.provider()
	idp.SetFault(gateway.IDPFault{Delay: 500 * time.Millisecond})
	f.claims(inHand)
	w := f.worker("w1", byToken(idp), func(c *setup) {
		for range loops - 1 {
			c.types = append(c.types, "another-"+string(rune('a'+len(c.types))))
		}
	})
	var together sync.WaitGroup
	for range calls {
		together.Go(func() {
			if _, err := w.client.Topology(within(f.t)); err != nil {
				f.t.Errorf("a call that waited for the token: %v", err)
			}
		})
	}
	together.Wait()
	f.settled(inHand)
	w.leave()
	if c := idp.Counts(); c.Requests != 1 {
		f.t.Errorf("%d token requests for %d calls and %d loops, want one", c.Requests, calls, loops)
	}
	if n := f.Calls(gateway.Topology, codes.Unauthenticated) + f.Calls(gateway.ActivateJobs, codes.Unauthenticated); n > 0 {
		f.t.Errorf("%d calls were sent without a token", n)
	}
	return f.result(0).soon(f.t, recovery)
}

// playTokenExpires: the token is used on as long as it lasts; then nothing is sent, the provider is asked
// now and then by one request at a time, and all goes on by itself when it answers.
func playTokenExpires(f *fixture) result {
	const lifetime = 5 * time.Second // renewed a fifth of it early
	idp := f.provider()
	idp.SetLifetime(lifetime)
	w := f.worker("w1", byToken(idp))
	f.claims(inHand)
	f.settled(inHand)
	idp.SetFault(gateway.IDPFault{Status: http.StatusServiceUnavailable, Delay: 50 * time.Millisecond})
	untilProvider(f.t, idp, "an early renewal that fails", func(c gateway.IDPCounts) bool { return c.Faulted == 1 })
	f.claims(inHand)
	w.untilTold("the token's end", eventCounts.down) // whether it lasted for the answers depends on the machine; unit tests are exact
	f.claims(inHand)
	untilProvider(f.t, idp, "another request", func(c gateway.IDPCounts) bool { return c.Faulted >= 2 })
	idp.SetFault(gateway.IDPFault{})
	f.settled(3 * inHand)
	w.leave()
	// Pauses of 1 s, 2 s, 4 s: at most four requests from the renewal to the recovery, and the first.
	if c := idp.Counts(); c.MostUnderWay != 1 || c.Requests > 5 {
		f.t.Errorf("%d token requests, %d at once, want at most 5, one at a time", c.Requests, c.MostUnderWay)
	}
	if n := f.Calls(gateway.ActivateJobs, codes.Unauthenticated); n > 1 { // one may be under way when it ends
		f.t.Errorf("%d polls were sent with a token that had ended", n)
	}
	w.hides(clientSecret, "token-1")
	return f.result(0).soon(f.t, recovery)
}

// playTokenRevoked: UNAUTHENTICATED, however often, leads to one new token, and no job waits for its
// time-out because of it.
func playTokenRevoked(f *fixture) result {
	const jobs = 500
	f.SetLatency(5 * time.Millisecond)
	idp := f.provider()
	f.claims(jobs)
	w := f.worker("w1", byToken(idp))
	f.settled(jobs / 4)
	idp.Revoke()
	f.settled(jobs)
	w.leave()
	if c := idp.Counts(); c.Requests != 2 {
		f.t.Errorf("%d token requests, want the first and one more", c.Requests)
	}
	refused := 0
	for _, m := range []gateway.Method{gateway.ActivateJobs, gateway.CompleteJob, gateway.SetVariables, gateway.ThrowError} {
		refused += f.Calls(m, codes.Unauthenticated)
	}
	if refused == 0 {
		f.t.Error("the gateway refused no call: the row shows nothing")
	}
	return f.result(0).soon(f.t, recovery)
}

// playTokensRefused: a gateway that refuses every token does not make a storm at the provider.
func playTokensRefused(f *fixture) result {
	idp := f.provider()
	f.RequireToken(func(string) bool { return false })
	began := time.Now()
	w := f.worker("w1", byToken(idp))
	f.claims(inHand)
	untilProvider(f.t, idp, "another token asked for", func(c gateway.IDPCounts) bool { return c.Issued >= 3 })
	if took := time.Since(began); took < time.Second {
		f.t.Errorf("three tokens within %s, want pauses of a second and more", took)
	}
	f.RequireToken(idp.Accepts)
	f.settled(inHand)
	w.leave()
	if c := idp.Counts(); c.MostUnderWay != 1 {
		f.t.Errorf("%d token requests at once, want one", c.MostUnderWay)
	}
	if n := f.Calls(gateway.ActivateJobs, codes.Unauthenticated); n > 4 {
		f.t.Errorf("%d polls were sent with tokens that the gateway had refused already", n)
	}
	return f.result(0).soon(f.t, recovery)
}

// playProviderHangs: a provider that never answers holds neither jobs nor a stop.
func playProviderHangs(f *fixture) result {
	idp := f.provider()
	idp.SetFault(gateway.IDPFault{Hang: true, Times: 1})
	f.claims(inHand)
	w := f.worker("w1", byToken(idp), func(c *setup) { c.OAuth.RequestTimeout = 2 * time.Second })
	f.settled(inHand)
	w.leave()
	if c := idp.Counts(); c.Requests != 2 {
		f.t.Errorf("%d token requests, want the one that hung and another", c.Requests)
	}
	return f.result(0).soon(f.t, recovery)
}

// playReadOnlyRoot is the built program where it can write nothing and has no HOME, started before the
// identity provider.
func playReadOnlyRoot(f *fixture) result {
	idp := f.provider()
	idp.SetLifetime(2 * time.Second)
	idp.Down()
	root := newReadOnlyRoot(f.t)
	p := f.programBy("read-only", root.command(),
		"ZEEBE_CLIENT_ID=worker", "ZEEBE_CLIENT_SECRET="+clientSecret, "ZEEBE_TOKEN_AUDIENCE=zeebe-api",
		"ZEEBE_AUTHORIZATION_SERVER_URL="+idp.URL(), rootJournal)
	p.logged("no token from the identity provider", 1)
	f.claims(inHand)
	idp.Up()
	f.settled(inHand)
	untilProvider(f.t, idp, "renewals", func(c gateway.IDPCounts) bool { return c.Issued >= 3 })
	f.claims(inHand)
	f.settled(2 * inHand)
	p.signal(syscall.SIGTERM)
	p.ends(soonGone)
	if c := idp.Counts(); c.MostUnderWay != 1 {
		f.t.Errorf("%d token requests at once, want one", c.MostUnderWay)
	}
	if text := p.log.Text(); strings.Contains(text, clientSecret) || strings.Contains(text, "token-1") {
		f.t.Errorf("the log shows a secret:\n%s", text)
	}
	root.unchanged()
	return f.result(0).soon(f.t, recovery).with("%s", root.how)
}
