package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/mail"
	"retry-worker/internal/access"
	views "retry-worker/internal/api"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

const (
	// claims die of one credential; others of something else.
	claims = 400
	others = 5
	// stubborn is of how many one belongs to an insurer whose log-in is still wrong.
	stubborn = 20
	// times is how much faster the worker's clock goes where runs are carried out: 60 a minute are 15 in a second,
	// few enough that a busy machine kills the engine before they are through.
	times = 15
	// slowly is how fast it goes while they die: what dies within 10 s of it is told together, on a busy machine too.
	slowly = 0.01
	// behind is how far the worker's clock is behind the engine's, which is the machine's: no timer of a retry that is to be
	// made at once lies in the engine's future, however fast the worker's goes for half an hour.
	behind = 24 * time.Hour
	// pace of the run, a minute.
	pace = 60
	// paused and away are how long people hold the run up, and the engine is down, by the worker's clock.
	paused = time.Minute
	away   = time.Minute // beside what an engine's start takes
)

// bulkRuns are played on one journal, one after the other, by people at the API of one worker after another.
type bulkRuns struct {
	*scenario
	clock  testkit.FastClock // the worker's
	folder string
	mail   *mail.Server
	tokens map[string]string // by the names of who has them
	life   *harness.Worker
}

// TestADayOfBulkRuns: four hundred claims die of one credential. They are one cause, one plan and one run at sixty a minute,
// which is paused, killed, goes on by another catalogue, and is left alone by its engine; each ends as recovered or dead
// again, once. One mail told the team, not four hundred.
func TestADayOfBulkRuns(t *testing.T) {
	s := &bulkRuns{scenario: beginFaults(t, "waits"), folder: t.TempDir(), mail: mail.Open(t)}
	s.startPortal(nil, worker.SubmissionGate)
	s.tokens = harness.Issue(t, s.path("tokens"), map[string]access.Role{"ana": access.Admin, "bruno": access.Admin})
	harness.Replace(t, s.path("policies.yaml"), policies("48h"))
	testkit.Must(s.t, os.WriteFile(s.path("password"), []byte(mail.Password), 0o600))
	s.clock = harness.ClockAt(time.Now().Add(-behind), slowly)
	s.playCredential()
}

func (s *bulkRuns) path(name string) string { return filepath.Join(s.folder, name) }

// begin a life of the worker, which ends with the test at the latest.
func (s *bulkRuns) begin() {
	s.t.Helper()
	s.life = harness.StartWorker(s.t, harness.BinaryWithClock(s.t), harness.Settings(s.GatewayAddress(), s.folder, harness.Clock(s.clock),
		"RETRY_WORKER_AUTH_TOKENS_FILE="+s.path("tokens"), "RETRY_WORKER_POLICIES_FILE="+s.path("policies.yaml"),
		"RETRY_WORKER_SMTP_URL="+s.mail.URL(), "RETRY_WORKER_SMTP_PASSWORD_FILE="+s.path("password"), "RETRY_WORKER_SMTP_CA_FILE="+s.mail.CertificateFile(),
		"RETRY_WORKER_MAIL_FROM=retry-worker@hospital.example", "RETRY_WORKER_PUBLIC_URL=https://retry.hospital.example",
		"RETRY_WORKER_NOTIFY_INTERVAL=24h", "RETRY_WORKER_JOB_TIMEOUT=5s"))
}

// policies are the default ones but for a limit, with where each team is told.
func policies(totalLimit string) string {
	return `extends: built-in
policies: {tiss-submission: {totalLimit: ` + totalLimit + `}}
teams:
  ti: {email: [ti@hospital.example]}
  cadastro: {email: [cadastro@hospital.example]}
  faturamento: {email: [faturamento@hospital.example]}
`
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
	s.awaitAll(s.keys, "every submission to fail", func(i *instance) bool { return len(i.of(worker.AnalyzeRetry)) == 1 })
	s.begin() // they die at once
	ana, bruno := s.by("ana"), s.by("bruno")
	cause := s.awaitCause(claims)
	testkit.Must(s.t, s.life.Stop(s.t.Context(), wait.Limit))
	s.clock = harness.ClockAt(s.clock.Now(), times)
	s.begin()
	s.expectOneMail()
	c := ofCause(cause)
	c.Reason = "senha da operadora corrigida"
	p := ana.plan(c)
	if p.Total != claims || p.Ready != claims || len(p.Causes) != 1 {
		s.t.Errorf("the plan is %+v", p)
	}
	r := ana.start(c, p)
	ana.awaitRun(r.ID, "a minute's worth of decisions", func(r *run) bool { return r.decided() >= pace })
	from, until := s.pauses(bruno, r.ID)

	ana.awaitRun(r.ID, "more decisions after the pause", func(r *run) bool { return r.decided() >= 2*pace })
	dead := ana.run(r.ID).decided()
	s.life.Kill()
	killed := s.clock.Now()
	s.begin()
	s.changeCatalogue()
	ana.awaitRun(r.ID, "decisions after the kill", func(r *run) bool { return r.decided() >= max(dead, 2*pace)+pace })

	s.leaves(ana, r.ID)
	r = ana.awaitRun(r.ID, "the end of the run", func(r *run) bool { return r.State == "done" })
	want := map[journal.BulkOutcome]int64{"recovered": claims - claims/stubborn, "dead_again": claims / stubborn}
	r = ana.awaitRun(r.ID, "what became of all", func(r *run) bool { return r.has(want) })
	if r.Total != claims || r.By != "ana" || r.EndedAt == nil {
		s.t.Errorf("the run has ended as %+v", r)
	}
	items := ana.items(r.ID)
	fastest := s.expectPace(items, from, until)
	s.expectOutcomes(items)
	l := s.expectDecidedOnce(r.ID, "ana", items, "start by ana", "pause by bruno", "resume by bruno", "finish")
	s.expectEngine(keys)
	mails := s.expectMails()
	s.done("400 claims of one credential", "one cause, %d recovered, %d dead again; at most %d in a minute; paused, killed at %d (on again %.0f s later by its clock), another catalogue, engine away; %s; %s",
		r.Counts["recovered"], r.Counts["dead_again"], fastest, dead, s.firstAfter(items, killed).Sub(killed).Seconds(), mails, l.String())
}

// awaitCause waits until n claims of the credential are dead letters on which somebody can decide, and returns their cause.
func (s *bulkRuns) awaitCause(n int64) views.DeadLetterGroup {
	s.t.Helper()
	var all []views.DeadLetterGroup
	wait.Until(s.t, fmt.Sprintf("%d dead letters of one cause", n), func() bool {
		all = s.by("ana").groups()
		return len(all) == 2 && all[0].Count == n
	}, func() string { return fmt.Sprintf("%+v", all) })
	g := all[0]
	first, _ := decision.ParseInstant(g.FirstSeen)
	last, _ := decision.ParseInstant(g.LastSeen)
	if g.Reason != "INVALID_CREDENTIALS" || text(g.MatchedRule) != "credentials" || g.Sample.Reason != g.Reason || g.Policy != "tiss-submission" || !slices.Equal(g.Teams, []decision.Team{"ti"}) || first.IsZero() || first.After(last) ||
		!strings.HasPrefix(g.Sample.Subject.ID, "CLM-"+credential+"-") || text(g.Sample.Fingerprint) != text(g.Fingerprint) {
		s.t.Errorf("the cause is %+v", g)
	}
	s.awaitAll(s.keys, "every process to wait for people", func(i *instance) bool { return len(i.reviews) == 1 })
	wait.Until(s.t, "the worker to know that every process waits", func() bool { return s.by("ana").plan(ofCause(g)).Ready == n })
	return g
}

// ofCause retries all of a cause now, at the pace.
func ofCause(g views.DeadLetterGroup) command {
	f := views.BulkFilter{Fingerprint: g.Fingerprint}
	return command{BulkCommand: views.BulkCommand{Action: journal.BulkRetry, Filter: f, When: deadletter.Now, PerMinute: pace}}
}

// pauses the run for a while, in which nothing is decided, and returns from when to when.
func (s *bulkRuns) pauses(d person, id string) (from, until time.Time) {
	s.t.Helper()
	r := d.step(id, "pause")
	from = s.clock.Now()
	if r.State != "paused" || text(r.ChangedBy) != d.name {
		s.t.Errorf("paused, the run is %+v", r)
	}
	s.clock.Rest(s.t.Context(), paused)
	if after := d.run(id); after.State != "paused" || after.decided() > r.decided()+1 { // one was on its way
		s.t.Errorf("paused at %d decisions, the run has %d and is %s", r.decided(), after.decided(), after.State)
	}
	until = s.clock.Now()
	if r = d.step(id, "resume"); r.State != "running" {
		s.t.Errorf("resumed, the run is %+v", r)
	}
	return from, until
}

// leaves the run without its engine, until it has said so and nothing was decided for a while.
func (s *bulkRuns) leaves(d person, id string) {
	s.t.Helper()
	s.Kill()
	held := d.awaitRun(id, "the run to hold because its engine is down", func(r *run) bool { return text(r.Hold) == "engine_down" })
	if held.State != "running" || held.HeldAt == nil {
		s.t.Errorf("without its engine the run is %+v", held)
	}
	s.clock.Rest(s.t.Context(), away)
	if after := d.run(id); after.decided() > held.decided()+1 || text(after.Hold) != "engine_down" {
		s.t.Errorf("held at %d decisions, the run has %d and holds because of %q", held.decided(), after.decided(), text(after.Hold))
	}
	testkit.Must(s.t, s.restart(s.t.Context()))
	d.awaitRun(id, "the run to go on by itself", func(r *run) bool { return r.Hold == nil && r.decided() > held.decided()+1 })
}

// changeCatalogue in the midst of runs: the version is another, the decisions go on.
func (s *bulkRuns) changeCatalogue() {
	s.t.Helper()
	harness.Replace(s.t, s.path("policies.yaml"), policies("47h"))
	s.life.Log.AwaitEvent(s.t, "catalogue_changed")
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

// firstAfter is when the first was decided after an instant.
func (s *bulkRuns) firstAfter(items []views.BulkItem, instant time.Time) time.Time {
	s.t.Helper()
	all := instants(items)
	n := slices.IndexFunc(all, instant.Before)
	if n < 0 {
		s.t.Fatal("nothing was decided after it")
	}
	return all[n]
}

// expectPace holds that no minute had more decisions than the pace, with a second's worth for the last that was late, and
// that the pause had none but the one that was on its way. It returns the most of a minute.
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
	if inPause > 1 {
		s.t.Errorf("%d were decided in the pause, of which one may have been on its way", inPause)
	}
	if most > pace+2 {
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

// expectOneMail holds that the team was told of all of them in one mail, and the team of the others of those.
func (s *bulkRuns) expectOneMail() {
	s.t.Helper()
	all, err := s.mail.Await(wait.Context(s.t), 2)
	testkit.Must(s.t, err)
	for _, m := range all {
		want := map[string]string{"ti@hospital.example": fmt.Sprint(claims), "cadastro@hospital.example": fmt.Sprint(others)}[m.To[0]]
		if want == "" || !strings.Contains(m.Subject+"\n"+m.Text, want) || !strings.Contains(m.Text, "https://retry.hospital.example/dead-letters") {
			s.t.Errorf("the mail to %v does not say %q, or has no link:\n%s\n%s", m.To, want, m.Subject, m.Text)
		}
		if strings.Contains(string(m.Raw)+m.Text, "CLM-") {
			s.t.Errorf("the mail to %v has a claim's id in it:\n%s", m.To, m.Text)
		}
	}
}

// expectMails holds that nobody was told anything else: the next would come after the interval.
func (s *bulkRuns) expectMails() string {
	s.t.Helper()
	all, err := s.mail.Messages()
	testkit.Must(s.t, err)
	to := make(map[string]int)
	for _, m := range all {
		to[m.To[0]]++
	}
	if len(to) != 2 || to["ti@hospital.example"] != 1 || to["cadastro@hospital.example"] != 1 {
		s.t.Errorf("mails came to %v, expected one to ti and one to cadastro", to)
	}
	return fmt.Sprintf("%d mail told ti", to["ti@hospital.example"])
}
