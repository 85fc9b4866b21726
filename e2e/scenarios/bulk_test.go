package scenarios

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	views "retry-worker/internal/api"
	"retry-worker/internal/config"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

const (
	// claims die of one credential; others of something else.
	claims = 400
	others = 5
	// stubborn is of how many one belongs to an insurer whose log-in is still wrong.
	stubborn = 20
	// pace of the run, a minute.
	pace = 60
)

// bulkRun is one that people start at the API of one worker, and see at that of another.
type bulkRun struct {
	*world
	policies string // the file
	id       string
}

// TestADayOfBulkRuns: four hundred claims die of one credential. They are one cause, one plan and one run at sixty a minute,
// which is paused, ended at once with its worker, goes on by another catalogue, and is left alone by its engine; each claim
// ends as recovered or dead again, once.
func TestADayOfBulkRuns(t *testing.T) {
	inBubble(t, byREST, func(t *testing.T, w *world) {
		s := &bulkRun{world: w, policies: filepath.Join(w.folder, "policies.yaml")}
		s.startPortal(nil, submitClaim)
		s.limit("48h")
		s.begin()
		s.createAll("SUB_06", others, func(n int) map[string]any {
			return submissions.variables(s.world.id("CLM-OTHER", n), left(failing("INVALID_PATIENT_DATA")), nil)
		})
		keys := s.createAll("SUB_06", claims, func(n int) map[string]any { return submissions.variables(s.claimID(n), dying(n), nil) })
		s.awaitAll(s.keys, "every process to wait for people", func(i *instance) bool { return len(i.reviews) == 1 })
		s.pass(time.Minute)
		s.plan()
		s.pass(time.Minute)
		from, until := s.pauses()
		s.killed(keys)
		s.limit("47h") // the version is another, the decisions go on
		s.pass(time.Minute)
		s.worker.Log.AwaitEvent(t, "catalogue_changed")
		s.leaves()
		for n := 0; s.now().State != "done"; n++ {
			if n > claims/pace {
				t.Fatalf("the run goes on and on: %+v", s.now())
			}
			s.pass(time.Minute)
		}
		s.expectItems(from, until)
		s.expectEngine(keys)
		s.audited()
		s.done("400 claims of one credential", "one cause; paused, killed, another catalogue, engine away: %v", s.now().Counts)
	})
}

// limit puts the built-in catalogue with that limit in force.
func (s *bulkRun) limit(total string) {
	harness.Replace(s.t, s.policies, "extends: built-in\npolicies: {tiss-submission: {totalLimit: "+total+"}}\n")
}

// begin a life of the worker.
func (s *bulkRun) begin() { s.serve(func(c *config.Settings) { c.PoliciesFile = s.policies }) }

// dying is a claim that dies of a wrong log-in, once; a stubborn one for ever.
func dying(n int) claim {
	text := fmt.Sprintf("SOAP Fault ans:LoginInvalido: acesso negado ao lote %d, protocolo %08d", 7000+n, 31*n)
	if n%stubborn == 0 {
		return left(failing(text, text))
	}
	return left(failing(text))
}

func (s *bulkRun) ask(path string, body, answer any) {
	s.t.Helper()
	testkit.Must(s.t, api{worker: s.worker}.ask(s.t.Context(), path, body, answer))
}

// plan plans a retry of the largest cause, and starts it.
func (s *bulkRun) plan() {
	s.t.Helper()
	var causes views.Page[views.DeadLetterGroup]
	s.ask("/dead-letters/groups", nil, &causes)
	if g := causes.Items[0]; len(causes.Items) != 2 || g.Count != claims || g.Reason != "INVALID_CREDENTIALS" || !slices.Equal(g.Teams, []decision.Team{"ti"}) {
		s.t.Fatalf("the cause, one of %d, is %+v", len(causes.Items), g)
	}
	var f views.Filter
	f.Fingerprint = *causes.Items[0].Fingerprint
	c := struct {
		views.BulkCommand
		Reason string `json:"reason,omitempty"`
		Token  string `json:"token,omitempty"`
	}{BulkCommand: views.BulkCommand{Action: journal.BulkRetry, Filter: f, When: deadletter.Now, PerMinute: pace}}
	var p views.BulkPlan
	if s.ask("/bulk-runs/plan", c, &p); p.Total != claims || p.Ready != claims || len(p.Causes) != 1 {
		s.t.Errorf("the plan is %+v", p)
	}
	c.Reason, c.Token = "senha da operadora corrigida", p.Token
	var r views.BulkRun
	s.ask("/bulk-runs", c, &r)
	s.id = r.ID
}

// now is the run as it stands.
func (s *bulkRun) now() (r views.BulkRun) {
	s.t.Helper()
	s.ask("/bulk-runs/"+s.id, nil, &r)
	return r
}

// decided is how many are decided, whatever became of them.
func (s *bulkRun) decided() int64 { return claims - s.now().Counts[journal.BulkPlanned] }

// pass has time pass, once who carries runs out has looked for them.
func (s *bulkRun) pass(d time.Duration) {
	time.Sleep(2 * time.Second)
	s.clock.MoveTo(s.clock.Now().Add(d))
}

// pauses the run for a minute, in which nothing is decided, and returns from when to when.
func (s *bulkRun) pauses() (from, until time.Time) {
	s.t.Helper()
	var r views.BulkRun
	s.ask("/bulk-runs/"+s.id+"/pause", struct{}{}, &r)
	from, before := s.clock.Now(), s.decided()
	s.pass(time.Minute)
	if after := s.decided(); r.State != "paused" || before < pace || after != before {
		s.t.Errorf("paused at %d decisions, the run has %d and was %s", before, after, r.State)
	}
	until = s.clock.Now()
	s.ask("/bulk-runs/"+s.id+"/resume", struct{}{}, &r)
	return from, until
}

// killed ends the worker at once, when the engine has just taken one of its decisions, and begins another life.
func (s *bulkRun) killed(keys []int64) {
	s.t.Helper()
	taken := func() (n int) {
		for _, key := range keys {
			for _, j := range s.history.instances[key].of(worker.RetryReview) {
				n += len(j.answers)
			}
		}
		return n
	}
	before, passed := 0, make(chan struct{})
	s.history.Look(func() { before = taken() })
	go func() {
		defer close(passed)
		s.pass(time.Minute)
	}()
	s.await("half a minute's decisions to be taken", func() bool { return taken() >= before+pace/2 })
	s.worker.kill()
	<-passed
	s.begin()
	decided := s.decided()
	if s.pass(time.Minute); s.decided() < decided+pace-1 {
		s.t.Errorf("killed at %d decisions, the run has %d a minute later", decided, s.decided())
	}
}

// leaves the run without its engine, until it has said so and nothing was decided for a while.
func (s *bulkRun) leaves() {
	s.t.Helper()
	const noticed = 20 * time.Second // by who polls in vain, and by who finds it back
	s.bubble.StopEngine()
	time.Sleep(noticed)
	held, decided := s.now(), s.decided()
	if held.State != "running" || text(held.Hold) != "engine_down" || held.HeldAt == nil {
		s.t.Errorf("without its engine the run is %+v", held)
	}
	if s.pass(time.Minute); s.decided() != decided {
		s.t.Errorf("held at %d decisions, the run has %d", decided, s.decided())
	}
	s.bubble.StartEngine()
	time.Sleep(noticed)
	if after := s.now(); after.Hold != nil || s.decided() == decided {
		s.t.Errorf("the engine is back, and the run is %+v", after)
	}
}

// text of a field that may be null.
func text(of *string) string {
	if of == nil {
		return ""
	}
	return *of
}

// expectItems holds what became of each item against what the portals said: no minute had more decisions than the pace, with
// the one that opens it, and the pause had none.
func (s *bulkRun) expectItems(from, until time.Time) {
	s.t.Helper()
	var items []views.BulkItem
	for cursor := ""; ; {
		var page views.Page[views.BulkItem]
		s.ask("/bulk-runs/"+s.id+"/items?limit=200&cursor="+cursor, nil, &page)
		if items = append(items, page.Items...); page.Next == nil {
			break
		}
		cursor = *page.Next
	}
	want, got := map[string]journal.BulkOutcome{}, map[string]journal.BulkOutcome{}
	for n := range claims {
		want[s.claimID(n)] = map[bool]journal.BulkOutcome{true: "dead_again", false: "recovered"}[n%stubborn == 0]
	}
	var instants []time.Time
	for _, i := range items {
		got[i.Subject.ID] = i.Outcome
		at, _ := decision.ParseInstant(text(i.DecidedAt))
		if instants = append(instants, at); at.After(from) && at.Before(until) {
			s.t.Errorf("%s is decided in the pause", i.Subject.ID)
		}
	}
	if !maps.Equal(got, want) {
		s.t.Errorf("the items have come to %v, expected %v", got, want)
	}
	slices.SortFunc(instants, time.Time.Compare)
	for n := pace + 1; n < len(instants); n++ {
		if took := instants[n].Sub(instants[n-pace-1]); took < time.Minute {
			s.t.Errorf("%d were decided in %v", pace+2, took)
		}
	}
}

// expectEngine holds what the engine saw: each review answered once, and each process where it should be.
func (s *bulkRun) expectEngine(keys []int64) {
	s.t.Helper()
	s.awaitAll(keys, "the engine to have done all", func(i *instance) bool { return i.over() || len(i.reviews) == 2 })
	for n, key := range keys {
		i := s.instance(key)
		if review := i.of(worker.RetryReview)[0]; len(review.answers) != 1 || review.answers[0].intent != "COMPLETED" {
			s.t.Errorf("the review %d was answered %d times", review.key, len(review.answers))
		}
		if again := n%stubborn == 0; again == i.over() || !again && i.endedBy != submissions.recorded {
			s.t.Errorf("the process %d is over: %t, by %s", key, i.over(), i.endedBy)
		}
	}
}
