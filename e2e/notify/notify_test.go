package notify

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/mail"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

const (
	it = "ti@hospital.example"
	// What no mail may hold: a name, and the claims' ids.
	patient, claimsBegin = "Joana Imaginária", "CLM-SIGILO-"
)

// TestTeamsAreTold on a mail server that asks for TLS and a password: it is killed while dead letters come, then takes
// nothing for a while. Each dead letter is still told once, across a restart too, and no mail tells of a patient.
func TestTeamsAreTold(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.die(1)
	s.awaitTold(1)
	for _, m := range s.mails() {
		if len(m.To) != 1 || m.From != "retry-worker@hospital.example" ||
			!strings.Contains(m.Text, "https://retry.hospital.example/dead-letters?team=ti") {
			t.Errorf("the mail is from %s to %v: %s", m.From, m.To, m.Text)
		}
	}
	wait.Until(t, "the mail server to be done with what it took: killed before, it would deliver it again", func() bool {
		log := s.server.Log()
		return strings.Count(log, " <= ") == strings.Count(log, " Completed")
	}, s.server.Log)
	s.server.Kill()
	s.die(5)
	wait.Until(t, "a mail that cannot be sent", func() bool { return strings.Contains(s.worker.Log.Text(), "connection refused") })
	testkit.Must(t, s.server.Defer())
	testkit.Must(t, s.server.Restart(t.Context()))
	wait.Until(t, "a mail put off", func() bool { return strings.Contains(s.server.Log(), "temporarily rejected MAIL") })
	testkit.Must(t, s.worker.Stop(t.Context(), wait.Limit))
	testkit.Must(t, s.server.Accept())
	s.begin()
	s.awaitTold(6)
	s.die(1) // which is told, so that what was to be told again would have been
	s.awaitTold(7)
	for _, m := range s.mails() {
		for _, personal := range []string{claimsBegin, patient, "Joana"} {
			if strings.Contains(m.Subject+m.Text+string(m.Raw), personal) {
				t.Errorf("a mail has %q in it:\n%s", personal, m.Raw)
			}
		}
	}
}

// fixture is a worker with its mail server.
type fixture struct {
	t       *testing.T
	folder  string
	gateway *gateway.Gateway
	server  *mail.Server
	worker  *harness.Worker
	claims  int // that died so far
}

func open(t *testing.T) *fixture {
	t.Helper()
	s := &fixture{t: t, folder: t.TempDir(), gateway: gateway.New(t, gateway.Options{}), server: mail.Open(t)}
	testkit.Must(t, os.WriteFile(s.path("password"), []byte(mail.Password), 0o600))
	harness.Replace(t, s.path("policies.yaml"), "extends: built-in\nteams: {ti: {email: ["+it+"]}}\n")
	s.begin()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.worker.Log.Text())
		}
	})
	return s
}

// begin starts the worker. Each dead letter is told at once: what gathers in an interval, internal/notify's tests say.
func (s *fixture) begin() {
	s.t.Helper()
	s.worker = harness.StartWorker(s.t, harness.Binary(s.t), harness.Settings(s.gateway.Addr(), s.folder,
		"RETRY_WORKER_POLICIES_FILE="+s.path("policies.yaml"), "RETRY_WORKER_NOTIFY_INTERVAL=1s",
		"RETRY_WORKER_SMTP_URL="+s.server.URL(), "RETRY_WORKER_SMTP_PASSWORD_FILE="+s.path("password"),
		"RETRY_WORKER_SMTP_CA_FILE="+s.server.CertificateFile(), "RETRY_WORKER_MAIL_FROM=retry-worker@hospital.example",
		"RETRY_WORKER_PUBLIC_URL=https://retry.hospital.example"))
}

func (s *fixture) path(name string) string { return filepath.Join(s.folder, name) }

// die makes n dead letters of the team, and waits until the worker has answered.
func (s *fixture) die(n int) {
	s.t.Helper()
	var jobs []gateway.Job
	for range n {
		s.claims++
		jobs = append(jobs, gateway.Job{Type: worker.AnalyzeRetry, Variables: fmt.Sprintf(`{"claimId":"%s%d","retryCount":0,
			"submissionError":"SOAP Fault ans:LoginInvalido: acesso negado, paciente %s"}`, claimsBegin, s.claims, patient)})
	}
	for _, key := range s.gateway.AddJobs(jobs...) {
		testkit.Must(s.t, s.gateway.WaitFor(wait.Context(s.t), func(gateway.Counts) bool {
			j, there := s.gateway.Job(key)
			return !there || j.State == gateway.ErrorThrown
		}))
	}
}

// mails returns the team's, but for those of new causes.
func (s *fixture) mails() (found []mail.Message) {
	s.t.Helper()
	all, err := s.server.Messages()
	testkit.Must(s.t, err)
	for _, m := range all {
		if !strings.Contains(m.Subject, "causa") {
			found = append(found, m)
		}
	}
	return found
}

var newInSubject = regexp.MustCompile(`(\d+) novas? pend`)

// awaitTold waits until the mails tell of n dead letters, and fails the test if they tell of more.
func (s *fixture) awaitTold(n int) {
	s.t.Helper()
	sum := 0
	wait.Until(s.t, fmt.Sprintf("mails of %d dead letters", n), func() bool {
		sum = 0
		for _, m := range s.mails() {
			if found := newInSubject.FindStringSubmatch(m.Subject); found != nil {
				count, _ := strconv.Atoi(found[1])
				sum += count
			}
		}
		return sum >= n
	}, func() string { return strconv.Itoa(sum) })
	if sum > n {
		s.t.Errorf("mails tell of %d dead letters, expected %d", sum, n)
	}
}
