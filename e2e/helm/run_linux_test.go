package helm

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/engine"
	"retry-worker/internal/access"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/tlstest"
	"retry-worker/internal/testkit/wait"
)

// TestPod runs the pod that the chart renders: on an engine that is reached over TLS by an authority of one's own and
// with tokens of an identity provider that has another, with tokens for the console and policies from a ConfigMap.
func TestPod(t *testing.T) {
	p := startPod(t)
	for _, step := range []struct {
		name string
		take func(*testing.T)
	}{
		{"becomes ready", p.awaitReady}, {"answers the probes", p.checkProbes}, {"guards the console", p.checkConsole},
		{"decides", p.checkDecision}, {"passes helm test", p.checkTest}, {"stops", p.checkStop}, {"says what is missing", p.checkMissing},
	} {
		if !t.Run(step.name, step.take) {
			t.FailNow()
		}
	}
}

type runningPod struct {
	chart     result
	kubelet   *kubelet
	container *podContainer
	before    []string // the root's files
	process   *harness.Process
	log       *harness.Log
	http      *http.Client
	engine    *engine.Engine
	gateway   *guarded
	idp       *gateway.IDP
	token     string // of the console
}

var podValues = []string{
	"zeebe.tls.enabled=true", "zeebe.tls.existingSecret=zeebe-ca", "zeebe.auth.existingSecret=identity",
	"zeebe.auth.authorizationServerUrl=https://keycloak/oauth/token", "zeebe.auth.audience=zeebe-api",
	"trustedAuthorities.existingSecret=hospital-ca", "auth.existingSecret=tokens",
}

func startPod(t *testing.T) *runningPod {
	t.Helper()
	network := provide(t)
	p := &runningPod{log: &harness.Log{}, http: network.client()}
	tokens := filepath.Join(t.TempDir(), "tokens")
	p.token = harness.Issue(t, tokens, map[string]access.Role{"maria": access.Viewer})["maria"]
	binary := harness.Binary(t)
	var err error
	p.engine, err = engine.Start(t.Context())
	testkit.Must(t, err)
	t.Cleanup(func() { _ = p.engine.Stop(context.Background()) })
	zeebe, hospital := tlstest.NewAuthority(t), tlstest.NewAuthority(t)
	p.idp = gateway.NewIDP(t, "retry-worker", "s3cret", "zeebe-api")
	p.gateway = serveGateway(t, network, p.engine, p.idp, certificate(t, zeebe, "zeebe-gateway"))
	serveIDP(t, network, p.idp, certificate(t, hospital, "keycloak"))

	p.chart = render(t, helmCase{Name: "pod", Set: podValues, Values: map[string]any{"policies": map[string]any{"catalogue": testkit.Read(t, "../../internal/catalogue/default.yaml")}}})
	if p.chart.Error != "" {
		t.Fatal(p.chart.Error)
	}
	p.kubelet = &kubelet{binary: binary, network: network, hosts: []string{"zeebe-gateway", "keycloak", text(p.chart.one(t, "Service"), "metadata", "name")}}
	p.kubelet.secrets = map[string]map[string]string{
		"zeebe-ca": {"ca.crt": testkit.Read(t, zeebe.File)}, "hospital-ca": {"root.pem": testkit.Read(t, hospital.File)},
		"identity": {"client-id": "retry-worker", "client-secret": "s3cret\n"}, "tokens": {"tokens": testkit.Read(t, tokens)},
	}
	p.kubelet.maps = configMaps(p.chart)
	p.container = p.kubelet.prepare(t, p.chart.pod(t))
	p.before = p.container.files(t)
	p.start(t)
	return p
}

// provide makes a network.
func provide(t *testing.T) *network {
	t.Helper()
	harness.SkipIfShort(t)
	network, err := newNetwork(t)
	for _, name := range []string{"unshare", "nsenter", "setpriv", "chroot", "mount"} {
		_, missing := exec.LookPath(name)
		err = cmp.Or(err, missing)
	}
	if err != nil {
		t.Fatalf("%v: run it as root, who may make name spaces; install with: apt-get install -y util-linux coreutils", err)
	}
	return network
}

func configMaps(r result) map[string]map[string]string {
	maps := map[string]map[string]string{}
	for _, o := range r.kind("ConfigMap") {
		keys, data := map[string]string{}, at(o, "data")
		for key := range data.(map[string]any) {
			keys[key] = text(data, key)
		}
		maps[text(o, "metadata", "name")] = keys
	}
	return maps
}

func (p *runningPod) start(t *testing.T) {
	t.Helper()
	command := p.container.command(t)
	command.Output = p.log
	var err error
	p.process, err = harness.Start(command)
	testkit.Must(t, err)
	t.Cleanup(func() { p.process.Kill() })
}

// await waits until met; the worker must not end before.
func (p *runningPod) await(t *testing.T, what string, met func() bool) {
	t.Helper()
	wait.Until(t, what, func() bool {
		select {
		case <-p.process.Done():
			t.Fatalf("%s: the worker ended: %v\n%s", what, p.process.Err(), p.log.Text())
		default:
		}
		return met()
	}, p.log.Text)
}

func (p *runningPod) awaitReady(t *testing.T) {
	t.Helper()
	p.await(t, "ready", func() bool { status, _ := p.get(t, "ops", "/readyz", ""); return status == http.StatusOK })
	if p.idp.Counts().Issued == 0 || p.gateway.passed.Load() == 0 {
		t.Errorf("ready with %d tokens issued and %d calls passed on", p.idp.Counts().Issued, p.gateway.passed.Load())
	}
}

// get asks a port of the container by its name; 0 where nobody answers.
func (p *runningPod) get(t *testing.T, port, path, token string) (status int, body string) {
	t.Helper()
	number := ""
	for _, item := range list(p.chart.pod(t), "containers", 0, "ports") {
		if text(item, "name") == port {
			number = text(item, "containerPort")
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+number+path, nil)
	testkit.Must(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := p.http.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(content)
}

// checkProbes asks what Kubernetes will ask.
func (p *runningPod) checkProbes(t *testing.T) {
	t.Helper()
	for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
		ask := at(p.chart.pod(t), "containers", 0, probe, "httpGet")
		if status, body := p.get(t, text(ask, "port"), text(ask, "path"), ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", probe, status, body)
		}
	}
}

func (p *runningPod) checkConsole(t *testing.T) {
	t.Helper()
	const list = "/api/v1/dead-letters"
	if status, body := p.get(t, "http", list, ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", status, body)
	}
	if status, body := p.get(t, "http", list, p.token); status != http.StatusOK {
		t.Errorf("with a token: %d %s", status, body)
	}
}

// checkDecision deploys the models from the pod, has a submission fail, and sees the retry scheduled.
func (p *runningPod) checkDecision(t *testing.T) {
	t.Helper()
	p.run(t, 0, "deploy")
	conn, err := grpc.NewClient(p.engine.GatewayAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	defer conn.Close()
	zeebe := pb.NewGatewayClient(conn)
	ctx := wait.Context(t)
	if _, err := zeebe.CreateProcessInstance(ctx, &pb.CreateProcessInstanceRequest{
		BpmnProcessId: "SUB_06", Version: -1, Variables: `{"claimId":"CLM-001-1234567890"}`,
	}); err != nil {
		t.Fatal(err)
	}
	job := activate(ctx, t, zeebe, "submit-claim")
	if _, err := zeebe.ThrowError(ctx, &pb.ThrowErrorRequest{
		JobKey: job.GetKey(), ErrorCode: "SUBMISSION_FAILED", Variables: `{"submissionError":"HTTP 503 Service Unavailable"}`,
	}); err != nil {
		t.Fatal(err)
	}
	scheduled := regexp.MustCompile(`(?m)^retry_scheduled_total\{[^}]*\} 1$`)
	p.await(t, "a retry is scheduled", func() bool {
		_, metrics := p.get(t, "ops", "/metrics", "")
		return scheduled.MatchString(metrics)
	})
	if refused := p.gateway.refused.Load(); refused > 0 {
		t.Errorf("%d calls had no valid token", refused)
	}
}

func activate(ctx context.Context, t *testing.T, zeebe pb.GatewayClient, jobType string) *pb.ActivatedJob {
	t.Helper()
	for {
		stream, err := zeebe.ActivateJobs(ctx, &pb.ActivateJobsRequest{
			Type: jobType, Worker: "portal", Timeout: wait.Limit.Milliseconds(), MaxJobsToActivate: 1, RequestTimeout: 5000,
		})
		testkit.Must(t, err)
		response, err := stream.Recv()
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if jobs := response.GetJobs(); len(jobs) > 0 {
			return jobs[0]
		}
	}
}

// run runs the program once more in the pod's container and returns what it printed.
func (p *runningPod) run(t *testing.T, code int, args ...string) string {
	t.Helper()
	return run(t, p.container.command(t, args...), code)
}

func run(t *testing.T, command harness.Command, code int) string {
	t.Helper()
	out := &harness.Log{}
	command.Output = out
	process, err := harness.Start(command)
	testkit.Must(t, err)
	defer process.Kill()
	select {
	case <-process.Done():
	case <-wait.Context(t).Done():
		t.Fatalf("it does not end: %s", out.Text())
	}
	got := 0
	if failed, ok := errors.AsType[*exec.ExitError](process.Err()); ok {
		got = failed.ExitCode()
	} else if process.Err() != nil {
		t.Fatal(process.Err())
	}
	if got != code {
		t.Fatalf("exit %d, expected %d: %s", got, code, out.Text())
	}
	return out.Text()
}

// checkTest runs the pod of `helm test`.
func (p *runningPod) checkTest(t *testing.T) {
	t.Helper()
	spec := at(p.chart.one(t, "Pod"), "spec")
	if out := run(t, p.kubelet.prepare(t, spec).command(t), 0); !strings.Contains(out, "ready") {
		t.Errorf("helm test says %q", out)
	}
}

// checkStop: it ends by itself within its grace period, having written nowhere but to its volume.
func (p *runningPod) checkStop(t *testing.T) {
	t.Helper()
	grace := time.Duration(number(t, text(p.chart.pod(t), "terminationGracePeriodSeconds"))) * time.Second
	if err := cmp.Or(p.process.Stop(t.Context(), grace), p.process.Err()); err != nil {
		t.Errorf("%v\n%s", err, p.log.Text())
	}
	if after := p.container.files(t); !slices.Equal(after, p.before) {
		t.Errorf("before %q, after %q", p.before, after)
	}
	if _, err := os.Stat(filepath.Join(p.container.root, "data", "retry-worker.db")); err != nil {
		t.Errorf("the journal is not on the volume: %v", err)
	}
	if log := p.log.Text(); strings.Contains(log, "s3cret") || strings.Contains(log, p.token) {
		t.Error("a secret stands in the log")
	}
}

// checkMissing: a secret that lacks its key ends the container with one line that names the file and the variable. (One
// that is missing as a whole Kubernetes does not start it with, and names in the pod's events: no reference is optional.)
func (p *runningPod) checkMissing(t *testing.T) {
	t.Helper()
	for file, want := range map[string]string{
		"zeebe-authority/ca.crt": "ZEEBE_CA_CERTIFICATE_PATH", "zeebe/client-secret": "ZEEBE_CLIENT_SECRET_FILE",
		"auth/tokens": "RETRY_WORKER_AUTH_TOKENS_FILE", "policies/policies.yaml": "RETRY_WORKER_POLICIES_FILE",
	} {
		container := p.kubelet.prepare(t, p.chart.pod(t))
		testkit.Must(t, os.Remove(filepath.Join(container.root, "etc/retry-worker", file)))
		out := strings.TrimSpace(run(t, container.command(t), 2))
		if !strings.Contains(out, want) || !strings.Contains(out, "/etc/retry-worker/"+file) || strings.Count("\n"+out, "\nretry-worker: ") != 1 {
			t.Errorf("without %s: %q, expected one line that names it and %s", file, out, want)
		}
	}
}
