package zeebe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"retry-worker/e2e/harness"
)

const (
	// startTime bounds a start; an idle machine takes 4 to 10 s, one with a load of 20 took over 2 minutes.
	startTime = 4 * time.Minute
	// stopTime is what a stop may take before the broker is killed; usually it is below 2 s.
	stopTime = 15 * time.Second
	// startTries is how often a start is tried with other ports, when somebody took one meanwhile.
	startTries = 3
)

// Options of a broker. The zero value is a good one.
type Options struct {
	Version string   // one of Versions; empty: the first
	Dir     string   // its data, made if need be; empty: a temporary folder that Stop removes
	Env     []string // NAME=value, over what Start sets
	Heap    string   // as -Xmx takes it; empty: 512m
	// Output takes the broker's log; nil drops it.
	Output io.Writer
	// Progress takes how far fetching is, where there is something to fetch; may be nil.
	Progress func(Progress)
}

// Broker is a running Zeebe with one partition, whose gateway and actuator listen on 127.0.0.1 only.
// Its methods may be called by several goroutines; those that start and end it run one after the other.
type Broker struct {
	options Options
	home    string // Zeebe's folder
	java    string
	dir     *dataDir
	ports   ports

	change  sync.Mutex // held while it is started or ended
	mu      sync.Mutex
	process *harness.Process
	stopped bool
	moved   bool // its clock is not the real one
}

// Start runs a broker and returns when its partition has a leader and its gateway takes calls, which is
// 4 to 10 s when Zeebe and Java are there, and fetches them otherwise. No broker outlives this process
// on Linux. ctx bounds the start only. The error is one line that ends with what the broker said last.
func Start(ctx context.Context, o Options) (*Broker, error) {
	if o.Version == "" {
		o.Version = Versions[0]
	}
	b := &Broker{options: o}
	var err error
	if b.home, err = Fetch(ctx, o.Version, o.Progress); err != nil {
		return nil, err
	}
	if b.java, err = ProvideJava(ctx, o.Progress); err != nil {
		return nil, err
	}
	if b.dir, err = openDataDir(o.Dir); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		if b.ports, err = choosePorts(); err == nil {
			err = b.run(ctx)
		}
		if err == nil {
			return b, nil
		}
		if try == startTries || !strings.Contains(err.Error(), portTaken) {
			_ = b.dir.close() // the error that matters is the first
			return nil, err
		}
	}
}

// GatewayAddress is where clients connect: host:port, without TLS.
func (b *Broker) GatewayAddress() string { return harness.Address(b.ports.gateway) }

// ActuatorURL is the base of the management addresses, "http://127.0.0.1:9600" say; the metrics are at
// /actuator/prometheus below it.
func (b *Broker) ActuatorURL() string { return "http://" + harness.Address(b.ports.management) }

// PID is the broker's process id; it changes with Restart.
func (b *Broker) PID() int { return b.current().PID() }

// Done is closed when the broker's process has ended; Restart makes a new one.
func (b *Broker) Done() <-chan struct{} { return b.current().Done() }

// LastLine is what the broker said last, or its last error.
func (b *Broker) LastLine() string { return b.current().LastLine() }

func (b *Broker) current() *harness.Process {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.process
}

// run starts the process and waits until it is healthy; else nothing is left of it.
func (b *Broker) run(ctx context.Context) error {
	p, err := harness.Start(harness.Command{
		Path: b.home + "/" + launcher, Env: b.environment(os.Environ()), Dir: b.dir.path, Output: b.options.Output,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := b.waitHealthy(ctx, p); err != nil {
		p.Kill()
		return b.startError(err, p)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.process = p
	return nil
}

func (b *Broker) startError(err error, p *harness.Process) error {
	if line := p.LastLine(); line != "" {
		return fmt.Errorf("start Zeebe %s: %w; it said last: %s", b.options.Version, err, line)
	}
	return fmt.Errorf("start Zeebe %s: %w; it said nothing", b.options.Version, err)
}

// Stop ends the broker in order, kills it where it does not end in 15 s or ctx ends, and removes a
// temporary data folder. It returns when nothing is left. Calling it again does nothing.
func (b *Broker) Stop(ctx context.Context) error {
	b.change.Lock()
	defer b.change.Unlock()
	if b.stopped {
		return nil
	}
	b.stopped = true
	return errors.Join(b.current().Stop(ctx, stopTime), b.dir.close())
}

// Kill ends the broker at once, as a power cut would, and returns when it is dead. Its data stay for
// Restart.
func (b *Broker) Kill() { b.current().Kill() }

// Restart starts the broker again, with the same ports and data, after Kill or without. Its clock is
// the real one again. An error where Stop was called.
func (b *Broker) Restart(ctx context.Context) error {
	b.change.Lock()
	defer b.change.Unlock()
	return b.restart(ctx)
}

func (b *Broker) restart(ctx context.Context) error {
	if b.stopped {
		return errors.New("restart Zeebe: it was stopped for good")
	}
	if err := b.current().Stop(ctx, stopTime); err != nil {
		return err
	}
	b.moved = false
	return b.run(ctx)
}

// Pause stops the broker's whole process in its tracks; connections stay open and nobody answers.
func (b *Broker) Pause() error { return b.current().Signal(syscall.SIGSTOP) }

// Resume lets a paused broker go on.
func (b *Broker) Resume() error { return b.current().Signal(syscall.SIGCONT) }
