package web

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/smallfile"
	"retry-worker/internal/testkit/tlstest"
)

// pair is a certificate and its key, as files.
type pair struct{ cert, key string }

func newPair(t *testing.T) pair {
	t.Helper()
	dir := t.TempDir()
	return pair{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.WriteFile(file, []byte(text), 0o600))
}

func load(t *testing.T, p pair) *smallfile.Watcher[tls.Certificate] {
	t.Helper()
	c, err := OpenCertificate(p.cert, p.key)
	must(t, err)
	return c
}

// Which suites are spoken, e2e/attacks says.
func TestServesTLS(t *testing.T) {
	p, authority := newPair(t), tlstest.NewAuthority(t)
	authority.Issue(t, p.cert, p.key, "console")
	s, err := Listen(net.Listen, "127.0.0.1:0", "the console", "ADDR", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}), load(t, p).Current, Peers{})
	must(t, err)
	defer func() { must(t, s.Close(context.Background())) }()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	response, err := client.Get("https://" + s.Addr())
	must(t, err)
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); string(body) != "HTTP/2.0" {
		t.Errorf("it is served by %q, expected HTTP/2.0", body)
	}
	if _, err := tls.Dial("tcp", s.Addr(), &tls.Config{RootCAs: authority.Pool, MaxVersion: tls.VersionTLS11}); err == nil { //nolint:gosec // what is refused
		t.Error("TLS 1.1 is spoken, expected 1.2 or newer")
	}
	// Plain HTTP gets no page and no redirect: what it sent is in the open already, and must not go on unnoticed.
	request, err := http.NewRequest(http.MethodGet, "http://"+s.Addr(), nil)
	must(t, err)
	plain, err := http.DefaultTransport.RoundTrip(request) // which follows none
	must(t, err)
	plain.Body.Close()
	if plain.StatusCode != http.StatusBadRequest {
		t.Errorf("plaintext is answered by %s", plain.Status)
	}
}

// A renewed certificate is shown without a restart; a broken one changes nothing and is told.
func TestCertificateIsTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, authority := newPair(t), tlstest.NewAuthority(t)
		issue := func(name string) { authority.Issue(t, p.cert, p.key, name) }
		issue("first")
		var told []string
		c := load(t, p)
		tell := func(_ *tls.Certificate, err error) {
			if err == nil {
				err = errors.New("in force")
			}
			told = append(told, err.Error())
		}
		ctx, end := context.WithCancel(context.Background())
		defer synctest.Wait()
		defer end()
		go c.Run(ctx, tell)
		expect := func(name, last string) {
			t.Helper()
			time.Sleep(15 * time.Second)
			synctest.Wait() // what is told has been told
			if shown := c.Current(); shown.Leaf.Subject.CommonName != name {
				t.Errorf("it shows %v, expected %s", shown.Leaf.Subject, name)
			}
			if len(told) == 0 || !strings.Contains(told[len(told)-1], last) {
				t.Errorf("told was %q, expected %q last", told, last)
			}
		}
		issue("second")
		expect("second", "in force")
		write(t, p.key, "-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----\n")
		expect("second", "expected two PEM files that belong together")
		issue("third")
		expect("third", "in force")
		if text := strings.Join(told, " "); strings.Contains(text, "canary") {
			t.Errorf("what was told holds the key: %s", text)
		}
	})
}

func TestCertificateThatCannotBe(t *testing.T) {
	good, other := newPair(t), newPair(t)
	authority := tlstest.NewAuthority(t)
	authority.Issue(t, good.cert, good.key, "good")
	authority.Issue(t, other.cert, other.key, "other")
	empty := filepath.Join(t.TempDir(), "empty")
	write(t, empty, "")
	large := filepath.Join(t.TempDir(), "large")
	write(t, large, strings.Repeat("canary", 200_000))
	exposed := newPair(t)
	authority.Issue(t, exposed.cert, exposed.key, "exposed")
	must(t, os.Chmod(exposed.key, 0o644))
	for name, p := range map[string]pair{
		"everybody's key":  exposed,
		"no such file":     {good.cert + ".gone", good.key},
		"no such key":      {good.cert, good.key + ".gone"},
		"empty":            {empty, good.key},
		"another's key":    {good.cert, other.key},
		"too large":        {large, good.key},
		"the key for both": {good.key, good.key},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := OpenCertificate(p.cert, p.key)
			if err == nil || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), filepath.Dir(p.cert)) && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it said %v, expected one line that names the file", err)
			}
		})
	}
}
