package zeebe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"golang.org/x/oauth2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
	"retry-worker/internal/worker"
)

// TestTokens plays testdata/tokens.txt in fake time: an identity provider by hand, and calls that want its tokens.
//
//	provider lasting=5m takes=1s away   a new source; what the provider answers, which is not said, is a token for ever
//	answers …                           the same for the requests that come from now on: hangs, refuses, cached
//	get callers=20 patience=1s          so many calls want a token at once
//	asks for=1m every=100ms rejecting   calls that come one after the other, and are told by the engine that it takes no token
//	rejected callers=50                 so many hear that of the token that they had first, or now, and want another
//	call takes=token-2                  a call of an engine that takes that token alone
//	wait 1m, close                      time passes; the connection is closed a second after the next call
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{t: t}
		golden.Story(t, "testdata/tokens.txt", func(command string) string {
			return golden.Play(command, map[string]func(*golden.Arguments) (string, error){
				"provider": p.renew, "answers": p.answers, "get": p.gets, "asks": p.asks, "rejected": p.rejected, "call": p.calls,
				"wait": golden.Wait, "close": p.closes,
			})
		})
		p.close()
	})
}

// provider is an identity provider by hand, with the source that asks it.
type provider struct {
	*tokenSource
	t     *testing.T
	logs  *observer.ObservedLogs
	began time.Time
	first *oauth2.Token // that calls got

	mu       sync.Mutex
	answer   *golden.Arguments
	requests []time.Duration // that were not told yet: when each came
	all      int             // requests
	underWay int
}

// renew begins with a source that has no token.
func (p *provider) renew(a *golden.Arguments) (string, error) {
	if p.tokenSource != nil {
		p.close()
	}
	core, logs := observer.New(zapcore.DebugLevel)
	p.tokenSource = newTokenSource(OAuth{RequestTimeout: 10 * time.Second}, (&Options{}).Said, zap.New(core))
	p.request, p.logs, p.began, p.first, p.all = p.serve, logs, time.Now(), nil, 0
	return p.answers(a)
}

func (p *provider) answers(a *golden.Arguments) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = a
	return "", nil
}

// serve answers a request.
func (p *provider) serve(ctx context.Context) (*oauth2.Token, error) {
	p.mu.Lock()
	p.requests = append(p.requests, time.Since(p.began))
	p.all++
	if p.underWay++; p.underWay > 1 {
		p.t.Error("two requests are under way at once")
	}
	token, a := &oauth2.Token{AccessToken: "token-" + strconv.Itoa(p.all), TokenType: "Bearer"}, p.answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.underWay--
	}()
	takes, _ := time.ParseDuration(a.Named["takes"])
	if a.Words["hangs"] {
		takes = time.Hour
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case a.Words["away"]:
		return nil, errors.New("the identity provider is away")
	case a.Words["refuses"]:
		return nil, &oauth2.RetrieveError{Response: &http.Response{Status: "401 Unauthorized"}, ErrorCode: "invalid_client",
			Body: []byte(`{"error":"invalid_client","sent":"canary-secret"}`), ErrorDescription: "canary-secret is wrong"}
	case a.Words["cached"]:
		token.AccessToken = "token-1"
	}
	if life, err := time.ParseDuration(a.Named["lasting"]); err == nil {
		token.Expiry = time.Now().Add(life)
	}
	return token, nil
}

// told tells what there was to a command, how long it took, the requests that came meanwhile or before, and what is
// logged.
func (p *provider) told(began time.Time, said ...string) (string, error) {
	p.t.Helper()
	took := time.Since(began)
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.Sort(said)
	text := ""
	for _, one := range slices.Compact(said) {
		text += one + "\n"
	}
	text += fmt.Sprintf("after %s; requests at %v\n", took, p.requests)
	for _, line := range p.logs.TakeAll() {
		text += fmt.Sprintf("%s %s: %v, %s\n", line.Level, line.Message, line.ContextMap()["error"], line.ContextMap()["pause"])
	}
	p.requests = nil
	return text, nil
}

// want tells what one call gets.
func (p *provider) want(ctx context.Context) string {
	token, err := p.get(ctx)
	if err == nil {
		return token.AccessToken
	}
	if refused, ok := errors.AsType[*worker.EngineError](replyError(err)); !ok || refused.Kind != worker.NotTaken {
		p.t.Errorf("%v is taken for %+v: nothing was sent", err, refused)
	}
	return err.Error()
}

// together tells what so many get at once.
func (p *provider) together(a *golden.Arguments, want func() string) (string, error) {
	began := time.Now()
	all := make([]string, max(1, a.Number("callers")))
	var calling sync.WaitGroup
	for i := range all {
		calling.Go(func() { all[i] = want() })
	}
	calling.Wait()
	return p.told(began, all...)
}

func (p *provider) gets(a *golden.Arguments) (string, error) {
	patience, err := time.ParseDuration(a.Named["patience"])
	if err != nil {
		patience = time.Hour
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	said, err := p.together(a, func() string { return p.want(ctx) })
	if p.first == nil {
		p.first = p.token
	}
	return said, err
}

func (p *provider) asks(a *golden.Arguments) (string, error) {
	long, err := time.ParseDuration(a.Named["for"])
	testkit.Must(p.t, err)
	every, err := time.ParseDuration(a.Named["every"])
	testkit.Must(p.t, err)
	began := time.Now()
	var said []string
	for ; time.Since(began) < long; time.Sleep(every) {
		said = append(said, p.want(context.Background()))
		if token, err := p.get(context.Background()); err == nil && a.Words["rejecting"] {
			p.reject(token)
			said = append(said, p.want(context.Background()))
		}
	}
	return p.told(began, said...)
}

func (p *provider) rejected(a *golden.Arguments) (string, error) {
	of := cmp.Or(p.first, p.token)
	return p.together(a, func() string {
		p.reject(of)
		return p.want(context.Background())
	})
}

func (p *provider) calls(a *golden.Arguments) (string, error) {
	began, shown := time.Now(), "shown"
	err := p.call(p.t.Context(), func(ctx context.Context) error {
		sent, _ := metadata.FromOutgoingContext(ctx)
		shown += " " + sent.Get("authorization")[0]
		if sent.Get("authorization")[0] != "Bearer "+a.Named["takes"] {
			return status.Error(codes.Unauthenticated, "no")
		}
		return nil
	})
	return p.told(began, shown, fmt.Sprintf("ended with %v", err))
}

func (p *provider) closes(*golden.Arguments) (string, error) {
	time.AfterFunc(time.Second, p.close)
	return "", nil
}
