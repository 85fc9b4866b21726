package chaos_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
)

const (
	// underWay is how long polls and answers that were on their way when the journal closed may take on a busy machine.
	underWay = 10 * time.Second
	// feedEvery is the pause between two portions of load, feed what one holds.
	feedEvery = 100 * time.Millisecond
	feed      = 5
)

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
