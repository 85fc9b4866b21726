package outbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"retry-worker/e2e/engine/child"
	server "retry-worker/e2e/nats"
	"retry-worker/internal/decision"
	"retry-worker/internal/events"
	"retry-worker/internal/journal"
	"retry-worker/internal/outbox"
	"retry-worker/internal/store"
)

// shortLease of relays, so that tests do not wait long for a dead one's.
const shortLease = 3 * time.Second

// playRelay makes the test binary a relay: its value is the store's URL, then the server's.
const playRelay = "RETRY_WORKER_TEST_RELAY"

func TestMain(m *testing.M) {
	server.ServeIfAsked()
	if asked := os.Getenv(playRelay); asked != "" {
		relayUntilKilled(asked)
	}
	os.Exit(m.Run())
}

// line is a store, its journal, and a relay to a real server.
type line struct {
	store   store.Store
	journal *journal.Journal
	relay   *outbox.Relay
	sink    *events.Sink
	stop    func() // the relay, then all the rest
	kill    context.CancelFunc
	states  chan bool
	sent    atomic.Int64
}

// open a line; run starts its relay.
func open(storeURL, natsURL, holder string) (*line, error) {
	s, err := store.Open(context.Background(), storeURL)
	if err != nil {
		return nil, err
	}
	l := &line{store: s, states: make(chan bool, 100)}
	l.journal = journal.New(s, time.Now, events.Publisher("/retry-worker"), journal.NoHooks())
	if l.sink, err = events.NewSink(natsURL, holder); err != nil {
		return nil, err
	}
	hooks := outbox.NoHooks()
	hooks.Published = func(n int) { l.sent.Add(int64(n)) }
	hooks.Up = func(up bool, _ error) { l.states <- up }
	l.relay = outbox.New(events.Queue, holder, s, l.journal.Published, l.sink, hooks, zap.NewNop())
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

func relayUntilKilled(asked string) {
	var urls [2]string
	if err := json.Unmarshal([]byte(asked), &urls); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	l, err := open(urls[0], urls[1], fmt.Sprint("relay-", os.Getpid()))
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	l.run(true)
	select {}
}

// startLine opens and runs one for a test.
func startLine(t testing.TB, storeURL, natsURL, holder string, relay bool) *line {
	t.Helper()
	l, err := open(storeURL, natsURL, holder)
	if err != nil {
		t.Fatal(err)
	}
	l.run(relay)
	t.Cleanup(func() { l.kill(); l.stop() })
	return l
}

func startServer(t testing.TB, s server.Settings) *server.Server {
	t.Helper()
	s.Dir = t.TempDir()
	n, err := server.Start(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Kill)
	return n
}

func sqliteURL(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "journal.db") }

// decide records that many decisions of so many claims, each of which leaves two events in the outbox.
func (l *line) decide(t testing.TB, claims, each int) {
	t.Helper()
	policy := decision.TISSSubmission()
	var all sync.WaitGroup
	for c := range claims {
		all.Go(func() {
			for n := range each {
				id := fmt.Sprintf("CLM-%d-1", c)
				f, _ := policy.Read(decision.Variables{ID: decision.Text(id), Error: decision.Text("TIMEOUT"), RetryCount: decision.Value(fmt.Sprint(n % 5))})
				a := &journal.Analysis{Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: policy.Name, ID: id}, JobKey: time.Now().UnixNano(),
					ElementInstanceKey: int64(n), ProcessInstanceKey: int64(c), Rule: decision.RNBIL005, Policy: policy, Failure: &f, Error: "TIMEOUT", ReceivedAt: time.Now()}
				a.Identity = journal.IdentityOf(a)
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
	until(t, "the outbox is empty", func() bool {
		waiting, err := l.store.Backlog(context.Background())
		return err == nil && waiting[events.Queue] == 0
	})
}

// until something is so, within a minute and a half: leases have to end.
func until(t testing.TB, what string, so func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	deadline := time.After(90 * time.Second)
	for !so() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("not so in time: %s", what)
		}
	}
}

func stream(t testing.TB, n *server.Server) jetstream.Stream {
	t.Helper()
	nc, err := nats.Connect(n.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(context.Background(), events.Stream)
	if err != nil {
		t.Fatal(err)
	}
	return s
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
	s := stream(t, n)
	i, err := s.Info(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if i.State.Msgs != uint64(2*decisions) {
		t.Errorf("the stream has %d events, want %d: two a decision, none twice", i.State.Msgs, 2*decisions)
	}
	c, err := s.OrderedConsumer(context.Background(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
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

func TestRealServerGetsEverything(t *testing.T) {
	n := startServer(t, server.Settings{})
	l := startLine(t, sqliteURL(t), n.URL(), "a", true)
	l.decide(t, 200, 5)
	l.awaitEmpty(t)
	checkStream(t, n, 1000)
	if got := l.sent.Load(); got != 2000 {
		t.Errorf("%d are told as published", got)
	}
}

// TestServerIsKilledInMidPublish six times, while decisions go on.
func TestServerIsKilledInMidPublish(t *testing.T) {
	n := startServer(t, server.Settings{})
	l := startLine(t, sqliteURL(t), n.URL(), "a", true)
	decided := make(chan struct{})
	go func() {
		defer close(decided)
		for range 60 {
			l.decide(t, 100, 1)
		}
	}()
	draw := newDraw(1)
	for range 6 {
		before := l.sent.Load()
		until(t, "some events are sent", func() bool { return l.sent.Load() > before })
		time.Sleep(time.Duration(draw(30)) * time.Millisecond) // a random moment of the sending
		n.Kill()
		if err := n.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	<-decided
	l.awaitEmpty(t)
	checkStream(t, n, 6000)
}

// TestServerIsAway while decisions are recorded, at their usual speed.
func TestServerIsAway(t *testing.T) {
	n := startServer(t, server.Settings{})
	l := startLine(t, sqliteURL(t), n.URL(), "a", true)
	l.decide(t, 1, 1)
	l.awaitEmpty(t)
	n.Kill()
	l.decide(t, 500, 4)
	if up := <-l.states; up {
		t.Error("the first that is told is that events are sent")
	}
	if waiting, err := l.store.Backlog(t.Context()); err != nil || waiting[events.Queue] != 4000 {
		t.Errorf("%v wait in the outbox, %v", waiting, err)
	}
	if err := n.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.awaitEmpty(t)
	if up := <-l.states; !up {
		t.Error("it is not told that events are sent again")
	}
}

func TestServerStandsStillAndGoesOn(t *testing.T) {
	n := startServer(t, server.Settings{})
	l := startLine(t, sqliteURL(t), n.URL(), "a", true)
	l.decide(t, 1, 1)
	l.awaitEmpty(t)
	if err := n.Pause(); err != nil {
		t.Fatal(err)
	}
	l.decide(t, 100, 5)
	if up := <-l.states; up {
		t.Error("a server that stands still is told to be up")
	}
	if err := n.Resume(); err != nil {
		t.Fatal(err)
	}
	l.awaitEmpty(t)
	if i, err := stream(t, n).Info(t.Context()); err != nil || i.State.Msgs != 1002 {
		t.Errorf("the stream has %d events, want 1002, %v", i.State.Msgs, err)
	}
}

func TestStreamIsFullAndThenIsNot(t *testing.T) {
	n := startServer(t, server.Settings{})
	nc, err := nats.Connect(n.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, _ := jetstream.New(nc)
	config := jetstream.StreamConfig{Name: events.Stream, Subjects: []string{"retry.>"}, MaxBytes: 200_000, Discard: jetstream.DiscardNew}
	if _, err := js.CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	l := startLine(t, sqliteURL(t), n.URL(), "a", true)
	l.decide(t, 100, 5)
	if up := <-l.states; up {
		t.Error("a full stream is told to take events")
	}
	config.MaxBytes = -1
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	l.awaitEmpty(t)
	checkStream(t, n, 500)
}

// TestRelayIsKilledInMidPublish: processes that die at random moments, one after the other, leave nothing out.
func TestRelayIsKilledInMidPublish(t *testing.T) {
	n, url := startServer(t, server.Settings{}), sqliteURL(t)
	l := startLine(t, url, n.URL(), "filler", false)
	l.decide(t, 1000, 3)
	l.stop() // a file has one writer
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	asked, _ := json.Marshal([2]string{url, n.URL()})
	draw := newDraw(2)
	var killedWith []uint64
	for len(killedWith) < 3 {
		p, err := child.Start(child.Command{Path: program, Env: append(os.Environ(), playRelay+"="+string(asked))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		before := messages(n)
		until(t, "it sends", func() bool { return messages(n) > before || messages(n) == 6000 })
		time.Sleep(time.Duration(draw(20)) * time.Millisecond) // a random moment of the sending
		p.Kill()
		killedWith = append(killedWith, messages(n))
	}
	if killedWith[0] == 6000 {
		t.Log("the first relay was through before it was killed")
	}
	last := startLine(t, url, n.URL(), "last", true)
	last.awaitEmpty(t)
	checkStream(t, n, 3000)
}

// messages in the stream; 0 where there is none yet.
func messages(n *server.Server) uint64 {
	nc, err := nats.Connect(n.URL())
	if err != nil {
		return 0
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return 0
	}
	s, err := js.Stream(context.Background(), events.Stream)
	if err != nil {
		return 0
	}
	return s.CachedInfo().State.Msgs
}

// TestTwoRelaysOfOneStore: the second sends nothing while the first does, and goes on when that is killed.
func TestTwoRelaysOfOneStore(t *testing.T) {
	n := startServer(t, server.Settings{})
	l := startLine(t, sqliteURL(t), n.URL(), "first", true)
	l.decide(t, 10, 1)
	l.awaitEmpty(t)
	sink, err := events.NewSink(n.URL(), "second")
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	var sent atomic.Int64
	hooks := outbox.NoHooks()
	hooks.Published = func(n int) { sent.Add(int64(n)) }
	second := outbox.New(events.Queue, "second", l.store, l.journal.Published, sink, hooks, zap.NewNop())
	second.ShortLease(shortLease)
	stop, halt := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { second.Run(stop, stop) })
	defer running.Wait()
	defer halt()
	l.decide(t, 100, 5)
	l.awaitEmpty(t)
	if sent.Load() != 0 {
		t.Errorf("the second sent %d", sent.Load())
	}
	l.kill()
	for c := 100; c < 104; c++ { // new claims: the attempts of the others have their numbers
		l.decide(t, c, 1)
	}
	until(t, "the second goes on", func() bool { return sent.Load() > 0 })
	l.awaitEmpty(t)
	if i, err := stream(t, n).Info(t.Context()); err != nil || i.State.Msgs != uint64(2*(10+500+100+101+102+103)) {
		t.Errorf("the stream has %d events, %v", i.State.Msgs, err)
	}
}

// BenchmarkRelay empties an outbox of 20,000 real events into a real server: SQLite, JetStream on disk, this machine.
func BenchmarkRelay(b *testing.B) {
	const decisions = 10_000
	for b.Loop() {
		b.StopTimer()
		n := startServer(b, server.Settings{})
		l := startLine(b, sqliteURL(b), n.URL(), "a", false)
		l.decide(b, 2000, decisions/2000)
		stop, halt := context.WithCancel(context.Background())
		var relay sync.WaitGroup
		b.StartTimer()
		began := time.Now()
		relay.Go(func() { l.relay.Run(stop, stop) })
		until(b, "all is sent", func() bool { return l.sent.Load() == 2*decisions })
		b.ReportMetric(2*decisions/time.Since(began).Seconds(), "events/s")
		b.StopTimer()
		halt()
		relay.Wait()
		l.stop()
		n.Kill()
		b.StartTimer()
	}
}
