// Package zeebe speaks to a Zeebe gateway by gRPC. It is the only place that knows the Zeebe client
// module: elsewhere the engine is worker.Engine.
//
// The job commands are sent as the module's protocol messages, so that variables are encoded once;
// its JobWorker and zbc are not used: the one loses jobs at a stop, the other lets the environment
// override code and retries inside a call.
package zeebe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
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

// buffers that messages are read into. gRPC's own take (and clear) a whole MiB for each message above 32 KiB, which
// most answers to a poll are; here none has more than twice what it needs.
var buffers = must(mem.NewBinaryTieredBufferPool(8, 12, 14, 15, 16, 17, 18, 19, 20))

func must(pool mem.BufferPool, err error) mem.BufferPool {
	if err != nil {
		panic(err) // cannot be: the sizes are given above
	}
	return pool
}

// Options say how to reach the gateway. They are read once, by Dial.
type Options struct {
	// Address is host:port.
	Address string
	// Plaintext switches TLS off.
	Plaintext bool
	// CACertificatePath of a PEM file to trust instead of the system's authorities; may be empty.
	CACertificatePath string
	// OverrideAuthority to check the certificate against, and to send; may be empty.
	OverrideAuthority string
	// KeepAlive between two pings.
	KeepAlive time.Duration
	// OAuth is nil where the gateway asks for no token.
	OAuth *OAuth
	// UserAgent names this program to the gateway.
	UserAgent string
	// PlainErrors leaves out the SetVariables that makes a BPMN error's variables visible: for playing
	// workers of other authors.
	PlainErrors bool
	// Trace makes spans of the calls; nil: there are none.
	Trace grpc.DialOption
	// Dialer connects to Address; nil: by TCP.
	Dialer func(ctx context.Context, address string) (net.Conn, error)
}

// UserAgent returns the one of this version.
func UserAgent(version string) string { return "retry-worker/" + version }

// Client is a connection to a gateway: a worker.Engine, and the operator's commands. Safe for
// concurrent use.
type Client struct {
	conn        *grpc.ClientConn
	gateway     pb.GatewayClient
	tokens      *tokenSource
	plainErrors bool
}

// Dial prepares a connection; the gateway need not be there yet. It fails on options that can never work.
func Dial(o Options, log *zap.Logger) (*Client, error) {
	transport, err := o.transport()
	if err != nil {
		return nil, err
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
		experimental.WithBufferPool(buffers),
	}
	if o.Trace != nil {
		dial = append(dial, o.Trace)
	}
	if o.Dialer != nil {
		dial = append(dial, grpc.WithContextDialer(o.Dialer))
	}
	c := &Client{plainErrors: o.PlainErrors}
	if o.OAuth != nil {
		if o.Plaintext {
			log.Warn("the token for the engine travels unencrypted: unset ZEEBE_INSECURE_CONNECTION unless this is a private " +
				"network")
		}
		c.tokens = newTokenSource(*o.OAuth, o.OAuth.client(), log)
		dial = append(dial, grpc.WithUnaryInterceptor(c.tokens.unary), grpc.WithStreamInterceptor(c.tokens.stream))
	}
	if o.OverrideAuthority != "" {
		dial = append(dial, grpc.WithAuthority(o.OverrideAuthority))
	}
	if c.conn, err = grpc.NewClient(o.Address, dial...); err != nil {
		return nil, fmt.Errorf("engine address %q: %w; expected host:port (ZEEBE_ADDRESS)", o.Address, err)
	}
	c.gateway = pb.NewGatewayClient(c.conn)
	return c, nil
}

// Close ends the connection and every call on it.
func (c *Client) Close() error {
	if c.tokens != nil {
		c.tokens.close()
	}
	return c.conn.Close()
}

func (o *Options) transport() (credentials.TransportCredentials, error) {
	if o.Plaintext {
		return insecure.NewCredentials(), nil
	}
	config, err := o.tlsConfig()
	if err != nil {
		return nil, err
	}
	return credentials.NewTLS(config), nil
}

func (o *Options) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.OverrideAuthority}
	if o.CACertificatePath != "" {
		pem, err := os.ReadFile(o.CACertificatePath)
		if err != nil {
			return nil, fmt.Errorf("ZEEBE_CA_CERTIFICATE_PATH: %w; expected a readable PEM file", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("ZEEBE_CA_CERTIFICATE_PATH: %s holds no PEM certificate; expected one or more",
				o.CACertificatePath)
		}
	}
	return config, nil
}
