package scenarios

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
	"retry-worker/internal/zeebe"
)

const (
	// fewHeld claims arrive during an outage where PROOF_HELD does not say otherwise, one each arrival.
	fewHeld = 60
	arrival = 21600 * time.Millisecond // 500 in three hours
	// mostAMinute is the pace of a destination that nobody configured.
	mostAMinute = 60
)

// submitted is one submission, as the portal saw it.
type submitted struct {
	claim  string
	at     time.Time
	canary bool
	ok     bool
}

// downPortal takes submissions until it goes down, and from when it is up again.
type downPortal struct {
	now      func() time.Time
	down, up time.Time

	mu  sync.Mutex
	all []submitted
}

func (p *downPortal) submit(_ context.Context, j *worker.Job) worker.Reply {
	var v struct {
		ClaimID    string
		GateCanary bool
	}
	if err := json.Unmarshal([]byte(j.Variables), &v); err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	ok := now.Before(p.down) || !now.Before(p.up)
	p.all = append(p.all, submitted{v.ClaimID, now, v.GateCanary, ok})
	if ok {
		return worker.Reply{Action: worker.Completed, Variables: "{}"}
	}
	return worker.Reply{Action: worker.Thrown, Error: worker.BPMNError{Code: errorCodes[j.Type], Message: "the portal is down",
		Variables: jsonOf(map[string]any{"submissionError": "Read timed out after 30000 ms"})}}
}

// TestClaimsWaitForADownPortal: a portal goes down, claims go on arriving, and the worker is killed now and then. One claim at
// a time is sent ahead, the others wait without losing a retry; once the portal is back all are submitted, at the pace, the
// nearest deadline first.
func TestClaimsWaitForADownPortal(t *testing.T) {
	claims, kills := harness.Setting(t, "PROOF_HELD", fewHeld), harness.Setting(t, "PROOF_HELD_KILLS", 3)
	s := beginAlone(t, "load")
	outage := time.Duration(claims) * arrival
	p := &downPortal{now: s.clock.Now, down: s.begun.Add(time.Minute), up: s.begun.Add(time.Minute + outage)}
	s.submitTo(t, p)
	database := harness.Database(t.TempDir())
	w := s.serve("held", "RETRY_WORKER_DATABASE_URL="+database)
	deadlines, next, killed := map[string]time.Time{}, s.begun, 0
	for end := p.up.Add(4 * time.Hour); ; {
		if now := s.clock.Now(); len(s.keys) < claims && !now.Before(next) {
			id := s.claimID(len(s.keys))
			deadlines[id] = p.up.Add(24*time.Hour - time.Duration(len(s.keys))*time.Minute)
			s.create("SUB_06", map[string]any{"claimId": id, "operadora": "unimed-sp", "submissionDeadline": deadlines[id]})
			next = next.Add(arrival)
		} else if len(s.keys) == claims && s.allOver() {
			break
		} else if now.After(end) {
			t.Fatalf("not all are submitted %v after the portal is back", end.Sub(p.up))
		}
		if killed < kills && s.clock.Now().After(p.down.Add(time.Duration(killed+1)*outage/time.Duration(kills+1))) {
			w.Kill()
			w = s.serve("held", "RETRY_WORKER_DATABASE_URL="+database)
			killed++
		}
		step := 5 * time.Second
		if !s.clock.Now().Before(p.up) {
			step = 500 * time.Millisecond // so that the clock does not leap over a turn
		}
		testkit.Must(t, s.clock.MoveTo(t.Context(), s.clock.Now().Add(step)))
	}
	p.check(t, deadlines)
	wasted := len(p.all) - claims
	if most := 5 + int(outage/time.Minute/5) + 3 + kills; wasted > most { // five in a row, a canary each five minutes, a minute after going down
		t.Errorf("%d submissions failed, at most %d may", wasted, most)
	}
	for _, key := range s.keys {
		if i := s.instance(key); len(i.incidents) > 0 || i.endedBy == "discarded" {
			t.Errorf("%s", i.describe())
		}
	}
	w.Kill()
	s.run(database, "audit", "verify")
	s.done("a portal that is down", "%d claims, %v down, worker killed %d times, %d submissions failed", claims, outage, kills, wasted)
}

// allOver reports whether all instances have ended.
func (s *scenario) allOver() bool {
	s.history.Lock()
	defer s.history.Unlock()
	return s.all(s.keys, (*instance).over)
}

// submitTo has the portal take jobs until the test ends.
func (s *scenario) submitTo(t *testing.T, p *downPortal) {
	client, err := zeebe.Dial(zeebe.Options{Address: s.GatewayAddress(), Plaintext: true, PlainErrors: true}, zap.NewNop())
	testkit.Must(t, err)
	stop, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		worker.New(client, worker.Config{Name: "portal", JobTimeout: time.Hour, PollTimeout: 500 * time.Millisecond, MaxJobsActive: 32,
			Concurrency: 8}, []worker.Subscription{{JobType: submitClaim, Begin: worker.Always(p.submit, "claimId", "gateCanary")}},
			worker.NoHooks(), zap.NewNop()).Run(stop, context.Background())
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		_ = client.Close()
	})
}

// check holds what was submitted against what may be.
func (p *downPortal) check(t *testing.T, deadlines map[string]time.Time) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortStableFunc(p.all, func(a, b submitted) int { return a.at.Compare(b.at) })
	var lastCanary, ramp time.Time
	var last string // of the ramp
	for i, x := range p.all {
		in := 0
		for _, later := range p.all[i:] {
			if later.at.Sub(x.at) < 10*time.Second {
				in++
			}
		}
		if most := mostAMinute / 6 * 11 / 10; in > most {
			t.Errorf("%d are submitted within 10 s of %v, at most %d may be", in, x.at, most)
		}
		switch {
		case x.canary && !x.ok:
			if apart := x.at.Sub(lastCanary); apart < 59*time.Second {
				t.Errorf("two canaries within %v", apart)
			}
			lastCanary = x.at
		case x.canary && ramp.IsZero():
			ramp = x.at
		case x.canary:
			if last != "" && deadlines[x.claim].Before(deadlines[last]) && deadlines[x.claim].Sub(deadlines[last]).Abs() > time.Minute {
				t.Errorf("%s goes after %s, whose deadline is later", x.claim, last)
			}
			last = x.claim
		}
	}
}
