// Package gateway provides a scripted Zeebe gateway for tests: a real server, by gRPC or REST, that hands out the jobs a test
// puts in, plays the faults a test asks for, and remembers who was given what and answered how.
//
// Its answers follow what the project saw on real brokers 8.5.8 and 8.6.0. It is no engine: processes do not run,
// a job ends where a worker's answer ends it.
package gateway

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"retry-worker/internal/testkit/tlstest"
)

// Options say how a gateway behaves. The zero value listens in plaintext on a loopback port, without tenants.
type Options struct {
	// TLS serves by a certificate for localhost and 127.0.0.1; see [Gateway.CAFile].
	TLS bool
	// InMemory takes connections by [Gateway.Dial] only: no socket, so it serves within a testing/synctest bubble.
	InMemory bool
	// REST serves the REST API instead of gRPC. Version is the gateway's, 8.6.0 or [Version] if that is empty; from 8.10 on
	// REST leases jobs.
	REST    bool
	Version string
	// MultiTenancy demands tenant ids on every poll; those not in Tenants are refused, unless that is nil.
	MultiTenancy bool
	Tenants      []string
	// JobsPerMessage splits a poll's answer into messages; 0: one message.
	JobsPerMessage int
}

// Version is what the topology tells of the gateway.
const Version = "8.5.8"

const (
	// minPing is the shortest interval of pings that a client may use.
	minPing = 10 * time.Second
	// maxBatch bounds the variables of one poll's jobs, in bytes. The first job comes whatever its size.
	maxBatch = 4 << 20
)

// Gateway is a running gateway. Its methods may be called from any goroutine.
type Gateway struct {
	pb.UnimplementedGatewayServer
	options   Options
	network   *network
	authority *tlstest.Authority // nil without TLS
	faults    faults

	serverOptions []grpc.ServerOption

	serving sync.Mutex
	server  server // nil while down
	served  chan struct{}

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced at every change
	offset    time.Duration // of the clock
	accepts   func(token string) bool
	lastKey   int64
	jobs      map[int64]*job
	ready     map[string][]*job   // by type, in the order of keys
	timed     map[*job]bool       // activated, or backing off
	instances map[int64]bool      // whether each process instance runs
	deployed  map[string][]string // the contents of a process, by version
	polls     []*Poll
	workers   map[string]string // connection to the name that polled by it last
	calls     map[outcome]int
	counts    Counts
}

// outcome is how a call ended.
type outcome struct {
	method Method
	code   codes.Code
}

// New starts a gateway that is closed with the test.
func New(tb testing.TB, o Options) *Gateway {
	tb.Helper()
	g := &Gateway{
		options: o, changed: make(chan struct{}), lastKey: 1 << 51, jobs: map[int64]*job{}, ready: map[string][]*job{},
		timed: map[*job]bool{}, instances: map[int64]bool{}, deployed: map[string][]string{}, workers: map[string]string{},
		calls: map[outcome]int{},
		serverOptions: []grpc.ServerOption{
			grpc.WaitForHandlers(true), grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing}),
		},
	}
	var err error
	if g.network, err = newNetwork(o.InMemory); err != nil {
		tb.Fatal(err)
	}
	if o.TLS {
		cert, key := filepath.Join(tb.TempDir(), "cert.pem"), filepath.Join(tb.TempDir(), "key.pem")
		g.authority = tlstest.NewAuthority(tb)
		g.authority.Issue(tb, cert, key, "gateway")
		creds, err := credentials.NewServerTLSFromFile(cert, key)
		if err != nil {
			tb.Fatal(err)
		}
		g.serverOptions = append(g.serverOptions, grpc.Creds(creds))
	}
	g.Up()
	tb.Cleanup(func() {
		g.Down()
		g.network.release()
	})
	return g
}

// Nowhere returns an address where nobody listens for the time of the test.
func Nowhere(tb testing.TB) string {
	tb.Helper()
	addr, release, err := reservePort()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(release)
	return addr
}

// Addr returns the gateway's host:port.
func (g *Gateway) Addr() string { return g.network.addr }

// RESTAddress returns the URL of the REST API.
func (g *Gateway) RESTAddress() string {
	if g.options.InMemory {
		return "http://memory"
	}
	return "http://" + g.Addr()
}

// Dial connects to an InMemory gateway, whatever the address.
func (g *Gateway) Dial(ctx context.Context, _ string) (net.Conn, error) { return g.network.dial(ctx) }

// CAFile returns the file that holds the authority a client must trust.
func (g *Gateway) CAFile() string { return g.authority.File }

// Up listens again at the same address, with the jobs as they were left. It panics where that fails.
func (g *Gateway) Up() {
	g.serving.Lock()
	defer g.serving.Unlock()
	if g.server != nil {
		return
	}
	listener, err := g.network.listen()
	if err != nil {
		panic(fmt.Errorf("listen: %w", err))
	}
	if g.options.REST {
		g.server = newRESTServer(g)
	} else {
		server := grpc.NewServer(g.serverOptions...)
		pb.RegisterGatewayServer(server, g)
		g.server = server
	}
	server, served := g.server, make(chan struct{})
	g.served = served
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with the server's stop
	}()
}

// Down cuts all connections and refuses new ones until Up. Time-outs go on running.
func (g *Gateway) Down() {
	g.serving.Lock()
	defer g.serving.Unlock()
	if g.server == nil {
		return
	}
	for _, c := range g.network.connections() {
		g.cut(c)
	}
	g.server.Stop()
	<-g.served
	g.server = nil
}

// cut closes a connection. What was acknowledged by it may not have arrived.
func (g *Gateway) cut(c *conn) {
	_ = c.Close()
	g.change(func() {
		for _, j := range g.jobs {
			for i := range j.answers {
				j.answers[i].Acked = j.answers[i].Acked && j.answers[i].caller != c.name
			}
		}
	})
}

// RequireToken makes every call need a bearer token that accepts takes; others are answered UNAUTHENTICATED.
func (g *Gateway) RequireToken(accepts func(token string) bool) {
	g.change(func() { g.accepts = accepts })
}

// Now returns the time on the gateway's clock: this machine's, and what Advance added.
func (g *Gateway) Now() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.now()
}

func (g *Gateway) now() time.Time { return time.Now().Add(g.offset) }

// Advance moves the gateway's clock by d, and does what has become due.
func (g *Gateway) Advance(d time.Duration) { g.change(func() { g.offset += d }) }

// change does what has become due, then applies f, then tells all who wait.
func (g *Gateway) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expire()
	f()
	g.expire()
	close(g.changed)
	g.changed = make(chan struct{})
}

// wait returns when changed is closed, or the next job is due; it reports false where limit or ctx ended first.
func (g *Gateway) wait(ctx context.Context, changed chan struct{}, limit <-chan time.Time) bool {
	g.mu.Lock()
	due := time.NewTimer(g.untilDue())
	g.mu.Unlock()
	defer due.Stop()
	select {
	case <-changed:
	case <-due.C:
	case <-limit:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}

// look returns the counts, and what is closed when they may have changed.
func (g *Gateway) look() (Counts, chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expire()
	return g.counts, g.changed
}

// Counts returns the totals at this instant.
func (g *Gateway) Counts() Counts {
	counts, _ := g.look()
	return counts
}

// WaitFor returns when met first holds; it looks whenever a call came or ended, or a job changed.
func (g *Gateway) WaitFor(ctx context.Context, met func(Counts) bool) error {
	for {
		counts, changed := g.look()
		if met(counts) {
			return nil
		}
		if !g.wait(ctx, changed, nil) {
			return fmt.Errorf("wait for the gateway: %w; it has %+v", context.Cause(ctx), counts)
		}
	}
}
