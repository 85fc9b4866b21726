package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/smtp"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start(within(t), exim, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.Log())
		}
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// connect to a server as its URL says: STARTTLS, or TLS from the first byte.
func connect(t *testing.T, s *Server, at string) *smtp.Client {
	t.Helper()
	u, err := url.Parse(at)
	must(t, err)
	authority, err := os.ReadFile(s.CertificateFile())
	must(t, err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	settings := &tls.Config{RootCAs: trusted, ServerName: u.Hostname()}
	if u.Scheme == "smtps" {
		conn, err := tls.Dial("tcp", u.Host, settings)
		must(t, err)
		client, err := smtp.NewClient(conn, u.Hostname())
		must(t, err)
		return client
	}
	client, err := smtp.Dial(u.Host)
	must(t, err)
	if has, _ := client.Extension("AUTH"); has {
		t.Error("it asks for a password before there is TLS")
	}
	must(t, client.StartTLS(settings))
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const letter = "From: de@hospital.example\r\nTo: ti@hospital.example\r\nSubject: =?utf-8?q?Aten=C3=A7=C3=A3o?=\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nn=C3=A3o\r\n"

// send a letter; an empty password shows none.
func send(t *testing.T, s *Server, at, password string, to ...string) error {
	t.Helper()
	client := connect(t, s, at)
	defer client.Close()
	if password != "" {
		if err := client.Auth(smtp.PlainAuth("", "retry-worker", password, "127.0.0.1")); err != nil {
			return err
		}
	}
	if err := client.Mail("de@hospital.example"); err != nil {
		return err
	}
	for _, address := range to {
		if err := client.Rcpt(address); err != nil {
			return err
		}
	}
	body, err := client.Data()
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(body, letter)
	return errors.Join(err, body.Close())
}

// code that a server refused with; 0 where it did not.
func code(err error) int {
	if refusal, ok := errors.AsType[*textproto.Error](err); ok {
		return refusal.Code
	}
	return 0
}

func TestMailIsTakenAndRead(t *testing.T) {
	s := start(t)
	must(t, send(t, s, s.URL(), s.Password(), "ti@hospital.example", "chefe@hospital.example"))
	must(t, send(t, s, s.SecureURL(), s.Password(), "faturamento@hospital.example"))
	all, err := s.Await(within(t), 2)
	must(t, err)
	slices.SortFunc(all, func(a, b Message) int { return len(b.To) - len(a.To) })
	for n, want := range []string{"[ti@hospital.example chefe@hospital.example]", "[faturamento@hospital.example]"} {
		m := all[n]
		if fmt.Sprint(m.To) != want || m.From != "de@hospital.example" || m.Subject != "Atenção" || strings.TrimSpace(m.Text) != "não" {
			t.Errorf("the inbox has %+v to %v, expected to %s", m, m.To, want)
		}
		if !bytes.Contains(m.Raw, []byte("esmtpsa ")) {
			t.Errorf("it did not come over TLS with a password:\n%s", m.Raw)
		}
	}
}

func TestTheInboxIsInOrder(t *testing.T) {
	s := &Server{dir: t.TempDir()}
	must(t, os.MkdirAll(s.path("inbox/new"), 0o755))
	for n, name := range []string{"99.M5P1.x", "100.M9P2.x", "100.M415469P1.x"} {
		content := fmt.Sprintf("Envelope-To: %d@hospital.example\r\nSubject: %d\r\n\r\n", n, n)
		must(t, os.WriteFile(filepath.Join(s.dir, "inbox/new", name), []byte(content), 0o600))
	}
	all, err := s.Messages()
	must(t, err)
	for n, m := range all {
		if m.Subject != fmt.Sprint(n) {
			t.Errorf("the mail %d is %s", n, m.Subject)
		}
	}
}

func TestWhoShowsNoPasswordSendsNothing(t *testing.T) {
	s := start(t)
	if got := code(send(t, s, s.URL(), "errada", "ti@hospital.example")); got != 535 {
		t.Errorf("a wrong password is answered with %d, expected 535", got)
	}
	if got := code(send(t, s, s.URL(), "", "ti@hospital.example")); got != 550 {
		t.Errorf("no password is answered with %d, expected 550", got)
	}
	if all, err := s.Messages(); err != nil || len(all) > 0 {
		t.Errorf("%d mails were taken (%v)", len(all), err)
	}
}

func TestItRefusesDefersAndIsSlow(t *testing.T) {
	s := start(t)
	for want, b := range map[int]Behaviour{451: {Defer: true}, 550: {Refuse: true}} {
		must(t, s.Behave(b))
		if got := code(send(t, s, s.URL(), s.Password(), "ti@hospital.example")); got != want {
			t.Errorf("%+v: answered with %d, expected %d", b, got, want)
		}
	}
	must(t, s.Behave(Behaviour{Slow: time.Second}))
	begun := time.Now()
	must(t, send(t, s, s.URL(), s.Password(), "ti@hospital.example"))
	if took := time.Since(begun); took < time.Second {
		t.Errorf("a slow server took %v, expected a second", took)
	}
	must(t, s.Behave(Behaviour{}))
	must(t, send(t, s, s.URL(), s.Password(), "ti@hospital.example"))
	all, err := s.Await(within(t), 2)
	if err != nil || len(all) != 2 {
		t.Errorf("%d mails (%v), expected the 2 that were taken", len(all), err)
	}
}

func TestItKeepsItsMailOverAKill(t *testing.T) {
	s := start(t)
	must(t, send(t, s, s.URL(), s.Password(), "ti@hospital.example"))
	s.Kill()
	u, err := url.Parse(s.URL())
	must(t, err)
	if client, err := smtp.Dial(u.Host); err == nil {
		client.Close()
		t.Error("it answers after a kill")
	}
	must(t, s.Restart(within(t)))
	must(t, send(t, s, s.URL(), s.Password(), "ti@hospital.example"))
	_, err = s.Await(within(t), 2)
	must(t, err)
}

func TestNothingIsLeftOfIt(t *testing.T) {
	s, err := Start(within(t), exim, Settings{})
	must(t, err)
	if !running(s) {
		t.Fatal("its process is not seen: this test would see none that is left either")
	}
	must(t, send(t, s, s.URL(), s.Password(), "ti@hospital.example"))
	must(t, s.Stop(within(t)))
	if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is left: %v", err)
	}
	if running(s) {
		t.Error("a process of it is left")
	}
}

// running tells whether any process has the server's settings.
func running(s *Server) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	return slices.ContainsFunc(all, func(path string) bool {
		text, err := os.ReadFile(path)
		return err == nil && bytes.Contains(text, []byte(s.dir))
	})
}
