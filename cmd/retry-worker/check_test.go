package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"retry-worker/bpmn"
	"retry-worker/internal/testkit/gateway"
)

const toMend = "the check found something to mend (see above)"

// checked are the lines of a check by their step.
func checked(t *testing.T, r result) map[string]string {
	t.Helper()
	lines := make(map[string]string)
	form := regexp.MustCompile(`^(ok  |FAIL)  (settings|engine|address|tls|token|cluster|tenants|connection|process \S+) +(\S.*)\n$`)
	for line := range strings.Lines(r.stdout) {
		m := form.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("the line %q has not the form of a step's", line)
			continue
		}
		if m[2] == "engine" {
			if !strings.HasPrefix(m[3], "gRPC at ") || !strings.HasSuffix(m[3], " (ZEEBE_REST_ADDRESS is not set)") {
				t.Errorf("the engine is said to be %q", m[3])
			}
			continue
		}
		lines[m[2]] = strings.TrimSpace(m[1]) + " " + m[3]
	}
	if regexp.MustCompile(`(?m)^FAIL `).MatchString(r.stdout) != (r.code == exitFailed) {
		t.Errorf("exit %d after\n%s", r.code, r.stdout)
	}
	if r.code != exitDone {
		r.says(t, toMend)
	} else if r.stderr != "" {
		t.Errorf("standard error: %q, want nothing", r.stderr)
	}
	return lines
}

// expectSteps holds a check's lines against what each must begin and end with; no others may be there.
func expectSteps(t *testing.T, r result, want map[string][2]string) {
	t.Helper()
	got := checked(t, r)
	for step, ends := range want {
		if line := got[step]; !strings.HasPrefix(line, ends[0]) || !strings.HasSuffix(line, ends[1]) {
			t.Errorf("%s: got %q, want %q … %q", step, line, ends[0], ends[1])
		}
	}
	for step, line := range got {
		if _, expected := want[step]; !expected {
			t.Errorf("a line about %s: %q, want none", step, line)
		}
	}
}

func whole(line string) [2]string { return [2]string{line, line} }

// asKnown answers what a real engine answers to the check's question for a process that it has; the
// stub would start an instance.
func asKnown(g *gateway.Gateway) *gateway.Rule {
	return g.Inject(gateway.Fault{Method: gateway.CreateProcessInstance, Code: codes.InvalidArgument,
		Message: "no element found with id 'retry-worker-check'"})
}

var (
	settingsOK  = whole("ok the environment is understood")
	tlsOff      = whole("ok off (ZEEBE_INSECURE_CONNECTION)")
	noToken     = whole("ok none configured (ZEEBE_CLIENT_ID)")
	clusterOK   = whole("ok gateway 8.5.8, 1 broker(s), 1 partition(s)")
	tenantsOK   = whole("ok jobs may be taken from the default tenant")
	notDeployed = whole("FAIL not deployed; run `retry-worker deploy`, or leave it if you use a model of your own")
)

func takesConnections(g *gateway.Gateway) [2]string {
	return whole("ok " + g.Addr() + " takes connections")
}

// withProcesses adds a line for each bundled model.
func withProcesses(want map[string][2]string, line [2]string) map[string][2]string {
	for _, m := range bpmn.Models() {
		want["process "+m.ProcessID] = line
	}
	return want
}

func TestCheckPlaintext(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	environment(t, map[string]string{"ZEEBE_ADDRESS": g.Addr(), "ZEEBE_INSECURE_CONNECTION": "true"})
	reachable := func(process [2]string) map[string][2]string {
		return withProcesses(map[string][2]string{
			"settings": settingsOK, "address": takesConnections(g), "tls": tlsOff, "token": noToken, "cluster": clusterOK, "tenants": tenantsOK,
		}, process)
	}
	expectSteps(t, retryWorker("check"), reachable(notDeployed))
	if r := retryWorker("deploy"); r.code != exitDone {
		t.Fatalf("deploy: %+v", r)
	}
	asKnown(g)
	expectSteps(t, retryWorker("check"), reachable(whole("ok deployed")))
	if n := len(g.Journal()); n != 0 || g.Counts().HandedOut != 0 {
		t.Errorf("the check started %d jobs", n)
	}
}

func TestCheckJSON(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	environment(t, map[string]string{"ZEEBE_ADDRESS": g.Addr(), "ZEEBE_INSECURE_CONNECTION": "true"})
	asKnown(g)
	steps := []string{"settings", "engine", "address", "tls", "token", "cluster", "tenants"}
	for _, m := range bpmn.Models() {
		steps = append(steps, "process "+m.ProcessID)
	}
	r := retryWorker("check", "-o", "json")
	o := r.object(t)
	if o["ok"] != true || r.code != exitDone || r.stderr != "" {
		t.Errorf("got %v, exit %d, %q", o["ok"], r.code, r.stderr)
	}
	if got := stepNames(o); !slices.Equal(got, steps) {
		t.Errorf("steps %v, want %v", got, steps)
	}
	g.Down()
	r = retryWorker("check", "-o", "json")
	o = r.object(t)
	if got := stepNames(o); o["ok"] != false || r.code != exitFailed || !slices.Equal(got, []string{"settings", "engine", "address"}) {
		t.Errorf("without an engine: got %v, exit %d", o, r.code)
	}
	r.says(t, toMend)
}

// stepNames of a check's object; each step says whether it is ok, and something about it.
func stepNames(o map[string]any) (names []string) {
	steps, _ := o["steps"].([]any)
	for _, s := range steps {
		step, _ := s.(map[string]any)
		name, _ := step["step"].(string)
		if _, ok := step["ok"].(bool); !ok || step["detail"] == "" || len(step) != 3 {
			name += " (incomplete)"
		}
		names = append(names, name)
	}
	return names
}

func TestCheckBadSettings(t *testing.T) {
	environment(t, map[string]string{"ZEEBE_ADDRESS": "nonsense", "RETRY_WORKER_CONCURRENCY": "0"})
	expectSteps(t, retryWorker("check"), map[string][2]string{"settings": whole(
		`FAIL RETRY_WORKER_CONCURRENCY is "0", expected a whole number from 1 to 10000; ` +
			`ZEEBE_ADDRESS is "nonsense", expected host:port, such as 127.0.0.1:26500`)})
}

func TestCheckNobodyThere(t *testing.T) {
	addr := gateway.Nowhere(t)
	environment(t, map[string]string{"ZEEBE_ADDRESS": addr, "ZEEBE_INSECURE_CONNECTION": "true"})
	expectSteps(t, retryWorker("check"), map[string][2]string{
		"settings": settingsOK,
		"address":  whole("FAIL dial tcp " + addr + ": connect: connection refused; is the engine running, and is ZEEBE_ADDRESS right?"),
	})
}

func TestCheckTLS(t *testing.T) {
	g := gateway.New(t, gateway.Options{TLS: true})
	authority := g.CAFile()
	agreed := [2]string{"ok TLS 1.3, certificate valid until ", time.Now().Add(24 * time.Hour).UTC().Format("2006-01-02")}
	for _, c := range []struct {
		name string
		vars map[string]string
		want map[string][2]string
	}{
		{"its own authority", map[string]string{"ZEEBE_CA_CERTIFICATE_PATH": authority},
			withProcesses(map[string][2]string{"tls": agreed, "token": noToken, "cluster": clusterOK, "tenants": tenantsOK}, notDeployed)},
		{"an authority nobody knows", nil, map[string][2]string{
			"tls": {"FAIL tls: failed to verify certificate: x509: ", "; set ZEEBE_CA_CERTIFICATE_PATH to the PEM file of the authority that signed it"}}},
		{"another name", map[string]string{"ZEEBE_CA_CERTIFICATE_PATH": authority, "ZEEBE_OVERRIDE_AUTHORITY": "zeebe.example"}, map[string][2]string{
			"tls": {"FAIL tls: failed to verify certificate: x509: ", "; set ZEEBE_OVERRIDE_AUTHORITY to a name in the certificate"}}},
		{"plaintext expected", map[string]string{"ZEEBE_INSECURE_CONNECTION": "true"}, map[string][2]string{
			"tls": tlsOff, "token": noToken,
			"cluster": {"FAIL ask for the topology: ", "; the gateway may speak TLS: unset ZEEBE_INSECURE_CONNECTION"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			environment(t, c.vars)
			t.Setenv("ZEEBE_ADDRESS", g.Addr())
			c.want["settings"], c.want["address"] = settingsOK, takesConnections(g)
			expectSteps(t, retryWorker("check"), c.want)
		})
	}
}

func TestCheckTLSWhereThereIsNone(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	environment(t, map[string]string{"ZEEBE_ADDRESS": g.Addr()})
	expectSteps(t, retryWorker("check"), map[string][2]string{
		"settings": settingsOK, "address": takesConnections(g),
		"tls": {"FAIL tls: ", "; the gateway speaks no TLS: set ZEEBE_INSECURE_CONNECTION=true"},
	})
}

func TestCheckToken(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	idp := gateway.NewIDP(t, "worker", "canary-secret", "zeebe-api")
	g.RequireToken(idp.Accepts)
	oauth := func(id, secret, audience string) map[string]string {
		return map[string]string{
			"ZEEBE_ADDRESS": g.Addr(), "ZEEBE_INSECURE_CONNECTION": "true", "ZEEBE_AUTHORIZATION_SERVER_URL": idp.URL(),
			"ZEEBE_CLIENT_ID": id, "ZEEBE_CLIENT_SECRET": secret, "ZEEBE_TOKEN_AUDIENCE": audience,
		}
	}
	nobody := oauth("worker", "canary-secret", "zeebe-api")
	nobody["ZEEBE_AUTHORIZATION_SERVER_URL"] = "http://" + gateway.Nowhere(t)
	issued := whole("ok issued by " + idp.URL())
	refused := func(status string) [2]string {
		return whole("FAIL token for the engine: the identity provider answered " + status +
			"; check ZEEBE_CLIENT_ID, ZEEBE_CLIENT_SECRET and ZEEBE_TOKEN_AUDIENCE")
	}
	const unauthenticated = "; the gateway wants a token: set ZEEBE_CLIENT_ID, ZEEBE_CLIENT_SECRET and ZEEBE_AUTHORIZATION_SERVER_URL, and check ZEEBE_TOKEN_AUDIENCE; or ZEEBE_BASIC_AUTH_USERNAME and its password"
	for _, c := range []struct {
		name   string
		vars   map[string]string
		before func()
		want   map[string][2]string
	}{
		{"taken", oauth("worker", "canary-secret", "zeebe-api"), nil,
			withProcesses(map[string][2]string{"token": issued, "cluster": clusterOK, "tenants": tenantsOK}, notDeployed)},
		{"none", map[string]string{"ZEEBE_ADDRESS": g.Addr(), "ZEEBE_INSECURE_CONNECTION": "true"}, nil,
			map[string][2]string{"token": noToken, "cluster": {"FAIL ask for the topology: ", unauthenticated}}},
		{"wrong secret", oauth("worker", "canary-wrong", "zeebe-api"), nil, map[string][2]string{"token": refused("401 Unauthorized invalid_client")}},
		{"wrong audience", oauth("worker", "canary-secret", "other"), nil, map[string][2]string{"token": refused("400 Bad Request invalid_target")}},
		{"not taken by the gateway", oauth("worker", "canary-secret", "zeebe-api"),
			func() { g.RequireToken(func(string) bool { return false }) },
			map[string][2]string{"token": issued, "cluster": {"FAIL ask for the topology: ", unauthenticated}}},
		{"nobody issues one", nobody, nil, map[string][2]string{
			"token": {"FAIL token for the engine: Post ", "; check ZEEBE_AUTHORIZATION_SERVER_URL"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			environment(t, c.vars)
			if c.before != nil {
				c.before()
			}
			c.want["settings"], c.want["address"], c.want["tls"] = settingsOK, takesConnections(g), tlsOff
			r := retryWorker("check")
			expectSteps(t, r, c.want)
			if text := r.stdout + r.stderr; strings.Contains(text, "canary") || strings.Contains(text, "token-") {
				t.Errorf("the secret or the token stands in\n%s", text)
			}
		})
	}
}

func TestCheckTenantsRefused(t *testing.T) {
	const advice = "; check RETRY_WORKER_TENANT_IDS: with multi-tenancy on it must name tenants the engine knows, with it off it must be empty"
	off := gateway.New(t, gateway.Options{})
	on := gateway.New(t, gateway.Options{MultiTenancy: true, Tenants: []string{"clinic-a"}})
	for _, c := range []struct {
		name, tenants string
		g             *gateway.Gateway
		tenantsLine   [2]string
	}{
		{"multi-tenancy off", "clinic-a", off, [2]string{"FAIL ask for jobs: ", advice}},
		{"multi-tenancy on, none named", "", on, [2]string{"FAIL ask for jobs: ", advice}},
		{"not this client's", "clinic-b", on, [2]string{"FAIL ask for jobs: ", "; give this client the right to do it in the engine's identity management"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			environment(t, map[string]string{
				"ZEEBE_ADDRESS": c.g.Addr(), "ZEEBE_INSECURE_CONNECTION": "true", "RETRY_WORKER_TENANT_IDS": c.tenants,
			})
			asKnown(c.g) // what such an engine answers, whether it has the process or not: nothing may be made of it
			expectSteps(t, retryWorker("check"), map[string][2]string{
				"settings": settingsOK, "address": takesConnections(c.g), "tls": tlsOff, "token": noToken, "cluster": clusterOK,
				"tenants": c.tenantsLine,
			})
		})
	}
}

// The gateway's other troubles: each has its line of advice.
func TestCheckAdvice(t *testing.T) {
	for code, advice := range map[codes.Code]string{
		codes.Unavailable:      "is the engine running, and is ZEEBE_ADDRESS right?",
		codes.PermissionDenied: "give this client the right to do it in the engine's identity management",
		codes.Unimplemented:    "is that a Zeebe gateway's gRPC port (26500 by default)?",
		codes.Internal:         "see the gateway's log",
	} {
		t.Run(code.String(), func(t *testing.T) {
			g := gateway.New(t, gateway.Options{})
			g.Inject(gateway.Fault{Method: gateway.Topology, Code: code})
			environment(t, map[string]string{"ZEEBE_ADDRESS": g.Addr(), "ZEEBE_INSECURE_CONNECTION": "true"})
			expectSteps(t, retryWorker("check"), map[string][2]string{
				"settings": settingsOK, "address": takesConnections(g), "tls": tlsOff, "token": noToken,
				"cluster": {"FAIL ask for the topology: ", "; " + advice},
			})
		})
	}
}
