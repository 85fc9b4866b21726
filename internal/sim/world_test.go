package sim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/clock"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/events"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/outbox"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// secret is in what people type and in some errors; no sink may have it.
const secret = "senha=abracadabra de " + patient

// secrets are for error texts: a world uses one of them.
var secrets = [...]string{secret, "paciente: Ana Abracadabra", "700000000000005, fale com abracadabra@hospital.example ou (11) 98765-4321",
	"em https://robo:abracadabra@portal.example/envio?token=abracadabra"}

// cpfs are in the ids of some claims, and only the journal may have them. patient is in texts, which even the journal
// redacts.
var cpfs = [...]string{"529.982.247-25", "123.456.789-09"}

const patient = "12345688700" // its check digits are 0 for 10

// isRedacted reports whether a text has none of the secrets of error texts and people's reasons.
func isRedacted(text string) bool {
	in := func(part string) bool { return strings.Contains(text, part) }
	return !slices.ContainsFunc([]string{"abracadabra", "Abracadabra", patient, "700000000000005", "98765-4321"}, in)
}

// leaks reports whether a text outside the journal has something that it must not have.
func leaks(text string) bool { return outside(text) != text || !isRedacted(text) }

// nameOf returns the id of the n-th claim.
func nameOf(n int) string {
	if n%5 == 4 {
		return fmt.Sprintf("CLM-SIM-%d-%s", n, cpfs[n/5%len(cpfs)])
	}
	return fmt.Sprintf("CLM-SIM-%d", n)
}

// outside returns a claim's id as it may leave the journal.
func outside(claim string) string {
	for _, cpf := range cpfs {
		claim = strings.ReplaceAll(claim, cpf, "[CPF]")
	}
	return claim
}

// faults are the kinds of fault that a run may have. The seed decides how often each strikes, if at all.
var faults = []string{"write fails", "write lost its acknowledgement", "write hangs", "write hangs when done", "decided twice",
	"killed in mid-commit", "read fails", "lease lost", "lease stolen", "lease told late", "answer lost", "answer hangs", "engine busy", "answer late",
	"acknowledgement lost", "error not thrown", "error not caught", "given to two", "offered late", "cut off",
	"receiver fails", "receiver refuses", "receiver hangs", "receiver hangs when done", "event not taken", "event taken in silence", "event taken slowly",
	"store slow", "dead letter not read", "told late of its record"}

// frequent are faults with so many occasions that they strike a tenth as often.
var frequent = []string{"killed in mid-commit", "read fails", "lease lost", "lease told late"}

// plan is what to play: what the seed draws, less what shrinking takes away.
type plan struct {
	seed    uint64
	luck    int             // varies faults, and who goes first
	without map[string]bool // labels or kinds of claims, faults and disturbances
	// horizon is how long faults and disturbances last. Then all is calm, and every claim must come to its end.
	horizon time.Duration
	// limit ends the world; 0: it ends when every claim has.
	limit time.Duration
}

// sim is a simulated world.
type sim struct {
	scheduler
	memory    *testkit.Memory
	rates     map[string]int // of faults, in 1000
	replicas  []*replica
	processes []*process
	drawn     int // claims, including those that shrinking took away
	jobs      map[int64]*job
	portals   map[string]*portal
	policies  decision.Policies
	limit     time.Duration // of all retries of a claim
	settings  gate.Settings
	teams     map[decision.Team]catalogue.Team
	gone      time.Time // when the engine went away
	mute      bool      // and what it is told meanwhile is lost
	away      time.Time // until when
	deaf      time.Time // until when nobody takes events
	jumped    time.Time // when a clock last did
	storeAway time.Time // until when somebody cannot reach the store
	unread    time.Time // when a dead letter last could not be read
	lazy      bool      // people decide by bulk runs alone
	crowd     bool      // many claims come at once
	puzzling  bool      // most errors are unknown
	secret    string    // of error texts
	steady    bool      // nothing breaks, so promises for quiet times hold
	runs      []string  // bulk runs that people started
	unknown   string    // the cause of errors that nobody knows
	calm      bool
	calmSince time.Time
	lasted    time.Duration
	struck    []string // labels of what shrinking may take away
	running   sync.WaitGroup
	invariants
	broker
	trail   *trace
	holders map[string]string          // the last holder of each lease
	terms   map[string]context.Context // by lease: the current term

	refused      string    // of events that nobody takes
	refusedUntil time.Time // until when
	configured   time.Time // when paces last changed
	paceBefore   float64   // of all portals
	started      time.Time // when a replica last did
	forgot       time.Time // when a replica last may have missed a record, or was late
	ledSince     time.Time // when the lease of the gates last changed hands
	ranSince     time.Time // when the lease of bulk runs was last given
}

// replica is a worker.
type replica struct {
	*sim
	name     string
	number   int
	offset   time.Duration // of its requests for leases
	skew     time.Duration // of its clock
	drift    time.Duration // of its clock, each minute
	drifts   time.Time     // since when
	readOnly time.Time     // until when it cannot write
	slow     time.Time     // until when its writes take long
	cut      time.Time     // until when it does not reach the store
	closed   bool          // its journal cannot be written
	life     context.Context
	kill     context.CancelFunc
	parts    []*part // in the order of their end
	leaving  bool
	journal  *journal.Journal
	gates    *gate.Gates
	letters  *deadletter.Service
	sink     *worker.ReviewSink
	worker   *worker.Worker
	store    *store
	leases   map[string]int // how often each was given without a break
	led      time.Time      // when it last got the lease of the gates
	handlers *worker.Handlers
}

// part is what ends together in a replica.
type part struct {
	context.Context
	end     context.CancelFunc
	running sync.WaitGroup
}

// do runs what, which belongs to a part.
func (r *replica) do(p *part, what func(stop context.Context)) {
	p.running.Add(1)
	r.running.Go(func() {
		defer p.running.Done()
		what(p)
	})
}

// Now and Rest are the replica's clock: wrong, jumping, drifting. Two differ by at most journal.ClockTolerance.
func (r *replica) Now() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	off := r.skew + time.Duration(time.Since(r.drifts).Minutes()*float64(r.drift))
	return time.Now().Add(min(max(off, -journal.ClockTolerance/2), journal.ClockTolerance/2))
}

// Rest ends a moment late: if a rest and a wake-up come at one instant, the product may take either.
func (r *replica) Rest(ctx context.Context, d time.Duration) { clock.Machine{}.Rest(ctx, max(d, 0)+3) }

func newSim(p plan) *sim {
	s := &sim{memory: testkit.NewMemory(), rates: map[string]int{}, jobs: map[int64]*job{}, portals: map[string]*portal{},
		policies: catalogue.Default().Policies, trail: newTrace(), broker: newBroker(), holders: map[string]string{}, terms: map[string]context.Context{},
		scheduler: scheduler{plan: p, began: time.Now(), nth: map[string]int{}, wake: make(chan struct{}, 1)}}
	s.invariants.init()
	s.check = s.checkStep
	s.lazy, s.crowd = s.draw("lazy").IntN(3) == 0, s.draw("crowd").IntN(3) == 0
	s.secret = secrets[s.draw("secret").IntN(len(secrets))]
	s.puzzling, s.steady = s.draw("puzzling").IntN(6) == 0, s.draw("steady").IntN(4) == 0
	for _, f := range faults {
		if s.steady {
			break
		}
		s.rates[f] = []int{0, 0, 10, 30, 150}[s.draw("rate of "+f).IntN(5)]
		if slices.Contains(frequent, f) {
			s.rates[f] /= 10
		} else if strings.HasPrefix(f, "error not") { // because few claims are given up
			s.rates[f] *= 3
		}
	}
	destinations := map[string]destination.Settings{}
	for i := range 1 + s.draw("portals").IntN(3) {
		w, at := &portal{probed: s.draw("probed").IntN(4) == 0, slowest: []int{20, 20, 120}[s.draw("slowest").IntN(3)]}, s.began
		name := fmt.Sprintf("portal-%d", i)
		longest := []int{60, 60, 60, 240}[s.draw("longest "+name).IntN(4)]
		for dice := s.draw(name); at.Before(s.began.Add(p.horizon)); {
			from, how := at.Add(time.Duration(dice.IntN(90))*time.Minute), trouble(dice.IntN(4))
			switch first := at.Equal(s.began); {
			case first && s.lazy: // so that people find many dead letters
				from, how = at, refusesAll
			case first && s.crowd: // so that many claims wait
				from, how = at, isDown
			}
			at = from.Add(time.Duration(dice.IntN(longest)) * time.Minute)
			if s.may(fmt.Sprint(name, " is down #", len(w.troubles))) {
				w.troubles = append(w.troubles, stretch{from, at, how})
			}
		}
		if dice := s.draw("hours " + name); dice.IntN(3) == 0 && s.may(name+" has hours") {
			w.shut(dice, s.began, p.horizon)
			s.say("%s is closed %v", name, w.closed)
		}
		s.portals[name], destinations[name] = w, w.settings()
	}
	policy := *s.policies[decision.DefaultPolicy]
	policy.Destinations.Named, policy.Stretch = destinations, s.draw("stretch").IntN(3) == 0
	s.limit = []time.Duration{48 * time.Hour, 48 * time.Hour, 3 * time.Hour, 100 * time.Minute}[s.draw("limit").IntN(4)]
	policy.TotalLimit, policy.Context = s.limit, []decision.ContextField{{Variable: worth, Type: decision.ContextMoney}, {Variable: remark, Type: decision.ContextText}}
	s.policies = decision.Policies{decision.DefaultPolicy: &policy}
	s.configure()
	return s
}

// may notes what shrinking may take away, and reports whether it has not done so.
func (s *sim) may(label string) bool {
	if s.without[label] || s.without[kind(label)] {
		return false
	}
	s.struck = append(s.struck, label)
	return true
}

// kind returns a label without its number.
func kind(label string) string {
	of, _, _ := strings.Cut(label, " #")
	return of
}

// sometimes reports whether something happens now: n of so many times, and never once all is calm.
func (s *sim) sometimes(label string, n, of int) bool {
	happens := s.draw(s.lucky(label)).IntN(of) < n
	s.mu.Lock()
	happens = happens && !s.calm && s.may(s.here(label))
	s.mu.Unlock()
	if happens {
		s.say("%s", label)
	}
	return happens
}

// fault reports whether a kind of fault strikes now.
func (r *replica) fault(kind string) bool { return r.sim.fault(r.name, kind) }

func (s *sim) fault(label, kind string) bool {
	return s.rates[kind] > 0 && s.sometimes(kind+" "+label, s.rates[kind], 1000)
}

// log fails if a secret is written to it.
type log struct{ s *sim }

func (l log) Write(b []byte) (int, error) {
	if leaks(string(b)) {
		l.s.fail("the log has a secret: %s", b)
	}
	return len(b), nil
}
func (log) Sync() error { return nil }

// start starts a replica, or starts it again.
func (s *sim) start(n int) {
	r := &replica{sim: s, name: fmt.Sprintf("r%d", n), number: n, offset: time.Duration(n+1) * 13_331 * time.Microsecond, leases: map[string]int{}}
	r.life, r.kill = context.WithCancel(context.Background())
	for range 4 {
		ctx, end := context.WithCancel(r.life)
		r.parts = append(r.parts, &part{Context: ctx, end: end})
	}
	jobs, gates, relays, records := r.parts[0], r.parts[1], r.parts[2], r.parts[3]
	r.store = &store{s.memory, r}
	written := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), log{s}, zapcore.InfoLevel))
	hooks := journal.NoHooks()
	hooks.Committed = func(all []journal.Happening, _ time.Duration) {
		if len(all) == 0 {
			return
		}
		if r.fault("told late of its record") { // it has read the record by then
			set(&r.mu, &r.forgot, time.Now())
			r.Rest(r.life, 1200*time.Millisecond)
			r.port(r.name + " hears")
		}
		r.gates.Recorded(all)
	}
	publisher := events.Publisher(func(portal string) string { return portal })
	hooks.Open = func(open bool, _ error) {
		if r.life.Err() != nil { // others go on at the same instant, in an order that the seed does not decide
			return
		}
		r.closed = !open
		s.say("the journal of %s can be written: %t", r.name, open)
	}
	r.journal = journal.New(r.store, r.Now, publisher, hooks)
	policies := func() decision.Policies { return get(&s.mu, &s.policies) }
	r.gates = gate.New(gate.Options{Store: r.store, Memory: memory{r.journal, r}, Engine: r, Clock: r, Zone: time.UTC, Hooks: worker.NoHooks(),
		Log: written, Probe: r.probe, Settings: func() gate.Settings { return get(&s.mu, &s.settings) }})
	up := func() time.Time {
		away := get(&s.mu, &s.away)
		if time.Now().Before(away) {
			return time.Time{}
		}
		return cmp.Or(away, s.began.Add(-time.Hour))
	}
	r.letters = deadletter.New(r.store, r.journal, policies, r.Now, up)
	r.handlers = worker.NewHandlers(worker.Options{Policies: policies, Memory: r.journal, Now: r.Now, Hooks: worker.NoHooks(), Log: written,
		Expected: r.gates.Expected, Engine: r, Admit: r.admit, Letters: r.store, Answered: func() {}})
	r.worker = r.handlers.Worker(worker.Config{}, worker.AnalyzeRetry)
	r.sink = &worker.ReviewSink{Options: r.handlers.Options, Record: memory{r.journal, r}.Delivered}
	runner := deadletter.Runner{Items: r.store, Decide: r.decideInRun, Memory: memory{r.journal, r}, Clock: r, EngineUp: up, Log: written}
	r.do(records, func(stop context.Context) { r.journal.Run(stop, r.life) })
	r.do(gates, r.gates.Run)
	lead := func(p *part, name string, work func(stop, hard context.Context)) {
		r.do(p, func(stop context.Context) {
			outbox.Lead(stop, r.life, r.store, name, fmt.Sprint(r.name, time.Since(s.began)), func(stop, hard context.Context) {
				s.mu.Lock()
				s.terms[name] = stop
				s.mu.Unlock()
				work(stop, hard)
			})
		})
	}
	lead(gates, gate.Lease, r.gates.Lead)
	lead(jobs, deadletter.BulkLease, runner.Run)
	lead(relays, "notify", r.gather(written))
	r.carryAll(relays, written)
	s.replicas[n], s.started = r, time.Now()
	s.say("%s starts", r.name)
}

// die kills a replica, and starts it again after a while.
func (r *replica) die() {
	if r.life.Err() != nil || r.steady {
		return
	}
	r.say("%s is killed", r.name)
	r.kill()
	r.in(time.Duration(r.draw("begin again").IntN(120))*time.Second, func() { r.start(r.number) })
}

// leave stops a replica as an operator does: it takes no more jobs, and has a while to finish those it has.
func (r *replica) leave() {
	if r.leaving || r.steady {
		return
	}
	r.say("%s is to end", r.name)
	r.leaving = true
	r.in(20*time.Second, r.die)
	r.running.Go(func() {
		for _, p := range r.parts {
			r.Rest(r.life, 7*time.Millisecond)
			p.end()
			p.running.Wait()
		}
		r.port(r.name + " has ended")
		r.die()
	})
}

// up returns the replicas that run and ask for jobs.
func (s *sim) up() []*replica {
	return slices.DeleteFunc(slices.Clone(s.replicas), func(r *replica) bool { return r.life.Err() != nil || r.closed || r.leaving })
}

// oneOf returns one of the replicas.
func (s *sim) oneOf(label string, of []*replica) *replica {
	return pick(&s.scheduler, label, of, func(r *replica) string { return r.name })
}

// play plays a plan in fake time and returns the world at its end.
func play(t *testing.T, p plan) (s *sim) {
	synctest.Test(t, func(t *testing.T) {
		s = newSim(p)
		s.employ(t)
		for range 1 + s.draw("replicas").IntN(4) {
			if n := len(s.replicas); n == 0 || s.may(fmt.Sprint("replica ", n)) {
				s.replicas = append(s.replicas, nil)
				s.in(time.Duration(n)*137_113*time.Microsecond, func() { s.start(n) })
			}
		}
		s.run(s.began.Add(time.Second), func() bool { return false })
		s.arrive()
		s.disturb()
		s.silent()
		s.people()
		if p.limit == 0 || p.limit > p.horizon {
			s.run(s.began.Add(p.horizon), func() bool { return false })
			s.calmDown()
		}
		last := cmp.Or(p.limit, p.horizon+12*time.Hour)
		if s.run(s.began.Add(last), s.over); p.limit == 0 || s.over() {
			s.checkEnd()
		}
		s.ended, s.lasted = true, time.Since(s.began)
		for _, r := range s.replicas {
			r.kill()
		}
		s.drain(&s.running)
	})
	return s
}

// arrive lets claims come in the first half of the horizon, or closer together. Many come in one batch, some twice,
// some with a deadline.
func (s *sim) arrive() {
	names := s.portalNames()
	draw := s.draw("claims")
	claims, within := 3+draw.IntN(30), s.horizon/2
	if s.lazy { // so that there is something to do
		claims, within = 3*claims, time.Hour
	} else if s.crowd {
		claims, within = 3*claims, []time.Duration{time.Hour, 10 * time.Minute, 30 * time.Second}[draw.IntN(3)]
	}
	s.drawn = claims
	batch := s.draw("batch")
	sent, batches := time.Duration(batch.Int64N(int64(within))), batch.IntN(3) == 0
	for i := range claims {
		claim := nameOf(i + 1)
		dice := s.draw(claim)
		at := time.Duration(dice.Int64N(int64(within)))
		if batches && batch.IntN(2) == 0 {
			at = sent + time.Duration(batch.IntN(5000))*time.Millisecond
		}
		deadline := time.Time{}
		if dice.IntN(3) == 0 {
			deadline = s.began.Add(at + time.Duration(dice.IntN([]int{70, 610}[dice.IntN(2)])-10)*time.Minute).Truncate(time.Second)
		}
		name, twice := names[dice.IntN(len(names))], dice.IntN(12) == 0
		for _, c := range s.portals[name].closed { // due soon after its portal opens
			if soon := time.Duration(dice.IntN(15)) * time.Minute; !deadline.IsZero() && deadline.Sub(c.until) < 2*time.Hour && deadline.After(c.until) {
				deadline = c.until.Add(soon)
			}
		}
		if !s.may(claim) {
			continue
		}
		s.send(claim, name, int64(i+1)*1_000_000, at, deadline)
		if twice {
			s.send(claim, name, int64(i+1)*1_000_000+another, at+time.Duration(dice.IntN([]int{7200, 7200, 30}[dice.IntN(3)]))*time.Second, deadline)
		}
	}
}

func (s *sim) portalNames() []string { return slices.Sorted(maps.Keys(s.portals)) }

// another is what a second process instance of a claim, which may know the retries, adds to its keys.
const another = 500_000

// elsewhere is what an instance that an operator starts adds.
const elsewhere = another / 2

// worth is the variable with the claim's amount, remark one with a person's text.
const worth, remark = "valor", "obs"

// worthOf returns a claim's amount, in hundredths.
func worthOf(claim string) int64 { return int64(len(claim)+int(claim[len(claim)-1])%3) * 100_00 }

func (s *sim) send(claim, to string, key int64, after time.Duration, deadline time.Time) {
	twin := key/another%2 == 1
	p := &process{claim: claim, portal: to, key: key, deadline: deadline, vars: map[string]any{"claimId": claim, "operadora": to, worth: worthOf(claim) / 100, remark: typed},
		gateless: s.draw("gateless "+claim).IntN(map[bool]int{false: 6, true: 2}[twin]) == 0}
	if !deadline.IsZero() {
		p.vars["submissionDeadline"] = deadline
	}
	s.processes = append(s.processes, p)
	s.in(after, func() {
		if first := s.jobs[key-another+10]; twin && first != nil { // it may know the retries so far, or those before the last
			n, known := first.vars["retryCount"].(float64)
			if less := s.draw("count").IntN(3); known && less < 2 {
				p.vars["retryCount"] = max(n-float64(less), 0)
			}
		}
		s.say("%s begins, for %s", claim, to)
		s.create(p)
	})
}
