package chaos_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"retry-worker/internal/testkit"
)

// proxy stands between a worker and PostgreSQL and sees each COMMIT before the server does.
type proxy struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup

	mu       sync.Mutex
	open     map[net.Conn]struct{}
	onCommit func() (forward bool) // nil: all are forwarded
	stalled  chan struct{}         // until it is closed nothing more reaches the server; nil: all does
}

// newProxy returns a proxy for the server at a URL, and the URL by which it is reached.
func newProxy(t *testing.T, database string) (p *proxy, through string) {
	t.Helper()
	u, err := url.Parse(database)
	testkit.Must(t, err)
	p = &proxy{server: u.Host, open: map[net.Conn]struct{}{}}
	p.listener, err = net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.goOn()
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

// arm has f called for each COMMIT from now on, before the server gets it; nil takes that back. Where f returns
// false the server never gets it.
func (p *proxy) arm(f func() (forward bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onCommit = f
}

// stall keeps what workers say from the server, their connections stay; goOn lets it through.
func (p *proxy) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled == nil {
		p.stalled = make(chan struct{})
	}
}

func (p *proxy) goOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
}

// pass waits while the proxy stalls.
func (p *proxy) pass() {
	p.mu.Lock()
	stalled := p.stalled
	p.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		_ = client.Close()
		return
	}
	p.mu.Lock()
	p.open[client], p.open[server] = struct{}{}, struct{}{}
	p.mu.Unlock()
	p.running.Go(func() {
		_, _ = io.Copy(client, server) // whoever ends it, both are closed
		_ = client.Close()
	})
	_ = p.forward(server, client)
	_ = server.Close()
	_ = client.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, client)
	delete(p.open, server)
}

// forward copies what a client says, message by message, up to a COMMIT that is held back.
func (p *proxy) forward(server io.Writer, client io.Reader) error {
	in, out := bufio.NewReaderSize(client, 64<<10), bufio.NewWriterSize(server, 64<<10)
	for first := true; ; first = false {
		message, err := read(in, first)
		if err != nil {
			return err
		}
		if !first && message[0] == 'Q' && string(message[5:]) == "COMMIT\x00" && !p.lets() {
			return out.Flush() // what stands before it arrives
		}
		p.pass()
		if _, err := out.Write(message); err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func (p *proxy) lets() bool {
	p.mu.Lock()
	f := p.onCommit
	p.mu.Unlock()
	return f == nil || f()
}

// read is one message of a client; the first has no type.
func read(in io.Reader, first bool) ([]byte, error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, err
	}
	length := int(binary.BigEndian.Uint32(head[len(head)-4:]))
	message := make([]byte, len(head)+max(length-4, 0))
	copy(message, head)
	_, err := io.ReadFull(in, message[len(head):])
	return message, err
}
