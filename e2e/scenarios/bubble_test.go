package scenarios

import (
	"net/http"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/bubble"
	"retry-worker/internal/config"
	"retry-worker/internal/engine/server"
	"retry-worker/internal/testkit"
)

// world is a scenario in a bubble.
type world struct {
	*scenario
	bubble *bubble.World
	folder string // of the journals, and of files
}

// inBubble plays a scenario in a bubble of its own, by that protocol.
func inBubble(t *testing.T, protocol string, play func(*testing.T, *world)) {
	t.Helper()
	t.Parallel()
	h := newHistory()
	folder := t.TempDir()
	bubble.Run(t, server.Options{Happened: h.take}, func(t *testing.T, w *bubble.World) {
		s := &world{bubble: w, folder: folder, scenario: &scenario{
			t: t, GatewayClient: pb.NewGatewayClient(w.Conn), protocol: protocol, history: h, clock: w,
			reach: w.Reach(protocol == byREST), begun: w.Now(), jobTimeout: time.Minute, settle: w.Settle,
		}}
		t.Cleanup(s.tell)
		s.deploy()
		play(t, s)
	})
}

// withEverybody is inBubble with a worker, portals and people.
func withEverybody(t *testing.T, protocol string, play func(*testing.T, *world)) {
	t.Helper()
	inBubble(t, protocol, func(t *testing.T, s *world) {
		s.serve()
		s.startPortal(s.worker, submitClaim, sendMessage, runJob, checkDependencies, runQueuedJob)
		play(t, s)
	})
}

// eachProtocol is withEverybody by each protocol.
func eachProtocol(t *testing.T, play func(*testing.T, *world)) {
	t.Parallel()
	for _, protocol := range []string{byGRPC, byREST} {
		t.Run(protocol, func(t *testing.T) { withEverybody(t, protocol, play) })
	}
}

// serve starts a life of the worker, with those settings changed.
func (s *world) serve(change ...func(*config.Settings)) *process {
	s.t.Helper()
	settings := s.bubble.Settings(s.folder, s.protocol == byREST)
	settings.JobTimeout = time.Minute
	for _, c := range change {
		c(&settings)
	}
	v := s.bubble.Serve(settings)
	s.worker = &process{API: v.HTTPAddr(), Ops: v.OpsAddr(), Log: v.Log, client: s.bubble.Client(), kill: v.Kill,
		stop: func() { testkit.Must(s.t, v.Stop()) }}
	s.bubble.Settle()
	return s.worker
}

// receive serves a handler until the test ends, and returns its URL.
func (s *world) receive(h http.Handler) string {
	s.t.Helper()
	l, err := s.bubble.Listen("tcp", "127.0.0.1:0")
	testkit.Must(s.t, err)
	server := &http.Server{Handler: h}
	go func() { _ = server.Serve(l) }() // ends with Close
	s.t.Cleanup(func() { testkit.Must(s.t, server.Close()) })
	return "http://" + l.Addr().String()
}

// database is the address of the workers' journal.
func (s *world) database() string { return harness.Database(s.folder) }

// process is one life of a worker.
type process struct {
	API, Ops   string
	Log        *harness.Log
	client     http.Client
	stop, kill func()
}

// get is what the worker says at an address of its API or its metrics.
func (p *process) get(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, http.NoBody)
	testkit.Must(t, err)
	status, _, text := testkit.Send(t, &p.client, request)
	if status != http.StatusOK {
		t.Fatalf("GET %s: %d", address, status)
	}
	return text
}
