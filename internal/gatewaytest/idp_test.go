package gatewaytest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/internal/gatewaytest"
)

func startIDP(t *testing.T, o gatewaytest.IDPOptions) *gatewaytest.IDP {
	p := gatewaytest.StartIDP(o)
	t.Cleanup(p.Close)
	return p
}

func credentialsForm() url.Values {
	return url.Values{"grant_type": {"client_credentials"}, "client_id": {"worker"}, "client_secret": {"s3cret"}}
}

// token asks once; the answer's code, and its token if there is one.
func token(ctx context.Context, p *gatewaytest.IDP, form url.Values) (code int, access string, expires int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL(), strings.NewReader(form.Encode()))
	if err != nil {
		return 0, "", 0, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", 0, err
	}
	defer response.Body.Close()
	var body struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}
	err = json.NewDecoder(response.Body).Decode(&body)
	return response.StatusCode, body.AccessToken, body.ExpiresIn, err
}

func TestTokensAreAcceptedUntilTheyExpireOrAreRevoked(t *testing.T) {
	p := startIDP(t, gatewaytest.IDPOptions{ClientID: "worker", ClientSecret: "s3cret", Lifetime: 90 * time.Second})
	issue := func() string {
		code, access, expires, err := token(deadline(t), p, credentialsForm())
		if err != nil || code != 200 || expires != 90 || !p.Accepts(access) {
			t.Fatalf("%d, token %q for %d s, %v", code, access, expires, err)
		}
		return access
	}
	first := issue()
	p.Advance(91 * time.Second)
	second := issue()
	if first == second || p.Accepts(first) || p.Accepts("forged") {
		t.Errorf("after its lifetime the first token is accepted: %v; a forged one: %v", p.Accepts(first), p.Accepts("forged"))
	}
	p.Revoke()
	if p.Accepts(second) {
		t.Error("a revoked token is accepted")
	}
	p.SetLifetime(30 * time.Second)
	if _, _, expires, _ := token(deadline(t), p, credentialsForm()); expires != 30 {
		t.Errorf("expires in %d s, want 30", expires)
	}
}

func TestGatewayTakesTheProvidersTokensOnly(t *testing.T) {
	p := startIDP(t, gatewaytest.IDPOptions{})
	g, c := start(t, gatewaytest.Options{})
	g.RequireToken(p.Accepts)
	_, access, _, err := token(deadline(t), p, credentialsForm())
	if err != nil {
		t.Fatal(err)
	}
	ctx := metadata.AppendToOutgoingContext(deadline(t), "authorization", "Bearer "+access)
	_, err = c.Topology(ctx, &pb.TopologyRequest{})
	wantCode(t, "fresh token", err, codes.OK)
	p.Advance(time.Hour)
	_, err = c.Topology(ctx, &pb.TopologyRequest{})
	wantCode(t, "expired token", err, codes.Unauthenticated)
}

func TestWrongTokenRequests(t *testing.T) {
	p := startIDP(t, gatewaytest.IDPOptions{ClientID: "worker", ClientSecret: "s3cret", Audience: "zeebe"})
	good := credentialsForm()
	good.Set("audience", "zeebe")
	if code, _, _, err := token(deadline(t), p, good); code != 200 {
		t.Fatalf("a right request got %d, %v", code, err)
	}
	for name, tt := range map[string]struct {
		field, value string
		want         int
	}{
		"grant":       {"grant_type", "password", 400},
		"secret":      {"client_secret", "wrong", 401},
		"client":      {"client_id", "somebody", 401},
		"audience":    {"audience", "other", 400},
		"empty scope": {"scope", "", 400},
	} {
		form := url.Values{}
		for key, values := range good {
			form[key] = values
		}
		form.Set(tt.field, tt.value)
		if code, access, _, _ := token(deadline(t), p, form); code != tt.want || access != "" {
			t.Errorf("%s: %d with token %q, want %d", name, code, access, tt.want)
		}
	}
	if c := p.Counts(); c.Requests != 6 || c.Issued != 1 || c.Refused != 5 {
		t.Errorf("counted %+v", c)
	}
}

func TestProviderFaults(t *testing.T) {
	p := startIDP(t, gatewaytest.IDPOptions{})
	for name, tt := range map[string]struct {
		fault   gatewaytest.IDPFault
		code    int
		garbage bool
	}{
		"500":     {gatewaytest.IDPFault{Status: 500, Body: "{}"}, 500, false},
		"401":     {gatewaytest.IDPFault{Status: 401, Body: "{}"}, 401, false},
		"garbage": {gatewaytest.IDPFault{Body: "<html>"}, 200, true},
	} {
		p.SetFault(&tt.fault)
		code, access, _, err := token(deadline(t), p, credentialsForm())
		if code != tt.code || access != "" || (err != nil) != tt.garbage {
			t.Errorf("%s: %d, %q, %v", name, code, access, err)
		}
	}
	p.SetFault(&gatewaytest.IDPFault{Status: 503, Body: "{}", Times: 1})
	for _, want := range []int{503, 200} {
		if code, _, _, _ := token(deadline(t), p, credentialsForm()); code != want {
			t.Errorf("a fault that happens once: %d, want %d", code, want)
		}
	}
	if c := p.Counts(); c.Faulted != 4 || c.Issued != 1 {
		t.Errorf("counted %+v", c)
	}
}

func TestProviderThatHangsOrIsSlow(t *testing.T) {
	p := startIDP(t, gatewaytest.IDPOptions{})
	p.SetFault(&gatewaytest.IDPFault{Hang: true})
	ctx, cancel := context.WithCancel(context.Background())
	var requests sync.WaitGroup
	for range 3 {
		requests.Go(func() {
			if _, _, _, err := token(ctx, p, credentialsForm()); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want no answer until given up", err)
			}
		})
	}
	if err := p.WaitFor(deadline(t), func(c gatewaytest.IDPCounts) bool { return c.UnderWay == 3 }); err != nil {
		t.Error(err)
	}
	cancel()
	requests.Wait()
	if err := p.WaitFor(deadline(t), func(c gatewaytest.IDPCounts) bool { return c.UnderWay == 0 }); err != nil {
		t.Error(err)
	}
	p.SetFault(&gatewaytest.IDPFault{Delay: 30 * time.Millisecond})
	begin := time.Now()
	if code, _, _, err := token(deadline(t), p, credentialsForm()); code != 200 || time.Since(begin) < 30*time.Millisecond {
		t.Errorf("%d, %v after %v, want a token after 30ms", code, err, time.Since(begin))
	}
	if c := p.Counts(); c.MostUnderWay != 3 {
		t.Errorf("%d requests at once, want 3", c.MostUnderWay)
	}
}

func TestProviderDownAndUpAtTheSameAddress(t *testing.T) {
	p := startIDP(t, gatewaytest.IDPOptions{})
	_, access, _, _ := token(deadline(t), p, credentialsForm())
	where := p.URL()
	p.Down()
	p.Down()
	if _, _, _, err := token(deadline(t), p, credentialsForm()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("while down: %v, want refused", err)
	}
	p.Up()
	p.Up()
	if code, _, _, err := token(deadline(t), p, credentialsForm()); code != 200 || p.URL() != where || !p.Accepts(access) {
		t.Errorf("back at %s (was %s): %d, %v; the old token is valid: %v", p.URL(), where, code, err, p.Accepts(access))
	}
	p.Close()
	p.Close()
}
