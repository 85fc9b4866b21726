package zeebe_test

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/tlstest"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/zeebe"
)

// TestTLS: who is trusted, and what is said to the person whose settings do not fit.
func TestTLS(t *testing.T) {
	secure, open := gateway.New(t, gateway.Options{TLS: true}), gateway.New(t, gateway.Options{})
	own, foreign := secure.CAFile(), gateway.New(t, gateway.Options{TLS: true}).CAFile()
	tests := []struct {
		name    string
		gateway *gateway.Gateway
		options zeebe.Options
		advice  string // empty: it works
	}{
		{"its authority", secure, zeebe.Options{CACertificatePath: own}, ""},
		{"its authority and another name of it", secure, zeebe.Options{CACertificatePath: own, OverrideAuthority: "localhost"}, ""},
		{"another authority", secure, zeebe.Options{CACertificatePath: foreign}, "set ZEEBE_CA_CERTIFICATE_PATH to the PEM file of the authority that signed it"},
		{"the system's authorities", secure, zeebe.Options{}, "set ZEEBE_CA_CERTIFICATE_PATH to the PEM file of the authority that signed it"},
		{"a name it has not", secure, zeebe.Options{CACertificatePath: own, OverrideAuthority: "elsewhere"}, "set ZEEBE_OVERRIDE_AUTHORITY to a name in the certificate"},
		{"a gateway without", open, zeebe.Options{CACertificatePath: own}, "the engine speaks no TLS: set ZEEBE_INSECURE_CONNECTION=true, or ZEEBE_REST_ADDRESS=http://…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := tt.options
			o.Address, o.KeepAlive = tt.gateway.Addr(), 45*time.Second
			found, err := o.CheckTLS(wait.Context(t))
			if tt.advice == "" && (err != nil || !strings.HasPrefix(found, "certificate of localhost, gateway, 127.0.0.1, by ")) {
				t.Errorf("the check found %q, %v", found, err)
			}
			if tt.advice != "" && (err == nil || !strings.HasSuffix(err.Error(), "; "+tt.advice) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("the check ended with %v, want one line that ends in %q", err, tt.advice)
			}
			_, err = dial(t, o).Topology(wait.Context(t))
			if (err == nil) != (tt.advice == "") || err != nil && o.Advice(err) != tt.advice {
				t.Errorf("a call ended with %v, the advice is %q", err, o.Advice(err))
			}
		})
	}
}

// TestPlaintextToTLS is the other way round.
func TestPlaintextToTLS(t *testing.T) {
	g := gateway.New(t, gateway.Options{TLS: true})
	o := plain(g)
	_, err := dial(t, o).Topology(wait.Context(t))
	if err == nil || o.Advice(err) != "the gateway may speak TLS: unset ZEEBE_INSECURE_CONNECTION" {
		t.Errorf("to %v the advice is %q", err, o.Advice(err))
	}
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	o = zeebe.Options{RESTAddress: "http://" + s.Listener.Addr().String()}
	_, err = dial(t, o).Topology(wait.Context(t))
	if err == nil || o.Advice(err) != "the engine may speak TLS: set ZEEBE_REST_ADDRESS=https://…" {
		t.Errorf("by REST: to %v the advice is %q", err, o.Advice(err))
	}
}

// TestOptionsThatCannotWork stop the start with one line that names the setting.
func TestOptionsThatCannotWork(t *testing.T) {
	tests := []struct {
		name    string
		options zeebe.Options
		words   []string
	}{
		{"no file", zeebe.Options{Address: "127.0.0.1:1", CACertificatePath: "missing.pem"}, []string{"ZEEBE_CA_CERTIFICATE_PATH", "missing.pem", "cannot be read (no such file or directory), expected a PEM file"}},
		{"no certificate in it", zeebe.Options{Address: "127.0.0.1:1", CACertificatePath: testkit.File(t, "empty.pem", []byte("nothing"))}, []string{"ZEEBE_CA_CERTIFICATE_PATH", "empty.pem\", which holds no certificate, expected a PEM file"}},
		{"no address", zeebe.Options{Address: "gateway\x7f:26500", Plaintext: true}, []string{"engine address", "expected host:port (ZEEBE_ADDRESS)"}},
		{"no REST address", zeebe.Options{RESTAddress: "nowhere"}, []string{"ZEEBE_REST_ADDRESS"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.options.KeepAlive = 45 * time.Second
			_, err := zeebe.Dial(tt.options, zap.NewNop())
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %v, want one line", err)
			}
			for _, words := range tt.words {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("got %q, want it to say %q", err, words)
				}
			}
		})
	}
}

// TestAdvice says to every refusal what a person can do about it.
func TestAdvice(t *testing.T) {
	for code, word := range map[codes.Code]string{
		codes.Unavailable: "ZEEBE_ADDRESS", codes.DeadlineExceeded: "ZEEBE_ADDRESS", codes.Unauthenticated: "ZEEBE_CLIENT_ID",
		codes.PermissionDenied: "permission", codes.InvalidArgument: "RETRY_WORKER_TENANT_IDS", codes.Unimplemented: "26500", codes.Internal: "gateway's log",
	} {
		if got := (&zeebe.Options{}).Advice(status.Error(code, "what the gateway says")); !strings.Contains(got, word) || strings.Contains(got, "\n") {
			t.Errorf("to %v the advice is %q, want one line that speaks of %s", code, got, word)
		}
	}
}

// TestKeepAlive: a call under way is accompanied by pings, as often as the settings say, so that a gateway that is
// gone without a word is noticed.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 45 * time.Second
		client, server := net.Pipe()
		pings := silent(server)
		c := dial(t, zeebe.Options{
			Address: "passthrough:///silent", Plaintext: true, KeepAlive: interval,
			Dialer: func(context.Context, string) (net.Conn, error) { return client, nil },
		})
		began := time.Now()
		go func() { _, _ = c.Topology(t.Context()) }()
		<-pings
		if took := time.Since(began); took != interval {
			t.Errorf("the first ping came after %s, want %s", took, interval)
		}
	})
}

// silent is a gateway at a connection's other end that answers no call; it tells of pings.
func silent(conn net.Conn) (pings <-chan struct{}) {
	seen := make(chan struct{}, 1)
	go func() {
		defer conn.Close()
		if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		for frames := http2.NewFramer(conn, conn); ; {
			frame, err := frames.ReadFrame()
			if err != nil {
				return
			}
			switch f := frame.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					_, _ = frames.WriteSettings(), frames.WriteSettingsAck()
				}
			case *http2.PingFrame:
				seen <- struct{}{}
				return
			}
		}
	}()
	return seen
}

// TestClientCertificate: the engine is shown the certificate that the files hold at each connection, and what is said where
// it takes none.
func TestClientCertificate(t *testing.T) {
	authority := tlstest.NewAuthority(t)
	var shown []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.TLS.PeerCertificates[0].Subject.CommonName)
		_, _ = w.Write([]byte(`{"gatewayVersion": "8.8.0", "partitionsCount": 1, "brokers": [{"partitions": [{"role": "leader"}]}]}`))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: authority.Pool}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	root := testkit.File(t, "root.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	o := zeebe.Options{RESTAddress: server.URL, CACertificatePath: root}
	_, err := dial(t, o).Topology(wait.Context(t))
	if err == nil || !strings.Contains(o.Advice(err), "CAMUNDA_MTLS_CERT_PATH") {
		t.Errorf("without a certificate: %v; %s", err, o.Advice(err))
	}
	folder := t.TempDir()
	o.CertificatePath, o.KeyPath = filepath.Join(folder, "client.pem"), filepath.Join(folder, "client.key")
	for _, name := range []string{"first", "renewed"} {
		authority.Issue(t, o.CertificatePath, o.KeyPath, name)
		if _, err := dial(t, o).Topology(wait.Context(t)); err != nil || shown[len(shown)-1] != name {
			t.Errorf("with %s: %v, shown %q", name, err, shown)
		}
	}
}

// TestCheckClock: a clock that is far from this machine's is a fault, and one that is not told is none.
func TestCheckClock(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for date, want := range map[string]string{
		"Sun, 29 Nov 2026 12:00:07 GMT": "differs by 7s", "Sun, 29 Nov 2026 11:57:00 GMT": "-3m from this machine's: set both by NTP",
		"yesterday": "does not tell its time",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", date)
			w.WriteHeader(http.StatusUnauthorized)
		}))
		said, err := dial(t, zeebe.Options{RESTAddress: server.URL}).CheckClock(wait.Context(t), func() time.Time { return now })
		server.Close()
		if !strings.Contains(fmt.Sprint(said, err), want) || (err != nil) != strings.Contains(want, "NTP") {
			t.Errorf("of %s it says %q, %v; want %s", date, said, err, want)
		}
	}
}
