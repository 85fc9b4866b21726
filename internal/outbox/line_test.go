package outbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/e2e/harness"
	server "retry-worker/e2e/harness/nats"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/events"
	"retry-worker/internal/journal"
	"retry-worker/internal/outbox"
	"retry-worker/internal/store"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// shortLease of relays, so that tests do not wait long for a dead one's.
const shortLease = 3 * time.Second

// playRelay makes the test binary a relay: its value is the store's URL, then the server's.
const playRelay = "RETRY_WORKER_TEST_RELAY"

func TestMain(m *testing.M) { harness.Main(m, harness.Child(playRelay, relayUntilKilled)) }

// line is a store, its journal, and a relay to a real server.
type line struct {
	store   store.Store
	journal *journal.Journal
	relay   *outbox.Relay
	sink    *events.Sink
	stop    func() // the relay, then all the rest
	kill    context.CancelFunc
	states  chan bool
}

// open a line; run starts its relay.
func open(storeURL, natsURL, holder string) (*line, error) {
	s, err := store.Open(context.Background(), storeURL)
	if err != nil {
		return nil, err
	}
	l := &line{store: s, states: make(chan bool, 100)}
	l.journal = journal.New(s, time.Now, events.Publisher("/retry-worker", nil), journal.NoHooks())
	if l.sink, err = events.NewSink(natsURL, holder); err != nil {
		return nil, err
	}
	core, _ := observer.New(zap.InfoLevel)
	log := zap.New(core, outages(func(up bool) { l.states <- up }))
	l.relay = outbox.New(events.Queue, holder, s, l.journal.Published, l.sink, log)
	l.relay.ShortLease(shortLease)
	return l, nil
}

// run everything; the relay only where it is wanted already.
func (l *line) run(relay bool) {
	stop, halt := context.WithCancel(context.Background())
	stopJournal, haltJournal := context.WithCancel(context.Background())
	killed, kill := context.WithCancel(context.Background())
	l.kill = kill
	var first, second sync.WaitGroup
	second.Go(func() { l.journal.Run(stopJournal, context.Background()) })
	if relay {
		first.Go(func() { l.relay.Run(stop, killed) })
	}
	l.stop = sync.OnceFunc(func() {
		halt()
		first.Wait()
		haltJournal()
		second.Wait()
		kill()
		l.sink.Close()
		_ = l.store.Close()
	})
}

func relayUntilKilled(asked string) error {
	var urls [2]string
	if err := json.Unmarshal([]byte(asked), &urls); err != nil {
		return err
	}
	l, err := open(urls[0], urls[1], fmt.Sprint("relay-", os.Getpid()))
	if err != nil {
		return err
	}
	l.run(true)
	select {}
}

// startLine opens and runs one for a test.
func startLine(t testing.TB, storeURL, natsURL, holder string, relay bool) *line {
	t.Helper()
	l, err := open(storeURL, natsURL, holder)
	testkit.Must(t, err)
	l.run(relay)
	t.Cleanup(func() { l.kill(); l.stop() })
	return l
}

func startServer(t testing.TB, s server.Settings) *server.Server {
	t.Helper()
	harness.SkipIfShort(t)
	return server.New(t, s)
}

func sqliteURL(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "journal.db") }

// decide records that many decisions of so many claims, each of which leaves two events in the outbox.
func (l *line) decide(t testing.TB, claims, each int) {
	t.Helper()
	policy := decisiontest.TISSSubmission()
	var all sync.WaitGroup
	for c := range claims {
		all.Go(func() {
			for n := range each {
				id := fmt.Sprintf("CLM-%d-1", c)
				f, _ := policy.Read(decision.Variables{ID: decision.Text(id), Error: decision.Text("TIMEOUT"), RetryCount: decision.Value(fmt.Sprint(n % 5))})
				a := &journal.Analysis{Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: policy.Name, ID: id}, JobKey: time.Now().UnixNano(),
					ElementInstanceKey: int64(n), ProcessInstanceKey: int64(c), Rule: decision.RNBIL005, Policy: policy, Failure: &f, Error: "TIMEOUT", ReceivedAt: time.Now()}
				if _, err := l.journal.Analyze(context.Background(), a); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// awaitEmpty until nothing waits in the outbox.
func (l *line) awaitEmpty(t testing.TB) {
	t.Helper()
	wait.Until(t, "the outbox is empty", func() bool {
		waiting, err := l.store.Backlog(context.Background())
		return err == nil && waiting[events.Queue] == 0
	})
}

// received is one event as a consumer reads it.
type received struct {
	ID      string
	Type    string
	Subject string
	Data    struct{ Record, AttemptNumber int64 }
}

// checkStream reads everything that the server has: each event of each decision once, in order per claim.
func checkStream(t testing.TB, n *server.Server, decisions int) {
	t.Helper()
	s, err := n.JetStream(t).Stream(context.Background(), events.Stream)
	testkit.Must(t, err)
	i, err := s.Info(context.Background())
	testkit.Must(t, err)
	if i.State.Msgs != uint64(2*decisions) {
		t.Errorf("the stream has %d events, want %d: two a decision, none twice", i.State.Msgs, 2*decisions)
	}
	c, err := s.OrderedConsumer(context.Background(), jetstream.OrderedConsumerConfig{})
	testkit.Must(t, err)
	ids, last, types := map[string]bool{}, map[string]int64{}, map[string]int{}
	for range i.State.Msgs {
		m, err := c.Next(jetstream.FetchMaxWait(10 * time.Second))
		if err != nil {
			t.Fatalf("after %d events: %s", len(ids), err)
		}
		var e received
		if err := json.Unmarshal(m.Data(), &e); err != nil || m.Headers().Get(nats.MsgIdHdr) != e.ID || m.Subject() != events.Subject(e.Type) {
			t.Fatalf("the message on %s is %s, %v", m.Subject(), m.Data(), err)
		}
		if ids[e.ID] {
			t.Errorf("the id %s came twice", e.ID)
		}
		ids[e.ID] = true
		types[e.Type]++
		if e.Type == events.AuditRecorded {
			if e.Data.AttemptNumber != last[e.Subject]+1 {
				t.Errorf("attempt %d of %s follows %d", e.Data.AttemptNumber, e.Subject, last[e.Subject])
			}
			last[e.Subject] = e.Data.AttemptNumber
		}
	}
	if audited, decided := types[events.AuditRecorded], types["RetryScheduled"]+types["MaxRetriesExceeded"]; audited != decisions || decided != decisions {
		t.Errorf("events by type: %v, want %d of decisions and as many of the audit", types, decisions)
	}
}
