package scenarios

import (
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

const (
	// outageSize is how many retries are decided while the engine is down: issue 8's.
	outageSize = 200
	// killLives is how often the worker is killed while it delivers decisions, of killBatch in each life.
	killLives = 2
	killBatch = 12
	// killSeed makes the moments of the kills the same in each run, as far as the machine lets them be.
	killSeed = 8
)

// dead starts n claims that a person must decide on, and waits until each can be. It returns their dead letters' ids.
func (s *scenario) dead(d api, first, n int) (keys []int64, ids []string) {
	s.t.Helper()
	keys = s.createAll("SUB_06", n, func(i int) map[string]any {
		return submission(s.claimID(first+i), left(failing("INVALID_PATIENT_DATA")), nil)
	})
	for _, key := range keys {
		ids = append(ids, s.deadLetterOf(d, key, 0))
	}
	return keys, ids
}

// expectAnsweredOnce holds that each review of the instances was answered once, by completing its job.
func (s *scenario) expectAnsweredOnce(keys []int64) {
	s.t.Helper()
	for _, key := range keys {
		i := s.instance(key)
		for _, j := range i.of(worker.RetryReview) {
			if len(j.answers) != 1 || j.answers[0].intent != "COMPLETED" {
				s.t.Errorf("the review %d of %d was answered %d times: %+v", j.key, key, len(j.answers), j.answers)
			}
		}
	}
}

// The engine is down while people decide: what they decide is recorded at once, waits, and none of it is lost.
func TestEngineDownWhileRetriesAreDecided(t *testing.T) {
	withEverybody(t, byREST, func(t *testing.T, s *world) {
		d := api{worker: s.worker}
		keys, ids := s.dead(d, 0, outageSize)
		s.bubble.StopEngine()
		for _, id := range ids {
			if l := s.orders(d, id, "retry", request{Reason: corrected, When: "now"}); l.State != "reprocessing" || l.Delivery != "pending" {
				t.Errorf("decided while the engine is down: %+v, expected it reprocessing and on its way", l)
			}
		}
		s.refused(d, ids[0], "retry", request{Reason: corrected}, http.StatusConflict, "invalid_retry_state", "reprocessing since")
		s.bubble.StartEngine()
		back := s.clock.Now()
		s.awaitEnded(keys...)
		took := s.clock.Now().Sub(back)
		for n, id := range ids {
			s.expectSettled(d, id, "recovered")
			s.expectEnd(submissions, keys[n], submissions.recorded, 2)
		}
		s.expectAnsweredOnce(keys)
		s.done("engine down while retries are decided", "%d retries decided, all taken and done %v after the engine was back, each once", len(ids), took)
	})
}

// lives of one worker on one journal, each of which begins where the one before was killed.
type lives struct {
	s        *processes
	settings []string
	api      api
	keys     []int64
	ids      []string
	discard  map[string]bool // how each dead letter is decided on
}

func (s *processes) newLives() *lives {
	s.t.Helper()
	l := &lives{s: s, settings: []string{"RETRY_WORKER_DATABASE_URL=sqlite:" + filepath.Join(s.t.TempDir(), "journal.db")}, discard: make(map[string]bool)}
	l.begin()
	return l
}

func (l *lives) begin() { l.api.worker = l.s.serve("life", l.settings...) }

// end by SIGKILL.
func (l *lives) end() { l.api.worker.kill() }

// decide on further dead letters, every third of which is let go, while the engine stands still; then it goes on.
func (l *lives) decide() {
	l.s.t.Helper()
	testkit.Must(l.s.t, l.s.Pause())
	defer func() { testkit.Must(l.s.t, l.s.Resume()) }()
	for n, id := range l.ids[len(l.ids)-killBatch:] {
		if l.discard[id] = n%3 == 0; l.discard[id] {
			l.s.orders(l.api, id, "discard", request{Reason: "sem conserto"})
			continue
		}
		l.s.orders(l.api, id, "retry", request{Reason: corrected, When: "now"})
	}
}

// die starts further claims that a person must decide on.
func (l *lives) die() {
	l.s.t.Helper()
	keys, ids := l.s.dead(l.api, len(l.keys), killBatch)
	l.keys, l.ids = append(l.keys, keys...), append(l.ids, ids...)
}

// taken is how many reviews of the dead letters the engine has as completed; the history is held.
func (l *lives) taken() (n int) {
	for _, key := range l.keys {
		for _, j := range l.s.history.instances[key].of(worker.RetryReview) {
			n += len(j.answers)
		}
	}
	return n
}

// The worker is killed when it has stored decisions and the engine has none of them, and again and again while it carries
// them there: between the record and the answer, and between the answer and its record. Each is taken, once.
func TestWorkerKilledBetweenDecisionAndDelivery(t *testing.T) {
	s := onProcesses(t, byREST)
	s.deploy()
	s.jobTimeout = 10 * time.Second
	l := s.newLives()
	s.startPortal(l.api.worker, submitClaim)
	random, cut := rand.New(rand.NewPCG(killSeed, 0)), 0
	for life := range killLives {
		l.die()
		l.decide()
		least := len(l.keys) - killBatch + random.IntN(killBatch*2/3)
		if life == 0 {
			least = 0 // the engine has just woken up
		}
		s.await("some decisions to be taken", func() bool { return l.taken() >= least })
		l.end()
		s.history.Look(func() { cut += len(l.keys) - l.taken() })
		l.begin()
		s.awaitEnded(l.keys...) // what was cut off is carried on, once the dead one's lease is over
	}
	unheard := l.expectCarriedOut()
	s.expectAnsweredOnce(l.keys)
	out := s.command(strings.TrimPrefix(l.settings[0], "RETRY_WORKER_DATABASE_URL="), "audit", "verify")
	if cut == 0 {
		t.Error("no kill cut a decision off: they show nothing")
	}
	if unheard == len(l.ids) { // how many, depends: the engine also takes what was on its way to it when the worker died
		t.Error("of every decision it is said that nobody waited for it")
	}
	s.done("killed between decision and delivery", "seed %d, %d kills, %d decisions, %d not seen taken when the worker died, %d taken and not heard of, each carried out once; %s",
		killSeed, killLives, len(l.ids), cut, unheard, strings.TrimSpace(strings.Split(out, "\n")[0]))
}

// expectCarriedOut holds each decision against what its process did, and returns how many the worker never heard of: of a
// process that has ended it says that nobody waited, for it cannot know better.
func (l *lives) expectCarriedOut() (unheard int) {
	l.s.t.Helper()
	for n, id := range l.ids {
		state, end := journal.DeadLetterRecovered, "resubmission_recorded"
		if l.discard[id] {
			state, end = "discarded", "discarded"
		}
		after := l.s.awaitDeadLetter(l.api, id, string(state), func(x *deadLetter) bool { return x.State == state && x.Delivery != "pending" })
		if after.Delivery == "nobody" {
			unheard++
		}
		if i := l.s.instance(l.keys[n]); i.endedBy != end {
			l.s.t.Errorf("the process %d ended at %s, decided was %s", l.keys[n], i.endedBy, state)
		}
	}
	return unheard
}
