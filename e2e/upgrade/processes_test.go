package upgrade

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// kind of a claim is what becomes of it.
type kind int

// The kinds. Those up to senseless come in a flow.
const (
	recovers    kind = iota // fails once, and its retry succeeds
	recoversAt2             // the second retry does
	diesLater               // fails for good after one retry
	dies                    // fails for good at once; when somebody sends it again, it succeeds
	diesAgain               // the same, but fails for good once more before
	senseless               // cannot be read at all (R11)
	stays                   // fails for good, of a team of its own; nobody decides on it
)

// flowing kinds.
const flowing = int(stays)

// The errors by which an analysis ends in one way or another.
const (
	passing     = "TIMEOUT - no answer"
	ofRegistry  = "INVALID_PATIENT_DATA"
	ofBilling   = "AUTHORIZATION_DENIED"
	ofIT        = "SOAP Fault ans:LoginInvalido: acesso negado"
	unreadable  = " "
	teamOfStays = "ti"
)

// claim goes its way through a process, one job at a time.
type claim struct {
	id       string
	kind     kind
	instance int64
	job      int64  // that it waits for
	asks     string // the job's type
	failures int
	count    int64    // retryCount of its process
	letters  []string // the dead letters it got, the oldest first
	end      string   // how it ended; empty while it has not
}

// analysis is one that was asked for.
type analysis struct {
	key     int64
	claim   string
	count   int64
	problem string
}

// processes are those of claims, played on the scripted gateway.
type processes struct {
	*gateway.Gateway
	t *testing.T

	mu       sync.Mutex
	claims   []*claim
	byID     map[string]*claim
	analyses []analysis
	outcomes int // successes that were reported
	flow     bool
	stop     chan struct{}
	ended    chan struct{}
}

// stepEvery is how often the processes are looked at; flowEvery is how often a claim comes while they flow.
const (
	stepEvery = 5 * time.Millisecond
	flowEvery = 4 // steps
)

func startProcesses(t *testing.T) *processes {
	t.Helper()
	h := &processes{Gateway: gateway.New(t, gateway.Options{}), t: t, byID: map[string]*claim{}, stop: make(chan struct{}), ended: make(chan struct{})}
	go h.run()
	t.Cleanup(func() {
		close(h.stop)
		<-h.ended
	})
	return h
}

func (h *processes) run() {
	defer close(h.ended)
	tick := time.NewTicker(stepEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
		case <-h.stop:
			return
		}
		h.mu.Lock()
		if h.flow && n%flowEvery == 0 {
			h.admit("FLOW", 1, kind(len(h.claims)%flowing))
		}
		for _, c := range h.claims {
			if c.end == "" {
				h.step(c)
			}
		}
		h.mu.Unlock()
	}
}

// flows lets claims come all the time, or no longer.
func (h *processes) flows(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.flow = on
}

// wave has n claims come at one instant, of these kinds in turn.
func (h *processes) wave(name string, n int, kinds ...kind) (claims []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.admit(name, n, kinds...)
}

// admit n claims, which fail for the first time; mu is held.
func (h *processes) admit(wave string, n int, kinds ...kind) (ids []string) {
	come := make([]*claim, n)
	for i := range come {
		c := &claim{id: fmt.Sprintf("CLM-%s-%d", wave, len(h.claims)+1), kind: kinds[i%len(kinds)]}
		come[i] = c
		h.claims, h.byID[c.id], ids = append(h.claims, c), c, append(ids, c.id)
	}
	h.fail(come...)
	return ids
}

// fail asks what follows from the claims' failures; mu is held.
func (h *processes) fail(claims ...*claim) {
	jobs := make([]gateway.Job, len(claims))
	for i, c := range claims {
		jobs[i] = c.asking(worker.AnalyzeRetry, map[string]any{"submissionError": c.problem(), "retryCount": c.count})
	}
	for i, key := range h.AddJobs(jobs...) {
		c := claims[i]
		h.analyses = append(h.analyses, analysis{key: key, claim: c.id, count: c.count, problem: c.problem()})
		c.failures++
		c.job = key
		if record, _ := h.Job(key); c.instance == 0 {
			c.instance = record.ProcessInstanceKey
		}
	}
}

// problem of the claim's next failure.
func (c *claim) problem() string {
	switch {
	case c.kind == senseless:
		return unreadable
	case c.kind == stays:
		return ofIT
	case c.kind == diesAgain:
		return ofBilling
	case c.kind == dies, c.kind == diesLater && c.failures > 0:
		return ofRegistry
	default:
		return passing
	}
}

// asking makes the job by which the claim's process asks for something.
func (c *claim) asking(jobType string, variables map[string]any) gateway.Job {
	variables["claimId"] = c.id
	text, err := json.Marshal(variables)
	if err != nil {
		panic(err) // texts and numbers
	}
	c.asks = jobType
	return gateway.Job{Type: jobType, ProcessInstanceKey: c.instance, Variables: string(text)}
}

// ask has the claim's process wait for a job; mu is held.
func (h *processes) ask(c *claim, jobType string, variables map[string]any) {
	c.job = h.AddJob(c.asking(jobType, variables))
}

// answer is what a process is told.
type answer struct {
	ShouldRetry                                 bool
	RetryCount                                  int64
	NextRetryTime, DeadLetterID, ReviewDecision string
}

// settled is the answer that ended a job.
func settled(record *gateway.Record) (a answer) {
	i := slices.IndexFunc(record.Answers, func(a gateway.Answer) bool { return a.Settled })
	if i >= 0 && record.Answers[i].Variables != "" {
		_ = json.Unmarshal([]byte(record.Answers[i].Variables), &a) // what is no object is held against the journal later
	}
	return a
}

// step goes on with a claim whose job is done; mu is held.
func (h *processes) step(c *claim) {
	record, _ := h.Job(c.job)
	if !record.State.Settled() {
		return
	}
	told := settled(&record)
	switch {
	case record.State == gateway.Incident:
		c.end = "incident"
	case record.State == gateway.Cancelled:
		c.end = "cancelled"
	case c.asks == worker.RecordRetryOutcome:
		c.end = "recovered"
	case record.State == gateway.ErrorThrown:
		c.letters = append(c.letters, told.DeadLetterID)
		h.ask(c, worker.RetryReview, map[string]any{worker.DeadLetterVariable: told.DeadLetterID})
	case c.asks == worker.RetryReview && told.ReviewDecision != "reprocess":
		c.end = "discarded"
	default:
		c.count = told.RetryCount
		h.again(c)
	}
}

// again tries the claim once more; mu is held.
func (h *processes) again(c *claim) {
	reviewed := c.asks == worker.RetryReview
	switch {
	case c.kind == recoversAt2 && c.failures == 1, c.kind == diesLater && !reviewed, c.kind == diesAgain && len(c.letters) == 1:
		h.fail(c)
	default:
		h.outcomes++
		h.ask(c, worker.RecordRetryOutcome, map[string]any{"retryOutcome": "success"})
	}
}

// rest tells whether a claim has ended, or waits for somebody's decision; mu is held.
func (h *processes) rest(c *claim) bool {
	if c.end != "" || c.asks != worker.RetryReview {
		return c.end != ""
	}
	record, _ := h.Job(c.job) // it is held for a day once it is recorded
	return slices.ContainsFunc(record.Answers, func(a gateway.Answer) bool { return a.Method == gateway.UpdateJobTimeout && a.Accepted() })
}

// settle waits until every claim has ended, or waits for somebody's decision.
func (h *processes) settle() {
	h.t.Helper()
	restless := ""
	wait.Until(h.t, "the claims to rest", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, c := range h.claims {
			if !h.rest(c) {
				restless = fmt.Sprintf("%+v does not", *c)
				return false
			}
		}
		return true
	}, func() string { return restless + "; " + h.String() })
}

// ends waits until these claims have ended so.
func (h *processes) ends(how string, claims ...string) {
	h.t.Helper()
	var c claim
	wait.Until(h.t, "claims to be "+how, func() bool {
		return !slices.ContainsFunc(claims, func(id string) bool {
			c = h.claim(id)
			return c.end != how
		})
	}, func() string { return fmt.Sprintf("%+v", c) })
}

// discarded notes that a person let go of a claim for which no process waits.
func (h *processes) discarded(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.byID[id].end = "discarded"
}

// claim as it stands.
func (h *processes) claim(id string) claim {
	h.mu.Lock()
	defer h.mu.Unlock()
	return *h.byID[id]
}

// letter of a claim, the last.
func (h *processes) letter(id string) string {
	c := h.claim(id)
	if len(c.letters) == 0 {
		h.t.Fatalf("%s has no dead letter: %+v", id, c)
	}
	return c.letters[len(c.letters)-1]
}

// answeredBy is how many jobs of a type ended by an answer of that worker.
func (h *processes) answeredBy(name, jobType string) (n int) {
	for _, record := range h.Journal() {
		if record.Type == jobType && slices.ContainsFunc(record.Answers, func(a gateway.Answer) bool { return a.Settled && a.Worker == name }) {
			n++
		}
	}
	return n
}
