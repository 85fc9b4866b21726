package zeebe_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
	"retry-worker/internal/zeebe"
)

const secret = "canary-secret"

// withOAuth is a gateway that wants tokens of an identity provider, and the options for it.
func withOAuth(t *testing.T, of gateway.Options) (*gateway.Gateway, *gateway.IDP, zeebe.Options) {
	t.Helper()
	g := gateway.New(t, of)
	idp := gateway.NewIDP(t, "worker", secret, "zeebe-api")
	g.RequireToken(idp.Accepts)
	o := plain(g)
	if of.REST {
		o.Address, o.RESTAddress = "", g.RESTAddress()
	}
	o.OAuth = &zeebe.OAuth{
		ClientID: "worker", ClientSecret: secret, Audience: "zeebe-api", Scope: "engine", URL: idp.URL(), RequestTimeout: patience,
	}
	return g, idp, o
}

// TestUnauthenticated leads to one new token, whether a call, a stream or a request met it.
func TestUnauthenticated(t *testing.T) {
	t.Parallel()
	topology := func(ctx context.Context, c *zeebe.Client) error { _, err := c.Topology(ctx); return err }
	for name, tt := range map[string]struct {
		rest bool
		call func(context.Context, *zeebe.Client) error
	}{
		"call": {false, topology},
		"stream": {false, func(ctx context.Context, c *zeebe.Client) error {
			_, err := c.Activate(ctx, poll(1, time.Millisecond))
			return err
		}},
		"request": {true, topology},
	} {
		t.Run(name, func(t *testing.T) {
			_, idp, o := withOAuth(t, gateway.Options{REST: tt.rest})
			c := dial(t, o)
			testkit.Must(t, tt.call(wait.Context(t), c))
			idp.Revoke()
			if err := tt.call(wait.Context(t), c); err == nil {
				t.Fatal("the gateway took a token that was revoked")
			}
			wait.Until(t, "a new token", func() bool { return tt.call(wait.Context(t), c) == nil })
			if n := idp.Requests(); n != 2 {
				t.Errorf("%d token requests, want two", n)
			}
		})
	}
}

// TestProviderThatRedirects gets the secret, and nobody else does: what it points to is not asked.
func TestProviderThatRedirects(t *testing.T) {
	_, _, o := withOAuth(t, gateway.Options{})
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the secret is sent on to where the provider points")
	}))
	defer elsewhere.Close()
	provider := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer provider.Close()
	o.OAuth.URL = provider.URL
	if err := dial(t, o).CheckToken(wait.Context(t)); err == nil || !strings.Contains(err.Error(), "307") || strings.Contains(err.Error(), secret) {
		t.Errorf("it says %v, expected what the provider answered", err)
	}
	o.OAuth = nil
	if err := dial(t, o).CheckToken(wait.Context(t)); err != nil {
		t.Errorf("without OAuth there is nothing to check: %v", err)
	}
}

// TestNoTokenNothingSent: the loop must not read such an error as "may have taken effect".
func TestNoTokenNothingSent(t *testing.T) {
	g, _, o := withOAuth(t, gateway.Options{})
	o.OAuth.URL = "http://" + testkit.Nowhere(t)
	c := dial(t, o)
	j := &worker.Job{Key: 1}
	wantKind(t, "Complete", c.Complete(wait.Context(t), j, "{}"), worker.NotTaken)
	wantKind(t, "Throw", c.Throw(wait.Context(t), j, worker.BPMNError{}), worker.NotTaken)
	wantKind(t, "Fail", c.Fail(wait.Context(t), j, worker.Failure{}), worker.NotTaken)
	_, err := c.Activate(wait.Context(t), poll(1, time.Second))
	wantKind(t, "Activate", err, worker.NotTaken)
	for _, m := range []gateway.Method{gateway.ActivateJobs, gateway.CompleteJob, gateway.SetVariables, gateway.ThrowError, gateway.FailJob} {
		if n := g.Calls(m); n > 0 {
			t.Errorf("%d calls of %v reached the gateway", n, m)
		}
	}
}

// TestTokenInTheOpen is possible, and said.
func TestTokenInTheOpen(t *testing.T) {
	_, _, o := withOAuth(t, gateway.Options{})
	core, logs := observer.New(zapcore.WarnLevel)
	c, err := zeebe.Dial(o, zap.New(core))
	testkit.Must(t, err)
	defer c.Close()
	if logs.FilterMessageSnippet("unencrypted").Len() != 1 {
		t.Errorf("the log says %v, want a warning", logs.All())
	}
}
