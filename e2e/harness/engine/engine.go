// Package engine runs the development engine for tests: the program that users run, as a process that a test kills,
// freezes and moves in time.
package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
)

const (
	// startTime bounds a start; an idle machine takes some milliseconds.
	startTime = 2 * time.Minute
	// stopTime is how long a stop may take before the engine is killed.
	stopTime = 15 * time.Second
	// readyMark begins the line that the engine prints when it serves.
	readyMark = "engine ready "
)

// Engine is a running engine whose ports are on 127.0.0.1 only. Its methods may be called by several goroutines;
// those that start and end it run one after the other.
type Engine struct {
	binary string
	flags  []string
	folder *harness.Folder
	// The addresses of its ports, the same after a restart.
	gateway, rest, control string

	change  sync.Mutex // held while it starts or ends
	process atomic.Pointer[harness.Process]
}

// Start starts an engine with those flags in addition to its addresses and its data, and returns when it serves. The
// first call builds the program. No engine outlives this process. ctx bounds the start only. The error is one line
// that ends with what the engine said last.
func Start(ctx context.Context, flags ...string) (*Engine, error) {
	binary, err := harness.DevBinary()
	if err != nil {
		return nil, err
	}
	folder, err := harness.NewFolder("engine")
	if err != nil {
		return nil, err
	}
	e := &Engine{binary: binary, flags: flags, folder: folder}
	ports, err := harness.Ports(3)
	if err == nil {
		e.gateway, e.rest, e.control = testkit.Loopback(ports[0]), testkit.Loopback(ports[1]), testkit.Loopback(ports[2])
		err = e.run(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, folder.Remove())
	}
	return e, nil
}

// run starts the process and waits until it serves; if it fails, no process is left.
func (e *Engine) run(ctx context.Context) error {
	args := append([]string{"--engine-only", "--grpc", e.gateway, "--rest", e.rest, "--control", e.control, "--data", e.Data()}, e.flags...)
	p, err := harness.StartServer(ctx, startTime, harness.Command{Path: e.binary, Args: args, Dir: e.folder.Path}, ready)
	if err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	e.process.Store(p)
	return nil
}

func ready(p *harness.Process) bool {
	return slices.ContainsFunc(p.Lines(), func(line string) bool { return strings.HasPrefix(line, readyMark) })
}

// GatewayAddress returns the address for gRPC clients: host:port, without TLS.
func (e *Engine) GatewayAddress() string { return e.gateway }

// RESTAddress returns the base of the REST API without /v2, such as "http://127.0.0.1:8080".
func (e *Engine) RESTAddress() string { return "http://" + e.rest }

// ControlURL returns the base of its clock, counters and events; metrics are at /actuator/prometheus below it.
func (e *Engine) ControlURL() string { return "http://" + e.control }

// Data returns the folder of its data, which may be changed while it is dead.
func (e *Engine) Data() string { return e.folder.Join("data") }

// LastLine returns the engine's last line, or its last error.
func (e *Engine) LastLine() string { return e.process.Load().LastLine() }

// PID returns the process id of the engine.
func (e *Engine) PID() int { return e.process.Load().PID() }

// Stop ends the engine in order, kills it if it does not end in 15 s or before ctx, and removes its data. It returns
// when nothing is left. Calling it again does nothing.
func (e *Engine) Stop(ctx context.Context) error {
	e.change.Lock()
	defer e.change.Unlock()
	return errors.Join(e.process.Load().Stop(ctx, stopTime), e.folder.Remove())
}

// Kill ends the engine at once, as a power cut would, and returns when it is dead. Its data stay for Restart.
func (e *Engine) Kill() { e.process.Load().Kill() }

// Restart starts the engine again with the same ports and data, killed or not. Its clock is the real one again.
func (e *Engine) Restart(ctx context.Context) error {
	e.change.Lock()
	defer e.change.Unlock()
	if err := e.process.Load().Stop(ctx, stopTime); err != nil {
		return err
	}
	return e.run(ctx)
}

// Pause freezes the engine: connections stay open and nobody answers.
func (e *Engine) Pause() error { return e.process.Load().Pause() }

// Resume ends Pause.
func (e *Engine) Resume() error { return e.process.Load().Resume() }
