// Package zeebe speaks to a Zeebe engine, by gRPC or by its REST API. It is the only place that knows the Zeebe client
// module: elsewhere the engine is worker.Engine.
package zeebe

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"retry-worker/internal/smallfile"
)

const (
	// maxReceiveBytes of one message: four times what a gateway sends by default.
	maxReceiveBytes = 16 << 20
	// reconnectMost bounds the pause between two connection attempts, so that a gateway that is back
	// is found within it.
	reconnectMost = 2 * time.Second
	// connectTimeout of one attempt.
	connectTimeout = 5 * time.Second
)

// Options say how to reach the engine. They are read once, by Dial. The tags are config's: the names that the Zeebe
// clients share, each with those of the Camunda SDKs that mean the same.
type Options struct {
	// Address of the gRPC gateway is host:port. It is not used where there is a RESTAddress.
	Address string `group:"Engine" env:"ZEEBE_ADDRESS" also:"ZEEBE_GRPC_ADDRESS CAMUNDA_GRPC_ADDRESS" default:"127.0.0.1:26500" desc:"gateway: host:port; grpc:// or http:// before it: no TLS, grpcs:// or https://: TLS"`
	// RESTAddress is empty where the engine is spoken to by gRPC.
	RESTAddress string `env:"ZEEBE_REST_ADDRESS" also:"CAMUNDA_REST_ADDRESS" desc:"URL that the REST API's /v2 is below, of engines from 8.6: http://HOST:8080 or https://…"`
	// Reason why it is that protocol, for people.
	Reason string
	// Plaintext switches gRPC's TLS off; for REST the URL says it.
	Plaintext         bool
	CACertificatePath string        `env:"ZEEBE_CA_CERTIFICATE_PATH" also:"CAMUNDA_MTLS_CA_PATH" desc:"PEM file to trust instead of the system's authorities"`
	CertificatePath   string        `env:"CAMUNDA_MTLS_CERT_PATH" desc:"PEM file with this client's certificate for the engine (mutual TLS), read for each connection; empty: none"`
	KeyPath           string        `env:"CAMUNDA_MTLS_KEY_PATH" desc:"PEM file with that certificate's key"`
	OverrideAuthority string        `env:"ZEEBE_OVERRIDE_AUTHORITY" desc:"name to check the gateway's certificate against"`
	KeepAlive         time.Duration `env:"ZEEBE_KEEP_ALIVE" default:"45000" as:"milliseconds" from:"10000" to:"2147483647" desc:"milliseconds between two pings, at least 10000"`
	// OAuth is nil where the gateway asks for no token.
	OAuth    *OAuth
	Username string `env:"ZEEBE_BASIC_AUTH_USERNAME" also:"CAMUNDA_BASIC_AUTH_USERNAME" desc:"user of an engine with basic authentication; empty: none"`
	Password string `env:"ZEEBE_BASIC_AUTH_PASSWORD" file:"yes" also:"CAMUNDA_BASIC_AUTH_PASSWORD" desc:"that user's password"`
	// Names of settings, each followed by the name to say instead of it, since it was set by that one.
	Names []string
	// UserAgent names this program to the gateway.
	UserAgent string
	// PlainErrors leaves out the SetVariables that makes a BPMN error's variables visible: for playing
	// workers of other authors.
	PlainErrors bool
	// Trace makes spans of the calls by gRPC; nil: there are none.
	Trace grpc.DialOption
	// Dialer connects to Address; nil: by TCP.
	Dialer func(ctx context.Context, address string) (net.Conn, error)
}

// UserAgent returns the one of this version.
func UserAgent(version string) string { return "retry-worker/" + version }

// String says which protocol is used, where, and why.
func (o Options) String() string {
	if o.RESTAddress != "" {
		return "REST at " + o.RESTAddress + " (" + o.Reason + ")"
	}
	return "gRPC at " + o.Address + " (" + o.Reason + ")"
}

// connection carries the commands of the gRPC protocol: by gRPC, or as the requests of the REST API that mean the same.
// Its errors have the status codes of gRPC.
type connection interface {
	grpc.ClientConnInterface
	Close() error
}

// Client is a connection to an engine: a worker.Engine, and the operator's commands. Safe for
// concurrent use.
type Client struct {
	gateway     pb.GatewayClient
	conn        connection
	tokens      *tokenSource
	plainErrors bool
}

// Dial prepares a connection; the engine need not be there yet. It fails on options that can never work.
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
	return &Client{pb.NewGatewayClient(shown{conn, tokens}), conn, tokens, o.PlainErrors}, nil
}

// shown is a connection each command of which shows a token.
type shown struct {
	connection
	tokens *tokenSource
}

func (c shown) Invoke(ctx context.Context, method string, in, out any, o ...grpc.CallOption) error {
	return c.tokens.call(ctx, func(ctx context.Context) error { return c.connection.Invoke(ctx, method, in, out, o...) })
}

// Close ends the connection and every call on it.
func (c *Client) Close() error {
	if c.tokens != nil {
		c.tokens.close()
	}
	return c.conn.Close()
}

func (o *Options) tlsConfig() (*tls.Config, error) {
	roots, err := smallfile.Authorities(o.Said("ZEEBE_CA_CERTIFICATE_PATH"), o.CACertificatePath)
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.OverrideAuthority, RootCAs: roots}
	if o.CertificatePath != "" { // read for each connection, since it is renewed meanwhile
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return o.ClientCertificate() }
	}
	return config, err
}

// maxPEM bytes of a certificate's file, or a key's.
const maxPEM = 1 << 20

// ClientCertificate reads what the engine knows this client by. Its error names the setting that is wrong.
func (o *Options) ClientCertificate() (*tls.Certificate, error) {
	certificate, err := smallfile.Read(o.CertificatePath, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("CAMUNDA_MTLS_CERT_PATH is %q, expected a readable PEM file: %w", o.CertificatePath, err)
	}
	key, err := smallfile.ReadSecret(o.KeyPath, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("CAMUNDA_MTLS_KEY_PATH is %q, expected a readable PEM file: %w", o.KeyPath, err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("CAMUNDA_MTLS_CERT_PATH is %q and CAMUNDA_MTLS_KEY_PATH %q, expected a certificate and its key: %w",
			o.CertificatePath, o.KeyPath, err)
	}
	return &pair, nil
}
