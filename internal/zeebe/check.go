package zeebe

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// endpoint returns where the gateway listens, and the setting that switches TLS off there.
func (o *Options) endpoint() (address, plaintextBy string, plaintext bool) {
	if o.RESTAddress == "" {
		return o.Address, "ZEEBE_INSECURE_CONNECTION=true", o.Plaintext
	}
	rest, err := url.Parse(o.RESTAddress)
	if err != nil {
		return o.RESTAddress, "", true
	}
	plaintext = rest.Scheme == "http"
	port := cmp.Or(rest.Port(), map[bool]string{true: "80", false: "443"}[plaintext])
	return net.JoinHostPort(rest.Hostname(), port), "ZEEBE_REST_ADDRESS=http://…", plaintext
}

// CheckAddress opens and closes a TCP connection to the gateway, and returns where.
func CheckAddress(ctx context.Context, o Options) (string, error) {
	address, _, _ := o.endpoint()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", fmt.Errorf("%w; is the engine running, and is %s right?", err, o.setting())
	}
	return address, conn.Close()
}

// setting returns the name of the address in use.
func (o *Options) setting() string {
	if o.RESTAddress == "" {
		return o.said("ZEEBE_ADDRESS")
	}
	return o.said("ZEEBE_REST_ADDRESS")
}

// Unencrypted reports whether the engine is spoken to without TLS.
func (o *Options) Unencrypted() bool {
	_, _, plaintext := o.endpoint()
	return plaintext
}

// CheckTLS does one TLS handshake with the gateway and describes what was agreed.
func CheckTLS(ctx context.Context, o Options) (string, error) {
	address, plaintextBy, plaintext := o.endpoint()
	if plaintext {
		return "off (" + o.said(strings.TrimSuffix(plaintextBy, "=true")) + ")", nil
	}
	config, err := o.tlsConfig()
	if err != nil {
		return "", err
	}
	if o.RESTAddress == "" {
		config.NextProtos = []string{"h2"}
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		advice := strings.ReplaceAll(tlsAdvice(err), "ZEEBE_INSECURE_CONNECTION=true", plaintextBy)
		return "", fmt.Errorf("%w; %s", err, o.said(advice))
	}
	state := conn.(*tls.Conn).ConnectionState()
	until := state.PeerCertificates[0].NotAfter.UTC().Format("2006-01-02")
	days := fmt.Sprintf("%d days left", int(time.Until(state.PeerCertificates[0].NotAfter).Hours()/24))
	if days == "0 days left" {
		days = "it ends within a day: renew it"
	}
	return fmt.Sprintf("%s, certificate of %s, valid until %s (%s)", tls.VersionName(state.Version),
		strings.Join(state.PeerCertificates[0].DNSNames, ", "), until, days), conn.Close()
}

func tlsAdvice(err error) string {
	switch {
	case isError[tls.RecordHeaderError](err):
		return "the gateway speaks no TLS: set ZEEBE_INSECURE_CONNECTION=true"
	case isError[x509.UnknownAuthorityError](err):
		return "set ZEEBE_CA_CERTIFICATE_PATH to the PEM file of the authority that signed it"
	case isError[x509.HostnameError](err):
		return "set ZEEBE_OVERRIDE_AUTHORITY to a name in the certificate"
	case strings.Contains(err.Error(), "remote error: tls:"):
		return "the engine refused the handshake; where it asks for a client's certificate, set CAMUNDA_MTLS_CERT_PATH and " +
			"CAMUNDA_MTLS_KEY_PATH to one that it knows"
	default:
		return "if the gateway speaks no TLS, set ZEEBE_INSECURE_CONNECTION=true"
	}
}

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// CheckToken has a token issued, and says what it claims, without the values, and when it ends; without OAuth there is
// nothing to check.
func (c *Client) CheckToken(ctx context.Context) (claims string, err error) {
	err = c.tokens.call(ctx, func(ctx context.Context) error {
		shown, _ := metadata.FromOutgoingContext(ctx)
		_, token, _ := strings.Cut(strings.Join(shown.Get("authorization"), ""), " ")
		claims = claimsOf(token, time.Now())
		return nil
	})
	return claims, err
}

// claimsOf names what a token claims. What cannot be read is no fault: only the engine has to.
func claimsOf(token string, now time.Time) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "its claims are the engine's to read"
	}
	claimed := make(map[string]any)
	content, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil || json.Unmarshal(content, &claimed) != nil {
		return "its claims cannot be read"
	}
	said := "claims " + strings.Join(slices.Sorted(maps.Keys(claimed)), ", ")
	if end, is := claimed["exp"].(float64); is {
		said += fmt.Sprintf("; it ends in %v", time.Unix(int64(end), 0).Sub(now).Round(time.Second))
	}
	return said
}

// mostDrift of the engine's clock from this machine's that is taken for a slow answer.
const mostDrift = time.Minute

// CheckClock says how far the engine's clock is from now, which a REST API's answer tells to the second; gRPC tells nothing.
func CheckClock(ctx context.Context, o Options, now func() time.Time) (string, error) {
	gateway, err := newREST(&o, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = gateway.close() }()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway.base+"topology", nil)
	if err != nil {
		return "", err
	}
	response, err := gateway.http.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	said, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return "the engine does not tell its time", nil
	}
	apart := said.Sub(now()).Truncate(time.Second)
	if apart.Abs() >= mostDrift {
		return "", fmt.Errorf("the engine's clock is %v from this machine's: set both by NTP", apart)
	}
	return fmt.Sprintf("the engine's differs by %v", apart), nil
}

// Advice returns what to do about an error of a call, for the person at the command line.
func (o *Options) Advice(err error) string { return o.said(advice(err)) }

func advice(err error) string {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded:
		if strings.Contains(err.Error(), "tls:") || strings.Contains(err.Error(), "certificate") {
			return tlsAdvice(err)
		}
		if strings.Contains(err.Error(), "server preface") || strings.Contains(err.Error(), "EOF") {
			return "the gateway may speak TLS: unset ZEEBE_INSECURE_CONNECTION"
		}
		if isError[*restError](err) {
			return "is the engine running, is it 8.6 or later, and is ZEEBE_REST_ADDRESS right?"
		}
		return "is the engine running, and is ZEEBE_ADDRESS right?"
	case codes.Unauthenticated:
		return "the gateway wants a token: set ZEEBE_CLIENT_ID, ZEEBE_CLIENT_SECRET and ZEEBE_AUTHORIZATION_SERVER_URL, " +
			"and check ZEEBE_TOKEN_AUDIENCE; or ZEEBE_BASIC_AUTH_USERNAME and its password"
	case codes.PermissionDenied:
		return "give this client that permission in the engine's identity management (docs/operations.md lists them)"
	case codes.InvalidArgument:
		return "check RETRY_WORKER_TENANT_IDS: with multi-tenancy on it must name tenants the engine knows, with it off " +
			"it must be empty"
	case codes.Unimplemented:
		return "is that a Zeebe gateway's gRPC port (26500 by default)?"
	default:
		return "see the gateway's log"
	}
}
