// Package zeebe speaks to a Zeebe engine, by gRPC or by its REST API. It is the only place that knows the Zeebe client
// module: elsewhere the engine is worker.Engine.
package zeebe

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"retry-worker/internal/smallfile"
	"retry-worker/internal/worker"
)

const (
	// maxReceiveBytes of one message: four times what a gateway sends by default.
	maxReceiveBytes = 16 << 20
	// reconnectMost bounds the pause between two connection attempts, so that a gateway that is back
	// is found within it.
	reconnectMost = 2 * time.Second
	// connectTimeout of one attempt.
	connectTimeout = 5 * time.Second
	// askTimeout bounds what is asked on the way to a call.
	askTimeout = 2 * time.Second
)

// Options say how to reach the engine. They are read once, by Dial.
type Options struct {
	// Address of the gRPC gateway is host:port; empty: REST only.
	Address string
	// RESTAddress is the URL that the REST API's /v2 is below; empty: gRPC only. With both the one that answers first,
	// gRPC preferred, is used until the client is closed.
	RESTAddress string
	// Reason why it is that protocol, for people.
	Reason string
	// Plaintext switches gRPC's TLS off; for REST the URL says it.
	Plaintext bool
	// CACertificatePath of a PEM file to trust instead of the system's authorities; may be empty.
	CACertificatePath string
	// OverrideAuthority to check the certificate against, and to send by gRPC; may be empty.
	OverrideAuthority string
	// KeepAlive between two pings.
	KeepAlive time.Duration
	// OAuth is nil where the gateway asks for no token.
	OAuth *OAuth
	// Username and Password of basic authentication; empty: none. It goes without OAuth.
	Username, Password string
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
	switch {
	case o.Address == "":
		return "REST at " + o.RESTAddress + " (" + o.Reason + ")"
	case o.RESTAddress == "":
		return "gRPC at " + o.Address + " (" + o.Reason + ")"
	default:
		return "gRPC at " + o.Address + " or REST at " + o.RESTAddress + " (neither has answered yet)"
	}
}

// gateway is the engine in one protocol. Its errors have the status codes of gRPC.
type gateway interface {
	activate(ctx context.Context, r *worker.ActivateRequest) ([]worker.Job, error)
	complete(ctx context.Context, j *worker.Job, variables string) error
	throw(ctx context.Context, j *worker.Job, e *worker.BPMNError) error
	fail(ctx context.Context, j *worker.Job, f *worker.Failure) error
	setTimeout(ctx context.Context, j *worker.Job, long time.Duration) error
	// setVariables that reach from the element to the process.
	setVariables(ctx context.Context, elementInstanceKey int64, variables string) error
	// touch changes nothing in a process instance, and is refused where it has ended: neither protocol has a query that
	// every version knows.
	touch(ctx context.Context, processInstanceKey int64) error
	topology(ctx context.Context) (Topology, error)
	deploy(ctx context.Context, name string, content []byte, tenant string) ([]Deployment, error)
	create(ctx context.Context, processID, variables string) (key int64, err error)
	publish(ctx context.Context, name, key string, life time.Duration) error
	close() error
}

// Client is a connection to an engine: a worker.Engine, and the operator's commands. Safe for
// concurrent use.
type Client struct {
	tokens      *tokenSource
	plainErrors bool

	// choosing is held by who asks the gateways which of them answers.
	choosing turn
	mu       sync.Mutex
	options  Options   // one address is emptied when the other is chosen
	gateways []gateway // the one in use, or those to choose from, in order
}

// Dial prepares a connection; the engine need not be there yet. It fails on options that can never work.
func Dial(o Options, log *zap.Logger) (_ *Client, err error) {
	c := &Client{options: o, tokens: o.tokens(log), plainErrors: o.PlainErrors, choosing: make(turn, 1)}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	if o.Address != "" {
		g, err := newGRPC(&o, c.tokens)
		if err != nil {
			return nil, err
		}
		c.gateways = append(c.gateways, g)
	}
	if o.RESTAddress != "" {
		g, err := newREST(&o, c.tokens)
		if err != nil {
			return nil, err
		}
		c.gateways = append(c.gateways, g)
	}
	return c, nil
}

// Close ends the connection and every call on it.
func (c *Client) Close() error {
	if c.tokens != nil {
		c.tokens.close()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for _, g := range c.gateways {
		err = errors.Join(err, g.close())
	}
	return err
}

// Settle returns the options in use: of two addresses, the one that is chosen, or both while neither answers.
func (c *Client) Settle(ctx context.Context) Options {
	c.gateway(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.options
}

// gateway returns the one to call. Of two, those that answer are chosen from, then one that says that it may not be
// asked; while neither does it is the first, as it is for whom ctx ends while another asks.
func (c *Client) gateway(ctx context.Context) gateway {
	all := c.choices()
	if len(all) == 1 || !c.choosing.take(ctx) {
		return all[0]
	}
	defer c.choosing.give()
	if all = c.choices(); len(all) == 1 {
		return all[0]
	}
	denied := -1
	for i, g := range all {
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		_, err := g.topology(asking)
		cancel()
		switch {
		case err == nil:
			return c.choose(i)
		case denied < 0 && status.Code(err) == codes.PermissionDenied:
			denied = i
		}
	}
	if denied >= 0 {
		return c.choose(denied)
	}
	return all[0]
}

func (c *Client) choices() []gateway {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gateways
}

// choose the gateway, for good; choosing is held.
func (c *Client) choose(i int) gateway {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.gateways[1-i].close()
	c.gateways = c.gateways[i : i+1]
	if c.options.Reason = "it answered first"; i == 0 {
		c.options.RESTAddress = ""
	} else {
		c.options.Address = ""
	}
	return c.gateways[0]
}

// turn is a lock of capacity 1 that nobody waits for longer than he has time.
type turn chan struct{}

// take reports whether it was had before ctx ended.
func (t turn) take(ctx context.Context) bool {
	select {
	case t <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t turn) give() { <-t }

func (o *Options) tlsConfig() (*tls.Config, error) {
	roots, err := smallfile.Authorities("ZEEBE_CA_CERTIFICATE_PATH", o.CACertificatePath)
	return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.OverrideAuthority, RootCAs: roots}, err
}
