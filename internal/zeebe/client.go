// Package zeebe speaks to a Zeebe engine by gRPC or by its REST API. Only this package uses the Zeebe client module;
// elsewhere the engine is a worker.Engine.
package zeebe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"retry-worker/internal/smallfile"
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
	// UserAgent identifies this program to the gateway.
	UserAgent string
	// PlainErrors skips the SetVariables that makes a BPMN error's variables visible, to imitate other workers.
	PlainErrors bool
	// Trace makes spans of gRPC calls; nil means none.
	Trace grpc.DialOption
	// Dialer connects to Address; nil means by TCP.
	Dialer func(ctx context.Context, address string) (net.Conn, error)
}

// UserAgent returns the user agent of this version.
func UserAgent(version string) string { return "retry-worker/" + version }

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
		grpc.WithUserAgent(o.UserAgent),
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
