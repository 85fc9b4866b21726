package app_test

import (
	"io"
	"net"
	netmail "net/mail"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"go.uber.org/zap"

	"retry-worker/internal/notify"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/worker"
)

// inbox is a mail server that takes everything, and passes on whom each message was for.
type inbox chan string

func (b inbox) NewSession(*smtp.Conn) (smtp.Session, error) { return b, nil }
func (b inbox) Mail(string, *smtp.MailOptions) error        { return nil }
func (b inbox) Data(r io.Reader) error                      { _, err := io.Copy(io.Discard, r); return err }
func (b inbox) Reset()                                      {}
func (b inbox) Logout() error                               { return nil }

func (b inbox) Rcpt(to string, _ *smtp.RcptOptions) error {
	b <- to
	return nil
}

// A dead letter is told to its team's address by the mail server of the settings: what is told, and when, internal/notify's
// tests say; webhooks go out in e2e/scenarios.
func TestMailGoesOut(t *testing.T) {
	t.Parallel() // the first message waits for what comes within moments
	box := make(inbox, 10)
	server := smtp.NewServer(box)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	g := gateway.New(t, gateway.Options{})
	s := settings(t, g.Addr())
	s.PoliciesFile = filepath.Join(t.TempDir(), "policies.yaml")
	const team = "extends: built-in\nteams: {cadastro: {email: [cadastro@hospital.example]}}\n"
	testkit.Must(t, os.WriteFile(s.PoliciesFile, []byte(team), 0o600))
	s.Notify.SMTP = &notify.MailServer{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Encryption: notify.Plaintext,
		From: netmail.Address{Address: "retry-worker@hospital.example"}}
	serveLogging(t, s, zap.NewNop())
	g.AddJob(gateway.Job{Type: worker.AnalyzeRetry, Variables: variables("CLM-1-1", "INVALID_PATIENT_DATA", 0)})
	select {
	case to := <-box:
		if to != "cadastro@hospital.example" {
			t.Errorf("told %s", to)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("no mail came")
	}
}
