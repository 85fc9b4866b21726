package chaos_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"google.golang.org/grpc/codes"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

const (
	// people ask at the same time, of letters dead letters one after the other, of runs bulk runs.
	people, letters, runs = 6, 24, 4
	// steered dead letters are in a run that people pause and resume: more than it decides meanwhile, at one a minute.
	steered = 8
	// asked requests of a history are answered for sure; meanwhile a replica is killed linearKills times.
	asked, linearKills = 800, 3
	// portal and a number are a destination's address; as many as dead letters are asked for, one after the other.
	portal = "destinations/portal-"
)

// ask is a request: a verb on what an address names, in words of its own; reply is what it was told, 0 where nobody knows what
// became of it.
type (
	ask   struct{ address, verb, words string }
	reply struct {
		status int
		state  string
	}
)

// after is the state that a request leads to: of a dead letter and a bulk run the last change, of a destination its orders; false
// where it is refused.
func (a ask) after(state string) (string, bool) {
	switch a.verb {
	case "retry":
		return "reprocessing " + a.words, state == ""
	case "discard":
		return "discarded " + a.words, state == ""
	case "pause":
		return "paused", state == ""
	case "resume":
		return "", state == "paused"
	case "cancel":
		return "cancelled", state == "" || state == "paused"
	case "finish": // by itself
		return "done", state == ""
	default: // an order
		return state + a.words + ";", true
	}
}

// sequential is how each subject behaves for one person alone.
var sequential = porcupine.Model{
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		s, a, r := state.(string), input.(ask), output.(reply)
		if a.verb == "" {
			return r.state == s, s
		}
		next, taken := a.after(s)
		if !taken {
			return r.status != http.StatusOK, s
		}
		return r.status == 0 || r.status == http.StatusOK && (r.state == next || strings.HasPrefix(a.address, portal)), next
	},
}

// replica is a worker that is killed and started again; mu is held while there is none.
type replica struct {
	settings
	mu sync.RWMutex
	*program
}

func (r *replica) address() string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.http
}

// house is where people decide while its replicas are killed.
type house struct {
	*stub
	replicas []*replica
	begun    time.Time
	ids      []string // of dead letters
	runs     []string // their addresses
	answered atomic.Int64
	unknown  atomic.Int64
	mu       sync.Mutex
	history  map[string][]porcupine.Operation // by address
}

// What people see and are told of dead letters, bulk runs and destinations, through whichever replica, is what one after the other
// could have been told, although they ask at once and replicas are killed: nobody's decision is lost, taken twice, or seen late.
func TestDecisionsAreLinearizable(t *testing.T) {
	t.Parallel()
	for name, replicas := range map[string]int{"SQLite": 1, "PostgreSQL": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, rounds := time.Now(), harness.Setting(t, "PROOF_HISTORIES", 1)
			operations, unknown := 0, int64(0)
			for round := range rounds {
				h := openHouse(t, newURL[name](t), replicas)
				h.live(uint64(round))
				operations += h.check()
				unknown += h.unknown.Load()
			}
			report(t, "linearizable decisions, "+name, "%d replicas, %d kills: %d requests of %d people, %d with no known end: linearizable by subject; %.1f s",
				replicas, rounds*linearKills, operations, people, unknown, time.Since(begun).Seconds())
		})
	}
}

// openHouse starts the replicas, gives up the claims, has a process wait for each and starts the bulk runs: one that discards
// what people decide on too, and others that they steer.
func openHouse(t *testing.T, url string, replicas int) *house {
	t.Helper()
	h := &house{stub: newStub(t, "LINEAR"), begun: time.Now(), history: map[string][]porcupine.Operation{}}
	policies := filepath.Join(t.TempDir(), "policies.yaml")
	content := "extends: built-in\ndestinations:\n"
	for i := range letters {
		content += fmt.Sprintf("  portal-%d: {}\n", i)
	}
	testkit.Must(t, os.WriteFile(policies, []byte(content), 0o600))
	for i := range replicas {
		r := &replica{settings: settings{name: fmt.Sprint("replica-", i), gateway: h.Addr(), url: url, env: []string{"RETRY_WORKER_POLICIES_FILE=" + policies}}}
		r.program = serve(t, r.settings)
		h.replicas = append(h.replicas, r)
	}
	// No decision arrives, so that nothing but people changes a dead letter.
	h.Inject(gateway.Fault{Code: codes.Unavailable, Match: func(c gateway.Call) bool {
		job, known := h.Job(c.JobKey)
		return known && job.Type == worker.RetryReview && c.Method == gateway.CompleteJob
	}})
	total := letters + runs*steered
	for i := range total {
		h.AddJobs(gateway.Job{Type: worker.AnalyzeRetry, Variables: fmt.Sprintf(`{"claimId":"CLM-LINEAR-%d","submissionError":%q}`, i, permanent)})
	}
	var page struct {
		Items []struct{ ID, Process string }
	}
	list := func() { testkit.Must(t, json.Unmarshal(h.must("GET", "dead-letters?limit=100", nil), &page)) }
	wait.Until(t, "the dead letters", func() bool { list(); return len(page.Items) == total })
	for _, l := range page.Items {
		h.ids = append(h.ids, l.ID)
		h.AddJobs(gateway.Job{Type: worker.RetryReview, Variables: fmt.Sprintf(`{"deadLetterId":%q}`, l.ID)})
	}
	wait.Until(t, "a process to wait for each", func() bool {
		list()
		return !slices.ContainsFunc(page.Items, func(l struct{ ID, Process string }) bool { return l.Process != "waiting" })
	})
	h.startRun(h.ids[:letters], 120)
	for ids := range slices.Chunk(h.ids[letters:], steered) {
		h.runs = append(h.runs, h.startRun(ids, 1))
	}
	return h
}

// startRun starts a bulk run that discards; the first of its dead letters may be decided at once.
func (h *house) startRun(ids []string, perMinute int) (address string) {
	command := map[string]any{"action": "discard", "filter": map[string]any{"ids": strings.Join(ids, ",")}, "perMinute": perMinute}
	var plan struct{ Token string }
	testkit.Must(h.t, json.Unmarshal(h.must("POST", "bulk-runs/plan", command), &plan))
	command["token"], command["reason"] = plan.Token, "by a run"
	for _, id := range ids {
		h.note(ask{"dead-letters/" + id, "discard", "by a run"}, reply{}, time.Since(h.begun))
	}
	var run struct{ ID, State string }
	testkit.Must(h.t, json.Unmarshal(h.must("POST", "bulk-runs", command), &run))
	h.note(ask{address: "bulk-runs/" + run.ID, verb: "finish"}, reply{}, time.Since(h.begun))
	wait.Until(h.t, "the run to begin", func() bool {
		testkit.Must(h.t, json.Unmarshal(h.must("GET", "bulk-runs/"+run.ID, nil), &run))
		return run.State != "preparing"
	})
	return "bulk-runs/" + run.ID
}

// live has people ask until enough is answered, while replicas are killed.
func (h *house) live(seed uint64) {
	var all sync.WaitGroup
	for person := range people {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(person)))
			for i := 0; h.answered.Load() < asked && !h.t.Failed(); i++ {
				h.act(random, fmt.Sprintf("%d-%d", person, i))
			}
		})
	}
	for kill := range linearKills {
		wait.Until(h.t, "requests before a kill", func() bool { return h.answered.Load() >= int64((kill+1)*asked/(linearKills+1)) })
		r := h.replicas[kill%len(h.replicas)]
		r.Kill()
		r.mu.Lock()
		r.program = serve(h.t, r.settings)
		r.mu.Unlock()
	}
	all.Wait()
}

// act asks once, of what others ask at the same time.
func (h *house) act(random *rand.Rand, words string) {
	now := int(h.answered.Load()) * (letters - 1) / asked
	of := func(address string, verbs ...string) ask { return ask{address, verbs[random.IntN(len(verbs))], words} }
	var a ask
	switch random.IntN(4) {
	case 0:
		a = of(h.runs[now*runs/letters], "", "pause", "resume", "pause", "resume", "")
		if random.IntN(50) == 0 {
			a.verb = "cancel"
		}
	case 1:
		a = of(portal+strconv.Itoa(now), "", "hold", "release")
	default:
		a = of("dead-letters/"+h.ids[min(now+random.IntN(2), letters-1)], "", "", "retry", "discard")
	}
	h.ask(h.replicas[random.IntN(len(h.replicas))].address(), a)
}

// ask asks a replica and notes what it was told. A request that never left is none.
func (h *house) ask(replica string, a ask) {
	body := map[string]any{"reason": a.words}
	switch a.verb {
	case "hold":
		body["until"] = time.Now().Add(time.Hour)
	case "release":
		body["perMinute"] = 1
	case "pause", "resume", "cancel":
		body = map[string]any{}
	}
	method, path := "GET", a.address
	if a.verb != "" {
		method, path = "POST", a.address+"/"+a.verb
	}
	called := time.Since(h.begun)
	status, text, err := request(replica, method, path, body)
	dial, failed := errors.AsType[*net.OpError](err)
	switch {
	case failed && dial.Op == "dial":
		return
	case err != nil || status >= http.StatusInternalServerError:
		if method == "POST" {
			h.unknown.Add(1)
			h.note(a, reply{}, called)
		}
		return
	case status != http.StatusOK && status != http.StatusConflict:
		h.t.Errorf("%s %s answers %d %s", method, path, status, text)
		return
	}
	r := reply{status, stateOf(a.address, text)}
	if h.note(a, r, called); status == http.StatusOK && strings.HasPrefix(a.address, portal) && a.verb != "" {
		h.note(ask{address: a.address}, r, called) // the orders are read after this one was recorded
		if !strings.Contains(r.state, a.words+";") {
			h.t.Errorf("%v is answered by the orders %s, without it", a, r.state)
		}
	}
	h.answered.Add(1)
}

func (h *house) note(a ask, r reply, called time.Duration) {
	returned := time.Since(h.begun)
	if r.status == 0 {
		returned = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.history[a.address] = append(h.history[a.address], porcupine.Operation{Input: a, Call: int64(called), Output: r, Return: int64(returned)})
}

// stateOf what an address names, as [ask.after] tells it.
func stateOf(address, text string) (state string) {
	var v struct {
		State  string
		Review struct{ Reason string }
		Orders []struct{ Reason string }
	}
	if json.Unmarshal([]byte(text), &v) != nil {
		return "not JSON"
	}
	if strings.HasPrefix(address, portal) {
		for _, o := range slices.Backward(v.Orders) {
			state += o.Reason + ";"
		}
		return state
	}
	if v.State == "open" || v.State == "running" {
		return ""
	}
	return strings.TrimSpace(v.State + " " + v.Review.Reason)
}

// check that each history could be that of one request after the other, and return how many there were.
func (h *house) check() (operations int) {
	for address, history := range h.history {
		operations += len(history)
		history = slices.DeleteFunc(history, func(o porcupine.Operation) bool {
			return o.Output.(reply).status == 0 && strings.HasPrefix(address, portal) && unseen(history, o.Input.(ask).words+";")
		})
		if porcupine.CheckOperations(sequential, history) {
			continue
		}
		story := ""
		for _, o := range history {
			story += fmt.Sprintf("\n%v to %v: %q is told %v", time.Duration(o.Call), time.Duration(o.Return), o.Input, o.Output)
		}
		h.t.Errorf("%s: no order of these requests explains what they were told%s", address, story)
	}
	return operations
}

// unseen reports that nobody was told of a request: one with no known end may then come last, which is left out to have less to search.
func unseen(history []porcupine.Operation, words string) bool {
	return !slices.ContainsFunc(history, func(o porcupine.Operation) bool { return strings.Contains(o.Output.(reply).state, words) })
}

// must ask the first replica for what it cannot refuse.
func (h *house) must(method, path string, body any) []byte {
	h.t.Helper()
	status, text, err := request(h.replicas[0].http, method, path, body)
	if err != nil || status >= http.StatusBadRequest {
		h.t.Fatalf("%s %s: %d %s, %v", method, path, status, text, err)
	}
	return []byte(text)
}

func request(replica, method, path string, body any) (status int, text string, err error) {
	r, err := http.NewRequest(method, "http://"+replica+"/api/v1/"+path, strings.NewReader(jsonOf(body)))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	return response.StatusCode, string(all), err
}
