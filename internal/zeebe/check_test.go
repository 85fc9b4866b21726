package zeebe

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestDescribeChain: a chain holds as long as the first of it does.
func TestDescribeChain(t *testing.T) {
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	until := func(days float64) *x509.Certificate {
		return &x509.Certificate{DNSNames: []string{"zeebe"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 7)},
			Subject: pkix.Name{CommonName: "hospital"}, NotAfter: now.Add(time.Duration(days * 24 * float64(time.Hour)))}
	}
	for _, tt := range []struct {
		leaf, authority float64
		want            string
	}{
		{40.5, 400, "valid until 2027-01-09 (days left: 40)"},
		{400, 1, "valid until 2026-11-30 (days left: 1)"},
		{0.9, 400, "valid until 2026-11-30 (it ends within a day: renew it)"},
	} {
		got := describeChain([]*x509.Certificate{until(tt.leaf), until(tt.authority)}, now)
		if want := "certificate of zeebe, 10.0.0.7, by CN=hospital, " + tt.want; got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

// TestUnreachable: what to do is said of what was wrong, by the names of the settings that were set.
func TestUnreachable(t *testing.T) {
	sdk := []string{"ZEEBE_ADDRESS", "CAMUNDA_GRPC_ADDRESS", "ZEEBE_CA_CERTIFICATE_PATH", "CAMUNDA_MTLS_CA_PATH"}
	for _, tt := range []struct {
		said string
		o    Options
		want string
	}{
		{"refused", Options{}, "is the engine running, and is ZEEBE_ADDRESS right?"},
		{"refused", Options{Names: sdk}, "is the engine running, and is CAMUNDA_GRPC_ADDRESS right?"},
		{"x509: certificate signed by unknown authority", Options{Names: sdk}, "set CAMUNDA_MTLS_CA_PATH to the PEM file of the authority that signed it"},
		{"x509: certificate has expired or is not yet valid: …", Options{}, "renew the engine's certificate, or set this machine's clock by NTP"},
		{"x509: cannot validate certificate for 10.0.0.7 because it doesn't contain any IP SANs", Options{}, "set ZEEBE_OVERRIDE_AUTHORITY to a name in the certificate"},
		{"EOF", Options{Plaintext: true}, "the gateway may speak TLS: unset ZEEBE_INSECURE_CONNECTION"},
		{"… the frame header looked like an HTTP/1.1 header", Options{Plaintext: true}, "that port speaks HTTP/1.1, not gRPC: set ZEEBE_ADDRESS to the gateway's gRPC port (26500 by default), or ZEEBE_REST_ADDRESS to this one"},
		{"EOF", Options{}, "is the engine running, and is ZEEBE_ADDRESS right?"},
	} {
		if got := tt.o.Advice(status.Error(codes.Unavailable, tt.said)); got != tt.want {
			t.Errorf("to %q it says %q, want %q", tt.said, got, tt.want)
		}
	}
}

// TestEndpoint: a URL without a port stands for its scheme's.
func TestEndpoint(t *testing.T) {
	for address, want := range map[string]string{"http://zeebe/x": "zeebe:80", "https://zeebe": "zeebe:443", "HTTPS://[::1]:8443": "[::1]:8443"} {
		if got := (&Options{RESTAddress: address}).endpoint(); got != want {
			t.Errorf("of %s it is %s, want %s", address, got, want)
		}
	}
}
