package gatewaytest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Options say how a gateway behaves. The zero value is plaintext on a free
// port, with the zero [EngineOptions].
type Options struct {
	EngineOptions
	// Addr is where it listens, "127.0.0.1:0" if empty. Only a port that the
	// gateway chose itself is kept from others between Down and Up.
	Addr string
	// TLS serves by a certificate of the gateway's own authority; see
	// [Gateway.CAPEM].
	TLS bool
	// Endless gives the engine endless jobs; nil: none.
	Endless *Endless
	// JobsPerMessage is how many jobs one message of an ActivateJobs answer
	// holds; 0: all. (The real gateway sends one message per partition.)
	JobsPerMessage int
	// MaxReceive bounds a request, in bytes; 0: 4 MB.
	MaxReceive int
	// MinKeepalive is the shortest interval of pings that a client may use;
	// one that pings faster is disconnected. 0: 30 s.
	MinKeepalive time.Duration
}

// streamWorkers are goroutines that serve one call after another: their stacks
// have grown already, which a new goroutine's has not. More calls at once get
// goroutines of their own.
const streamWorkers = 128

// Gateway is a running stub gateway: an [Engine] behind a socket. Its methods
// may be called from any goroutine.
type Gateway struct {
	*Engine
	options Options
	port    *port
	ca      *authority
	network *network

	mu     sync.Mutex
	server *grpc.Server // nil while down
	served chan struct{}
	closed bool
}

// Start starts a gateway that listens. It panics where it cannot.
func Start(o Options) *Gateway {
	g, err := Listen(o)
	must("start the gateway", err)
	return g
}

// Listen is Start for those who chose an address that may be taken.
func Listen(o Options) (*Gateway, error) {
	if o.MinKeepalive == 0 {
		o.MinKeepalive = 30 * time.Second
	}
	g := &Gateway{Engine: NewEngine(o.EngineOptions), options: o}
	g.network = &network{open: map[*conn]struct{}{}, cutOff: g.cutOff}
	if o.Endless != nil {
		g.SetEndless(*o.Endless)
	}
	if o.TLS {
		g.ca = newAuthority()
	}
	var err error
	if g.port, err = portAt(o.Addr); err != nil {
		return nil, fmt.Errorf("take a port: %w", err)
	}
	if err := g.up(); err != nil {
		g.port.release()
		return nil, err
	}
	return g, nil
}

// Addr is host:port of the gateway, the same for its whole life.
func (g *Gateway) Addr() string { return g.port.addr }

// CAPEM is the authority that a client must trust, PEM-encoded; nil without
// TLS.
func (g *Gateway) CAPEM() []byte {
	if g.ca == nil {
		return nil
	}
	return g.ca.pem
}

// Up listens again at the same address, with the engine as it was left.
// Idempotent; nothing after Close. It panics where somebody took the port.
func (g *Gateway) Up() { must("listen again", g.up()) }

func (g *Gateway) up() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.server != nil || g.closed {
		return nil
	}
	accepting, err := g.port.listen()
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	l := &listener{Listener: accepting, network: g.network}
	server := grpc.NewServer(g.serverOptions()...)
	pb.RegisterGatewayServer(server, &service{gateway: g})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // ends by Stop only
	}()
	g.server, g.served = server, served
	return nil
}

// Down cuts all connections and refuses new ones until Up. The engine goes on:
// its time-outs run. Idempotent.
func (g *Gateway) Down() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.server == nil {
		return
	}
	g.network.drop()
	g.server.Stop()
	<-g.served
	g.server = nil
}

// DownGracefully goes as a gateway that is replaced does: connections are told
// to go away, new ones refused, calls that run are answered, polls that wait at
// once. What is left after patience is cut off as by Down.
func (g *Gateway) DownGracefully(patience time.Duration) {
	g.mu.Lock()
	server := g.server
	g.mu.Unlock()
	if server == nil {
		return
	}
	g.dismiss()
	defer g.dismissing.Store(false)
	cut := time.AfterFunc(patience, g.network.drop)
	defer cut.Stop()
	server.GracefulStop()
	g.Down()
}

// Close takes the gateway down for good. Idempotent.
func (g *Gateway) Close() {
	g.Down()
	g.Thaw()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		g.port.release()
		g.Engine.Close()
	}
}

// Freeze makes the gateway stand still as a stopped process: connections are
// accepted and stay open, nothing is read or answered. Idempotent.
func (g *Gateway) Freeze() { g.network.freeze() }

// Thaw ends Freeze; what waited is served. Idempotent.
func (g *Gateway) Thaw() { g.network.thaw() }

// DropConnections cuts all connections; the gateway goes on listening.
func (g *Gateway) DropConnections() { g.network.drop() }

// Connections is how many are open, and how many there ever were.
func (g *Gateway) Connections() (open, accepted int) {
	return g.network.connections(), int(g.network.accepted.Load())
}

// RequireToken makes every call need a bearer token that accepts takes, such as
// [IDP.Accepts]; others are answered UNAUTHENTICATED. Nil ends it.
func (g *Gateway) RequireToken(accepts func(token string) bool) {
	if accepts == nil {
		g.SetAuthorize(nil)
		return
	}
	g.SetAuthorize(func(ctx context.Context) error { return checkToken(ctx, accepts) })
}

func checkToken(ctx context.Context, accepts func(string) bool) error {
	md, _ := metadata.FromIncomingContext(ctx)
	values := md.Get("authorization")
	if len(values) == 0 {
		return status.Error(codes.Unauthenticated, "no authorization header in the request")
	}
	token, bearer := strings.CutPrefix(values[0], "Bearer ")
	if !bearer || !accepts(token) {
		return status.Error(codes.Unauthenticated, "the token is not valid, or no longer")
	}
	return nil
}

func (g *Gateway) serverOptions() []grpc.ServerOption {
	options := []grpc.ServerOption{
		grpc.WaitForHandlers(true),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: g.options.MinKeepalive}),
	}
	if g.options.MaxReceive > 0 {
		options = append(options, grpc.MaxRecvMsgSize(g.options.MaxReceive))
	}
	if g.ca != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(&tls.Config{
			MinVersion:   tls.VersionTLS12,
			Certificates: []tls.Certificate{g.ca.server()},
		})))
	}
	return options
}

// finish does to the connection what the fault demands.
func finish(caller *peerAddr, err error) error {
	var dropped droppedError
	if errors.As(err, &dropped) && caller != nil {
		caller.conn.network.cut(caller.conn)
	}
	return err
}
