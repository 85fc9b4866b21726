package zeebe

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// OAuth holds the client-credentials grant for the gateway's tokens.
type OAuth struct {
	ClientID       string        `group:"Engine" env:"ZEEBE_CLIENT_ID" with:"ZEEBE_CLIENT_SECRET" also:"CAMUNDA_CLIENT_ID" desc:"OAuth client id; empty: no token is sent"`
	ClientSecret   string        `env:"ZEEBE_CLIENT_SECRET" with:"ZEEBE_CLIENT_ID" file:"yes" also:"CAMUNDA_CLIENT_SECRET" desc:"OAuth client secret"`
	Audience       string        `env:"ZEEBE_TOKEN_AUDIENCE" also:"CAMUNDA_TOKEN_AUDIENCE" desc:"audience of the token; empty: the gateway's host"`
	Scope          string        `env:"ZEEBE_TOKEN_SCOPE" also:"CAMUNDA_TOKEN_SCOPE CAMUNDA_OAUTH_SCOPE" desc:"scope of the token; empty: none"`
	URL            string        `env:"ZEEBE_AUTHORIZATION_SERVER_URL" also:"CAMUNDA_OAUTH_URL" default:"https://login.cloud.camunda.io/oauth/token/" desc:"token endpoint"`
	RequestTimeout time.Duration `env:"ZEEBE_AUTH_REQUEST_TIMEOUT" default:"10000" as:"milliseconds" from:"100" to:"600000" desc:"milliseconds for one token request"`
}

const (
	// refreshEarly is how long before its end a token is replaced, but at most a fifth of its life. The old token is
	// used meanwhile, even if the identity provider is down.
	refreshEarly = 30 * time.Second
	// tokenPauseFirst and tokenPauseMost bound the pause after a failed token request, or a token that the engine
	// refused.
	tokenPauseFirst = time.Second
	tokenPauseMost  = 15 * time.Second
)

// tokenError says that there is no token; nothing was sent to the gateway.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return "token for the engine: " + e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// tokenSource keeps one token for all calls. Only one request runs at a time. After a failed request the next one waits
// for a pause, and callers get the failure at once.
type tokenSource struct {
	request func(context.Context) (*oauth2.Token, error)
	said    func(string) string // Options.Said
	timeout time.Duration
	log     *zap.Logger
	life    context.Context
	close   context.CancelFunc

	mu      sync.Mutex
	token   *oauth2.Token
	renew   time.Time     // when to replace token, before it ends
	refused bool          // the gateway refuses token
	running chan struct{} // closed when the running request ends
	failure error         // why there is no usable token, if so
	next    time.Time     // earliest time of the next request
	pause   time.Duration
}

// tokens returns the source of the calls' credentials: a token, or user and password in the form of one. It returns nil
// if the engine needs none.
func (o *Options) tokens(log *zap.Logger) *tokenSource {
	if o.OAuth == nil && o.Username == "" {
		return nil
	}
	if o.Unencrypted() {
		log.Warn("the token for the engine travels unencrypted: use TLS unless this is a private network (" +
			o.Said("ZEEBE_INSECURE_CONNECTION, ZEEBE_REST_ADDRESS)"))
	}
	if o.OAuth != nil {
		return newTokenSource(*o.OAuth, o.Said, log)
	}
	basic := &oauth2.Token{TokenType: "Basic",
		AccessToken: base64.StdEncoding.EncodeToString([]byte(o.Username + ":" + o.Password))}
	s := newTokenSource(OAuth{RequestTimeout: time.Second}, o.Said, log)
	s.request = func(context.Context) (*oauth2.Token, error) { return basic, nil }
	return s
}

func newTokenSource(o OAuth, said func(string) string, log *zap.Logger) *tokenSource {
	config := clientcredentials.Config{
		ClientID: o.ClientID, ClientSecret: o.ClientSecret, TokenURL: o.URL, AuthStyle: oauth2.AuthStyleInParams,
	}
	if o.Scope != "" {
		config.Scopes = []string{o.Scope}
	}
	if o.Audience != "" {
		config.EndpointParams = url.Values{"audience": {o.Audience}}
	}
	// Redirects are not followed, because the request holds the secret.
	client := &http.Client{Timeout: o.RequestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	life, stop := context.WithCancel(context.Background())
	return &tokenSource{
		timeout: o.RequestTimeout, said: said, log: log, life: life, close: stop,
		request: func(ctx context.Context) (*oauth2.Token, error) {
			return config.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
		},
	}
}

// get returns the token to send. It waits for a request only if no token is usable.
func (s *tokenSource) get(ctx context.Context) (*oauth2.Token, error) {
	s.mu.Lock()
	token, usable := s.token, s.usable()
	if (!usable || s.due()) && s.running == nil && !time.Now().Before(s.next) {
		s.running = make(chan struct{})
		go s.refresh()
	}
	running, failure := s.running, s.failure
	s.mu.Unlock()
	switch {
	case usable:
		return token, nil
	case running == nil:
		return nil, failure
	}
	select {
	case <-running:
	case <-ctx.Done():
		return nil, &tokenError{ctx.Err()}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.usable() {
		return s.token, nil
	}
	return nil, s.failure
}

func (s *tokenSource) usable() bool {
	return s.token != nil && !s.refused && (s.token.Expiry.IsZero() || time.Now().Before(s.token.Expiry))
}

func (s *tokenSource) due() bool {
	return !s.token.Expiry.IsZero() && time.Now().After(s.renew)
}

func (s *tokenSource) refresh() {
	ctx, cancel := context.WithTimeout(s.life, s.timeout)
	defer cancel()
	token, err := s.request(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(s.running)
	defer func() { s.running = nil }()
	if err == nil {
		if s.refused { // the engine may refuse this one too
			s.longerPause()
		} else {
			s.pause = 0
		}
		s.token, s.refused = token, false
		s.renew = token.Expiry.Add(-min(refreshEarly, time.Until(token.Expiry)/5))
		s.next = time.Now().Add(max(s.pause, tokenPauseFirst)) // do not flood the provider if tokens end at once
		s.failure = &tokenError{errors.New("the last token has expired already; check the identity provider's token " +
			"lifetime and this machine's clock")}
		return
	}
	s.failure = &tokenError{s.describe(err)}
	s.longerPause()
	s.next = time.Now().Add(s.pause)
	s.log.Warn("no token from the identity provider; asking again", zap.Error(s.failure), zap.Duration("pause", s.pause))
}

func (s *tokenSource) longerPause() {
	s.pause = min(max(2*s.pause, tokenPauseFirst), tokenPauseMost)
}

// describe leaves out the provider's answer, which may repeat the secret.
func (s *tokenSource) describe(err error) error {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("the identity provider answered %s %s; check %s", refused.Response.Status, refused.ErrorCode,
			s.said("ZEEBE_CLIENT_ID, ZEEBE_CLIENT_SECRET and ZEEBE_TOKEN_AUDIENCE"))
	}
	return fmt.Errorf("%w; check %s", err, s.said("ZEEBE_AUTHORIZATION_SERVER_URL"))
}

// reject records that the gateway refused this token, so that another is requested.
func (s *tokenSource) reject(token *oauth2.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == token {
		s.refused = true
		s.failure = &tokenError{errors.New(s.said("the engine does not take the token; check ZEEBE_TOKEN_AUDIENCE, " +
			"or ZEEBE_BASIC_AUTH_USERNAME and its password"))}
	}
}

// call calls f with credentials in its context's metadata; a nil source adds none. If the token is refused and another
// is available at once, it calls f once more.
func (s *tokenSource) call(ctx context.Context, f func(context.Context) error) error {
	if s == nil {
		return f(ctx)
	}
	refused, failure := &oauth2.Token{}, error(nil)
	for range 2 {
		token, err := s.get(ctx)
		if err != nil || token.AccessToken == refused.AccessToken {
			return cmp.Or(failure, err)
		}
		failure = f(metadata.AppendToOutgoingContext(ctx, "authorization", token.Type()+" "+token.AccessToken))
		if status.Code(failure) != codes.Unauthenticated {
			return failure
		}
		s.reject(token)
		refused = token
	}
	return failure
}
