package scenarios

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/access"
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

// bulkRuns are played by people at the API of one worker after another.
type bulkRuns struct {
	*world
	tokens       map[string]string // by the names of who has them
	policies     string            // the file
	ti, cadastro inbox
}

// TestADayOfBulkRuns: four hundred claims die of one credential. They are one cause, one plan and one run at sixty a minute,
// which is paused, ended at once with its worker, goes on by another catalogue, and is left alone by its engine; each claim
// ends as recovered or dead again, once. One message told the team, not four hundred.
func TestADayOfBulkRuns(t *testing.T) {
	inBubble(t, byREST, func(_ *testing.T, w *world) {
		s := &bulkRuns{world: w, policies: filepath.Join(w.folder, "policies.yaml")}
		s.startPortal(nil, submitClaim)
		s.tokens = harness.Issue(s.t, filepath.Join(s.folder, "tokens"),
			map[string]access.Role{"ana": access.Admin, "bruno": access.Admin})
		harness.Replace(s.t, filepath.Join(s.folder, "secret"), "whsec_"+"c2VncmVkb3NlZ3JlZG9zZWdyZWRvc2VncmVkbw==")
		harness.Replace(s.t, s.policies, s.catalogue("48h"))
		s.begin()
		s.playCredential()
	})
}

// catalogue is the default one but for a limit, with where each team is told.
func (s *bulkRuns) catalogue(totalLimit string) string {
	webhook := func(i *inbox) string {
		if i.url == "" {
			i.url = s.receive(i)
		}
		return fmt.Sprintf("{webhook: {url: %q, secretFile: %s}}", i.url, filepath.Join(s.folder, "secret"))
	}
	return `extends: built-in
policies: {tiss-submission: {totalLimit: ` + totalLimit + `}}
teams: {ti: ` + webhook(&s.ti) + `, cadastro: ` + webhook(&s.cadastro) + "}\n"
}

// begin a life of the worker.
func (s *bulkRuns) begin() {
	s.t.Helper()
	s.serve(func(c *config.Settings) {
		c.AuthTokensFile, c.PoliciesFile, c.Notify.Interval = filepath.Join(s.folder, "tokens"), s.policies, 24*time.Hour
	})
}

// The kinds of claims, by what they die of.
const (
	// credential: a wrong log-in, once; every stubborn one of them for ever.
	credential = "LOGIN"
	// patient: the patient's data.
	patient = "PACIENTE"
)

// dying starts n claims of a kind, numbered from first on, and returns their instances.
func (s *bulkRuns) dying(kind string, first, n int) []int64 {
	s.t.Helper()
	return s.createAll("SUB_06", n, func(i int) map[string]any { return submission(claimOf(kind, first+i), failingAs(kind, first+i), nil) })
}

func claimOf(kind string, n int) string { return fmt.Sprintf("CLM-%s-%d", kind, n) }

func failingAs(kind string, n int) claim {
	text := map[string]string{
		patient: fmt.Sprintf("INVALID_PATIENT_DATA: guia %d, campo dataNascimento", n),
		credential: fmt.Sprintf("SOAP Fault ans:LoginInvalido: acesso negado ao lote %d, protocolo %08d, em 21/11/2026 08:%02d:%02d",
			7000+n, 31*n, n/60%60, n%60),
	}[kind]
	if kind == credential && n%stubborn == 0 {
		return left(failing(text, text))
	}
	return left(failing(text))
}

func (s *bulkRuns) playCredential() {
	s.dying(patient, 1, others)
	keys := s.dying(credential, 1, claims)
	s.awaitAll(s.keys, "every process to wait for people", func(i *instance) bool { return len(i.reviews) == 1 })
	s.pass(time.Minute)
	s.expectOneMessage()
	ana, bruno := s.by("ana"), s.by("bruno")
	c := ofCause(s.expectCause())
	c.Reason = "senha da operadora corrigida"
	p := ana.plan(c)
	if p.Total != claims || p.Ready != claims || len(p.Causes) != 1 {
		s.t.Errorf("the plan is %+v", p)
	}
	r := ana.start(c, p)
	s.pass(time.Minute)
	from, until := s.pauses(bruno, r.ID)
	s.killed(ana, r.ID)
	harness.Replace(s.t, s.policies, s.catalogue("47h")) // the version is another, the decisions go on
	s.pass(time.Minute)
	s.worker.Log.AwaitEvent(s.t, "catalogue_changed")
	s.leaves(ana, r.ID)
	for n := 0; ana.run(r.ID).State != "done"; n++ {
		if n > claims/pace {
			s.t.Fatalf("the run goes on and on: %+v", ana.run(r.ID))
		}
		s.pass(time.Minute)
	}
	r = ana.run(r.ID)
	want := map[journal.BulkOutcome]int64{"recovered": claims - claims/stubborn, "dead_again": claims / stubborn}
	if !r.has(want) || r.Total != claims || r.By != "ana" || r.EndedAt == nil {
		s.t.Errorf("the run has ended as %+v, expected %v", r, want)
	}
	items := ana.items(r.ID)
	fastest := s.expectPace(items, from, until)
	s.expectOutcomes(items)
	links := s.expectDecidedOnce(r.ID, "ana", items, "start by ana", "pause by bruno", "resume by bruno", "finish")
	s.expectEngine(keys)
	s.expectOneMessage() // the next would come after the interval
	s.done("400 claims of one credential", "one cause, %d recovered, %d dead again; at most %d in a minute; paused, killed, "+
		"another catalogue, engine away; audit of %d links holds", r.Counts["recovered"], r.Counts["dead_again"], fastest, links)
}

// pass has time pass, once who carries runs out has looked for them.
func (s *bulkRuns) pass(d time.Duration) {
	time.Sleep(2 * time.Second)
	s.clock.MoveTo(s.clock.Now().Add(d))
}

// expectCause holds that the claims of the credential are dead letters of one cause, and returns it.
func (s *bulkRuns) expectCause() views.DeadLetterGroup {
	s.t.Helper()
	all := s.by("ana").groups()
	g := all[0]
	first, _ := decision.ParseInstant(g.FirstSeen)
	last, _ := decision.ParseInstant(g.LastSeen)
	if len(all) != 2 || g.Count != claims || g.Reason != "INVALID_CREDENTIALS" || text(g.MatchedRule) != "credentials" ||
		g.Sample.Reason != g.Reason || g.Policy != "tiss-submission" || !slices.Equal(g.Teams, []decision.Team{"ti"}) ||
		first.IsZero() || first.After(last) || !strings.HasPrefix(g.Sample.Subject.ID, "CLM-"+credential+"-") ||
		text(g.Sample.Fingerprint) != text(g.Fingerprint) {
		s.t.Errorf("the cause, one of %d, is %+v", len(all), g)
	}
	return g
}

// ofCause retries all of a cause now, at the pace.
func ofCause(g views.DeadLetterGroup) command {
	var f views.Filter
	f.Fingerprint = text(g.Fingerprint)
	return command{BulkCommand: views.BulkCommand{Action: journal.BulkRetry, Filter: f, When: deadletter.Now, PerMinute: pace}}
}

// pauses the run for a minute, in which nothing is decided, and returns from when to when.
func (s *bulkRuns) pauses(d person, id string) (from, until time.Time) {
	s.t.Helper()
	r := d.step(id, "pause")
	from = s.clock.Now()
	if r.State != "paused" || text(r.ChangedBy) != d.name || r.decided() < pace {
		s.t.Errorf("paused, the run is %+v", r)
	}
	s.pass(time.Minute)
	if after := d.run(id); after.State != "paused" || after.decided() != r.decided() {
		s.t.Errorf("paused at %d decisions, the run has %d and is %s", r.decided(), after.decided(), after.State)
	}
	until = s.clock.Now()
	if r = d.step(id, "resume"); r.State != "running" {
		s.t.Errorf("resumed, the run is %+v", r)
	}
	return from, until
}

// killed ends the worker at once, when the engine has just taken one of its decisions, and begins another life.
func (s *bulkRuns) killed(d person, id string) {
	s.t.Helper()
	taken := func() (n int) {
		for _, key := range s.keys {
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
	decided := d.run(id).decided()
	if s.pass(time.Minute); d.run(id).decided() < decided+pace-1 {
		s.t.Errorf("killed at %d decisions, the run has %d a minute later", decided, d.run(id).decided())
	}
}

// leaves the run without its engine, until it has said so and nothing was decided for a while.
func (s *bulkRuns) leaves(d person, id string) {
	s.t.Helper()
	const noticed = 20 * time.Second // by who polls in vain, and by who finds it back
	s.bubble.StopEngine()
	time.Sleep(noticed)
	held := d.run(id)
	if held.State != "running" || text(held.Hold) != "engine_down" || held.HeldAt == nil {
		s.t.Errorf("without its engine the run is %+v", held)
	}
	s.pass(time.Minute)
	if after := d.run(id); after.decided() != held.decided() || text(after.Hold) != "engine_down" {
		s.t.Errorf("held at %d decisions, the run has %d and holds because of %q", held.decided(), after.decided(), text(after.Hold))
	}
	s.bubble.StartEngine()
	time.Sleep(noticed)
	if after := d.run(id); after.Hold != nil || after.decided() == held.decided() {
		s.t.Errorf("the engine is back, and the run is %+v", after)
	}
}

// instants at which the items were decided, in order.
func instants(items []views.BulkItem) []time.Time {
	var all []time.Time
	for _, i := range items {
		if i.DecidedAt != nil {
			at, _ := decision.ParseInstant(*i.DecidedAt)
			all = append(all, at)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// expectPace holds that no minute had more decisions than the pace, with the one that opens it, and that the pause had none.
// It returns the most of a minute.
func (s *bulkRuns) expectPace(items []views.BulkItem, from, until time.Time) (most int) {
	s.t.Helper()
	all := instants(items)
	if len(all) != claims {
		s.t.Errorf("%d items were decided, expected %d", len(all), claims)
	}
	first, inPause := 0, 0
	for n, at := range all {
		for at.Sub(all[first]) >= time.Minute {
			first++
		}
		most = max(most, n-first+1)
		if at.After(from) && at.Before(until) {
			inPause++
		}
	}
	if inPause > 0 {
		s.t.Errorf("%d were decided in the pause", inPause)
	}
	if most > pace+1 {
		s.t.Errorf("%d were decided in one minute, expected at most %d", most, pace)
	}
	return most
}

// expectOutcomes holds what became of each item against what the portals said.
func (s *bulkRuns) expectOutcomes(items []views.BulkItem) {
	s.t.Helper()
	want := make(map[string]journal.BulkOutcome)
	for n := 1; n <= claims; n++ {
		want[claimOf(credential, n)] = "recovered"
		if n%stubborn == 0 {
			want[claimOf(credential, n)] = "dead_again"
		}
	}
	for _, i := range items {
		if want[i.Subject.ID] != i.Outcome {
			s.t.Errorf("%s is %s, expected %q", i.Subject.ID, i.Outcome, want[i.Subject.ID])
		}
		delete(want, i.Subject.ID)
	}
	if len(want) > 0 {
		s.t.Errorf("%d claims are not among the items", len(want))
	}
}

// expectEngine holds what the engine saw: each review answered once, and each process where it should be.
func (s *bulkRuns) expectEngine(keys []int64) {
	s.t.Helper()
	s.awaitAll(keys, "the engine to have done all", func(i *instance) bool { return i.over() || len(i.reviews) == 2 })
	again := 0
	for _, key := range keys {
		i := s.instance(key)
		if review := i.of(worker.RetryReview)[0]; len(review.answers) != 1 || review.answers[0].intent != "COMPLETED" {
			s.t.Errorf("the review %d was answered %d times", review.key, len(review.answers))
		}
		if !i.over() {
			again++
		} else if i.endedBy != "resubmission_recorded" {
			s.t.Errorf("the process %d ended at %s", key, i.endedBy)
		}
	}
	if again != claims/stubborn {
		s.t.Errorf("%d processes wait for people again, expected %d", again, claims/stubborn)
	}
}

// expectOneMessage holds that each team was told once, of all of its dead letters, and of none by its id.
func (s *bulkRuns) expectOneMessage() {
	s.t.Helper()
	for of, want := range map[*inbox]int{&s.ti: claims, &s.cadastro: others} {
		if of.count() != 1 || of.last() != fmt.Sprintf("%d worth ", want) || strings.Contains(of.text(), "CLM-") {
			s.t.Errorf("%d messages, the last %s: %s; expected one of %d, without an id", of.count(), of.last(), of.text(), want)
		}
	}
}

// decided is what the audit has of a decision.
type decided struct{ Decision, DeadLetterID, Reason, By, BulkRun string }

// expectDecidedOnce holds that the audit has one decision on each item of a run that was decided, by whom it was started,
// and these steps of the run. It returns the number of its links.
func (s *bulkRuns) expectDecidedOnce(id, by string, items []views.BulkItem, steps ...string) (links int64) {
	s.t.Helper()
	report, records := s.audited()
	reviews := make(map[string]decided)
	var got []string
	for _, r := range records {
		switch r.Kind {
		case "review":
			var body decided
			testkit.Must(s.t, json.Unmarshal(r.Body, &body))
			if _, twice := reviews[body.DeadLetterID]; twice {
				s.t.Errorf("the dead letter %s was decided on twice", body.DeadLetterID)
			}
			reviews[body.DeadLetterID] = body
		case "bulk":
			var body struct{ Verb, By, BulkRun string }
			testkit.Must(s.t, json.Unmarshal(r.Body, &body))
			if body.BulkRun == id && body.Verb != "gather" && body.Verb != "hold" { // as often as it takes
				got = append(got, strings.TrimSuffix(body.Verb+" by "+body.By, " by "))
			}
		}
	}
	for _, i := range items {
		if r := reviews[i.DeadLetter]; r.BulkRun != id || r.By != by {
			s.t.Errorf("item %d is %s, and the audit has %+v", i.Number, i.Outcome, r)
		}
	}
	if !slices.Equal(got, steps) {
		s.t.Errorf("the audit has the steps %v of the run, expected %v", got, steps)
	}
	return report.Links
}
