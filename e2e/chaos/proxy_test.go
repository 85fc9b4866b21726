package chaos_test

import (
	"bufio"
	"bytes"
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
	commit := "" // the name of the prepared COMMIT
	for first := true; ; first = false {
		message, err := read(in, first)
		if err != nil {
			return err
		}
		texts := bytes.SplitN(message[min(5, len(message)):], []byte{0}, 3)
		switch {
		case first || len(texts) < 3:
		case message[0] == 'P' && string(texts[1]) == "COMMIT":
			commit = string(texts[0])
		case message[0] == 'B' && commit != "" && string(texts[1]) == commit && !p.lets():
			return out.Flush() // what stands before it arrives
		}
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
