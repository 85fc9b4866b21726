// Package mail runs a real mail server, Exim, for tests of SMTP: with STARTTLS, passwords, and an inbox that a test
// reads.
package mail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/tlstest"
)

const (
	// startTime bounds a start, which takes 30 ms on an idle machine. pollEvery is the pause between two looks at the
	// inbox.
	startTime = 30 * time.Second
	pollEvery = 10 * time.Millisecond
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

// Server is a running Exim on 127.0.0.1 that takes all mail into one inbox and sends none. Its methods may be called
// by several goroutines, except those that start and end it.
type Server struct {
	install   fetch.Install
	folder    *harness.Folder
	authority *tlstest.Authority
	ports     []int // STARTTLS, implicit TLS
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
		testkit.Must(t, s.stop(context.Background()))
	})
	s.authority.Issue(t, s.path(certificate), s.path(privateKey), "correio.teste")
	testkit.Must(t, errors.Join(harness.GiveToNobody(s.folder.Path), harness.GiveToNobody(s.path(certificate)), harness.GiveToNobody(s.path(privateKey))))
	s.ports, err = harness.Ports(2)
	testkit.Must(t, err)
	testkit.Must(t, errors.Join(s.configure(), s.Restart(t.Context())))
	return s
}

// Restart starts a server that was stopped or killed, with the same ports, inbox and queue.
func (s *Server) Restart(ctx context.Context) error {
	p, err := harness.StartServer(ctx, startTime, harness.Command{
		Path: s.install.Path, Args: []string{"-C", s.path(configuration), "-bdf", "-q1m"},
		Env: []string{"PATH=/usr/bin:/bin", "TZ=UTC"}, Dir: s.folder.Path, User: harness.Nobody(),
	}, s.listens)
	if err != nil {
		return fmt.Errorf("start Exim %s: %w", s.install.Version, err)
	}
	s.process = p
	return nil
}

// listens reports whether both ports can be connected to.
func (s *Server) listens(*harness.Process) bool {
	return !slices.ContainsFunc(s.ports, func(port int) bool {
		c, err := net.DialTimeout("tcp", testkit.Loopback(port), startTime)
		return err != nil || c.Close() != nil
	})
}

// URL returns the server's address with STARTTLS, without the password: "smtp://user@127.0.0.1:…".
func (s *Server) URL() string {
	u := url.URL{Scheme: "smtp", User: url.User(user), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.ports[0]))}
	return u.String()
}

// CertificateFile returns a PEM file with the authority of the server's certificate, which is for 127.0.0.1 and
// localhost.
func (s *Server) CertificateFile() string { return s.authority.File }

// Kill ends the server at once. Its inbox and queue stay for Restart.
func (s *Server) Kill() { s.process.Kill() }

// stop ends the server and removes its folder.
func (s *Server) stop(ctx context.Context) error {
	var err error
	if s.process != nil {
		err = s.process.Stop(ctx, stopTime)
	}
	return errors.Join(err, s.folder.Remove())
}

func (s *Server) path(name string) string { return s.folder.Join(name) }
