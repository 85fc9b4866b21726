// Package gateway is the development engine behind scripted faults, for tests: by gRPC or REST, with jobs that a test
// adds and a record of who got them and answered how.
//
// The engine decides what becomes of a job and what it answers. Faults stand in front of it, like a network or an
// overloaded gateway.
package gateway

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"retry-worker/internal/engine"
	"retry-worker/internal/engine/server"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/tlstest"
)

// Options say how a gateway behaves. The zero value listens in plaintext on a loopback port, without tenants.
type Options struct {
	// TLS serves by a certificate for localhost and 127.0.0.1; see [Gateway.CAFile].
	TLS bool
	// InMemory accepts connections by [Gateway.Dial] only. It needs no socket, so it works in a testing/synctest bubble.
	InMemory bool
	// REST serves the REST API instead of gRPC.
	REST bool
	// Tenants, in addition to the default one, turn multi-tenancy on.
	Tenants []string
}

// Version is the gateway's in the topology.
const Version = server.Shape88 + ".0"

// Gateway is a running gateway. Its methods may be called from any goroutine.
type Gateway struct {
	options   Options
	engine    *server.Server
	addr      string
	network   *testkit.Network   // nil unless InMemory
	authority *tlstest.Authority // nil without TLS
	grpc      []grpc.ServerOption

	serving  sync.Mutex
	stop     func()          // nil while down
	commands sync.Mutex      // held while a worker's command takes effect
	putting  sync.Mutex      // held while jobs are added
	started  int             // instances
	deployed map[string]bool // the model, by tenant

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced at every change
	rules     []*Rule
	jobs      map[int64]*job
	elements  map[int64]int64 // element to its job
	instances map[int64]*instance
	polls     []*Poll
	calls     map[outcome]int
	counts    Counts
}

// New starts a gateway that is closed with the test.
func New(tb testing.TB, o Options) *Gateway {
	tb.Helper()
	g := &Gateway{
		options: o, network: testkit.NewNetwork(), deployed: map[string]bool{}, changed: make(chan struct{}), jobs: map[int64]*job{},
		elements: map[int64]int64{}, instances: map[int64]*instance{}, calls: map[outcome]int{},
	}
	g.grpc = []grpc.ServerOption{grpc.WaitForHandlers(true)}
	var err error
	g.engine, err = server.Open(server.Options{Version: Version, Tenants: o.Tenants, Happened: g.happened, Around: g.around})
	testkit.Must(tb, err)
	if g.addr = "127.0.0.1:26500"; !o.InMemory {
		g.addr = testkit.Nowhere(tb)
	}
	if o.TLS {
		cert, key := filepath.Join(tb.TempDir(), "cert.pem"), filepath.Join(tb.TempDir(), "key.pem")
		g.authority = tlstest.NewAuthority(tb)
		g.authority.Issue(tb, cert, key, "gateway")
		creds, err := credentials.NewServerTLSFromFile(cert, key)
		testkit.Must(tb, err)
		g.grpc = append(g.grpc, grpc.Creds(creds))
	}
	g.Up()
	tb.Cleanup(func() {
		g.Down()
		_ = g.engine.Close() // it has nothing to lose
	})
	return g
}

// Dial connects to a gateway that is InMemory.
func (g *Gateway) Dial(ctx context.Context, address string) (net.Conn, error) {
	return g.network.Dial(ctx, "tcp", address)
}

// Addr returns the gateway's host:port.
func (g *Gateway) Addr() string { return g.addr }

// RESTAddress returns the URL of the REST API.
func (g *Gateway) RESTAddress() string { return "http://" + g.addr }

// CAFile returns the file with the authority that a client must trust.
func (g *Gateway) CAFile() string { return g.authority.File }

// Up listens again at the same address. It panics on an error.
func (g *Gateway) Up() {
	g.serving.Lock()
	defer g.serving.Unlock()
	if g.stop != nil {
		return
	}
	listen := net.Listen
	if g.options.InMemory {
		listen = g.network.Listen
	}
	l, err := listen("tcp", g.addr)
	if err != nil {
		panic(fmt.Errorf("listen: %w", err))
	}
	var server interface {
		Serve(l net.Listener) error
		Stop()
	} = g.engine.GRPC(g.grpc...)
	if g.options.REST {
		server = newREST(g)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // ends with Stop
	}()
	g.stop = func() {
		server.Stop()
		<-served
	}
}

// Down cuts all connections and refuses new ones until Up. The engine goes on.
func (g *Gateway) Down() {
	g.serving.Lock()
	defer g.serving.Unlock()
	if g.stop == nil {
		return
	}
	g.stop()
	g.stop = nil
}

// Now returns the engine's time: this machine's, plus what Advance added.
func (g *Gateway) Now() time.Time { return g.engine.Now() }

// Advance moves the engine's clock by d, and returns when everything due by then is done.
func (g *Gateway) Advance(d time.Duration) { g.engine.AddTime(d) }

// do carries out commands that the engine cannot refuse.
func (g *Gateway) do(commands ...engine.Command) []engine.Event {
	events, err := g.engine.Do(context.Background(), commands...)
	if err != nil {
		panic(fmt.Errorf("ask the engine behind the gateway: %w", err))
	}
	return events
}

// change applies f, then wakes all who wait. f must ask the engine for nothing but its time.
func (g *Gateway) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	close(g.changed)
	g.changed = make(chan struct{})
}

// look returns the counts, and a channel that is closed when they may have changed.
func (g *Gateway) look() (Counts, chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts, g.changed
}

// Counts returns the current totals.
func (g *Gateway) Counts() Counts {
	counts, _ := g.look()
	return counts
}

// WaitFor returns when met first holds. It looks whenever a call came or ended, or a job changed.
func (g *Gateway) WaitFor(ctx context.Context, met func(Counts) bool) error {
	for {
		counts, changed := g.look()
		if met(counts) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the gateway: %w; it has %+v", context.Cause(ctx), counts)
		}
	}
}
