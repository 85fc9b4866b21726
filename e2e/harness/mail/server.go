// Package mail runs a real mail server, Exim, for tests of SMTP: with STARTTLS, passwords, and an inbox that a test
// reads.
package mail

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/mail"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/tlstest"
)

const (
	// startTime bounds a start, which takes 30 ms on an idle machine.
	startTime = 30 * time.Second
	// stopTime is how long a stop may take before the server is killed.
	stopTime = 5 * time.Second
)

// Password is what clients must give, over TLS only, with the user in the server's URL.
const Password = "segredo"

const user = "retry-worker"

// program is an Exim with TLS, as it says without the machine's settings. None is installed on a machine that has a
// mail server: that would change how the machine handles its mail.
var program = &fetch.Program{
	Name: "Exim", Places: []string{"exim4", "exim", "/usr/sbin/exim4", "/usr/sbin/exim", "/opt/homebrew/bin/exim"},
	Args: []string{"-C", os.DevNull, "-bV"}, Version: regexp.MustCompile(`(?s)Exim version (\d[\w.]*).*Support for:[^\n]* (?:GnuTLS|OpenSSL)`),
	Packages: []string{"exim4-daemon-light"}, Unless: []string{"/usr/sbin/sendmail", fetch.Services},
}

// settings are Exim's: nothing of the machine's, everything in one folder, as a user without rights.
//
//go:embed exim.conf.tmpl
var settings string

// Server is a running Exim on 127.0.0.1 that takes all mail into one inbox and sends none. Its methods may be called
// by several goroutines, except those that start and end it.
type Server struct {
	install   fetch.Install
	folder    *harness.Folder
	authority *tlstest.Authority
	address   string
	process   *harness.Process
}

// Open runs a server until the test ends. If there is no Exim, the test ends as [harness.Require] says. No server
// outlives this process.
func Open(t *testing.T) *Server {
	t.Helper()
	s := &Server{install: program.Require(t), authority: tlstest.NewAuthority(t)}
	var err error
	s.folder, err = harness.NewFolder("exim")
	testkit.Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.Log())
		}
		testkit.Must(t, s.folder.Remove())
	})
	ports, err := harness.Ports(1)
	testkit.Must(t, err)
	s.address = testkit.Loopback(ports[0])
	certificate, key, configuration := s.folder.Join("certificate.pem"), s.folder.Join("key.pem"), s.folder.Join("exim.conf")
	s.authority.Issue(t, certificate, key, "correio.teste")
	account := cmp.Or(harness.Nobody(), &syscall.Credential{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())})
	var text bytes.Buffer
	testkit.Must(t, template.Must(template.New("").Delims("<<", ">>").Parse(settings)).Execute(&text, map[string]any{
		"Dir": s.folder.Path, "User": account.Uid, "Group": account.Gid, "Name": user, "Password": Password, "Port": ports[0],
	}))
	testkit.Must(t, os.WriteFile(configuration, text.Bytes(), 0o600))
	for _, path := range []string{s.folder.Path, certificate, key, configuration} {
		testkit.Must(t, harness.GiveToNobody(path))
	}
	testkit.Must(t, s.Restart(t.Context()))
	t.Cleanup(func() { testkit.Must(t, s.process.Stop(context.Background(), stopTime)) })
	return s
}

// Restart starts a server that was killed, with the same port, inbox and queue.
func (s *Server) Restart(ctx context.Context) error {
	p, err := harness.StartServer(ctx, startTime, harness.Command{
		Path: s.install.Path, Args: []string{"-C", s.folder.Join("exim.conf"), "-bdf", "-q1m"},
		Env: []string{"PATH=/usr/bin:/bin", "TZ=UTC"}, Dir: s.folder.Path, User: harness.Nobody(),
	}, s.listens)
	if err != nil {
		return fmt.Errorf("start Exim %s: %w", s.install.Version, err)
	}
	s.process = p
	return nil
}

func (s *Server) listens(*harness.Process) bool {
	c, err := net.DialTimeout("tcp", s.address, startTime)
	return err == nil && c.Close() == nil
}

// URL returns the server's address with STARTTLS, without the password: "smtp://user@127.0.0.1:…".
func (s *Server) URL() string {
	u := url.URL{Scheme: "smtp", User: url.User(user), Host: s.address}
	return u.String()
}

// CertificateFile returns a PEM file with the authority of the server's certificate, which is for 127.0.0.1 and
// localhost.
func (s *Server) CertificateFile() string { return s.authority.File }

// Kill ends the server at once. Its inbox and queue stay for Restart.
func (s *Server) Kill() { s.process.Kill() }

// Log returns what the server wrote about connections and deliveries.
func (s *Server) Log() string {
	text, _ := os.ReadFile(s.folder.Join("main.log")) // no file before the first connection
	return string(text)
}

// Defer makes the server answer 451 to each mail until Accept.
func (s *Server) Defer() error { return os.WriteFile(s.folder.Join("deferring"), nil, 0o644) }

// Accept ends Defer.
func (s *Server) Accept() error { return os.Remove(s.folder.Join("deferring")) }

// Message is a mail in the server's inbox.
type Message struct {
	// To are the addresses of its envelope, From is the sender's.
	To   []*mail.Address
	From string
	// Subject is decoded.
	Subject string
	// Text is Raw decoded.
	Text string
	// Raw is the mail as it was received, headers included.
	Raw []byte
}

// Messages returns the mails in the inbox, in no order.
func (s *Server) Messages() (all []Message, err error) {
	files, err := filepath.Glob(s.folder.Join("inbox", "new", "*"))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the inbox: %w", err)
		}
		m, err := parse(raw)
		if err != nil {
			return nil, fmt.Errorf("read the mail %s: %w", file, err)
		}
		all = append(all, m)
	}
	return all, err
}

func parse(raw []byte) (Message, error) {
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return Message{}, err
	}
	subject, wrong := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	to, err := m.Header.AddressList("Envelope-To")
	from := strings.Trim(m.Header.Get("Return-Path"), "<>")
	return Message{To: to, From: from, Subject: subject, Text: decode(raw), Raw: raw}, errors.Join(wrong, err)
}

var escaped = regexp.MustCompile(`=(\r?\n|[0-9A-F]{2})`)

// decode decodes quoted-printable, in which all parts of a mail are.
func decode(raw []byte) string {
	return escaped.ReplaceAllStringFunc(string(raw), func(e string) string {
		b, _ := hex.DecodeString(strings.TrimSpace(e[1:])) // nothing at the soft end of a line
		return string(b)
	})
}
