package app_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/app"
	"retry-worker/internal/clock"
	"retry-worker/internal/config"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/tlstest"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/zeebe"
)

const notSeen = "the engine has not been seen yet; `retry-worker check` says why\n"

// What is wrong with a setting is said at once, in one line, and what had been opened is closed again.
func TestHalfFailedStartClosesWhatWasOpened(t *testing.T) {
	broken, _ := guarded(t, tlstest.NewAuthority(t))
	testkit.Must(t, os.WriteFile(broken.TLSKeyFile, []byte("canary"), 0o600))
	folder := t.TempDir()
	missing := filepath.Join(folder, "missing", "journal.db")
	noAuthority := func(s *config.Settings) { s.Engine.Plaintext, s.Engine.CACertificatePath = false, missing }
	noKey := func(s *config.Settings) { s.TLSCertFile, s.TLSKeyFile = broken.TLSCertFile, broken.TLSKeyFile }
	for name, tt := range map[string]struct {
		change        func(s *config.Settings)
		setting, file string // the line begins with the one, and names the other
		problems      bool   // of the settings
	}{
		"no authority":   {noAuthority, "ZEEBE_CA_CERTIFICATE_PATH is ", missing, false},
		"no key":         {noKey, "RETRY_WORKER_TLS_CERT_FILE: ", broken.TLSCertFile, true},
		"no such folder": {func(s *config.Settings) { s.DatabaseURL = "sqlite:" + missing }, "", missing, false},
		"a folder":       {func(s *config.Settings) { s.DatabaseURL = "sqlite:" + folder }, "", folder, false},
	} {
		t.Run(name, func(t *testing.T) {
			leavesNothing(t)
			s := settings(t, "127.0.0.1:1")
			s.OpsAddr = testkit.Nowhere(t)
			tt.change(&s)
			_, err := app.New(app.Options{Settings: s, Build: buildInfo, Clock: clock.Machine{}, Log: log})
			if said := fmt.Sprint(err); strings.Contains(said, "\n") || !strings.HasPrefix(said, tt.setting) ||
				!strings.Contains(said, tt.file) || strings.Contains(said, "canary") {
				t.Errorf("got %v, want one line that begins with %q and names %s", err, tt.setting, tt.file)
			}
			if _, problems := errors.AsType[config.Problems](err); problems != tt.problems {
				t.Errorf("told as a problem of the settings: %t, want %t", problems, tt.problems)
			}
			l, err := net.Listen("tcp", s.OpsAddr)
			if err != nil {
				t.Fatalf("the port of metrics and probes is still taken: %v", err)
			}
			l.Close()
		})
	}
}

func TestStopWithoutAnEngineIsQuick(t *testing.T) {
	leavesNothing(t)
	r := serve(t, settings(t, testkit.Nowhere(t)))
	wait.Until(t, "the missing engine is in the log", func() bool { return strings.Contains(logged.String(), "engine does not answer polls") })
	if r.ready(t) {
		t.Error("ready without an engine")
	}
	r.stop()
	r.returned(t, 2*time.Second) // of the 20 s it may take
}

func TestReadyFromTheFirstAnsweredPollOn(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	answerAtOnce(g)
	g.Down()
	r := serve(t, settings(t, g.Addr()))
	if status, body := r.get(t, "/readyz"); status != http.StatusServiceUnavailable || body != notSeen {
		t.Errorf("without an engine: got %d %q, want 503 %q", status, body, notSeen)
	}
	if status, _ := r.get(t, "/livez"); status != http.StatusOK {
		t.Errorf("without an engine: not alive (%d)", status)
	}
	wait.Until(t, "the engine is known to be away", func() bool { return r.metric(t, "retry_worker_engine_up 0") })
	g.Up()
	wait.Until(t, "ready", func() bool { return r.ready(t) })
	if !r.metric(t, "retry_worker_engine_up 1") {
		t.Error("with an engine: retry_worker_engine_up is not 1")
	}
	g.Down()
	wait.Until(t, "the loss is counted", func() bool { return r.metric(t, "retry_worker_engine_up 0") })
	if !r.ready(t) {
		t.Error("a later loss of the engine made the service unready")
	}
	g.Up()
	wait.Until(t, "the engine is back", func() bool { return r.metric(t, "retry_worker_engine_up 1") })
}

func TestSettingsReachTheEngine(t *testing.T) {
	g := gateway.New(t, gateway.Options{Tenants: []string{"clinic-a", "clinic-b"}})
	s := settings(t, g.Addr())
	s.TenantIDs = []string{"clinic-a", "clinic-b"}
	serve(t, s)
	const analysis = "claimId delayBetweenAttempts httpStatus jobError jobId lastSubmissionTime maxAttempts messageId nonRetryable operadora " +
		"retryAfter retryCount sendError submissionDeadline submissionError"
	want := map[string]string{ // only the variables that the built-in policies need
		"analyze-retry":            analysis,
		"retry-submission-backoff": analysis,
		"record-retry-outcome":     "claimId jobId messageId retryOutcome protocolNumber",
		"retry-review":             "claimId jobId messageId deadLetterId",
		"submission-gate":          "claimId jobId messageId operadora submissionDeadline",
	}
	testkit.Must(t, g.WaitFor(wait.Context(t), func(c gateway.Counts) bool { return c.Waiting == len(want) }))
	for _, p := range g.Polls("") {
		if got := strings.Join(p.FetchVariable, " "); got != want[p.Type] || got == "" {
			t.Errorf("%s fetches %q, want %q", p.Type, got, want[p.Type])
		}
		places, timeout := s.MaxJobsActive, s.JobTimeout
		if p.Type == "retry-review" || p.Type == "submission-gate" { // jobs that are kept count against nobody's capacity
			places, timeout = 64, 30*time.Second // until one is recorded; then it is kept for a day
		}
		if p.Worker != s.WorkerName || int(p.MaxJobsToActivate) != places || p.Timeout != timeout.Milliseconds() ||
			strings.Join(p.TenantIds, " ") != "clinic-a clinic-b" || p.RequestTimeout <= 0 || p.RequestTimeout > 2000 { // short: a stop waits for it
			t.Errorf("%s: asked with %+v", p.Type, p)
		}
	}
}

func TestTLSAndToken(t *testing.T) {
	leavesNothing(t)
	g := gateway.New(t, gateway.Options{TLS: true})
	answerAtOnce(g)
	idp := gateway.NewIDP(t, "worker", "canary-secret", "zeebe-api")
	g.RequireToken(idp.Accepts)
	s := settings(t, g.Addr())
	s.Engine.Plaintext, s.Engine.CACertificatePath = false, g.CAFile()
	s.Engine.OAuth = &zeebe.OAuth{
		ClientID: "worker", ClientSecret: "canary-secret", Audience: "zeebe-api", URL: idp.URL(), RequestTimeout: 5 * time.Second,
	}
	r := serve(t, s)
	wait.Until(t, "ready", func() bool { return r.ready(t) })
	if n := idp.Requests(); n != 1 {
		t.Errorf("%d token requests for five loops, want 1", n)
	}
	r.stop()
	r.returned(t, 5*time.Second)
	if strings.Contains(logged.String(), "canary-secret") || strings.Contains(logged.String(), "token-1") {
		t.Errorf("the secret or the token stands in the log:\n%s", logged)
	}
}
