package postgres

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	realserver "retry-worker/e2e/harness/postgres"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// cut says where a wire breaks.
type cut int32

const (
	whole        cut = iota
	beforeCommit     // the transaction's changes never arrive
	afterCommit      // they do, and the answer is lost
	afterAnswer      // the answer comes, and nothing after it
)

// wire passes on what is sent to and fro, until it is cut at a COMMIT.
type wire struct {
	target string
	cut    atomic.Int32
}

// newWire gives the address of a database as it is reached through the wire.
func newWire(t *testing.T, address string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(address)
	testkit.Must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	w := &wire{target: u.Host}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.serve(c)
		}
	}()
	u.Host = l.Addr().String()
	return w, u.String()
}

func (w *wire) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", w.target)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		defer client.Close()
		w.answer(client, server)
	}()
	w.forward(server, client)
}

// answer passes answers on, those to a COMMIT only as far as the wire is whole.
func (w *wire) answer(client io.Writer, server io.Reader) {
	committed := []byte("COMMIT\x00")
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		at, cut := bytes.Index(buffer[:n], committed), cut(w.cut.Load())
		if at >= 0 && cut == afterAnswer {
			n = at + len(committed)
		}
		if at >= 0 && cut == afterCommit {
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil || at >= 0 && cut == afterAnswer {
			return
		}
	}
}

// forward passes requests on, those with a COMMIT in them only where the wire is not cut before it.
func (w *wire) forward(server io.Writer, client io.Reader) {
	commit := []byte("COMMIT\x00")
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil || cut(w.cut.Load()) == beforeCommit && bytes.Contains(buffer[:n], commit) {
			return
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func TestACommitWhoseAnswerIsLostIsAmbiguous(t *testing.T) {
	for _, lost := range []struct {
		name  string
		at    cut
		saved bool
	}{
		{"before it was done", beforeCommit, false},
		{"after it was done", afterCommit, true},
		{"after it was answered", afterAnswer, true},
	} {
		t.Run(lost.name, func(t *testing.T) {
			address := realserver.Database(t)
			w, through := newWire(t, address)
			db, job := open(t, through), ask("CLM-LOST-1", "job")
			w.cut.Store(int32(lost.at))
			var link journal.Link
			err := db.Transact(wait.Context(t), []journal.Lookup{job}, func(head journal.Head, histories []journal.History) *journal.Changes {
				c, _ := decide(head, []journal.Lookup{job}, histories)
				link = c.Link
				return c
			})
			wantKind(t, err, journal.Ambiguous, "record decisions")
			w.cut.Store(int32(whole))
			if saved, err := db.Holds(wait.Context(t), &link); err != nil || saved != lost.saved {
				t.Errorf("the ledger has the link: %t, want %t (%v)", saved, lost.saved, err)
			}
			fresh, err := record(wait.Context(t), db, job)
			if err != nil || fresh[0] == lost.saved {
				t.Errorf("the next try: fresh %v, error %v", fresh, err)
			}
			verify(t, address, 1, 1)
		})
	}
}

func TestAConnectionThatBreaksWhileItLoadsIsUnavailable(t *testing.T) {
	address := realserver.Database(t)
	w, through := newWire(t, address)
	db := open(t, through)
	w.target = "127.0.0.1:1" // nobody
	do(t, connect(t, address), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'retry-worker'")
	_, err := record(wait.Context(t), db, ask("CLM-BREAK-1", "job"))
	wantKind(t, err, journal.Unavailable, "record decisions")
}
