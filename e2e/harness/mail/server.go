package mail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"retry-worker/e2e/harness"
)

const (
	// startTime bounds a start, which takes 30 ms on an idle machine; pollEvery is how often it, and the inbox, is looked at.
	startTime = 30 * time.Second
	pollEvery = 10 * time.Millisecond
	// stopTime is what a stop may take before the server is killed.
	stopTime = 5 * time.Second
	// startTries is how often a start is tried with other ports, when somebody took one meanwhile.
	startTries = 3
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
	dir      string
	ports    []int // STARTTLS, implicit TLS

	change  sync.Mutex // held while it is started or ended
	process *harness.Process
}

// Start runs a server and returns when clients can connect. No server outlives this process on Linux. ctx bounds the start
// only. The error is one line that ends with what the server said last; nothing is left then.
func Start(ctx context.Context, i Install, settings Settings) (*Server, error) {
	if settings.User == "" {
		settings.User, settings.Password = "retry-worker", "segredo"
	}
	s := &Server{install: i, settings: settings}
	var err error
	if s.dir, err = newFolder(); err != nil {
		return nil, fmt.Errorf("make a folder for Exim: %w", err)
	}
	for try := 1; ; try++ {
		if s.ports, err = harness.FreePorts(2); err == nil {
			if err = s.configure(); err == nil {
				err = s.Restart(ctx)
			}
		}
		if err == nil {
			return s, nil
		}
		if try == startTries || ctx.Err() != nil {
			return nil, errors.Join(err, os.RemoveAll(s.dir))
		}
	}
}

// Restart starts a server that was stopped or killed: with the same ports, inbox and queue.
func (s *Server) Restart(ctx context.Context) error {
	s.change.Lock()
	defer s.change.Unlock()
	p, err := harness.Start(harness.Command{
		Path: s.install.Path, Args: []string{"-C", s.path(configuration), "-bdf", "-q1m"},
		Env: []string{"PATH=/usr/bin:/bin", "TZ=UTC"}, Dir: s.dir, User: harness.Nobody(),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := s.listens(ctx, p); err != nil {
		p.Kill()
		return fmt.Errorf("start Exim %s: %w; it said last: %s", s.install.Version, err, p.LastLine())
	}
	s.process = p
	return nil
}

// listens waits until both ports can be connected to.
func (s *Server) listens(ctx context.Context, p *harness.Process) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for next := 0; next < len(s.ports); {
		if c, err := net.DialTimeout("tcp", harness.Address(s.ports[next]), startTime); err == nil {
			next++
			_ = c.Close()
			continue
		}
		select {
		case <-tick.C:
		case <-p.Done():
			return errors.New("it ended at once")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// URL is where clients send by STARTTLS, without the password: "smtp://user@127.0.0.1:…".
func (s *Server) URL() string { return s.url("smtp", s.ports[0]) }

// SecureURL is where they send by implicit TLS: "smtps://user@127.0.0.1:…".
func (s *Server) SecureURL() string { return s.url("smtps", s.ports[1]) }

func (s *Server) url(scheme string, port int) string {
	u := url.URL{Scheme: scheme, User: url.User(s.settings.User), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	return u.String()
}

// Password that goes with the URLs' user.
func (s *Server) Password() string { return s.settings.Password }

// CertificateFile is a PEM file of the authority that the server's certificate, for 127.0.0.1 and localhost, is signed by.
func (s *Server) CertificateFile() string { return s.path(authorityFile) }

// Kill ends the server at once. Its inbox and queue stay for Restart.
func (s *Server) Kill() { s.process.Kill() }

// Pause makes it stand still: connections are taken by the system, and nobody answers.
func (s *Server) Pause() error { return s.process.Signal(syscall.SIGSTOP) }

// Resume after Pause.
func (s *Server) Resume() error { return s.process.Signal(syscall.SIGCONT) }

// Stop ends the server and removes all it has. It returns when nothing is left.
func (s *Server) Stop(ctx context.Context) error {
	s.change.Lock()
	defer s.change.Unlock()
	return errors.Join(s.process.Stop(ctx, stopTime), os.RemoveAll(s.dir))
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }
