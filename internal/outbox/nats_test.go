package outbox_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"retry-worker/e2e/harness"
	server "retry-worker/e2e/harness/nats"
	"retry-worker/internal/events"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// TestServerIsAway while decisions are recorded, at their usual speed: it is killed, or stands still.
func TestServerIsAway(t *testing.T) {
	for how, is := range map[string]struct{ away, back func(*server.Server) error }{
		"killed":       {func(n *server.Server) error { n.Kill(); return nil }, func(n *server.Server) error { return n.Restart(t.Context()) }},
		"stands still": {(*server.Server).Pause, (*server.Server).Resume},
	} {
		t.Run(how, func(t *testing.T) {
			n := startServer(t, server.Settings{})
			l := startLine(t, sqliteURL(t), n.URL(), "a", true)
			l.decide(t, 1, 1)
			l.awaitEmpty(t)
			testkit.Must(t, is.away(n))
			l.decide(t, 500, 4)
			if up := <-l.states; up {
				t.Error("the first that is told is that events are sent")
			}
			if waiting, err := l.store.Backlog(t.Context()); err != nil || waiting[events.Queue] != 4000 {
				t.Errorf("%v wait in the outbox, %v", waiting, err)
			}
			testkit.Must(t, is.back(n))
			l.awaitEmpty(t)
			if up := <-l.states; !up {
				t.Error("it is not told that events are sent again")
			}
			checkStream(t, n, 2001)
		})
	}
}

// TestKilledInMidPublish: relays, which are processes, and their server die in turn at random moments, and leave nothing out.
func TestKilledInMidPublish(t *testing.T) {
	n, url := startServer(t, server.Settings{}), sqliteURL(t)
	l := startLine(t, url, n.URL(), "filler", false)
	l.decide(t, 1000, 6)
	l.stop() // a file has one writer
	program, err := os.Executable()
	testkit.Must(t, err)
	asked, _ := json.Marshal([2]string{url, n.URL()})
	draw := rand.New(rand.NewPCG(2, 1)).IntN
	sends := func() {
		before := messages(n)
		wait.Until(t, "it sends", func() bool { return messages(n) > before || messages(n) == 12_000 })
		time.Sleep(time.Duration(draw(20)) * time.Millisecond) // a random moment of the sending
	}
	for round := range 3 {
		p, err := harness.Start(harness.Command{Path: program, Env: append(os.Environ(), playRelay+"="+string(asked))})
		testkit.Must(t, err)
		t.Cleanup(p.Kill)
		sends()
		n.Kill()
		testkit.Must(t, n.Restart(t.Context()))
		sends()
		if p.Kill(); round == 0 && messages(n) == 12_000 {
			t.Error("the first relay was through before it was killed")
		}
	}
	startLine(t, url, n.URL(), "last", true).awaitEmpty(t)
	checkStream(t, n, 6000)
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
