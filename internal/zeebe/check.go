package zeebe

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/smallfile"
	"retry-worker/internal/text"
)

// Said replaces the settings' names in a text with those by which they were set.
func (o *Options) Said(text string) string { return strings.NewReplacer(o.Names...).Replace(text) }

// setting returns the name of the setting with the address in use.
func (o *Options) setting() string {
	if o.RESTAddress == "" {
		return o.Said("ZEEBE_ADDRESS")
	}
	return o.Said("ZEEBE_REST_ADDRESS")
}

// Unencrypted reports whether the connection is made without TLS.
func (o *Options) Unencrypted() bool {
	if o.RESTAddress != "" {
		return !strings.HasPrefix(strings.ToLower(o.RESTAddress), "https://")
	}
	return o.Plaintext
}

// endpoint returns the engine's host and port.
func (o *Options) endpoint() string {
	rest, err := url.Parse(o.RESTAddress)
	if o.RESTAddress == "" || err != nil {
		return o.Address
	}
	port := "443"
	if o.Unencrypted() {
		port = "80"
	}
	return net.JoinHostPort(rest.Hostname(), cmp.Or(rest.Port(), port))
}

// CheckAddress opens and closes a TCP connection to the engine, and returns its address.
func (o *Options) CheckAddress(ctx context.Context) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", o.endpoint())
	if err != nil {
		return "", fmt.Errorf("%w; %s", err, o.unreachable(err))
	}
	return o.endpoint() + " takes connections", conn.Close()
}

// CheckTLS does one TLS handshake with the engine and describes its certificate.
func (o *Options) CheckTLS(ctx context.Context) (string, error) {
	if o.Unencrypted() {
		by := "the scheme of " + o.setting()
		if o.RESTAddress == "" {
			by = "ZEEBE_INSECURE_CONNECTION, or " + by
		}
		return "off (" + by + ")", nil
	}
	config, err := o.tlsConfig()
	if err != nil {
		return "", err
	}
	if o.RESTAddress == "" {
		config.NextProtos = []string{"h2"}
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", o.endpoint())
	if err != nil {
		return "", fmt.Errorf("%w; %s", err, o.unreachable(err))
	}
	return describeChain(conn.(*tls.Conn).ConnectionState().VerifiedChains[0], time.Now()), conn.Close()
}

// describeChain describes a certificate: names, issuer, and the earliest end in the chain.
func describeChain(chain []*x509.Certificate, now time.Time) string {
	first := slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	left := "it ends within a day: renew it"
	if days := int(first.NotAfter.Sub(now).Hours() / 24); days > 0 {
		left = fmt.Sprintf("days left: %d", days)
	}
	return fmt.Sprintf("certificate of %s, by %s, valid until %s (%s)", strings.Join(smallfile.NamesOf(chain[0]), ", "),
		chain[len(chain)-1].Subject, first.NotAfter.UTC().Format(time.DateOnly), left)
}

// CheckToken requests a token.
func (c *Client) CheckToken(ctx context.Context) error {
	return c.tokens.call(ctx, func(context.Context) error { return nil })
}

// mostDrift is the largest difference between the clocks that may be due to a slow answer.
const mostDrift = time.Minute

// CheckClock says how far the engine's clock is from now. REST answers hold the time, to the second; for gRPC, which
// has no time, it says nothing.
func (c *Client) CheckClock(ctx context.Context, now func() time.Time) (string, error) {
	g, is := c.conn.(*rest)
	if !is {
		return "", nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.base+"topology", nil)
	if err != nil {
		return "", err
	}
	response, err := g.http.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask for the engine's time: %w; try again", err)
	}
	_ = response.Body.Close()
	said, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return "the engine does not tell its time", nil //nolint:nilerr // it need not
	}
	apart := said.Sub(now()).Truncate(time.Second)
	if apart.Abs() >= mostDrift {
		return "", fmt.Errorf("the engine's clock is %s from this machine's: set both by NTP", text.Duration(apart))
	}
	return "the engine's differs by " + text.Duration(apart), nil
}

// Advice returns what to do about an error of a call.
func (o *Options) Advice(err error) string { return o.Said(o.advice(err)) }

func (o *Options) advice(err error) string {
	if _, is := errors.AsType[*tokenError](err); is {
		return "the engine itself was not asked"
	}
	if e, is := errors.AsType[*restError](err); is && e.title == "" && status.Code(err) == codes.InvalidArgument {
		return o.unreachable(err) // the engine did not say that
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded:
		return o.unreachable(err)
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

// unreachable is Advice for an engine that cannot be reached. Both protocols describe TLS errors in words alone.
func (o *Options) unreachable(err error) string {
	said := err.Error()
	has := func(words string) bool { return strings.Contains(said, words) }
	advice := "is the engine running, and is " + o.setting() + " right?"
	_, rest := errors.AsType[*restError](err)
	switch {
	case has("does not look like a TLS handshake"), has("gave HTTP response to HTTPS client"):
		advice = "the engine speaks no TLS: set ZEEBE_INSECURE_CONNECTION=true, or ZEEBE_REST_ADDRESS=http://…"
	case has("unknown authority"):
		advice = "set ZEEBE_CA_CERTIFICATE_PATH to the PEM file of the authority that signed it"
	case has("certificate is valid for"), has("not valid for any names"), has("doesn't contain any IP SANs"):
		advice = "set ZEEBE_OVERRIDE_AUTHORITY to a name in the certificate"
	case has("has expired or is not yet valid"):
		advice = "renew the engine's certificate, or set this machine's clock by NTP"
	case has("remote error: tls:"):
		advice = "the engine refused the handshake; where it asks for a client's certificate, set CAMUNDA_MTLS_CERT_PATH " +
			"and CAMUNDA_MTLS_KEY_PATH to one that it knows"
	case has("looked like an HTTP/1.1 header"):
		advice = "that port speaks HTTP/1.1, not gRPC: set " + o.setting() + " to the gateway's gRPC port (26500 by default), " +
			"or ZEEBE_REST_ADDRESS to this one"
	case rest && o.Unencrypted() && (has(" answered 400 ") || has(`\x15\x03`) || has("EOF")):
		advice = "the engine may speak TLS: set ZEEBE_REST_ADDRESS=https://…"
	case o.Unencrypted() && (has("server preface") || has("EOF")):
		advice = "the gateway may speak TLS: unset ZEEBE_INSECURE_CONNECTION"
	case rest:
		advice = "is the engine running, is it 8.6 or later, and is " + o.setting() + " right?"
	}
	return o.Said(advice)
}
