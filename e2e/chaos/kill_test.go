package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
)

const (
	// shortKills of each store where CHAOS_KILLS does not say otherwise.
	shortKills = 12
	// shortSeed is the default of CHAOS_SEED.
	shortSeed = 1
	// lifeClaims fail for the first time in each life of the worker.
	lifeClaims = 120
	// lifeRetries of a claim, in later lives.
	lifeRetries = 2
)

// manner is where in a job's way the worker is killed.
type manner int

const (
	beforeAnswer manner = iota // recorded, and the engine never hears of it
	afterAnswer                // the engine took the answer, and the worker never hears of it
	midCommit                  // while a transaction is written
	anywhere
	manners int = iota
)

var mannerNames = [manners]string{"between record and reply", "between reply and acknowledgement", "in mid-commit", "anywhere"}

func (m manner) String() string { return mannerNames[m] }

// killing is one run of kills on one store.
type killing struct {
	*stub
	random *rand.Rand
	url    string // through the proxy
	proxy  *proxy // nil on SQLite

	births []time.Time // of each life, on this machine's clock
	begins []time.Time // the same on the engine's
	kills  [manners]int
	idle   int // lives that ended before their kill: there was nothing left to do
}

// The worker is killed again and again under load and started again. Nothing may be decided twice, answered
// twice or otherwise, or left undone, and the chain must hold.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	kills, seed := harness.Setting(t, "CHAOS_KILLS", shortKills), harness.Setting(t, "CHAOS_SEED", shortSeed)
	for _, name := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			t.Logf("CHAOS_KILLS=%d CHAOS_SEED=%d replays this", kills, seed)
			k := &killing{stub: newStub(t, "KILL"), random: rand.New(rand.NewPCG(uint64(seed), 5)), url: newURL[name](t)}
			k.outcomes = true
			direct := k.url
			if name == "PostgreSQL" {
				k.proxy, k.url = newProxy(t, direct)
			}
			for range kills {
				k.life()
			}
			last := k.begin()
			k.settle()
			last.stop()
			k.judge(look(t, direct), name, seed, time.Since(begun))
		})
	}
}

// begin starts the worker with new load. What its predecessor held is free again.
func (k *killing) begin() *program {
	k.followUps(lifeRetries)
	k.claims(lifeClaims)
	k.Advance(jobTimeout)
	k.births, k.begins = append(k.births, time.Now()), append(k.begins, k.Now())
	return launch(k.t, settings{name: fmt.Sprintf("life-%d", len(k.births)), gateway: k.Addr(), url: k.url})
}

// life of one worker, up to its kill.
func (k *killing) life() {
	k.t.Helper()
	m := manner(k.random.IntN(manners))
	n := 1 + k.random.IntN(lifeClaims)
	aim := &aim{shot: make(chan struct{}), left: n, pause: time.Duration(k.random.IntN(5000)) * time.Microsecond, forward: k.random.IntN(2) == 0}
	disarm := k.arm(m, aim)
	p := k.begin()
	aim.at(p)
	want := len(k.jobs)
	done := make(chan error, 1)
	go func() {
		done <- k.WaitFor(wait.Context(k.t), func(c gateway.Counts) bool { return c.Settled >= want || aim.hit() })
	}()
	select {
	case <-aim.shot:
		k.kills[m]++
	case err := <-done:
		testkit.Must(k.t, err)
		if aim.hit() {
			k.kills[m]++
		} else {
			k.idle++
		}
	}
	p.Kill()
	disarm()
}

// aim kills a worker at the n-th event that its manner waits for.
type aim struct {
	mu      sync.Mutex
	left    int
	target  *program
	shot    chan struct{}
	pause   time.Duration // before the kill, of the manner that has no place of its own
	forward bool          // the commit reaches PostgreSQL all the same
}

func (a *aim) at(p *program) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.target = p
}

// event counts one, kills at the n-th, and tells whether the worker is dead, or as good as.
func (a *aim) event() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left--; a.left > 0 || a.target == nil {
		return false
	}
	if !a.hit() {
		_ = a.target.Signal(syscall.SIGKILL) // one that has ended is not killed again
		close(a.shot)
	}
	return true
}

func (a *aim) hit() bool {
	select {
	case <-a.shot:
		return true
	default:
		return false
	}
}

// arm lets what the manner waits for happen to the aim.
func (k *killing) arm(m manner, a *aim) (disarm func()) {
	k.t.Helper()
	switch m {
	case beforeAnswer:
		return k.Inject(gateway.Fault{Hang: true, Match: func(c gateway.Call) bool { return c.Answers() && a.event() }}).Remove
	case afterAnswer:
		return k.Inject(gateway.Fault{DropAck: true, Hang: true, Match: func(c gateway.Call) bool { return c.Answers() && a.event() }}).Remove
	case midCommit:
		a.left = 1 + a.left/10 // commits are shared
		if k.proxy != nil {
			k.proxy.arm(func() bool { return !a.event() || a.forward })
			return func() { k.proxy.arm(nil) }
		}
		a.left *= 8 // each page of a commit is a write
		return watchWrites(k.t, strings.TrimPrefix(k.url, "sqlite:")+"-wal", func() { a.event() })
	default:
		var answers atomic.Int64
		wanted := int64(a.left)
		a.left = 1
		return k.Inject(gateway.Fault{Match: func(c gateway.Call) bool {
			if c.Answers() && answers.Add(1) == wanted {
				time.AfterFunc(a.pause, func() { a.event() })
			}
			return false // it only looks
		}}).Remove
	}
}

// judge holds what the kills left against the rules, and sees that they did cut something off.
func (k *killing) judge(a *audit, name string, seed int, took time.Duration) {
	k.t.Helper()
	found := k.holdAgainst(a)
	a.oneAttemptPerCount(false)
	recalled, unheard := k.cutOff(a)
	if recalled == 0 || unheard == 0 || found.outcomes == 0 {
		k.t.Errorf("%d decisions were recorded in one life and answered in a later one, %d answers taken and not heard of: the kills show nothing", recalled, unheard)
	}
	report(k.t, "killed under load, "+name, "%d kills (%s), %d idle; %d jobs, %d attempts, %d rejections, %d outcomes, one answer each; %d answered in a later life word for word, %d answers taken and never heard of; seed %d, %.1f s",
		k.total(), k.each(), k.idle, len(k.jobs), found.attempts, found.rejections, found.outcomes, recalled, unheard, seed, took.Seconds())
}

func (k *killing) total() (n int) {
	for _, kills := range k.kills {
		n += kills
	}
	return n
}

func (k *killing) each() string {
	var all []string
	for m, n := range k.kills {
		all = append(all, fmt.Sprintf("%d %s", n, manner(m)))
	}
	return strings.Join(all, ", ")
}

// cutOff counts the jobs whose attempt was recorded in an earlier life than the one that answered them, and those
// whose answer the engine took without anybody having heard of it.
func (k *killing) cutOff(a *audit) (recalled, unheard int) {
	for i := range k.jobs {
		record, _ := k.Job(k.jobs[i].key)
		for _, answer := range record.Answers {
			if !answer.Settled {
				continue
			}
			if !answer.Acked {
				unheard++
			}
			if all := a.attempts[record.Key]; len(all) > 0 && lifeAt(k.births, all[0].ReceivedAt) < lifeAt(k.begins, answer.At) {
				recalled++
			}
		}
	}
	return recalled, unheard
}

// lifeAt is the number of the life that an instant belongs to.
func lifeAt(begins []time.Time, at time.Time) int {
	n := 0
	for n < len(begins) && !begins[n].Truncate(time.Millisecond).After(at) {
		n++
	}
	return n
}
