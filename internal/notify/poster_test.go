package notify_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/notify"
	"retry-worker/internal/testkit"
	"retry-worker/internal/web"
)

// loopback lets webhooks reach the suite's receivers.
var loopback = web.Allowed{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

const hookBody = `{"type":"test","timestamp":"2026-11-21T10:00:00Z","data":{"team":"ti","open":{"count":0,"causes":0,"oldest":null,"otherCount":0}}}`

func hook(t *testing.T, url string) *catalogue.Webhook {
	return &catalogue.Webhook{URL: url, SecretFile: secretFile(t, secretText)}
}

// TestWebhookIsSigned: the standard's own library takes it.
func TestWebhookIsSigned(t *testing.T) {
	checker, err := standardwebhooks.NewWebhook(secretText)
	testkit.Must(t, err)
	var calls atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		if err := checker.Verify(body, r.Header); err != nil {
			t.Error(err)
		}
		if string(body) != hookBody || r.Method != http.MethodPost || r.URL.RequestURI() != "/hooks/retry?room=ti" || r.Header.Get("webhook-id") != "id-1" ||
			!strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") || r.Header.Get("User-Agent") != "retry-worker/1.2.3" {
			t.Errorf("%s %s %v %s", r.Method, r.URL, r.Header, body)
		}
		if body = append(body, ' '); checker.Verify(body, r.Header) == nil {
			t.Error("a body that was changed is taken")
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer s.Close()
	err = notify.NewPoster(web.NewClient(loopback, "1.2.3")).Send(t.Context(), hook(t, s.URL+"/hooks/retry?room=ti"), "id-1", hookBody, time.Now())
	if err != nil || calls.Load() != 1 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
}

// TestSecretsChange: while the receiver changes its secret, both sign; the file is read for each webhook.
func TestSecretsChange(t *testing.T) {
	other := "whsec_" + strings.Repeat("QUJD", 10)
	signed := func(h http.Header, body []byte, secret string) bool {
		w, err := standardwebhooks.NewWebhook(secret)
		return err == nil && w.Verify(body, h) == nil
	}
	var first, second bool
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		first, second = signed(r.Header, body, secretText), signed(r.Header, body, other)
	}))
	defer s.Close()
	p, to := notify.NewPoster(web.NewClient(loopback, "x")), hook(t, s.URL)
	for _, step := range []struct {
		file          string
		first, second bool
	}{{secretText, true, false}, {secretText + "\n" + other, true, true}, {other, false, true}} {
		testkit.Must(t, os.WriteFile(to.SecretFile, []byte(step.file+"\n"), 0o600))
		if err := p.Send(t.Context(), to, "id", hookBody, time.Now()); err != nil || first != step.first || second != step.second {
			t.Errorf("%v: signed %t %t, %v", step, first, second, err)
		}
	}
	for _, bad := range []string{"", "whsec_short", "whsec_!!!!", strings.Repeat("QUJD", 10), "whsec_" + strings.Repeat("QUJD", 40), strings.Repeat("x", 5000)} {
		testkit.Must(t, os.WriteFile(to.SecretFile, []byte(bad), 0o600))
		err := p.Send(t.Context(), to, "id", hookBody, time.Now())
		if f, ok := errors.AsType[*notify.Failure](err); !ok || !f.Refused || bad != "" && strings.Contains(f.Error(), bad) {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

// TestReceivers that do not take it, each in its own way.
func TestReceivers(t *testing.T) {
	reached := atomic.Bool{}
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer inside.Close()
	status := func(code int, header ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if len(header) == 2 {
				w.Header().Set(header[0], header[1])
			}
			w.WriteHeader(code)
		}
	}
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		refused bool
		after   time.Duration
		says    string
	}{
		"redirects inside":    {status(307, "Location", inside.URL), true, 0, "redirects are not followed"},
		"redirects to itself": {status(301, "Location", "/"), true, 0, "redirects are not followed"},
		"is gone":             {status(410), true, 0, "410 Gone"},
		"wants a log-in":      {status(401), true, 0, "401 Unauthorized"},
		"knows no such path":  {status(404), true, 0, "404 Not Found"},
		"is broken":           {status(500), false, 0, "500 Internal Server Error"},
		"is busy":             {status(503, "Retry-After", "120"), false, 2 * time.Minute, "503 Service Unavailable"},
		"has enough":          {status(429, "Retry-After", "nonsense"), false, 0, "429 Too Many Requests"},
		"asks for a date":     {status(429, "Retry-After", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)), false, 0, "429"},
		"hangs up": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.Close()
		}, false, 0, "EOF"},
		"has an endless head": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		}, false, 0, "post the webhook"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(tt.handler)
			defer s.Close()
			err := notify.NewPoster(web.NewClient(loopback, "x")).Send(t.Context(), hook(t, s.URL+"/segredo-no-caminho"), "id", hookBody, time.Now())
			f, ok := errors.AsType[*notify.Failure](err)
			if !ok || f.Refused != tt.refused || f.After != tt.after || !strings.Contains(f.Error(), tt.says) || strings.Contains(f.Error(), "segredo") {
				t.Errorf("got %v (%+v), want refused %t, after %s, %q", err, f, tt.refused, tt.after, tt.says)
			}
			if ok && f.Refused && f.Pause() < 15*time.Minute {
				t.Errorf("what is refused is tried again after %s", f.Pause())
			}
		})
	}
	if reached.Load() {
		t.Error("a redirect inside was followed")
	}
}

// TestHugeAnswer is read no further than a little.
func TestHugeAnswer(t *testing.T) {
	stopped := make(chan int64, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var n int64
		chunk := make([]byte, 64<<10)
		for range 16 << 10 { // a gigabyte
			k, err := w.Write(chunk)
			if n += int64(k); err != nil {
				break
			}
		}
		stopped <- n
	}))
	defer s.Close()
	if err := notify.NewPoster(web.NewClient(loopback, "x")).Send(t.Context(), hook(t, s.URL), "id", hookBody, time.Now()); err != nil {
		t.Error(err)
	}
	if n := <-stopped; n > 64<<20 {
		t.Errorf("%d bytes were read", n)
	}
}

// TestSlowReceiver: a context's end frees the sender.
func TestSlowReceiver(t *testing.T) {
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := notify.NewPoster(web.NewClient(loopback, "x")).Send(ctx, hook(t, s.URL), "id", hookBody, time.Now())
	if f, ok := errors.AsType[*notify.Failure](err); !ok || f.Refused || time.Since(began) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

// TestInsideIsRefused: by address and by a name that stands for one, whatever the environment says of proxies.
func TestInsideIsRefused(t *testing.T) {
	reached := atomic.Bool{}
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer s.Close()
	t.Setenv("HTTP_PROXY", s.URL)
	t.Setenv("http_proxy", s.URL)
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		err := notify.NewPoster(web.NewClient(web.Allowed{}, "x")).Send(t.Context(), hook(t, "http://"+host+port), "id", hookBody, time.Now())
		if err == nil || !strings.Contains(err.Error(), "is not public; RETRY_WORKER_WEBHOOK_ALLOW may allow it") && host != "[::ffff:127.0.0.1]" {
			t.Errorf("%s: %v", host, err)
		}
	}
	if reached.Load() {
		t.Error("a request came inside")
	}
	if err := notify.NewPoster(web.NewClient(web.Allowed{Hosts: []string{"localhost"}}, "x")).Send(t.Context(), hook(t, "http://LOCALHOST"+port), "id", hookBody, time.Now()); err != nil || !reached.Load() {
		t.Errorf("a host that is named: %v", err)
	}
}
