package chaos_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"retry-worker/e2e/harness/postgres"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
)

const (
	// outage is how long PostgreSQL is away.
	outage = 30 * time.Second
	// underWay is how long polls and answers that were on their way when the journal closed may take on a busy machine.
	underWay = 10 * time.Second
	// feedEvery is the pause between two portions of load, feed what one holds.
	feedEvery = 100 * time.Millisecond
	feed      = 5
)

// PostgreSQL is away for half a minute under load: jobs go back as they came, none is asked for meanwhile, the
// probes and metrics say so, and afterwards everything is answered, once.
func TestPostgreSQLAway(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]struct {
		leave  func(*postgres.Server) error
		comeUp func(*postgres.Server) error
	}{
		"killed": {
			func(s *postgres.Server) error { s.Kill(); return nil },
			func(s *postgres.Server) error { return s.Restart(context.Background()) },
		},
		"stopped in its tracks": {(*postgres.Server).Pause, (*postgres.Server).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // half a minute of waiting once
			server := postgres.New(t, postgres.Options{})
			url, err := server.CreateDatabase(wait.Context(t))
			testkit.Must(t, err)
			s := newStub(t, "AWAY")
			p := serve(t, settings{name: "worker", gateway: s.Addr(), url: url})
			end := s.feed()
			s.answered(20)
			testkit.Must(t, away.leave(server))
			left := time.Now()
			reason := p.unready()
			noticed := s.Now()
			s.expectHandedBack()
			pass(t, outage-time.Since(left))
			s.expectNoPolls(noticed)
			waiting := s.asked() - s.Counts().Settled
			testkit.Must(t, away.comeUp(server))
			gone := time.Since(left)
			p.ready()
			back := time.Since(left) - gone
			s.answered(s.Counts().Settled + 20)
			end()
			s.settle()
			p.stop()
			a := look(t, url)
			found, returned := s.holdAgainst(a), s.handedBack()
			a.oneAttemptPerCount(false)
			report(t, "PostgreSQL "+name, "%.0f s under load; %d jobs, %d attempts, one answer each; %d given back with their retries, %d waited, no poll while it was away; open again %.1f s after it was back; /readyz: %.110s…",
				gone.Seconds(), len(s.jobs), found.attempts, returned, waiting, back.Seconds(), reason)
		})
	}
}

// feed puts in new claims until end is called.
func (s *stub) feed() (end func()) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(feedEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.claims(feed)
			case <-stop:
				return
			}
		}
	})
	once := sync.OnceFunc(func() {
		close(stop)
		running.Wait()
	})
	s.t.Cleanup(once)
	return once
}

// answered waits until so many jobs are settled.
func (s *stub) answered(n int) {
	s.t.Helper()
	testkit.Must(s.t, s.WaitFor(wait.Context(s.t), func(c gateway.Counts) bool { return c.Settled >= n }))
}

// pass lets a time pass that is itself what is tested.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// expectHandedBack waits until at least one job came back for the journal's sake.
func (s *stub) expectHandedBack() {
	s.t.Helper()
	testkit.Must(s.t, s.WaitFor(wait.Context(s.t), func(c gateway.Counts) bool { return c.HandedBack > 0 }))
	for _, record := range s.Journal() {
		for _, a := range record.Answers {
			if a.Method == gateway.FailJob && a.Retries > 0 && !strings.Contains(a.Message, "journal cannot be written") && !strings.Contains(a.Message, "journal took too long") {
				s.t.Errorf("job %d came back with %q, want the reason", record.Key, a.Message)
			}
		}
	}
}

// expectNoPolls fails where the worker asked for jobs, or got any, since the journal was noticed to be down. What was on its way then
// may come: one poll of each type.
func (s *stub) expectNoPolls(since time.Time) {
	s.t.Helper()
	polls := map[string]int{}
	for _, p := range s.Polls("") {
		if !p.At.After(since) {
			continue
		}
		if polls[p.Type]++; polls[p.Type] > 1 || p.At.After(since.Add(underWay)) {
			s.t.Errorf("the worker asked for jobs %s %v after its journal could not be written", p.Type, p.At.Sub(since))
		}
	}
	for _, record := range s.Journal() {
		for _, given := range record.Activations {
			if given.At.After(since.Add(underWay)) {
				s.t.Errorf("job %d was given out %v after the journal was down", record.Key, given.At.Sub(since))
			}
		}
		for _, a := range record.Answers {
			if a.Settled && a.At.After(since.Add(underWay)) && a.Method != gateway.FailJob {
				s.t.Errorf("job %d was answered %v after the journal was down", record.Key, a.At.Sub(since))
			}
		}
	}
}
