package scenarios

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/worker"
)

const (
	// fewHeld claims arrive during an outage where PROOF_HELD does not say otherwise, one each arrival.
	fewHeld = 60
	arrival = 21600 * time.Millisecond // 500 in three hours
	// timedOut is what a portal says that is down.
	timedOut = "Read timed out after 30000 ms"
	// mostAMinute is the pace of a destination that nobody configured.
	mostAMinute = 60
)

// submitted is one submission, as the portal saw it.
type submitted struct {
	claim  string
	at     time.Time
	held   bool // at a gate that was not up
	canary bool
	ok     bool
}

// downPortal takes submissions until it goes down, and from when it is up again.
type downPortal struct {
	now      func() time.Time
	down, up time.Time
	// fails returns why a submission fails meanwhile; empty where it does not.
	fails func(p *downPortal, now time.Time) string

	mu  sync.Mutex
	all []submitted
}

// way in which a portal is down.
type way struct {
	name, protocol string
	arrival        time.Duration
	// ordered tells that claims go by their deadlines: none comes back when others have gone.
	ordered bool
	// unnoticed tells that it does not count as down: of too few claims, too many are taken.
	unnoticed bool
	fails     func(p *downPortal, now time.Time) string
}

func down(*downPortal, time.Time) string { return timedOut }

var ways = []way{
	{"down", byREST, arrival, true, false, down},
	{"down, by gRPC", byGRPC, arrival, true, false, down},
	{"up 30 s, down 90 s", byREST, arrival, false, false, func(p *downPortal, now time.Time) string {
		if now.Sub(p.down)%(2*time.Minute) < 30*time.Second {
			return ""
		}
		return timedOut
	}},
	{"answers one in three", byREST, arrival, false, true, func(p *downPortal, _ time.Time) string {
		if len(p.all)%3 == 0 {
			return ""
		}
		return timedOut
	}},
	{"takes half of what may come", byREST, time.Second, false, false, func(p *downPortal, now time.Time) string {
		taken := 0
		for _, s := range p.all {
			if s.ok && now.Sub(s.at) < 10*time.Second {
				taken++
			}
		}
		if taken < mostAMinute/6/2 {
			return ""
		}
		return "HTTP 429 Too Many Requests, Retry-After: 20"
	}},
}

func (p *downPortal) subscription() worker.Subscription {
	return worker.Subscription{JobType: submitClaim, Begin: worker.Always(p.submit, "claimId", "gateCanary", "gateReason")}
}

func (p *downPortal) submit(_ context.Context, j *worker.Job) worker.Reply {
	var v struct {
		ClaimID, GateReason string
		GateCanary          bool
	}
	if err := json.Unmarshal([]byte(j.Variables), &v); err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	problem := ""
	if !now.Before(p.down) && now.Before(p.up) {
		problem = p.fails(p, now)
	}
	p.all = append(p.all, submitted{v.ClaimID, now, v.GateCanary, strings.Contains(v.GateReason, "sent ahead"), problem == ""})
	if problem == "" {
		return worker.Reply{Action: worker.Completed, Variables: "{}"}
	}
	return worker.Reply{Action: worker.Thrown, Error: worker.BPMNError{Code: errorCodes[j.Type], Message: "the portal is down",
		Variables: jsonOf(map[string]any{"submissionError": problem})}}
}

// TestClaimsWaitForADownPortal: a portal goes down, claims go on arriving, and the worker is ended at once now and then. One
// claim at a time is sent ahead, the others wait without losing a retry; once the portal is back all are submitted, at the
// pace, the nearest deadline first.
func TestClaimsWaitForADownPortal(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			inBubble(t, way.protocol, func(t *testing.T, s *world) { s.playOutage(t, &way) })
		})
	}
}

func (s *world) playOutage(t *testing.T, way *way) {
	claims, kills := harness.Setting(t, "PROOF_HELD", fewHeld), harness.Setting(t, "PROOF_HELD_KILLS", 3)
	outage := time.Duration(claims) * way.arrival
	p := &downPortal{now: s.clock.Now, down: s.begun.Add(time.Minute), up: s.begun.Add(time.Minute + outage), fails: way.fails}
	s.play(p.subscription())
	s.serve()
	deadlines := map[string]time.Time{}
	for n := range claims {
		s.clock.MoveTo(s.begun.Add(time.Duration(n) * way.arrival))
		id := s.claimID(n)
		deadlines[id] = p.up.Add(24*time.Hour - time.Duration(n)*time.Minute)
		key := s.create("SUB_06", map[string]any{"claimId": id, "operadora": "unimed-sp", "submissionDeadline": deadlines[id]})
		if every := claims / (kills + 1); n%every == every-1 && n/every < kills {
			s.awaitAll([]int64{key}, "the worker to have the claim in hand", func(i *instance) bool {
				gates := i.of(worker.SubmissionGate)
				return len(gates) > 0 && len(gates[0].activations) > 0
			})
			s.worker.kill()
			s.serve()
		}
	}
	s.passUntil(p.up.Add(4*time.Hour), (*instance).over)
	p.check(t, deadlines, way.ordered)
	wasted := len(p.all) - claims
	each := 5 * time.Minute // a canary
	if !way.ordered {       // and of the ramp that one may begin, one more
		each = 2 * time.Minute
	}
	most := 5 + int(outage/each) + 3 + kills // five in a row, and a canary a minute after going down
	if way.unnoticed {
		most = 2 * claims
	}
	if wasted > most {
		t.Errorf("%d submissions failed, at most %d may", wasted, most)
	}
	for _, key := range s.keys {
		if i := s.instance(key); len(i.incidents) > 0 || i.endedBy == "discarded" {
			t.Errorf("%s", i.describe())
		}
	}
	attempts := 0
	_, records := s.audited()
	for _, r := range records {
		if r.Kind == "attempt" {
			attempts++
		}
	}
	if attempts != wasted {
		t.Errorf("%d attempts are in the audit, expected one of each of %d submissions that failed", attempts, wasted)
	}
	s.done("a portal that is down", "%s: %d claims, %v, worker killed %d times, %d submissions failed",
		way.name, claims, outage, kills, wasted)
}

// passUntil lets time pass until something is true of all instances, at most until an instant.
func (s *world) passUntil(end time.Time, met func(*instance) bool) {
	s.t.Helper()
	for so := false; !so; s.clock.MoveTo(s.clock.Now().Add(time.Minute)) {
		if s.clock.Now().After(end) {
			s.t.Fatalf("not all is done at %v", end)
		}
		s.history.look(func() { so = s.all(s.keys, met) })
	}
}

// check holds what was submitted against what may be.
func (p *downPortal) check(t *testing.T, deadlines map[string]time.Time, ordered bool) {
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
		case x.held && ramp.IsZero():
			ramp = x.at
		case x.held && ordered:
			if last != "" && deadlines[x.claim].Before(deadlines[last]) && deadlines[x.claim].Sub(deadlines[last]).Abs() > time.Minute {
				t.Errorf("%s goes after %s, whose deadline is later", x.claim, last)
			}
			last = x.claim
		}
	}
}
