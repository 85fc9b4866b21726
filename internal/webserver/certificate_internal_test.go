package webserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pair is a certificate that vouches for itself, and its key, as files.
type pair struct{ cert, key string }

func newPair(t *testing.T) pair {
	t.Helper()
	dir := t.TempDir()
	return pair{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}
}

// issue writes a new certificate with that name, and returns it for who must trust it.
func (p pair) issue(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, p.key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, p pair, hooks CertificateHooks) *Certificate {
	t.Helper()
	c, err := LoadCertificate(p.cert, p.key, hooks)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestServesTLS(t *testing.T) {
	p := newPair(t)
	cert := p.issue(t, "console")
	s, err := Listen("127.0.0.1:0", "the console", "ADDR", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}), load(t, p, CertificateHooks{}), Peers{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	response, err := client.Get("https://" + s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, _ := io.ReadAll(response.Body); string(body) != "HTTP/2.0" {
		t.Errorf("it is served by %q, expected HTTP/2.0", body)
	}
	if _, err := tls.Dial("tcp", s.Addr(), &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS11}); err == nil { //nolint:gosec // what is refused
		t.Error("TLS 1.1 is spoken, expected 1.2 or newer")
	}
	for _, suite := range tls.CipherSuites() {
		if !slices.Contains(suite.SupportedVersions, tls.VersionTLS12) || strings.Contains(suite.Name, "_RSA_") { // the key is no RSA key
			continue
		}
		c, err := tls.Dial("tcp", s.Addr(), &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite.ID}})
		if err == nil {
			c.Close()
		}
		if spoken := err == nil; spoken == strings.Contains(suite.Name, "CBC") {
			t.Errorf("%s is spoken: %t, expected those that authenticate alone", suite.Name, spoken)
		}
	}
	if plain, err := http.Get("http://" + s.Addr()); err == nil {
		plain.Body.Close()
		if plain.StatusCode != http.StatusBadRequest {
			t.Errorf("plaintext is answered by %s", plain.Status)
		}
	}
}

// A renewed certificate is shown without a restart; a broken one changes nothing and is told.
func TestCertificateIsTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.issue(t, "first")
		var told []string
		c := load(t, p, CertificateHooks{
			Changed:   func(_, _ *tls.Certificate) { told = append(told, "changed") },
			Rejected:  func(err error) { told = append(told, err.Error()) },
			Recovered: func(*tls.Certificate) { told = append(told, "recovered") },
		})
		ctx, end := context.WithCancel(context.Background())
		defer synctest.Wait()
		defer end()
		go c.Run(ctx)
		expect := func(name, last string) {
			t.Helper()
			time.Sleep(15 * time.Second)
			synctest.Wait() // what is told has been told
			shown, err := c.config().GetCertificate(nil)
			if err != nil || shown.Leaf.Subject.CommonName != name {
				t.Errorf("it shows %v (%v), expected %s", shown.Leaf.Subject, err, name)
			}
			if len(told) == 0 || !strings.Contains(told[len(told)-1], last) {
				t.Errorf("told was %q, expected %q last", told, last)
			}
		}
		p.issue(t, "second")
		expect("second", "changed")
		write(t, p.key, "-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----\n")
		expect("second", "expected two PEM files that belong together")
		p.issue(t, "third")
		expect("third", "recovered")
		if text := strings.Join(told, " "); strings.Contains(text, "canary") {
			t.Errorf("what was told holds the key: %s", text)
		}
	})
}

func TestCertificateThatCannotBe(t *testing.T) {
	good, other := newPair(t), newPair(t)
	good.issue(t, "good")
	other.issue(t, "other")
	empty := filepath.Join(t.TempDir(), "empty")
	write(t, empty, "")
	large := filepath.Join(t.TempDir(), "large")
	write(t, large, strings.Repeat("canary", 200_000))
	for name, p := range map[string]pair{
		"no such file":     {good.cert + ".gone", good.key},
		"no such key":      {good.cert, good.key + ".gone"},
		"empty":            {empty, good.key},
		"another's key":    {good.cert, other.key},
		"too large":        {large, good.key},
		"the key for both": {good.key, good.key},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := LoadCertificate(p.cert, p.key, CertificateHooks{})
			if err == nil || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), filepath.Dir(p.cert)) && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it said %v, expected one line that names the file", err)
			}
		})
	}
}
