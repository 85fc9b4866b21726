package notify_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/mail"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"retry-worker/internal/console"
	"retry-worker/internal/notify"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/tlstest"
)

// mailbox is a mail server that plays faults.
type mailbox struct {
	port   int
	caFile string

	mu sync.Mutex
	// onMail, onRcpt and onData answer.
	onMail func() error
	onRcpt func(address string) error
	onData func(conn net.Conn) error
	// onReset is called when a session is reset.
	onReset func(conn net.Conn)
	got     []delivery
	// encrypted are the connections that ended in TLS.
	encrypted int
}

// delivery is a message that was taken.
type delivery struct {
	from    string
	to      []string
	message []byte
}

type mailOptions struct{ startTLS, implicit, login bool }

const mailUser, mailPassword = "worker", "pássword with spaces"

// openMailbox serves until the test ends.
func openMailbox(t *testing.T, o mailOptions) *mailbox {
	t.Helper()
	authority, folder := tlstest.NewAuthority(t), t.TempDir()
	cert, key := filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	authority.Issue(t, cert, key, "mail")
	certificate, err := tls.LoadX509KeyPair(cert, key)
	testkit.Must(t, err)
	b := &mailbox{
		caFile: authority.File,
		onMail: func() error { return nil },
		onRcpt: func(string) error { return nil },
		onData: func(net.Conn) error { return nil }, onReset: func(net.Conn) {},
	}
	s := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{b: b, conn: c, login: o.login}, nil }))
	s.Domain, s.AllowInsecureAuth, s.ErrorLog = "mail.hospital.example", true, quietLog{}
	if o.startTLS {
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	b.port = l.Addr().(*net.TCPAddr).Port
	if o.implicit {
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate}})
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		_ = s.Close()
		serving.Wait()
	})
	return b
}

type quietLog struct{}

func (quietLog) Printf(string, ...any) {}
func (quietLog) Println(...any)        {}

func (b *mailbox) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// refuse answers with that code to recipients whose addresses begin so, too.
func (b *mailbox) refuse(prefix string, code int) {
	b.set(func() { b.onRcpt = refusing(prefix, code, b.onRcpt) })
}

// refusing refuses recipients whose addresses begin so, and has others answer the rest.
func refusing(prefix string, code int, others func(string) error) func(string) error {
	return func(address string) error {
		if strings.HasPrefix(address, prefix) {
			return says(code, "not for "+address+" here")
		}
		return others(address)
	}
}

func (b *mailbox) deliveries() []delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]delivery(nil), b.got...)
}

// server is the mailbox as a Mailer takes it.
func (b *mailbox) server(e notify.Encryption) notify.MailServer {
	return notify.MailServer{Host: "127.0.0.1", Port: b.port, Encryption: e, CAFile: b.caFile,
		From: mail.Address{Name: "Avisos do retry-worker – operação", Address: "retry-worker@hospital.example"}}
}

func (b *mailbox) mailer(e notify.Encryption) *notify.Mailer { return mailerOf(b.server(e)) }

func mailerOf(s notify.MailServer) *notify.Mailer {
	return notify.NewMailer(s, console.Portuguese, time.FixedZone("-03", -3*3600))
}

type session struct {
	b     *mailbox
	conn  *smtp.Conn
	login bool
	in    bool
	d     delivery
}

func (s *session) AuthMechanisms() []string {
	if s.login {
		return []string{sasl.Plain}
	}
	return nil
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != mailUser || password != mailPassword {
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "wrong user or password"}
		}
		s.in = true
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.login && !s.in {
		return &smtp.SMTPError{Code: 530, Message: "log in first"}
	}
	s.b.mu.Lock()
	answer := s.b.onMail
	if _, is := s.conn.TLSConnectionState(); is {
		s.b.encrypted++
	}
	s.b.mu.Unlock()
	if err := answer(); err != nil {
		return err
	}
	s.d = delivery{from: from}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.b.mu.Lock()
	answer := s.b.onRcpt
	s.b.mu.Unlock()
	if err := answer(to); err != nil {
		return err
	}
	s.d.to = append(s.d.to, to)
	return nil
}

func (s *session) Data(r io.Reader) error {
	s.b.mu.Lock()
	answer := s.b.onData
	s.b.mu.Unlock()
	if err := answer(s.conn.Conn()); err != nil {
		return err
	}
	message, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.d.message = message
	s.b.set(func() { s.b.got = append(s.b.got, s.d) })
	return nil
}

func (s *session) Reset() {
	s.b.mu.Lock()
	answer := s.b.onReset
	s.b.mu.Unlock()
	answer(s.conn.Conn())
}

func (s *session) Logout() error { return nil }

func says(code int, text string) error { return &smtp.SMTPError{Code: code, Message: text} }

// silent is a server that takes connections and says nothing.
func silent(t *testing.T) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

var errDropped = errors.New("dropped")

// drop closes the connection in the middle of a message.
func drop(c net.Conn) error {
	_ = c.Close()
	return errDropped
}

func send(t *testing.T, m *notify.Mailer, to string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return m.Send(ctx, "0c7f3b0e-0000-5000-8000-00000000000a", newsNotice(), to)
}

func newsNotice() *notify.Notice {
	oldest := at("2026-11-21T09:30:00Z")
	return &notify.Notice{Type: notify.TypeNew, Timestamp: at("2026-11-21T10:00:05Z"), Data: notify.Data{Team: "ti", URL: "https://retry.hospital.example/dead-letters?team=ti",
		New: &notify.Summary{Count: 1399, Amount: "184200.05", Causes: 2, Oldest: &oldest, OtherCount: 3, Top: []notify.Cause{
			{Policy: "tiss-submission", Reason: "INVALID_CREDENTIALS", Rule: "INVALID_CREDENTIALS", Pattern: "senha <expirou> & token # “é”", Hint: "Corrija a senha – já.", Count: 1396, Amount: "0.05", Oldest: oldest}}},
		Open: notify.Summary{Count: 1400, Causes: 2, Oldest: &oldest, OtherCount: 1400}}}
}
