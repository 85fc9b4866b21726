package outbox_test

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap"

	"retry-worker/e2e/harness"
	server "retry-worker/e2e/harness/nats"
	"retry-worker/e2e/harness/postgres"
	"retry-worker/internal/events"
	"retry-worker/internal/outbox"
	"retry-worker/internal/testkit/wait"
)

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
		wait.Until(t, "some events are sent", func() bool { return l.sent.Load() > before })
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
		p, err := harness.Start(harness.Command{Path: program, Env: append(os.Environ(), playRelay+"="+string(asked))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		before := messages(n)
		wait.Until(t, "it sends", func() bool { return messages(n) > before || messages(n) == 6000 })
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
	wait.Until(t, "the second goes on", func() bool { return sent.Load() > 0 })
	l.awaitEmpty(t)
	if i, err := stream(t, n).Info(t.Context()); err != nil || i.State.Msgs != uint64(2*(10+500+100+101+102+103)) {
		t.Errorf("the stream has %d events, %v", i.State.Msgs, err)
	}
}

// TestTwoReplicasOnPostgreSQL: both decide, one relays; it dies in mid-publish and the other goes on.
func TestTwoReplicasOnPostgreSQL(t *testing.T) {
	n, url := startServer(t, server.Settings{}), postgres.Database(t)
	one := startLine(t, url, n.URL(), "one", true)
	one.decide(t, 10, 1)
	one.awaitEmpty(t)
	other := startLine(t, url, n.URL(), "other", true)
	var deciding sync.WaitGroup
	for _, l := range []*line{one, other} {
		deciding.Go(func() { l.decide(t, 200, 5) })
	}
	wait.Until(t, "the first is in mid-publish", func() bool { return one.sent.Load() > 100 })
	if other.sent.Load() != 0 {
		t.Errorf("the other sent %d beside it", other.sent.Load())
	}
	one.kill()
	deciding.Wait()
	other.awaitEmpty(t)
	if other.sent.Load() == 0 {
		t.Error("the first was through before it was killed")
	}
	checkStream(t, n, 2010)
}
