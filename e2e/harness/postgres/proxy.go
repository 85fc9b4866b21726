package postgres

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"retry-worker/internal/testkit"
)

// Cut says where a Proxy breaks a connection.
type Cut int32

// The places around a COMMIT.
const (
	Whole        Cut = iota
	BeforeCommit     // the transaction's changes never arrive
	AfterCommit      // they do, and the answer is lost
	AfterAnswer      // the answer comes, and nothing after it
)

// Proxy stands between a program and a server, and sees each COMMIT and its answer first.
type Proxy struct {
	// Server is the server's address; set it before the next connection.
	Server string

	listener net.Listener
	running  sync.WaitGroup
	cut      atomic.Int32
	mu       sync.Mutex
	open     map[net.Conn]struct{}
	onCommit func() bool   // nil: nothing
	stalled  chan struct{} // until it is closed nothing more passes; nil: all does
}

// NewProxy returns a proxy for the server at a URL, and the URL by which it is reached.
func NewProxy(t *testing.T, database string) (p *Proxy, through string) {
	t.Helper()
	u, err := url.Parse(database)
	testkit.Must(t, err)
	p = &Proxy{Server: u.Host, open: map[net.Conn]struct{}{}}
	p.listener, err = net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.GoOn()
		p.mu.Lock()
		for c := range p.open {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.running.Wait()
	})
	u.Host = p.listener.Addr().String()
	return p, u.String()
}

// Cut breaks connections there, from now on.
func (p *Proxy) Cut(where Cut) { p.cut.Store(int32(where)) }

// OnCommit has f called for each COMMIT from now on, before the server gets it; nil takes that back. If f returns true
// the server gets it even in a stall.
func (p *Proxy) OnCommit(f func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onCommit = f
}

// Stall keeps what programs and the server say from each other, their connections stay; GoOn lets it through.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled == nil {
		p.stalled = make(chan struct{})
	}
}

// pass waits for the end of a stall.
func (p *Proxy) pass() {
	p.mu.Lock()
	stalled := p.stalled
	p.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
}

// GoOn ends a stall.
func (p *Proxy) GoOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

// serve passes on what is said to and fro; whoever ends it, both connections are closed.
func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.Server)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.open[client], p.open[server] = struct{}{}, struct{}{}
	p.mu.Unlock()
	p.running.Go(func() {
		defer client.Close()
		each(server, func(said []byte, committed int) bool {
			p.pass()
			switch cut := Cut(p.cut.Load()); {
			case committed > 0 && cut == AfterCommit:
				return false
			case committed > 0 && cut == AfterAnswer:
				_, _ = client.Write(said[:committed])
				return false
			}
			_, err := client.Write(said)
			return err == nil
		})
	})
	each(client, func(said []byte, commits int) bool {
		p.mu.Lock()
		onCommit := p.onCommit
		p.mu.Unlock()
		if commits == 0 || onCommit == nil || !onCommit() {
			p.pass()
		}
		if commits > 0 && Cut(p.cut.Load()) == BeforeCommit {
			return false
		}
		_, err := server.Write(said)
		return err == nil
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, client)
	delete(p.open, server)
}

// each calls pass for what comes, with where the word COMMIT ends in it, 0 for nowhere, until pass returns false.
func each(from io.Reader, pass func(said []byte, commit int) bool) {
	commit, buffer := []byte("COMMIT\x00"), make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		end := 0
		if at := bytes.Index(buffer[:n], commit); at >= 0 {
			end = at + len(commit)
		}
		if !pass(buffer[:n], end) {
			return
		}
	}
}
