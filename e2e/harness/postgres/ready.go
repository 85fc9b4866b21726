package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"retry-worker/e2e/harness"
)

// readyEvery is how often the server's state is read.
const readyEvery = 10 * time.Millisecond

// errPortTaken is why a start may be tried again on another port.
var errPortTaken = errors.New("its port is taken")

// waitReady waits until the server takes connections, its process ends or ctx does.
func (s *Server) waitReady(ctx context.Context, p *harness.Process) error {
	ticker := time.NewTicker(readyEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.Done():
			return ended(p)
		case <-ctx.Done():
			return fmt.Errorf("it took no connections in time (%w)", ctx.Err())
		case <-ticker.C:
		}
		if s.dir.ready(p.PID()) {
			return nil
		}
	}
}

func ended(p *harness.Process) error {
	for _, line := range p.Lines() {
		if strings.Contains(line, "Address already in use") {
			return errPortTaken
		}
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("its process ended (%w)", err)
	}
	return errors.New("its process ended")
}

// ready reads the state that the server writes into its lock file. One that a killed server left names
// another process.
func (d *dataDir) ready(pid int) bool {
	lines := d.lockFile()
	return len(lines) > 7 && lines[0] == strconv.Itoa(pid) && strings.TrimSpace(lines[7]) == "ready"
}

// initialize makes the data, unless they are there. A killed initdb leaves nothing that counts as data.
func (s *Server) initialize(ctx context.Context) error {
	if _, err := os.Stat(s.dir.data()); err == nil {
		return nil
	}
	partial := s.dir.data() + ".partial"
	if err := s.dir.makeOwned(partial); err != nil {
		return err
	}
	args := []string{"-D", partial, "-U", superuser, "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions"}
	if s.options.Password == "" {
		args = append(args, "--auth=trust")
	} else {
		file := partial + ".password"
		if err := s.dir.writeOwned(file, s.options.Password+"\n"); err != nil {
			return err
		}
		defer os.Remove(file)
		args = append(args, "--auth=scram-sha-256", "--pwfile="+file)
	}
	p, err := harness.Start(harness.Command{
		Path: filepath.Join(s.bin, "initdb"), Args: args, Env: environment(os.Environ()), Dir: s.dir.path, User: harness.Nobody(),
	})
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		s.kill(p)
		return fmt.Errorf("make its data: %w", ctx.Err())
	}
	if err := p.Err(); err != nil {
		return said(fmt.Errorf("make its data by initdb: %w", err), p)
	}
	return os.Rename(partial, s.dir.data())
}
