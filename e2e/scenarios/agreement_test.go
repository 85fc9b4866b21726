package scenarios

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/nats"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// personal data as it turns up in error texts: nobody's, but their check digits are right. Those of one kind of claims have it.
var personal = []string{"111.444.777-35", "52998224725", "898001234567808", "maria.exemplo@example.com"}

func (s *scenario) expectNothingPersonal(where, text string) {
	s.t.Helper()
	if text == "" {
		s.t.Errorf("%s is empty", where)
	}
	for _, secret := range personal {
		if strings.Contains(text, secret) {
			s.t.Errorf("%s holds %q", where, secret)
		}
	}
}

// fewAgree is how many claims the figures are compared over where PROOF_CLAIMS does not say otherwise.
const fewAgree = 240

// TestEverybodyTellsTheSame: a run of claims of four kinds, and the worker's metrics, its KPIs, the claims'
// histories, the audit, the events in NATS and the engine's own counters agree to the last one. None of them has anything personal.
func TestEverybodyTellsTheSame(t *testing.T) {
	s := onProcesses(t, byGRPC)
	s.deploy()
	queue := nats.New(t, nats.Settings{})
	folder := t.TempDir()
	database := "sqlite:" + filepath.Join(folder, "journal.db")
	w := s.serve("worker", "RETRY_WORKER_JOB_TIMEOUT=1m", "RETRY_WORKER_EVENTS_URL="+queue.URL(), "RETRY_WORKER_DATABASE_URL="+database)
	s.startPortal(w, submitClaim)
	each := harness.Setting(t, "PROOF_CLAIMS", fewAgree) / 4
	l := s.startLoad(4 * each)
	s.finish(l)
	s.expectCounts(loadCounts(4 * each))

	n := float64(each)
	s.expectMetrics(w, map[string]float64{
		`retry_scheduled_total{classification="TRANSIENT",policy="tiss-submission"}`:                     n,
		`submission_retry_total{policy="tiss-submission"}`:                                               n,
		`max_retries_exceeded_total{policy="tiss-submission"}`:                                           n,
		`permanent_errors_total{policy="tiss-submission",reason="INSURANCE_EXPIRED",team="cadastro"}`:    n,
		`permanent_errors_total{policy="tiss-submission",reason="INVALID_PATIENT_DATA",team="cadastro"}`: n,
		`retry_analysis_duration_seconds_count{policy="tiss-submission"}`:                                4 * n,
		`retry_worker_dead_letters{policy="tiss-submission",state="open"}`:                               0,
		`retry_worker_dead_letters{policy="tiss-submission",state="discarded"}`:                          n,
		`retry_worker_dead_letters{policy="tiss-submission",state="recovered"}`:                          2 * n,
		`retry_worker_recovery_attempts_count{policy="tiss-submission"}`:                                 2 * n,
		`retry_success_rate{policy="tiss-submission"}`:                                                   2.0 / 3, // one kind was lost at first
		`retry_worker_outbox_pending`:                                                                    0,
		`error_classification_distribution{classification="PERMANENT",policy="tiss-submission"}`:         2 * n,
		`error_classification_distribution{classification="TRANSIENT",policy="tiss-submission"}`:         2 * n,
	})
	s.expectAnswers(w, map[string]int{worker.AnalyzeRetry: 4 * each, worker.RecordRetryOutcome: 3 * each, worker.RetryReview: 3 * each})
	s.expectHistories(w, each)
	s.expectKPIs(database, each)
	records := s.expectAudit(database, each)
	events := s.expectEvents(queue, each)
	s.expectCounters()
	s.expectNothingPersonal("the worker's log", w.Log.Text())
	s.expectNothingPersonal("the worker's metrics", w.get(t, w.Ops+"/metrics"))
	for _, file := range []string{"journal.db", "journal.db-wal"} {
		s.expectNothingPersonal(file, testkit.Read(t, filepath.Join(folder, file)))
	}
	s.done("everybody tells the same", "%d claims: the engine, metrics, KPIs, %d histories, %d audit records and %d events agree",
		4*each, 4*each, records, events)
}

// expectMetrics waits until the worker's metrics say this.
func (s *scenario) expectMetrics(w *process, want map[string]float64) {
	s.t.Helper()
	wrong := ""
	s.until("the metrics to be as expected", func() bool {
		wrong = ""
		text := w.get(s.t, w.Ops+"/metrics")
		for series, n := range want {
			line := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(text)
			if line == nil || line[1] != strconv.FormatFloat(n, 'f', -1, 64) {
				wrong += fmt.Sprintf("%s: got %v, want %v\n", series, line, n)
			}
		}
		return wrong == ""
	}, func() string { return wrong })
}

var jobsTotal = regexp.MustCompile(`(?m)^retry_worker_jobs_total\{action="(\w+)",job_type="([\w-]+)"\} (\d+)$`)

// expectAnswers waits until the worker has counted so many answers to jobs of each type, those among them of which a busy engine
// did not say in time that it took them.
func (s *scenario) expectAnswers(w *process, want map[string]int) {
	s.t.Helper()
	got := map[string]int{}
	s.until("all answers to be counted", func() bool {
		clear(got)
		for _, m := range jobsTotal.FindAllStringSubmatch(w.get(s.t, w.Ops+"/metrics"), -1) {
			if answer := m[1] == "completed" || m[1] == "bpmn_error" || m[1] == "unconfirmed"; answer && want[m[2]] > 0 {
				n, _ := strconv.Atoi(m[3]) // digits only
				got[m[2]] += n
			}
		}
		return maps.Equal(got, want)
	}, func() string { return fmt.Sprint(got) })
}

// expectHistories asks the API for each claim.
func (s *scenario) expectHistories(w *process, each int) {
	s.t.Helper()
	got := make(map[string]int)
	for n := range 4 * each {
		var subject struct {
			State    string
			Attempts []struct{ Outcome string }
		}
		testkit.Must(s.t, json.Unmarshal([]byte(w.get(s.t, w.API+"/api/v1/subjects/tiss-submission/"+s.claimID(n))), &subject))
		got[fmt.Sprintf("kind %d: %s %v", n%4, subject.State, subject.Attempts)]++
	}
	want := map[string]int{
		"kind 0: recovered [{RETRY}]": each, "kind 1: discarded [{PERMANENT_ERROR}]": each,
		"kind 2: recovered [{PERMANENT_ERROR}]": each, "kind 3: recovered [{MAX_RETRIES_EXCEEDED}]": each,
	}
	if !maps.Equal(got, want) {
		s.t.Errorf("the histories say %v, want %v", got, want)
	}
}

func (s *processes) expectKPIs(database string, each int) {
	s.t.Helper()
	var all struct {
		KPIs []struct {
			Name    string
			Value   *float64
			Samples int
		}
	}
	testkit.Must(s.t, json.Unmarshal([]byte(s.command(database, "kpi", "--policy", "tiss-submission", "-o", "json")), &all))
	want := map[string]struct {
		value   float64
		samples int
	}{
		"success_rate": {2.0 / 3, 3 * each}, "retries_to_success": {3.5, 2 * each}, "permanent_rate": {0.5, 4 * each},
		"exhausted_rate": {0.25, 4 * each}, "at_maximum_rate": {0, each},
	}
	for _, k := range all.KPIs {
		w, ok := want[k.Name]
		if !ok {
			continue
		}
		if k.Value == nil || *k.Value != w.value || k.Samples != w.samples {
			s.t.Errorf("%s is %s of %d, want %v of %d", k.Name, jsonOf(k.Value), k.Samples, w.value, w.samples)
		}
		delete(want, k.Name)
	}
	if len(want) > 0 {
		s.t.Errorf("no figure for %v", want)
	}
}

// counted reports whether the number of records of that kind is known: what went is counted each quarter of an hour by the
// scenario's clock, and claims that come before the worker knows of other replicas wait at their gates for a moment.
func counted(kind string) bool { return kind != "destination" && kind != "gate" }

// expectAudit verifies the chain and counts what is exported.
func (s *processes) expectAudit(database string, each int) (records int) {
	s.t.Helper()
	s.command(database, "audit", "verify")
	got := make(map[string]int)
	exported := s.command(database, "audit", "export", "--format", "jsonl")
	s.expectNothingPersonal("the audit", exported)
	lines := bufio.NewScanner(strings.NewReader(exported))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r struct{ Kind, Outcome string }
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // what is said on standard error
		}
		if !counted(r.Kind) {
			continue
		}
		records++
		got[strings.TrimSpace(r.Kind+" "+r.Outcome)]++
	}
	testkit.Must(s.t, lines.Err())
	// An attempt each, the outcomes of those that ended well, the reviews, and that their processes waited for them and took them.
	want := 4*each + 3*each + 3*each + 2*3*each
	if records != want {
		s.t.Errorf("%d records were exported, want %d: %v", records, want, got)
	}
	return records
}

// expectEvents reads all that is in the stream.
func (s *scenario) expectEvents(queue *nats.Server, each int) int {
	s.t.Helper()
	want := map[string]int{
		"RetryScheduled": each, "PermanentErrorDetected": 2 * each, "MaxRetriesExceeded": each, "RetryRecovered": 3 * each, "DeadLetterReviewed": 3 * each,
		"AuditRecorded": 16 * each,
	}
	all := s.events(queue)
	got, ids := make(map[string]int), make(map[string]bool)
	for _, text := range all {
		s.expectNothingPersonal("an event", text)
		var e struct {
			ID, Type string
			Data     struct{ Kind string }
		}
		testkit.Must(s.t, json.Unmarshal([]byte(text), &e))
		if ids[e.ID] = true; counted(e.Data.Kind) {
			got[e.Type]++
		}
	}
	if !maps.Equal(got, want) || len(ids) != len(all) {
		s.t.Errorf("the %d events are %v with %d ids, want %v", len(all), got, len(ids), want)
	}
	return len(all)
}

// events are all that the queue holds.
func (s *scenario) events(queue *nats.Server) []string {
	s.t.Helper()
	stream, err := queue.JetStream(s.t).Stream(s.t.Context(), "RETRY")
	testkit.Must(s.t, err)
	info, err := stream.Info(s.t.Context())
	testkit.Must(s.t, err)
	consumer, err := stream.OrderedConsumer(s.t.Context(), jetstream.OrderedConsumerConfig{})
	testkit.Must(s.t, err)
	defer func() { testkit.Must(s.t, stream.DeleteConsumer(s.t.Context(), consumer.CachedInfo().Name)) }()
	batch, err := consumer.Fetch(int(info.State.Msgs), jetstream.FetchMaxWait(wait.Limit))
	testkit.Must(s.t, err)
	var all []string
	for m := range batch.Messages() {
		all = append(all, string(m.Data()))
	}
	return all
}
