package web

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// loopback lets requests reach the suite's servers.
var loopback = Allowed{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

func TestProbe(t *testing.T) {
	var reached, sent atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer other.Close()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/405", func(w http.ResponseWriter, r *http.Request) {
		h := r.Header
		if r.Method != http.MethodGet || h.Get("User-Agent") != "retry-worker/1.2.3" || h.Get("Authorization") != "" {
			t.Errorf("%s %v", r.Method, h)
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
	})
	mux.Handle("/redirect", http.RedirectHandler(other.URL, http.StatusFound))
	mux.HandleFunc("/huge", func(w http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 64<<10); sent.Load() < 1<<30; {
			n, err := w.Write(chunk)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/hangs-up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	portal := httptest.NewServer(mux)
	defer portal.Close()
	secure := httptest.NewUnstartedServer(mux)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	t.Setenv("HTTP_PROXY", other.URL)

	for name, test := range map[string]struct {
		url     string
		allowed Allowed
		expect  []int
		want    bool
		says    string
	}{
		"a status that is expected":   {portal.URL + "/405", loopback, []int{200, 405}, true, ""},
		"one that is not":             {portal.URL + "/405", loopback, []int{200}, false, "405"},
		"a redirect":                  {portal.URL + "/redirect", loopback, []int{200}, false, "302"},
		"a redirect that is expected": {portal.URL + "/redirect", loopback, []int{302}, true, ""},
		"a gigabyte":                  {portal.URL + "/huge", loopback, []int{200}, true, ""},
		"no answer":                   {portal.URL + "/hangs-up", loopback, []int{200}, false, "EOF"},
		"nobody there":                {closed.URL, loopback, []int{200}, false, "refused"},
		"a private address": {portal.URL + "/405?senha=segredo", Allowed{}, []int{405}, false,
			"is not public; RETRY_WORKER_WEBHOOK_ALLOW may allow it"},
		"a certificate nobody vouches": {secure.URL + "/405", loopback, []int{405}, false, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			core, lines := observer.New(zap.InfoLevel)
			got := NewProbe(NewClient(test.allowed, "1.2.3"), zap.New(core))(t.Context(), test.url, test.expect)
			said := ""
			for _, line := range lines.All() {
				said += fmt.Sprint(line.Message, line.ContextMap())
			}
			if got != test.want || (said == "") != test.want || !strings.Contains(said, test.says) ||
				strings.Contains(said, "segredo") {
				t.Errorf("%t, and says %q; want %t, %q", got, said, test.want, test.says)
			}
		})
	}
	if reached.Load() > 0 {
		t.Error("a redirect or a proxy was followed")
	}
	if sent.Load() > 64<<20 {
		t.Errorf("%d bytes were taken of a body that nobody reads", sent.Load())
	}
}

// hang answers nothing until its request's time is up.
type hang struct{}

func (hang) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestProbeEndsInTime: after ten seconds, which is told, or when nobody waits any more, which says nothing of the
// portal.
func TestProbeEndsInTime(t *testing.T) {
	for after, told := range map[time.Duration]int{10 * time.Second: 1, time.Second: 0} {
		synctest.Test(t, func(t *testing.T) {
			core, lines := observer.New(zap.InfoLevel)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if told == 0 {
				time.AfterFunc(after, cancel)
			}
			began := time.Now()
			ok := NewProbe(&http.Client{Transport: hang{}}, zap.New(core))(ctx, "http://portal.example", []int{200})
			if took := time.Since(began); ok || took != after || lines.Len() != told {
				t.Errorf("%t after %s, told %v, want false after %s", ok, took, lines.All(), after)
			}
		})
	}
}
