package zeebe

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
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
	"retry-worker/internal/worker"
)

const requestTimeout = 10 * time.Second

// provider is an identity provider by hand; its time is the bubble's.
type provider struct {
	*tokenSource
	logs  *observer.ObservedLogs
	began time.Time

	mu       sync.Mutex
	answer   func(ctx context.Context, n int) (*oauth2.Token, error) // to the n-th request, from 1
	requests []time.Duration                                         // when each came
	underWay int
	most     int
}

// lasting answers every request with a token of its own that lasts so long; 0 is for ever.
func lasting(life time.Duration) func(context.Context, int) (*oauth2.Token, error) {
	return func(_ context.Context, n int) (*oauth2.Token, error) {
		t := &oauth2.Token{AccessToken: "token-" + string(rune('0'+n)), TokenType: "Bearer"}
		if life != 0 {
			t.Expiry = time.Now().Add(life)
		}
		return t, nil
	}
}

var errAway = errors.New("the identity provider is away")

func away(context.Context, int) (*oauth2.Token, error) { return nil, errAway }

// after takes some time before it answers.
func after(d time.Duration, answer func(context.Context, int) (*oauth2.Token, error)) func(context.Context, int) (*oauth2.Token, error) {
	return func(ctx context.Context, n int) (*oauth2.Token, error) {
		select {
		case <-time.After(d):
			return answer(ctx, n)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// withProvider runs play in a bubble.
func withProvider(t *testing.T, answer func(context.Context, int) (*oauth2.Token, error), play func(t *testing.T, p *provider)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zapcore.DebugLevel)
		p := &provider{logs: logs, answer: answer, began: time.Now()}
		p.tokenSource = newTokenSource(OAuth{RequestTimeout: requestTimeout}, (&Options{}).Said, zap.New(core))
		p.request = p.serve
		defer p.close()
		play(t, p)
		if p.most > 1 {
			t.Errorf("%d requests at once, want one at a time", p.most)
		}
	})
}

func (p *provider) serve(ctx context.Context) (*oauth2.Token, error) {
	p.mu.Lock()
	p.requests = append(p.requests, time.Since(p.began))
	p.underWay++
	p.most = max(p.most, p.underWay)
	n, answer := len(p.requests), p.answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.underWay--
	}()
	return answer(ctx, n)
}

func (p *provider) answers(f func(context.Context, int) (*oauth2.Token, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = f
}

// asked fails unless requests came at these times.
func (p *provider) asked(t *testing.T, want ...time.Duration) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.requests, want) {
		t.Errorf("requests at %v, want at %v", p.requests, want)
	}
}

// gets fails unless the token is that.
func (p *provider) gets(t *testing.T, want string) *oauth2.Token {
	t.Helper()
	token, err := p.get(context.Background())
	if err != nil || token.AccessToken != want {
		t.Fatalf("got %v with %v, want %s", token, err, want)
	}
	return token
}

// fails fails unless there is no token, for a reason that holds the words.
func (p *provider) fails(t *testing.T, words string) {
	t.Helper()
	token, err := p.get(context.Background())
	if _, ok := errors.AsType[*tokenError](err); !ok || token != nil || !strings.Contains(err.Error(), words) {
		t.Fatalf("got %v with %v, want a token error that says %q", token, err, words)
	}
}

// keepAsking has somebody ask ten times a second, as calls do.
func (p *provider) keepAsking(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		_, _ = p.get(context.Background())
	}
}

func TestOneRequestForAll(t *testing.T) {
	withProvider(t, after(time.Second, lasting(time.Hour)), func(t *testing.T, p *provider) {
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if token, err := p.get(context.Background()); err != nil || token.AccessToken != "token-1" {
					t.Errorf("got %v with %v", token, err)
				}
			})
		}
		all.Wait()
		if took := time.Since(p.began); took != time.Second {
			t.Errorf("the calls waited %s, want as long as the request takes", took)
		}
		p.asked(t, 0)
	})
}

// TestPausesAfterFailures: all who wait get the failure, those who come meanwhile get it at once, and the
// pauses between requests double from 1 s to 15 s.
func TestPausesAfterFailures(t *testing.T) {
	withProvider(t, after(100*time.Millisecond, away), func(t *testing.T, p *provider) {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { p.fails(t, errAway.Error()) })
		}
		all.Wait()
		before := time.Now()
		p.fails(t, "token for the engine: ")
		if waited := time.Since(before); waited > 0 {
			t.Errorf("a call waited %s for a token that nobody asks for", waited)
		}
		p.keepAsking(time.Minute)
		if n := len(p.requests); n < 6 || n > 8 {
			t.Errorf("%d requests in a minute, want pauses of 1, 2, 4, 8, 15, 15 seconds: %v", n, p.requests)
		}
		for i, most := range []time.Duration{1, 2, 4, 8, 15, 15} {
			if gap := p.requests[i+1] - p.requests[i]; gap < most*time.Second || gap > most*time.Second+300*time.Millisecond {
				t.Errorf("pause %d is %s, want %d s", i+1, gap, most)
			}
		}
		if lines := p.logs.FilterMessageSnippet("no token").Len(); lines != len(p.requests) {
			t.Errorf("%d log lines for %d failed requests", lines, len(p.requests))
		}
		p.answers(lasting(time.Hour))
		p.keepAsking(tokenPauseMost)
		p.gets(t, "token-"+string(rune('0'+len(p.requests))))
		p.answers(away) // and the pauses begin anew
		p.reject(p.token)
		n := len(p.requests)
		p.keepAsking(2 * time.Second)
		if again := len(p.requests) - n; again != 2 {
			t.Errorf("%d requests in the first two seconds of another failure, want 2", again)
		}
	})
}

// TestEarlyRenewal: a token is replaced half a minute before its end, or a fifth of its life; callers do
// not wait for that.
func TestEarlyRenewal(t *testing.T) {
	for life, early := range map[time.Duration]time.Duration{
		10 * time.Second: 2 * time.Second, 100 * time.Second: 20 * time.Second, 5 * time.Minute: 30 * time.Second, 24 * time.Hour: 30 * time.Second,
	} {
		t.Run(life.String(), func(t *testing.T) {
			withProvider(t, lasting(life), func(t *testing.T, p *provider) {
				p.gets(t, "token-1")
				time.Sleep(life - early)
				p.gets(t, "token-1")
				p.asked(t, 0)
				p.answers(after(time.Second, lasting(life)))
				time.Sleep(time.Millisecond)
				for range 20 {
					before := time.Now()
					p.gets(t, "token-1")
					if time.Since(before) > 0 {
						t.Error("a call waited although the token still lasts")
					}
				}
				p.asked(t, 0, life-early+time.Millisecond)
				time.Sleep(time.Second)
				synctest.Wait()
				p.gets(t, "token-2")
			})
		})
	}
}

// TestUsedOnWhileTheProviderIsAway: to the end of its life and no longer; then it comes back by itself.
func TestUsedOnWhileTheProviderIsAway(t *testing.T) {
	withProvider(t, lasting(5*time.Minute), func(t *testing.T, p *provider) {
		p.gets(t, "token-1")
		p.answers(away)
		for time.Since(p.began) < 5*time.Minute {
			p.gets(t, "token-1")
			time.Sleep(time.Second)
		}
		p.fails(t, errAway.Error())
		p.keepAsking(time.Minute)
		if n := len(p.requests); n > 12 {
			t.Errorf("%d requests in a minute and a half without a provider", n-1)
		}
		p.answers(lasting(5 * time.Minute))
		p.keepAsking(tokenPauseMost)
		if token, err := p.get(context.Background()); err != nil {
			t.Errorf("no token %s after the provider is back: %v %v", tokenPauseMost, token, err)
		}
	})
}

// TestRejectedToken: one new token, at once where the old one has been used for a while, however many
// calls say that the gateway did not take it.
func TestRejectedToken(t *testing.T) {
	withProvider(t, lasting(time.Hour), func(t *testing.T, p *provider) {
		old := p.gets(t, "token-1")
		time.Sleep(time.Minute)
		p.answers(after(time.Second, lasting(time.Hour)))
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				p.reject(old)
				p.gets(t, "token-2")
			})
		}
		all.Wait()
		p.reject(old) // a call that took its time
		p.gets(t, "token-2")
		p.asked(t, 0, time.Minute)
	})
}

// TestGatewayThatTakesNoToken: the pauses grow as after failures, and callers hear why. A provider that hands out a token from a
// cache does not make a circle.
func TestGatewayThatTakesNoToken(t *testing.T) {
	same := &oauth2.Token{AccessToken: "token-1", TokenType: "Bearer"}
	cached := func(context.Context, int) (*oauth2.Token, error) { return same, nil }
	play := func(t *testing.T, p *provider) {
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if token, err := p.get(context.Background()); err == nil {
				p.reject(token)
				p.fails(t, "the engine does not take the token")
			}
		}
		if n := len(p.requests); n > 8 {
			t.Errorf("%d tokens asked for in a minute, want growing pauses: %v", n, p.requests)
		}
	}
	withProvider(t, cached, play)
	withProvider(t, lasting(time.Hour), func(t *testing.T, p *provider) {
		play(t, p)
		time.Sleep(tokenPauseMost)
		kept, err := p.get(context.Background())
		testkit.Must(t, err)
		n := len(p.requests)
		p.keepAsking(10 * time.Minute)
		if len(p.requests) != n {
			t.Errorf("%d more tokens asked for although the gateway takes %v", len(p.requests)-n, kept.AccessToken)
		}
	})
}

func TestTokenWithoutAnEnd(t *testing.T) {
	withProvider(t, lasting(0), func(t *testing.T, p *provider) {
		p.gets(t, "token-1")
		time.Sleep(1000 * time.Hour)
		p.gets(t, "token-1")
		p.asked(t, 0)
	})
}

// TestTokensThatHardlyLast: one a second is asked for, no more, and the reason is said.
func TestTokensThatHardlyLast(t *testing.T) {
	withProvider(t, lasting(time.Nanosecond), func(t *testing.T, p *provider) {
		_, _ = p.get(context.Background())
		time.Sleep(time.Millisecond)
		p.fails(t, "the last token has expired already; check the identity provider's token lifetime and this machine's clock")
		p.keepAsking(10 * time.Second)
		if n := len(p.requests); n > 11 {
			t.Errorf("%d requests in ten seconds, want one a second", n)
		}
	})
}

// TestCallThatGivesUp: it does not wait on, the request goes on, and the call was surely not sent.
func TestCallThatGivesUp(t *testing.T) {
	withProvider(t, after(5*time.Second, lasting(time.Hour)), func(t *testing.T, p *provider) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := p.get(ctx)
		if took := time.Since(p.began); took != time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("given up after %s with %v", took, err)
		}
		WantKind(t, "given up", replyError(err), worker.NotTaken)
		p.gets(t, "token-1")
		p.asked(t, 0)
	})
}

// TestRequestThatHangs is cut off by its time-out, and by Close.
func TestRequestThatHangs(t *testing.T) {
	hang := func(ctx context.Context, _ int) (*oauth2.Token, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	withProvider(t, hang, func(t *testing.T, p *provider) {
		p.fails(t, "check ZEEBE_AUTHORIZATION_SERVER_URL")
		if took := time.Since(p.began); took != requestTimeout {
			t.Errorf("the request ended after %s, want %s", took, requestTimeout)
		}
	})
	withProvider(t, hang, func(t *testing.T, p *provider) {
		defer time.AfterFunc(time.Second, p.close).Stop()
		p.fails(t, context.Canceled.Error())
		if took := time.Since(p.began); took != time.Second {
			t.Errorf("the request ended after %s, want with the connection", took)
		}
	})
}

// TestProvidersAnswerStaysOut: it may repeat the secret.
func TestProvidersAnswerStaysOut(t *testing.T) {
	refusal := &oauth2.RetrieveError{
		Response: &http.Response{Status: "401 Unauthorized"}, ErrorCode: "invalid_client",
		Body: []byte(`{"error":"invalid_client","sent":"canary-secret"}`), ErrorDescription: "canary-secret is wrong",
	}
	withProvider(t, func(context.Context, int) (*oauth2.Token, error) { return nil, refusal }, func(t *testing.T, p *provider) {
		p.fails(t, "the identity provider answered 401 Unauthorized invalid_client; check ZEEBE_CLIENT_ID, ZEEBE_CLIENT_SECRET and ZEEBE_TOKEN_AUDIENCE")
		_, err := p.get(context.Background())
		for _, line := range p.logs.All() {
			if text := line.Message + err.Error() + line.ContextMap()["error"].(string); strings.Contains(text, "canary") {
				t.Errorf("what the provider said is shown: %s", text)
			}
		}
	})
}

// TestTokenRenewedOnce: a call whose token the engine takes no longer is made once more, with a new token.
func TestTokenRenewedOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		takes string // the one token that the engine takes from the third second on
		shown []string
		fails bool
	}{
		"another one": {"Bearer token-2", []string{"Bearer token-1", "Bearer token-2"}, false},
		"none":        {"", []string{"Bearer token-1", "Bearer token-2"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			withProvider(t, lasting(0), func(t *testing.T, p *provider) {
				p.gets(t, "token-1")
				time.Sleep(3 * time.Second)
				var shown []string
				err := p.call(t.Context(), func(ctx context.Context) error {
					sent, _ := metadata.FromOutgoingContext(ctx)
					shown = append(shown, sent.Get("authorization")...)
					if sent.Get("authorization")[0] != tt.takes {
						return status.Error(codes.Unauthenticated, "no")
					}
					return nil
				})
				if (err != nil) != tt.fails || !slices.Equal(shown, tt.shown) {
					t.Errorf("the call showed %q and ended with %v", shown, err)
				}
				p.asked(t, 0, 3*time.Second)
			})
		})
	}
}
