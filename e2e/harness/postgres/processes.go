package postgres

import (
	"errors"
	"slices"
	"syscall"
	"time"
)

// Every process of a PostgreSQL but the postmaster has a group of its own, so that a signal to the
// postmaster's group does not reach them.

const (
	// settleTime bounds the wait for signals to work.
	settleTime  = 20 * time.Second
	settleEvery = 5 * time.Millisecond
)

// process of a server.
type process struct {
	pid     int
	stopped bool
}

// signal reaches the process with what it started.
func (p process) signal(s syscall.Signal) {
	if syscall.Kill(-p.pid, s) != nil {
		_ = syscall.Kill(p.pid, s) // it leads no group yet, or is gone
	}
}

func (d *dataDir) signalAll(postmaster int, s syscall.Signal) {
	for _, p := range d.processes(postmaster) {
		p.signal(s)
	}
}

// killAll ends the server's processes but the postmaster, which must not make new ones meanwhile. 0 is
// a postmaster that is dead or unknown.
func (d *dataDir) killAll(postmaster int) {
	_ = settle(func() bool {
		others := slices.DeleteFunc(d.processes(postmaster), func(p process) bool { return p.pid == postmaster })
		for _, p := range others {
			p.signal(syscall.SIGKILL)
		}
		return len(others) == 0
	})
}

// pauseAll stops the server's processes, the postmaster having been sent the signal, and returns when
// none runs.
func (d *dataDir) pauseAll(postmaster int) error {
	quiet := 0
	return settle(func() bool {
		quiet++
		for _, p := range d.processes(postmaster) {
			if !p.stopped {
				p.signal(syscall.SIGSTOP)
				quiet = 0
			}
		}
		return quiet == 2 // the first may have looked before the last new one was made
	})
}

// settle asks again and again until something is so.
func settle(so func() bool) error {
	ticker := time.NewTicker(settleEvery)
	defer ticker.Stop()
	deadline := time.After(settleTime)
	for !so() {
		select {
		case <-ticker.C:
		case <-deadline:
			return errors.New("the processes of PostgreSQL do not heed a signal")
		}
	}
	return nil
}
