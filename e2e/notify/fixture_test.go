package notify

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/mail"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

const (
	// times is how much faster the worker's clock goes: a quarter of an hour takes three seconds.
	times = 300
	// interval is the least time between two messages to a team.
	interval = 15 * time.Minute
	// secret is that of the webhooks, in the standard's form.
	secret = "whsec_c2VncmVkbyBkZSB1bSBob3NwaXRhbCBpbWFnaW5hcmlv"
	// A CPF, a name and the claims' ids, which must never leave the worker.
	cpf, patient, claimsBegin = "529.982.247-25", "Joana Imaginária", "CLM-SIGILO-"
)

// fixture is a worker with a mail server and a receiver of webhooks.
type fixture struct {
	t        *testing.T
	folder   string
	gateway  *gateway.Gateway
	mail     *mail.Server
	receiver *receiver
	clock    *harness.SharedClock
	worker   *harness.Worker
	claims   int            // dead letters so far
	read     map[string]int // how many mails to an address, and webhooks, the test has read
}

// open returns a fixture whose clock begins at an instant.
func open(t *testing.T, at time.Time) *fixture {
	t.Helper()
	s := &fixture{t: t, read: map[string]int{}, folder: t.TempDir(), gateway: gateway.New(t, gateway.Options{}), receiver: openReceiver(t, secret), mail: mail.Open(t)}
	s.write("secret", secret)
	s.write("password", mail.Password)
	harness.Replace(t, s.path("policies.yaml"), fmt.Sprintf(`extends: built-in
teams:
  ti:
    email: [ti@hospital.example, plantao-ti@hospital.example]
    webhook: {url: %s/ti, secretFile: %s}
    digest: true
  cadastro: {email: [cadastro@hospital.example]}
`, s.receiver.URL, s.path("secret")))
	harness.BinaryWithClock(t) // built before the clock begins
	s.goFrom(at)
	s.begin()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.worker.Log.Text())
		}
	})
	return s
}

// goFrom sets the clock to an instant, and lets it go times as fast as this machine's until the test ends.
func (s *fixture) goFrom(at time.Time) {
	s.t.Helper()
	var err error
	s.clock, err = harness.OpenSharedClock(s.path("clock"))
	testkit.Must(s.t, err)
	began, first := time.Now(), time.Until(at)
	testkit.Must(s.t, s.clock.SetAhead(first))
	tick, ended := time.NewTicker(10*time.Millisecond), make(chan struct{})
	go func() {
		defer close(ended)
		for range tick.C {
			if s.t.Context().Err() != nil || s.clock.SetAhead(first+(times-1)*time.Since(began)) != nil {
				return
			}
		}
	}()
	s.t.Cleanup(func() {
		<-ended // it ends with the test's context
		tick.Stop()
		_ = s.clock.Close()
	})
}

// begin starts the worker.
func (s *fixture) begin() {
	s.t.Helper()
	s.worker = harness.StartWorker(s.t, harness.BinaryWithClock(s.t), harness.Settings(s.gateway.Addr(), s.folder, s.clock.Environment(),
		"RETRY_WORKER_POLICIES_FILE="+s.path("policies.yaml"), "RETRY_WORKER_NOTIFY_INTERVAL="+interval.String(),
		"RETRY_WORKER_SMTP_URL="+s.mail.URL(), "RETRY_WORKER_SMTP_PASSWORD_FILE="+s.path("password"), "RETRY_WORKER_SMTP_CA_FILE="+s.mail.CertificateFile(),
		"RETRY_WORKER_MAIL_FROM=retry-worker@hospital.example", "RETRY_WORKER_PUBLIC_URL=https://retry.hospital.example",
		"RETRY_WORKER_WEBHOOK_ALLOW=127.0.0.1"))
}

func (s *fixture) path(name string) string { return filepath.Join(s.folder, name) }

func (s *fixture) write(name, content string) {
	s.t.Helper()
	testkit.Must(s.t, os.WriteFile(s.path(name), []byte(content), 0o600))
}

// die makes n dead letters of a team, with one cause each call, and waits until the worker has answered.
func (s *fixture) die(text string, n int) {
	s.t.Helper()
	var jobs []gateway.Job
	for range n {
		s.claims++
		jobs = append(jobs, gateway.Job{Type: worker.AnalyzeRetry, Variables: fmt.Sprintf(`{"claimId":"%s%d","submissionError":%q,"retryCount":0}`,
			claimsBegin, s.claims, fmt.Sprintf("%s, paciente %s, CPF %s, guia %d", text, patient, cpf, 1000+s.claims))})
	}
	for _, key := range s.gateway.AddJobs(jobs...) {
		testkit.Must(s.t, s.gateway.WaitFor(wait.Context(s.t), func(gateway.Counts) bool {
			j, there := s.gateway.Job(key)
			return !there || j.State == gateway.ErrorThrown
		}))
	}
}

// What claims fail of, by the team that acts on it.
const (
	ofIT       = "SOAP Fault ans:LoginInvalido: acesso negado"
	ofRegistry = "INVALID_PATIENT_DATA: dataNascimento"
)

// mails returns the mails to an address, the oldest first, except those of new causes, which may come at any time.
func (s *fixture) mails(to string) []mail.Message {
	s.t.Helper()
	all, err := s.mail.Messages()
	testkit.Must(s.t, err)
	var found []mail.Message
	for _, m := range all {
		if len(m.To) > 0 && m.To[0] == to && !strings.Contains(m.Subject, "causa") {
			found = append(found, m)
		}
	}
	return found
}

// awaitMails waits for n mails to an address, and returns them.
func (s *fixture) awaitMails(to string, n int) (found []mail.Message) {
	s.t.Helper()
	wait.Until(s.t, fmt.Sprintf("%d mails to %s", n, to), func() bool {
		found = s.mails(to)
		return len(found) >= n
	}, func() string { return fmt.Sprint(len(found)) })
	return found
}

// receivers is where webhooks are counted in read.
const receivers = "webhooks"

var newInSubject = regexp.MustCompile(`(\d+) novas? pend`)

// mailed waits until the unread mails to an address report n new dead letters in all, and returns them.
func (s *fixture) mailed(to string, n int) (unread []mail.Message) {
	s.t.Helper()
	sum := 0
	wait.Until(s.t, fmt.Sprintf("mails to %s of %d dead letters", to, n), func() bool {
		unread, sum = s.mails(to)[s.read[to]:], 0
		for _, m := range unread {
			if found := newInSubject.FindStringSubmatch(m.Subject); found != nil {
				count, _ := strconv.Atoi(found[1])
				sum += count
			}
		}
		return sum >= n
	}, func() string { return fmt.Sprint(sum) })
	s.told(to, len(unread), sum, n)
	return unread
}

// posted is mailed for webhooks.
func (s *fixture) posted(n int) (unread []call) {
	s.t.Helper()
	sum := 0
	s.receiver.Await(s.t, fmt.Sprintf("webhooks of %d dead letters", n), func() bool {
		unread, sum = s.receiver.taken()[s.read[receivers]:], 0
		for _, c := range unread {
			if c.event.Type == "dead_letters.new" {
				sum += c.event.Data.New.Count
			}
		}
		return sum >= n
	})
	s.told(receivers, len(unread), sum, n)
	return unread
}

func (s *fixture) told(whom string, messages, sum, n int) {
	s.t.Helper()
	s.read[whom] += messages
	if sum != n {
		s.t.Errorf("%s: %d messages tell of %d dead letters, expected %d", whom, messages, sum, n)
	}
}

// rest waits by the worker's clock.
func (s *fixture) rest(d time.Duration) { s.clock.Rest(s.t.Context(), d) }

// expectNothingPersonal checks that nothing sent has a patient's data.
func (s *fixture) expectNothingPersonal() (mails, webhooks int) {
	s.t.Helper()
	all, err := s.mail.Messages()
	testkit.Must(s.t, err)
	told := map[string]string{}
	for n, m := range all {
		told[fmt.Sprintf("mail %d", n)] = m.Subject + "\n" + m.Text + "\n" + string(m.Raw)
	}
	s.receiver.Look(func() {
		for n, c := range s.receiver.calls {
			told[fmt.Sprintf("webhook %d", n)] = string(c.body)
			webhooks++
			if c.err != nil {
				s.t.Errorf("the webhook %d: %v", n, c.err)
			}
		}
	})
	for what, text := range told {
		for _, personal := range []string{claimsBegin, patient, "Joana", cpf, strings.NewReplacer(".", "", "-", "").Replace(cpf)} {
			if strings.Contains(text, personal) {
				s.t.Errorf("the %s has %q in it:\n%s", what, personal, text)
			}
		}
	}
	return len(all), webhooks
}
