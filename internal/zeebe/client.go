// Package zeebe speaks to a Zeebe engine by gRPC or by its REST API. Only this package uses the Zeebe client module;
// elsewhere the engine is a worker.Engine.
package zeebe

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"retry-worker/internal/smallfile"
	"retry-worker/internal/text"
	"retry-worker/internal/worker"
)

const (
	// maxReceiveBytes of one message: four times a gateway's default.
	maxReceiveBytes = 16 << 20
	// reconnectMost bounds the pause between two connection attempts, and so the time until a gateway that is back is
	// found.
	reconnectMost = 2 * time.Second
	// connectTimeout of one attempt.
	connectTimeout = 5 * time.Second
)

// Options say how to reach the engine; Dial reads them once. The tags are for config: they hold the Zeebe clients'
// names, and the Camunda SDKs' names for the same.
type Options struct {
	// Address is the gRPC gateway's host:port. It is unused if there is a RESTAddress.
	Address string `group:"Engine" env:"ZEEBE_ADDRESS" also:"ZEEBE_GRPC_ADDRESS CAMUNDA_GRPC_ADDRESS" default:"127.0.0.1:26500" desc:"gateway: host:port; grpc:// or http:// before it: no TLS, grpcs:// or https://: TLS"`
	// RESTAddress is empty if the engine is reached by gRPC.
	RESTAddress string `env:"ZEEBE_REST_ADDRESS" also:"CAMUNDA_REST_ADDRESS" desc:"URL that the REST API's /v2 is below, of engines from 8.6: http://HOST:8080 or https://…"`
	// Reason says, for people, why that protocol is used.
	Reason string
	// Plaintext disables TLS for gRPC; for REST the URL decides.
	Plaintext         bool
	CACertificatePath string        `env:"ZEEBE_CA_CERTIFICATE_PATH" also:"CAMUNDA_MTLS_CA_PATH" desc:"PEM file to trust instead of the system's authorities"`
	CertificatePath   string        `env:"CAMUNDA_MTLS_CERT_PATH" with:"CAMUNDA_MTLS_KEY_PATH" desc:"PEM file with this client's certificate for the engine (mutual TLS), read for each connection; empty: none"`
	KeyPath           string        `env:"CAMUNDA_MTLS_KEY_PATH" with:"CAMUNDA_MTLS_CERT_PATH" desc:"PEM file with that certificate's key"`
	OverrideAuthority string        `env:"ZEEBE_OVERRIDE_AUTHORITY" desc:"name to check the gateway's certificate against"`
	KeepAlive         time.Duration `env:"ZEEBE_KEEP_ALIVE" default:"45000" as:"milliseconds" from:"10000" to:"2147483647" desc:"milliseconds between two pings, at least 10000"`
	// OAuth is nil if the gateway needs no token.
	OAuth    *OAuth
	Username string `env:"ZEEBE_BASIC_AUTH_USERNAME" also:"CAMUNDA_BASIC_AUTH_USERNAME" desc:"user of an engine with basic authentication; empty: none"`
	Password string `env:"ZEEBE_BASIC_AUTH_PASSWORD" file:"yes" also:"CAMUNDA_BASIC_AUTH_PASSWORD" desc:"that user's password"`
	// Names holds pairs for messages: a setting's name, and the name by which it was set instead.
	Names []string
	// Version of this program, for its user agent.
	Version string
	// PlainErrors skips the SetVariables that makes a BPMN error's variables visible, to imitate other workers.
	PlainErrors bool
	// Trace makes spans of gRPC calls; nil means none.
	Trace grpc.DialOption
	// Dialer connects to Address; nil means by TCP.
	Dialer func(ctx context.Context, address string) (net.Conn, error)
}

func (o *Options) userAgent() string { return "retry-worker/" + o.Version }

// String describes the protocol, the address and the reason.
func (o Options) String() string {
	if o.RESTAddress != "" {
		return "REST at " + o.RESTAddress + " (" + o.Reason + ")"
	}
	return "gRPC at " + o.Address + " (" + o.Reason + ")"
}

// connection carries the commands of the gRPC protocol: by gRPC, or as REST requests that correspond. Its errors have
// gRPC's status codes.
type connection interface {
	grpc.ClientConnInterface
	// activate sends a poll. It may return jobs together with an error.
	activate(ctx context.Context, r *pb.ActivateJobsRequest) ([]worker.Job, error)
	Close() error
}

// Client is a connection to an engine: a worker.Engine, and the operator's commands. It is safe for concurrent use.
type Client struct {
	gateway     pb.GatewayClient
	conn        connection
	tokens      *tokenSource
	plainErrors bool
	// knowsInstances is set once the engine has said of a process instance that it runs.
	knowsInstances atomic.Bool
}

// Dial prepares a connection; the engine may be down. It fails only on options that can never work.
func Dial(o Options, log *zap.Logger) (*Client, error) {
	dial := newGRPC
	if o.RESTAddress != "" {
		dial = newREST
	}
	conn, err := dial(&o)
	if err != nil {
		return nil, err
	}
	tokens := o.tokens(log)
	return &Client{gateway: pb.NewGatewayClient(shown{conn, tokens}), conn: conn, tokens: tokens, plainErrors: o.PlainErrors}, nil
}

// shown is a connection that sends a token with each command.
type shown struct {
	connection
	tokens *tokenSource
}

func (c shown) Invoke(ctx context.Context, method string, in, out any, o ...grpc.CallOption) error {
	return c.tokens.call(ctx, func(ctx context.Context) error { return c.connection.Invoke(ctx, method, in, out, o...) })
}

// Close ends the connection and all its calls.
func (c *Client) Close() error {
	if c.tokens != nil {
		c.tokens.close()
	}
	return c.conn.Close()
}

func (o *Options) tlsConfig() (*tls.Config, error) {
	roots, err := smallfile.Authorities(o.Said("ZEEBE_CA_CERTIFICATE_PATH"), o.CACertificatePath)
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.OverrideAuthority, RootCAs: roots}
	if o.CertificatePath != "" { // read for each connection, because it is renewed
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return o.ClientCertificate() }
	}
	return config, err
}

// ClientCertificate reads the certificate by which the engine knows this client. Its error names the settings.
func (o *Options) ClientCertificate() (*tls.Certificate, error) {
	var certificate *tls.Certificate
	pair, err := smallfile.ReadPair(o.CertificatePath, o.KeyPath)
	if err == nil {
		certificate, err = smallfile.ParsePair(o.CertificatePath, o.KeyPath, pair)
	}
	if err != nil {
		return nil, fmt.Errorf("CAMUNDA_MTLS_CERT_PATH, CAMUNDA_MTLS_KEY_PATH: %w", err)
	}
	return certificate, nil
}

// newGRPC prepares a connection by gRPC. Commands are the Zeebe module's protocol messages, so that variables are
// encoded once. Its JobWorker is not used because it loses jobs at a stop, and zbc is not used because it lets the
// environment override code and retries inside a call.
func newGRPC(o *Options) (connection, error) {
	transport := insecure.NewCredentials()
	if !o.Plaintext {
		config, err := o.tlsConfig()
		if err != nil {
			return nil, err
		}
		transport = credentials.NewTLS(config)
	}
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithUserAgent(o.userAgent()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: o.KeepAlive}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
				MaxDelay: reconnectMost},
			MinConnectTimeout: connectTimeout,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReceiveBytes)),
		grpc.WithDisableRetry(), // the worker retries, within the job's deadline
	}
	if o.Trace != nil {
		dial = append(dial, o.Trace)
	}
	if o.Dialer != nil {
		dial = append(dial, grpc.WithContextDialer(o.Dialer))
	}
	if o.OverrideAuthority != "" {
		dial = append(dial, grpc.WithAuthority(o.OverrideAuthority))
	}
	conn, err := grpc.NewClient(o.Address, dial...)
	if err != nil {
		return nil, fmt.Errorf("engine address %q: %w; expected host:port (%s)", o.Address, err, o.setting())
	}
	return overGRPC{conn}, nil
}

// overGRPC is a connection by gRPC.
type overGRPC struct{ *grpc.ClientConn }

func (c overGRPC) activate(ctx context.Context, r *pb.ActivateJobsRequest) (jobs []worker.Job, err error) {
	stream, err := pb.NewGatewayClient(c).ActivateJobs(ctx, r)
	for err == nil {
		var response *pb.ActivateJobsResponse
		response, err = stream.Recv()
		for _, j := range response.GetJobs() {
			jobs = append(jobs, worker.Job{
				Key: j.Key, ProcessInstanceKey: j.ProcessInstanceKey, ElementInstanceKey: j.ElementInstanceKey,
				Type: j.Type, TenantID: j.TenantId, Retries: j.Retries,
				Headers: j.CustomHeaders, Variables: j.Variables, LockedUntil: j.Deadline,
			})
		}
	}
	if errors.Is(err, io.EOF) { // the end of the answer
		err = nil
	}
	return jobs, err
}

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
