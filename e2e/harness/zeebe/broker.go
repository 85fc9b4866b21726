package zeebe

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"retry-worker/e2e/harness"
)

const (
	// startTime bounds a start; an idle machine takes 2 to 5 s, one with a load of 50 took over 4 minutes.
	startTime = 8 * time.Minute
	// stopTime is what a stop may take before the broker is killed; usually it is below 2 s.
	stopTime = 15 * time.Second
)

// Options of a broker. The zero value is a good one.
type Options struct {
	Version string   // one of Versions; empty: the first
	Env     []string // NAME=value, over what Start sets
	// Output takes the broker's log; nil drops it.
	Output io.Writer
	// Progress hears of what must be fetched first; may be nil.
	Progress func(string)
}

// Broker is a running Zeebe with one partition, whose gateway and actuator listen on 127.0.0.1 only. Its methods may be called by
// several goroutines; those that start and end it run one after the other.
type Broker struct {
	options Options
	home    string // Zeebe's folder
	java    string
	classes string // Java's option about the archive of Zeebe's classes
	folder  *harness.Folder
	ports   ports

	change  sync.Mutex // held while it is started or ended
	mu      sync.Mutex
	process *harness.Process
	stopped bool
}

// Start runs a broker and returns when its partition has a leader and its gateway takes calls, which is 2 to 5 s when Zeebe and Java
// are there, and fetches them otherwise. No broker outlives this process. ctx bounds the start only. The error is one line
// that ends with what the broker said last.
func Start(ctx context.Context, o Options) (b *Broker, err error) {
	if o.Version == "" {
		o.Version = Versions[0]
	}
	b = &Broker{options: o}
	if b.home, err = Fetch(ctx, o.Version, o.Progress); err != nil {
		return nil, err
	}
	if b.java, err = ProvideJava(ctx, o.Progress); err != nil {
		return nil, err
	}
	classes, err := b.provideClasses(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	b.classes = "-XX:SharedArchiveFile=" + classes
	if err = b.start(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// start runs the broker in a folder and on ports of its own; else nothing is left of it.
func (b *Broker) start(ctx context.Context) (err error) {
	if b.folder, err = harness.NewFolder("zeebe"); err != nil {
		return err
	}
	if err = b.fill(); err == nil {
		err = harness.OnFreePorts(5, func(p []int) error {
			b.ports = ports{p[0], p[1], p[2], p[3], p[4]}
			return b.run(ctx)
		})
	}
	if err != nil {
		return errors.Join(err, b.folder.Remove())
	}
	return nil
}

// logSettings put each event on one line of the standard output and nowhere else.
//
//go:embed log4j2.xml
var logSettings []byte

// fill its folder with places for data and for what Java unpacks, and with the settings of its log.
func (b *Broker) fill() error {
	return errors.Join(os.Mkdir(b.folder.Join("data"), 0o755), os.Mkdir(b.folder.Join("tmp"), 0o755),
		os.WriteFile(b.folder.Join("log4j2.xml"), logSettings, 0o644))
}

// GatewayAddress is where clients connect: host:port, without TLS.
func (b *Broker) GatewayAddress() string { return harness.Address(b.ports.gateway) }

// RESTAddress is the base of the REST API, which 8.6.0 has: "http://127.0.0.1:8080" say.
func (b *Broker) RESTAddress() string { return "http://" + harness.Address(b.ports.rest) }

// ActuatorURL is the base of the management addresses, "http://127.0.0.1:9600" say; the metrics are at /actuator/prometheus below it.
func (b *Broker) ActuatorURL() string { return "http://" + harness.Address(b.ports.management) }

// Data is the directory of its data, to be touched while it is dead.
func (b *Broker) Data() string { return b.folder.Join("data") }

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
	p, err := harness.StartServer(ctx, startTime, harness.Command{
		Path: filepath.Join(b.home, launcher), Env: b.environment(os.Environ()), Dir: b.folder.Path, Output: b.options.Output,
	}, func(p *harness.Process) bool { return b.healthy(ctx) || b.portTaken(p) })
	if err != nil {
		return fmt.Errorf("start Zeebe %s: %w", b.options.Version, err)
	}
	if b.portTaken(p) {
		p.Kill()
		return fmt.Errorf("start Zeebe %s: %s", b.options.Version, p.LastLine())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.process = p
	return nil
}

// Stop ends the broker in order, kills it where it does not end in 15 s or ctx ends, and removes its data. It returns when nothing is
// left. Calling it again does nothing.
func (b *Broker) Stop(ctx context.Context) error {
	b.change.Lock()
	defer b.change.Unlock()
	if b.stopped {
		return nil
	}
	b.stopped = true
	return errors.Join(b.current().Stop(ctx, stopTime), b.folder.Remove())
}

// Kill ends the broker at once, as a power cut would, and returns when it is dead. Its data stay for Restart.
func (b *Broker) Kill() { b.current().Kill() }

// Restart starts the broker again, with the same ports and data, after Kill or without. Its clock is the real one again. An error
// where Stop was called.
func (b *Broker) Restart(ctx context.Context) error {
	b.change.Lock()
	defer b.change.Unlock()
	if b.stopped {
		return errors.New("restart Zeebe: it was stopped for good")
	}
	if err := b.current().Stop(ctx, stopTime); err != nil {
		return err
	}
	return b.run(ctx)
}

// Pause stops the broker's whole process in its tracks; connections stay open and nobody answers.
func (b *Broker) Pause() error { return b.current().Pause() }

// Resume lets a paused broker go on.
func (b *Broker) Resume() error { return b.current().Resume() }
