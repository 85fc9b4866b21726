package mail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"retry-worker/e2e/harness"
)

const (
	// startTime bounds a start, which takes 30 ms on an idle machine; pollEvery is how often the inbox is looked at.
	startTime = 30 * time.Second
	pollEvery = 10 * time.Millisecond
	// stopTime is what a stop may take before the server is killed.
	stopTime = 5 * time.Second
)

// Settings of a server. The zero value is a good one.
type Settings struct {
	// User and Password that clients must show, over TLS only; empty: "retry-worker" and "segredo".
	User, Password string
}

// Server is a running Exim on 127.0.0.1 that takes mail for everybody into one inbox, and sends none. Its methods may be
// called by several goroutines; those that start and end it run one after the other.
type Server struct {
	install  Install
	settings Settings
	folder   *harness.Folder
	ports    []int // STARTTLS, implicit TLS

	change  sync.Mutex // held while it is started or ended
	process *harness.Process
}

// Start runs a server and returns when clients can connect. No server outlives this process. ctx bounds the start
// only. The error is one line that ends with what the server said last; nothing is left then.
func Start(ctx context.Context, i Install, settings Settings) (*Server, error) {
	if settings.User == "" {
		settings.User, settings.Password = "retry-worker", "segredo"
	}
	s := &Server{install: i, settings: settings}
	var err error
	if s.folder, err = harness.NewFolder("exim"); err != nil {
		return nil, err
	}
	if err = errors.Join(harness.GiveToNobody(s.folder.Path), s.certify()); err == nil {
		err = harness.OnFreePorts(2, func(ports []int) error {
			s.ports = ports
			return errors.Join(s.configure(), s.Restart(ctx))
		})
	}
	if err != nil {
		return nil, errors.Join(err, s.folder.Remove())
	}
	return s, nil
}

// Restart starts a server that was stopped or killed: with the same ports, inbox and queue.
func (s *Server) Restart(ctx context.Context) error {
	s.change.Lock()
	defer s.change.Unlock()
	p, err := harness.Start(harness.Command{
		Path: s.install.Path, Args: []string{"-C", s.path(configuration), "-bdf", "-q1m"},
		Env: []string{"PATH=/usr/bin:/bin", "TZ=UTC"}, Dir: s.folder.Path, User: harness.Nobody(),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := p.AwaitReady(ctx, s.listens); err != nil {
		return fmt.Errorf("start Exim %s: %w", s.install.Version, err)
	}
	s.process = p
	return nil
}

// listens reports whether both ports can be connected to.
func (s *Server) listens() bool {
	return !slices.ContainsFunc(s.ports, func(port int) bool {
		c, err := net.DialTimeout("tcp", harness.Address(port), startTime)
		return err != nil || c.Close() != nil
	})
}

// URL is where clients send by STARTTLS, without the password: "smtp://user@127.0.0.1:…".
func (s *Server) URL() string {
	u := url.URL{Scheme: "smtp", User: url.User(s.settings.User), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.ports[0]))}
	return u.String()
}

// Password that goes with the URLs' user.
func (s *Server) Password() string { return s.settings.Password }

// CertificateFile is a PEM file of the authority that the server's certificate, for 127.0.0.1 and localhost, is signed by.
func (s *Server) CertificateFile() string { return s.path(authorityFile) }

// Kill ends the server at once. Its inbox and queue stay for Restart.
func (s *Server) Kill() { s.process.Kill() }

// Stop ends the server and removes all it has. It returns when nothing is left.
func (s *Server) Stop(ctx context.Context) error {
	s.change.Lock()
	defer s.change.Unlock()
	return errors.Join(s.process.Stop(ctx, stopTime), s.folder.Remove())
}

func (s *Server) path(name string) string { return s.folder.Join(name) }
