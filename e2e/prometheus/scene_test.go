package prometheus_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/engine"
	"retry-worker/e2e/harness/nats"
	"retry-worker/e2e/harness/prometheus"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// The names of the scrape jobs, as in docker-compose.yml.
const workerJob, engineJob = "retry-worker", "zeebe"

// scene is one real run that all tests look at: the engine, NATS, the worker, and a Prometheus with the shipped rules that
// scrapes them every second while the demo plays and a thousand more failures are analysed.
type scene struct {
	dir    string
	engine *engine.Engine
	nats   *nats.Server
	worker *harness.Worker
	*prometheus.Server
	begun, ended time.Time
	environment  []string
	binary       string
}

// shared is the scene, played once.
var shared scene

// played is the scene after its end: figures stand still, but for the time that goes by.
func played(t *testing.T) *scene {
	t.Helper()
	s := &shared
	switch {
	case !s.ended.IsZero():
		return s
	case s.dir != "":
		t.Fatal("the run of another test did not come to its end")
	}
	started := time.Now()
	s.open(t)
	s.begun = time.Now()
	testkit.Must(t, s.nats.Pause()) // so that events pile up
	s.analyse(t)                    // first: the demo moves the engine's clock, which ends what waits for an answer
	s.holds(t, "retry_worker_outbox_pending > 100")
	testkit.Must(t, s.nats.Resume())
	bulk := s.run(t, s.binary, "dead-letters", "discard", "--filter", "q=vencida", "--reason", "prova do painel", "--yes", "--per-minute", "100",
		"--server", s.worker.API)
	dev, err := harness.DevBinary()
	testkit.Must(t, err)
	demo := s.run(t, dev, "--samples-only", "--api-url", "http://"+s.worker.API, "--clock-url", s.engine.ControlURL())
	if err := demo.Err(); err != nil { // a machine with much else to do is too slow for its clock; most of its samples have ended all the same
		t.Logf("the demo: %v; it said:\n%s", err, strings.Join(demo.Lines(), "\n"))
	}
	if err := bulk.Err(); err != nil {
		t.Fatalf("the bulk run: %v; it said:\n%s", err, strings.Join(bulk.Lines(), "\n"))
	}
	demonstrated := time.Now()
	s.settle(t)
	fmt.Printf("PRINT e2e  Prometheus %s: start %.0f s, run %.0f s, until the figures stand still %.0f s\n", prometheus.Program.Require(t).Version,
		s.begun.Sub(started).Seconds(), demonstrated.Sub(s.begun).Seconds(), s.ended.Sub(demonstrated).Seconds())
	return s
}

// open starts everything.
func (s *scene) open(t *testing.T) {
	t.Helper()
	var err error
	s.dir, err = os.MkdirTemp("", "prometheus-e2e-")
	testkit.Must(t, err)
	harness.AtEnd(func() error { return os.RemoveAll(s.dir) })
	prometheus.Program.Require(t)
	s.binary = harness.Binary(t)
	s.engine, err = engine.Start(t.Context())
	testkit.Must(t, err)
	harness.AtEnd(func() error { return s.engine.Stop(context.Background()) })
	s.nats, err = nats.Start(t.Context(), nats.Settings{Dir: filepath.Join(s.dir, "nats")})
	testkit.Must(t, err)
	harness.AtEnd(func() error { s.nats.Kill(); return nil })
	s.environment = harness.Settings(s.engine.GatewayAddress(), s.dir, "PATH="+os.Getenv("PATH"),
		"RETRY_WORKER_EVENTS_URL="+s.nats.URL(), "RETRY_WORKER_POLICIES_FILE="+s.policies(t),
		"RETRY_WORKER_WEBHOOK_ALLOW=127.0.0.1", "RETRY_WORKER_NOTIFY_INTERVAL=1s")
	if said, code := harness.RunCommand(t, s.binary, s.environment, "deploy"); code != 0 {
		t.Fatalf("deploy the models: %d: %s", code, said)
	}
	s.worker = harness.RunWorker(t, s.binary, s.environment)
	harness.AtEnd(func() error { return s.worker.Stop(context.Background(), harness.StopTime) })
	s.watch(t)
}

// policies is the built-in catalogue, with two teams that are told by webhook. That of faturamento takes nothing.
func (s *scene) policies(t *testing.T) (path string) {
	t.Helper()
	secret := filepath.Join(s.dir, "secret")
	testkit.Must(t, os.WriteFile(secret, []byte("whsec_"+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32))), 0o600))
	catalogue := "extends: built-in\ndestinations:\n  " + portal + ": {pace: {most: 60/min}}\nteams:\n"
	for team, status := range map[string]int{"cadastro": http.StatusNoContent, "faturamento": http.StatusServiceUnavailable} {
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		harness.AtEnd(func() error { receiver.Close(); return nil })
		catalogue += fmt.Sprintf("  %s: {webhook: {url: %q, secretFile: %q}}\n", team, receiver.URL, secret)
	}
	path = filepath.Join(s.dir, "policies.yaml")
	testkit.Must(t, os.WriteFile(path, []byte(catalogue), 0o600))
	return path
}

// run starts a program in the environment of the worker.
func (s *scene) run(t *testing.T, binary string, args ...string) *harness.Process {
	t.Helper()
	p, err := harness.Start(harness.Command{Path: binary, Args: args, Env: s.environment, Dir: s.dir})
	testkit.Must(t, err)
	return p
}

// watch starts Prometheus with the shipped rules, all of which it evaluates each second: what has an hour's interval too.
func (s *scene) watch(t *testing.T) {
	t.Helper()
	dir := filepath.Join(s.dir, "prometheus")
	testkit.Must(t, os.Mkdir(dir, 0o700))
	for _, path := range ruleFiles(t) {
		rules := regexp.MustCompile(`(?m)^    interval: .*`).ReplaceAllString(testkit.Read(t, path), "")
		testkit.Must(t, os.WriteFile(filepath.Join(dir, filepath.Base(path)), []byte(rules), 0o600))
	}
	server, err := prometheus.Start(t.Context(), prometheus.Program.Require(t), dir, fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: %s
    static_configs: [{targets: [%q]}]
  - job_name: %s
    metrics_path: /actuator/prometheus
    static_configs: [{targets: [%q]}]
`, dir+"/*.rules.yaml", workerJob, s.worker.Ops, engineJob, strings.TrimPrefix(s.engine.ControlURL(), "http://")))
	testkit.Must(t, err)
	s.Server = server
	harness.AtEnd(func() error { return server.Stop(context.Background()) })
	for _, seen := range []string{`retry_worker_engine_up == 1`, `up{job="zeebe"} == 1`} { // counters need a first sample before they move
		s.holds(t, seen)
	}
}

// holds waits until an expression has a value.
func (s *scene) holds(t *testing.T, expr string) {
	t.Helper()
	var series model.Vector
	var err error
	wait.Until(t, expr, func() bool {
		series, err = s.Query(t.Context(), expr, time.Now())
		return err == nil && len(series) > 0
	}, func() string { return fmt.Sprint(series, err, " the worker said last: ", s.worker.LastLine()) })
}

// portal is the destination of the thousand claims, which their failures take down; that of the demo's stays up.
const portal = "unimed-sp"

// failures of a thousand claims and more, each analysed once at some count: the alert on the jitter wants 1,000 draws. Twelve in a hundred
// are permanent, between the limits of the two rules' alerts, whatever the demo adds; one in twenty is at its limit, so that
// the alert on it begins to wait; a few are none.
const failures = 1260

func failure(i int) (id, text string, count int) {
	id = fmt.Sprintf("CLM-%03d-1234567890", i)
	switch {
	case i%14 == 0:
		return id, "INVALID_PATIENT_DATA: sexo não informado", 0
	case i%14 == 7 && i%3 != 0:
		return id, "AUTHORIZATION_DENIED: senha vencida", 1
	case i%21 == 3:
		return id, "HTTP 503 Service Unavailable", 5
	}
	if i%400 == 1 {
		return "no claim", "TIMEOUT", 0 // refused
	}
	for count = 0; count < 4 && i%3 != 0; i /= 3 { // each rung holds fewer than the one before
		count++
	}
	return id, "TIMEOUT after 30s", count
}

// analyse has the failures analysed, and returns when all of them are.
func (s *scene) analyse(t *testing.T) {
	t.Helper()
	conn, err := grpc.NewClient(s.engine.GatewayAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	defer conn.Close()
	gateway := pb.NewGatewayClient(conn)
	model := testkit.Read(t, "testdata/analyse.bpmn")
	_, err = gateway.DeployResource(t.Context(), &pb.DeployResourceRequest{Resources: []*pb.Resource{{Name: "analyse.bpmn", Content: []byte(model)}}})
	testkit.Must(t, err)
	ask := func(process, id, text string, count int) error {
		operadora := portal
		if strings.Contains(text, ": ") {
			operadora = "tiss" // an answer of the portal's would show that it works
		}
		return create(t.Context(), gateway, process, map[string]any{"claimId": id, "operadora": operadora, "submissionError": text, "retryCount": count,
			"submissionDeadline": time.Now().Add(6 * time.Hour).Format(time.RFC3339)})
	}
	testkit.Must(t, ask("GATE", "CLM-900-1234567890", "", 0))
	s.holds(t, `retry_worker_released_total{kind="pass"} > 0`)
	var calls errgroup.Group
	calls.SetLimit(8)
	inFlight := false
	for i := range failures {
		id, text, count := failure(i)
		calls.Go(func() error { return ask("ANALYSE", id, text, count) })
		if !inFlight && i%100 == 99 {
			inFlight = s.freeze(t)
		}
	}
	testkit.Must(t, calls.Wait())
	s.holds(t, `sum(retry_worker_jobs_total{job_type="analyze-retry"}) >= `+fmt.Sprint(failures))
	testkit.Must(t, ask("GATE", "CLM-901-1234567890", "", 0))
	testkit.Must(t, ask("GATE", "CLM-902-1234567890", "", 0)) // one is sent ahead, and the other waits
	s.holds(t, `retry_worker_held_deadline_seconds`)
}

// freeze has the engine take no answers until Prometheus has seen jobs in flight, which otherwise are for some milliseconds,
// and reports whether there were any.
func (s *scene) freeze(t *testing.T) (seen bool) {
	t.Helper()
	testkit.Must(t, s.engine.Pause())
	defer func() { testkit.Must(t, s.engine.Resume()) }()
	const most = 5 * time.Second // less than a job's time-out
	for begun := time.Now(); !seen && time.Since(begun) < most; time.Sleep(100 * time.Millisecond) {
		series, err := s.Query(t.Context(), "retry_worker_jobs_in_flight > 0", time.Now())
		seen = err == nil && len(series) > 0
	}
	return seen
}

func create(ctx context.Context, gateway pb.GatewayClient, process string, values map[string]any) error {
	variables, err := json.Marshal(values)
	if err != nil {
		return err
	}
	_, err = engine.CreateInstance(ctx, gateway, &pb.CreateProcessInstanceRequest{BpmnProcessId: process, Version: -1, Variables: string(variables)})
	return err
}

// settle waits until Prometheus has the figures that `retry-worker kpi` reads from the database: gauges follow it.
func (s *scene) settle(t *testing.T) {
	t.Helper()
	s.holds(t, `sum(max by (policy, team, reason) (retry_worker_dead_letters_open)) >= 150 and on () (max(retry_worker_outbox_pending) < 10)`)
	s.holds(t, `retry_worker_kpi{kpi="success_rate", policy="tiss-submission"}`)
	s.holds(t, `ALERTS{alertname="RetryWorkerNewCause"}`) // causes are looked for once a minute
	var differences []string
	wait.Until(t, "the recording rules to show the nine figures of each of four policies as `retry-worker kpi` does", func() bool {
		var compared int
		differences, compared = s.differences(t)
		return len(differences) == 0 && compared >= 36
	}, func() string { return fmt.Sprint(differences) })
	s.ended = time.Now()
}

// differences between the figures of Prometheus and of the command, and how many were compared.
func (s *scene) differences(t *testing.T) (found []string, compared int) {
	t.Helper()
	out, _ := harness.RunCommand(t, s.binary, s.environment, "kpi", "-o", "json")
	var answer struct{ KPIs []statistics.KPI }
	testkit.Must(t, json.Unmarshal([]byte(out), &answer))
	for i := range answer.KPIs {
		k := &answer.KPIs[i]
		series, err := s.Query(t.Context(), fmt.Sprintf(`policy:retry_worker_kpi:max{policy=%q, kpi=%q}`, k.Policy, k.Name), time.Now())
		testkit.Must(t, err)
		switch {
		case k.Value == nil && len(series) == 0:
		case k.Value == nil || len(series) != 1 || math.Abs(float64(series[0].Value)-*k.Value) > 1e-9:
			found = append(found, fmt.Sprintf("%s of %s: %v in Prometheus, %v by the command", k.Name, k.Policy, series, k.Value))
		}
	}
	return found, len(answer.KPIs)
}
