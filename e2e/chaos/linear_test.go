package chaos_test

import (
	"context"
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
	"retry-worker/internal/access"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

const (
	// people ask at the same time, of letters dead letters one after the other, of runs bulk runs and of portals destinations.
	people, letters, runs, portals = 16, 60, 4, 12
	// steered dead letters are in a run that people pause while it decides, runPace a minute. All are one page of the list.
	steered, runPace = 10, 30
	// portal and a number are a destination's address.
	portal = "destinations/portal-"
	// assigned begins the state of an open dead letter of which somebody said who has it.
	assigned = "assigned "
)

// round counts the requests that are answered and the kills between them. In a long one, leases of killed replicas run out.
type round struct{ requests, kills int64 }

var short, long = round{requests: 800, kills: 3}, round{requests: 4000, kills: 6}

// lists are what people look at who look at all dead letters, or bulk runs, at once.
var lists = []string{"dead-letters?state=all&limit=100", "bulk-runs?limit=100"}

// ask is a request: a verb on what an address names, in words of its own; reply is what it was told, with status 0 where nobody knows
// what became of it. The state may be known all the same, by what others were told.
type (
	ask   struct{ address, verb, words string }
	reply struct {
		status int
		state  string
	}
)

// after is the state that a request leads to, the last change of a dead letter or a bulk run; false where it is refused.
func (a ask) after(state string) (string, bool) {
	open := state == "" || strings.HasPrefix(state, assigned)
	switch a.verb {
	case "retry":
		return "reprocessing " + a.words, open
	case "discard":
		return "discarded " + a.words, open
	case "take", "pass", "give back":
		return assigned + a.to() + a.words, open
	case "pause":
		return "paused", state == ""
	case "resume":
		return "", state == "paused"
	case "cancel":
		return "cancelled", state == "" || state == "paused"
	default: // it is done by itself
		return "done", state == ""
	}
}

// person is who asks, by a token of his own.
func (a ask) person() string {
	return strings.Split(a.words, "-")[0]
}

// to is who gets a dead letter, with a blank behind the name; empty for nobody.
func (a ask) to() string {
	return map[string]string{"take": a.person() + " ", "pass": "p0 "}[a.verb]
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
		unknown := r.status == 0 && r.state == ""
		return unknown || r.status != http.StatusConflict && r.state == next, next
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
	round
	url      string
	replicas []*replica
	begun    time.Time
	tokens   map[string]string // by the person
	ids      []string          // of dead letters
	runs     []string          // their addresses
	answered atomic.Int64
	unknown  atomic.Int64
	mu       sync.Mutex
	history  map[string][]porcupine.Operation // by address
	orders   map[string]int                   // the statuses by which orders were answered, 0 where nobody knows
}

// lived is what rounds amount to.
type lived struct {
	rounds, kills, requests, unknown int64
	operations, decisions, byRuns    int // decisions of bulk runs
	leases                           int // that went to another process
}

// What people see and are told of dead letters, of who has them and of bulk runs, through whichever replica, is what one after the other could have
// been told, although they ask at once and replicas are killed: nobody's decision is lost, taken twice, or seen late. Each line of
// a list is a read of what it tells of. A dead letter is decided once, by a person or a bulk run, an order about a destination is
// recorded once, and no lease goes to another process before its time is over, whichever replica held it. PROOF_OPERATIONS are
// played on both stores together.
func TestDecisionsAreLinearizable(t *testing.T) {
	t.Parallel()
	wanted, each := harness.Setting(t, "PROOF_OPERATIONS", 0)/len(stores), short
	if wanted > 0 {
		each = long
	}
	for name, replicas := range map[string]int{"SQLite": 1, "PostgreSQL": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, all := time.Now(), lived{}
			for first := true; first || all.operations < wanted && !t.Failed(); first = false {
				t.Run(fmt.Sprint("round ", all.rounds), func(t *testing.T) { openHouse(t, each, newURL[name](t), replicas).play(&all) })
			}
			report(t, "linearizable decisions, "+name, "%d replicas, %d kills: %d requests of %d people, %d with no known end, %d operations in all: linearizable by subject; %d decisions, %d of bulk runs, none twice; %d leases went on, none early; %.1f s",
				replicas, all.kills, all.requests, people, all.unknown, all.operations, all.decisions, all.byRuns, all.leases, time.Since(begun).Seconds())
		})
	}
}

// play plays a round: people ask while replicas are killed, and all that they were told and that was recorded is checked.
func (h *house) play(all *lived) {
	ctx, end := context.WithCancel(h.t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { all.leases += h.watchLeases(ctx) })
	h.live(uint64(all.rounds))
	end()
	watching.Wait()
	for _, r := range h.replicas {
		r.Kill() // the engine takes no decision: they would wait for it
	}
	all.operations += h.check()
	h.countDecisions(all)
	h.countOrders()
	all.rounds++
	all.kills += h.kills
	all.requests += h.answered.Load()
	all.unknown += h.unknown.Load()
}

// openHouse starts the replicas, gives up the claims, has a process wait for each and starts the bulk runs: one that discards
// what people decide on too, and others that they steer.
func openHouse(t *testing.T, r round, url string, replicas int) *house {
	t.Helper()
	h := &house{stub: newStub(t, "LINEAR"), round: r, url: url, begun: time.Now(), history: map[string][]porcupine.Operation{}, orders: map[string]int{}}
	known, tokens := map[string]access.Role{}, filepath.Join(t.TempDir(), "tokens")
	for person := range people {
		known[fmt.Sprint("p", person)] = access.Admin
	}
	h.tokens = harness.Issue(t, tokens, known)
	policies := filepath.Join(t.TempDir(), "policies.yaml")
	content := "extends: built-in\ndestinations:\n"
	for i := range portals {
		content += fmt.Sprintf("  portal-%d: {}\n", i)
	}
	testkit.Must(t, os.WriteFile(policies, []byte(content), 0o600))
	for i := range replicas {
		r := &replica{settings: settings{name: fmt.Sprint("replica-", i), gateway: h.Addr(), url: url, env: []string{"RETRY_WORKER_POLICIES_FILE=" + policies, "RETRY_WORKER_AUTH_TOKENS_FILE=" + tokens}}}
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
	list := func() { testkit.Must(t, json.Unmarshal(h.must("GET", lists[0], nil), &page)) }
	wait.Until(t, "the dead letters", func() bool { list(); return len(page.Items) == total })
	h.stub.answered(total) // an analysis that came again after a decision would begin another episode
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
		h.runs = append(h.runs, h.startRun(ids, runPace))
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
	var run struct{ ID string }
	testkit.Must(h.t, json.Unmarshal(h.must("POST", "bulk-runs", command), &run))
	h.note(ask{address: "bulk-runs/" + run.ID, verb: "finish"}, reply{}, time.Since(h.begun))
	return "bulk-runs/" + run.ID
}

// live has people ask until enough is answered, while replicas are killed.
func (h *house) live(seed uint64) {
	var all sync.WaitGroup
	for person := range people {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(person)))
			for i := 0; h.answered.Load() < h.requests && !h.t.Failed(); i++ {
				h.act(random, fmt.Sprintf("p%d-%d", person, i))
			}
		})
	}
	for kill := range h.kills {
		wait.Until(h.t, "requests before a kill", func() bool { return h.answered.Load() >= (kill+1)*h.requests/(h.kills+1) })
		r := h.replicas[int(kill)%len(h.replicas)]
		r.Kill()
		r.mu.Lock()
		r.program = serve(h.t, r.settings)
		r.mu.Unlock()
	}
	all.Wait()
}

// act asks once, of what others ask at the same time.
func (h *house) act(random *rand.Rand, words string) {
	now := int(min(h.answered.Load()*letters/h.requests, letters-1))
	of := func(address string, verbs ...string) ask { return ask{address, verbs[random.IntN(len(verbs))], words} }
	var a ask
	switch random.IntN(8) {
	case 0:
		a = of(lists[random.IntN(len(lists))], "")
	case 1:
		a = of(h.runs[now*runs/letters], "", "pause", "resume", "pause", "resume", "resume")
		if random.IntN(50) == 0 {
			a.verb = "cancel"
		}
	case 2:
		a = of(portal+strconv.Itoa(now*portals/letters), "hold", "release")
	default:
		a = of("dead-letters/"+h.ids[min(now+random.IntN(4), letters-1)], "", "", "retry", "discard", "take", "take", "pass", "pass", "give back")
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
	switch a.verb {
	case "take", "pass", "give back":
		method, path, body = "PUT", a.address+"/assignment", map[string]any{"assignee": strings.TrimSpace(a.to()), "note": a.words}
	}
	called := time.Since(h.begun)
	status, text, err := request(replica, method, path, body, h.tokens[a.person()])
	dial, failed := errors.AsType[*net.OpError](err)
	switch {
	case failed && dial.Op == "dial":
		return
	case err != nil || status >= http.StatusInternalServerError:
		if method != "GET" {
			h.unknown.Add(1)
			h.note(a, reply{}, called)
		}
		return
	case status != http.StatusOK && status != http.StatusConflict:
		h.t.Errorf("%s %s answers %d %s", method, path, status, text)
		return
	}
	h.answered.Add(1)
	if kind, _, list := strings.Cut(a.address, "?"); list {
		h.noteAll(kind, text, called)
		return
	}
	h.note(a, reply{status, stateOf(text)}, called)
}

// noteAll notes what a list told of each of its lines.
func (h *house) noteAll(kind, text string, called time.Duration) {
	var page struct{ Items []json.RawMessage }
	testkit.Must(h.t, json.Unmarshal([]byte(text), &page))
	for _, item := range page.Items {
		var named struct{ ID string }
		testkit.Must(h.t, json.Unmarshal(item, &named))
		h.note(ask{address: kind + "/" + named.ID}, reply{http.StatusOK, stateOf(string(item))}, called)
	}
}

func (h *house) note(a ask, r reply, called time.Duration) {
	returned := time.Since(h.begun)
	if r.status == 0 {
		returned = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if strings.HasPrefix(a.address, portal) {
		h.orders[a.words] = r.status
		return
	}
	h.history[a.address] = append(h.history[a.address], porcupine.Operation{Input: a, Call: int64(called), Output: r, Return: int64(returned)})
}

// stateOf what was answered, as [ask.after] tells it.
func stateOf(text string) string {
	var v struct {
		State      string
		Review     struct{ Reason string }
		Assignment *struct{ Assignee, Note string }
	}
	if json.Unmarshal([]byte(text), &v) != nil {
		return "not JSON"
	}
	if a := v.Assignment; a != nil {
		return assigned + strings.TrimSpace(a.Assignee+" "+a.Note)
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

// countDecisions sees that the journal holds one review of each dead letter that is decided, and of no other.
func (h *house) countDecisions(all *lived) {
	a := look(h.t, h.url)
	for i := range a.stories {
		s := &a.stories[i]
		letter := s.DeadLetters[0]
		reviews := slices.DeleteFunc(s.Entries, func(e journal.Entry) bool { return e.Kind != journal.ReviewEntry })
		if len(reviews) > 1 || len(reviews) == 1 != (letter.State != journal.DeadLetterOpen) {
			h.t.Errorf("%s is %s after %d reviews", s.Subject.ID, letter.State, len(reviews))
		}
		if all.decisions += len(reviews); letter.Run != "" {
			all.byRuns++
		}
	}
}

// countOrders sees that the journal holds each order that was answered once, and at most once what nobody knows of.
func (h *house) countOrders() {
	recorded := map[string]int{}
	query := "SELECT body FROM records WHERE kind = '" + string(journal.DestinationEntry) + "'"
	each(wait.Context(h.t), h.t, database(h.t, h.url), query, func(scan func(...any) error) error {
		var body []byte
		if err := scan(&body); err != nil {
			return err
		}
		var of journal.DestinationBody
		err := json.Unmarshal(body, &of)
		if of.Command != nil {
			recorded[of.Command.Reason]++
		}
		return err
	})
	for words, status := range h.orders {
		if n := recorded[words]; n > 1 || n < 1 && status == http.StatusOK {
			h.t.Errorf("the order %s, answered with %d, is recorded %d times", words, status, n)
		}
		delete(recorded, words)
	}
	if len(recorded) > 0 {
		h.t.Errorf("nobody gave the orders %v", recorded)
	}
}

// must ask the first replica for what it cannot refuse.
func (h *house) must(method, path string, body any) []byte {
	h.t.Helper()
	status, text, err := request(h.replicas[0].http, method, path, body, h.tokens["p0"])
	if err != nil || status >= http.StatusBadRequest {
		h.t.Fatalf("%s %s: %d %s, %v", method, path, status, text, err)
	}
	return []byte(text)
}

// client keeps a connection for each person and replica.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: people}}

func request(replica, method, path string, body any, token ...string) (status int, text string, err error) {
	r, err := http.NewRequest(method, "http://"+replica+"/api/v1/"+path, strings.NewReader(jsonOf(body)))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	for _, t := range token {
		r.Header.Set("Authorization", "Bearer "+t)
	}
	response, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	return response.StatusCode, string(all), err
}
