package scenarios

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/postgres"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
	"retry-worker/internal/zeebe"
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
	name, engine string
	arrival      time.Duration
	// ordered tells that claims go by their deadlines: none comes back when others have gone.
	ordered  bool
	replicas int
	fails    func(p *downPortal, now time.Time) string
}

func down(*downPortal, time.Time) string { return timedOut }

// ways are all; those after the first are played where PROOF_PORTALS says so.
var ways = []way{
	{"down", "load", arrival, true, 1, down},
	{"down, by gRPC", "portal", arrival, true, 1, down},
	{"up 30 s, down 90 s", "load", arrival, false, 1, func(p *downPortal, now time.Time) string {
		if now.Sub(p.down)%(2*time.Minute) < 30*time.Second {
			return ""
		}
		return timedOut
	}},
	{"answers one in three", "load", arrival, false, 1, func(p *downPortal, _ time.Time) string {
		if len(p.all)%3 == 0 {
			return ""
		}
		return timedOut
	}},
	{"takes half of what may come", "load", time.Second, false, 1, func(p *downPortal, now time.Time) string {
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
	{"down, two replicas", "load", arrival, true, 2, down},
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

// TestClaimsWaitForADownPortal: a portal goes down, claims go on arriving, and the worker is killed now and then. One claim at
// a time is sent ahead, the others wait without losing a retry; once the portal is back all are submitted, at the pace, the
// nearest deadline first.
func TestClaimsWaitForADownPortal(t *testing.T) {
	for _, way := range ways[:harness.Setting(t, "PROOF_PORTALS", 1)] {
		t.Run(way.name, func(t *testing.T) { playOutage(t, beginAlone(t, way.engine), &way) })
	}
}

func playOutage(t *testing.T, s *scenario, way *way) {
	claims, kills := harness.Setting(t, "PROOF_HELD", fewHeld), harness.Setting(t, "PROOF_HELD_KILLS", 3)
	outage := time.Duration(claims) * way.arrival
	p := &downPortal{now: s.clock.Now, down: s.begun.Add(time.Minute), up: s.begun.Add(time.Minute + outage), fails: way.fails}
	s.submitTo(t, p, time.Hour)
	database := harness.Database(t.TempDir())
	if way.replicas > 1 {
		database = postgres.Database(t)
	}
	replicas := make([]*process, way.replicas)
	for i := range replicas {
		replicas[i] = s.serve("held", "RETRY_WORKER_DATABASE_URL="+database)
	}
	served := time.Now() // a lease lasts by this machine's clock, which the scenario's leaves far behind
	deadlines, next, killed, before := map[string]time.Time{}, s.begun, 0, 0
	for end := p.up.Add(4 * time.Hour); ; {
		if now := s.clock.Now(); len(s.keys) < claims && !now.Before(next) {
			id := s.claimID(len(s.keys))
			deadlines[id] = p.up.Add(24*time.Hour - time.Duration(len(s.keys))*time.Minute)
			s.create("SUB_06", map[string]any{"claimId": id, "operadora": "unimed-sp", "submissionDeadline": deadlines[id]})
			next = next.Add(way.arrival)
		} else if len(s.keys) == claims && s.allOver() {
			break
		} else if now.After(end) && time.Since(served) > wait.Limit {
			t.Fatalf("not all are submitted %v after the portal is back", end.Sub(p.up))
		}
		if killed < kills && s.clock.Now().After(p.down.Add(time.Duration(killed+1)*outage/time.Duration(kills+1))) {
			w := &replicas[killed%way.replicas]
			before += (*w).released(t)
			(*w).Kill()
			*w = s.serve("held", "RETRY_WORKER_DATABASE_URL="+database)
			killed, served = killed+1, time.Now()
		}
		before += p.await(t, before, replicas)
		s.move(t, p, way.step(s.clock.Now(), p))
	}
	p.check(t, deadlines, way.ordered)
	wasted := len(p.all) - claims
	each := 5 * time.Minute // a canary
	if !way.ordered {       // and of the ramp that one may begin, one more
		each = 2 * time.Minute
	}
	if most := 5 + int(outage/each) + 3 + kills; wasted > most { // five in a row, and a canary a minute after going down
		t.Errorf("%d submissions failed, at most %d may", wasted, most)
	}
	for _, key := range s.keys {
		if i := s.instance(key); len(i.incidents) > 0 || i.endedBy == "discarded" {
			t.Errorf("%s", i.describe())
		}
	}
	for _, w := range replicas {
		w.Kill()
	}
	s.run(database, "audit", "verify")
	if n := strings.Count(s.run(database, "audit", "export"), `"kind":"attempt"`); n != wasted {
		t.Errorf("%d attempts are in the audit, expected one of each of %d submissions that failed", n, wasted)
	}
	s.done("a portal that is down", "%d claims, %v down, worker killed %d times, %d submissions failed", claims, outage, kills, wasted)
}

// move moves the clock a step when nobody has a claim in hand: however busy the machine is, no job times out that a worker
// has. One whose worker was killed does, for which the clock has to go on after a while; but the portal is up only when
// all claims that came are held, or went: whose turn it is, is told of these.
func (s *scenario) move(t *testing.T, p *downPortal, step time.Duration) {
	t.Helper()
	now, most := s.clock.Now(), lostStanding
	if now.Before(p.up) && !now.Add(step).Before(p.up) {
		most = mostStanding
	}
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	s.history.Until(ctx, func() bool {
		return s.all(s.keys, func(i *instance) bool { return i.over() || i.atRest() })
	})
	testkit.Must(t, s.clock.MoveTo(t.Context(), now.Add(step)))
}

const (
	// clockStep is how far the clock moves where claims may go.
	clockStep = 500 * time.Millisecond
	// mostStanding bounds how long it stands for claims of which nothing may come, and lostStanding where a worker that was
	// killed may have them.
	mostStanding, lostStanding = wait.Limit, 500 * time.Millisecond
)

// step is how far the clock moves: further where one claim at a time may go at most.
func (w *way) step(now time.Time, p *downPortal) time.Duration {
	if w.ordered && now.Before(p.up) {
		return 10 * clockStep
	}
	return clockStep
}

// await returns when the portal has seen all claims that were let through: by these workers, and before them. The clock
// stands meanwhile, so that it shows the portal what the gate saw. It returns what is to be added to those before: a
// worker that is killed does not tell of its last ones.
func (p *downPortal) await(t *testing.T, before int, workers []*process) int {
	for begun := time.Now(); ; time.Sleep(askEvery) {
		p.mu.Lock()
		underWay := before - len(p.all)
		p.mu.Unlock()
		for _, w := range workers {
			underWay += w.released(t)
		}
		if underWay <= 0 || time.Since(begun) > mostStanding { // one may be let through twice, by a busy engine
			return -underWay
		}
	}
}

var releasedTotal = regexp.MustCompile(`(?m)^retry_worker_released_total\{.*\} (\d+)$`)

// released is how many claims the worker let through.
func (p *process) released(t *testing.T) (n int) {
	for _, m := range releasedTotal.FindAllStringSubmatch(get(t, p.Ops+"/metrics"), -1) {
		of, _ := strconv.Atoi(m[1]) // digits only
		n += of
	}
	return n
}

// allOver reports whether all instances have ended.
func (s *scenario) allOver() bool {
	s.history.Lock()
	defer s.history.Unlock()
	return s.all(s.keys, (*instance).over)
}

// submitTo has the portal take jobs until the test ends. One that is lost on its way comes again after that time.
func (s *scenario) submitTo(t *testing.T, p *downPortal, jobTimeout time.Duration) {
	client, err := zeebe.Dial(zeebe.Options{Address: s.GatewayAddress(), Plaintext: true, PlainErrors: true}, zap.NewNop())
	testkit.Must(t, err)
	stop, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		worker.New(client, worker.Config{Name: "portal", JobTimeout: jobTimeout, PollTimeout: 500 * time.Millisecond, MaxJobsActive: 32,
			Concurrency: 8}, []worker.Subscription{{JobType: submitClaim, Begin: worker.Always(p.submit, "claimId", "gateCanary", "gateReason")}},
			worker.NoHooks(), zap.NewNop()).Run(stop, context.Background())
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		_ = client.Close()
	})
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
			if later.at.Sub(x.at) < 10*time.Second-2*clockStep {
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
