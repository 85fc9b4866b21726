package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"retry-worker/internal/testkit"
)

const (
	// leftoverTime is how long output is still read after the program's end, if something that it started keeps its
	// pipes open.
	leftoverTime = 2 * time.Second
	// stopTime is how long a program that must end with its context may take before it is killed.
	stopTime = 10 * time.Second
	// lookEvery is the pause between two looks at a program's state.
	lookEvery = 10 * time.Millisecond
)

// Command is a program to run.
type Command struct {
	Path string
	Args []string // without the program's name
	Env  []string // nil: this process's
	Dir  string
	// User is who runs it, which only root may set; nil: this process's user.
	User *syscall.Credential
	// StopSignal is what Stop sends; 0: SIGTERM.
	StopSignal syscall.Signal
	// Output gets what the program prints on both streams, by one call of Write at a time; nil drops it.
	Output io.Writer
	// Screen, if set, gets the standard output instead.
	Screen io.Writer
}

// Process is a started program in its own process group. Its methods may be called by several goroutines.
type Process struct {
	cmd  *exec.Cmd
	stop syscall.Signal
	tail *tail
	done chan struct{}
	err  error // how it ended; read after done

	mu    sync.Mutex
	ended bool // no signal from then on, as the id may be another process's
}

// Start starts the program. Neither it nor what it starts in its group outlives this process: see guard.
func Start(c Command) (*Process, error) {
	p := &Process{stop: cmp.Or(c.StopSignal, syscall.SIGTERM), tail: &tail{to: c.Output}, done: make(chan struct{})}
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Env, p.cmd.Dir, p.cmd.WaitDelay = c.Env, c.Dir, leftoverTime
	p.cmd.Stdout, p.cmd.Stderr = p.tail, p.tail
	if c.Screen != nil {
		p.cmd.Stdout = c.Screen
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: c.User} // Ctrl-C in a terminal does not reach it
	g, err := newGuard()
	if err != nil {
		return nil, fmt.Errorf("guard %s: %w", c.Path, err)
	}
	if err := p.cmd.Start(); err != nil {
		g.end()
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	g.watch(p.PID())
	go p.wait(g)
	return p, nil
}

// StartServer starts a program and returns when ready reports true. If that takes longer than within, or ctx or the
// program ends before, the program is killed, and the error ends with what it said last; its output can still be
// read.
func StartServer(ctx context.Context, within time.Duration, c Command, ready func(*Process) bool) (*Process, error) {
	p, err := Start(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for !ready(p) {
		select {
		case <-tick.C:
			continue
		case <-p.done:
		case <-ctx.Done():
			p.Kill()
		}
		return p, fmt.Errorf("%w; it said last: %s", cmp.Or(ctx.Err(), p.err, errors.New("it ended at once")), p.LastLine())
	}
	return p, nil
}

// guard is a process that kills a group if this process ends, by a signal or a panic, without saying that the group
// has ended.
type guard struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

func newGuard() (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", `read group; read ended || kill -9 -"$group"`)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &guard{cmd, pipe}, cmd.Start()
}

func (g *guard) watch(group int) { _, _ = fmt.Fprintln(g.pipe, group) }

func (g *guard) end() {
	_, _ = fmt.Fprint(g.pipe, "\nended\n")
	_ = g.cmd.Wait() // its result says nothing
}

// Run starts the program and waits for its end, or stops it when ctx ends. The error ends with what the program said
// last.
func Run(ctx context.Context, c Command) (*Process, error) {
	p, err := Start(c)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return p, errors.Join(ctx.Err(), p.Stop(context.WithoutCancel(ctx), stopTime))
	}
	if p.err != nil {
		return p, fmt.Errorf("%s: %w; it said last: %s", c.Path, p.err, p.LastLine())
	}
	return p, nil
}

func (p *Process) wait(g *guard) {
	p.err = p.cmd.Wait()
	p.mu.Lock()
	p.ended = true
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL) // what it left in its group
	p.mu.Unlock()
	g.end()
	close(p.done)
}

// PID returns the id of the program and of its group.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the program has ended and its output is read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for the end and returns how the program ended; nil is exit status 0.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// tail passes on what is written to it, and keeps the end of it. Safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	to   io.Writer // may be nil
	text []byte
}

// Write never fails, so that a program does not die of its reader. What cannot be passed on is only kept.
func (t *tail) Write(b []byte) (int, error) {
	const most = 64 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to != nil {
		_, _ = t.to.Write(b)
	}
	t.text = append(t.text, b...)
	t.text = t.text[max(len(t.text)-most, 0):]
	return len(b), nil
}

// Lines returns the last lines of the output, the oldest first.
func (p *Process) Lines() []string {
	p.tail.mu.Lock()
	defer p.tail.mu.Unlock()
	return strings.Split(strings.TrimRight(string(p.tail.text), "\n"), "\n")
}

// telling are marks of the lines that say why a program ended, the best first; every line has the last one.
var telling = []string{"lready in use", "FATAL:", `"level":"error"`, "Error:", "panic:", ""}

// LastLine returns the last line of the output that says why the program ended, or else the last that says anything.
func (p *Process) LastLine() string {
	lines := p.Lines()
	for _, mark := range telling {
		for _, line := range slices.Backward(lines) {
			if line = strings.TrimSpace(line); line != "" && strings.Contains(line, mark) {
				return line
			}
		}
	}
	return ""
}

// Signal sends a signal to the whole group; it fails if the program has ended.
func (p *Process) Signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return fmt.Errorf("send %v to process %d: it has ended", s, p.PID())
	}
	if err := syscall.Kill(-p.PID(), s); err != nil {
		return fmt.Errorf("send %v to process %d: %w", s, p.PID(), err)
	}
	return nil
}

// Pause freezes the whole group: connections stay open and nobody answers.
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume ends Pause.
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Stop asks the program to end, and kills it if it has not ended within grace or before ctx. It returns when the
// program is dead; the error says that it had to be killed.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	_ = p.Signal(p.stop)
	_ = p.Resume() // a paused one would not notice the signal
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	p.Kill()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%s did not stop in time and was killed", p.cmd.Path)
	}
	return fmt.Errorf("%s was killed: %w", p.cmd.Path, ctx.Err())
}

// Kill ends the whole group at once and returns when the program is dead.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// Ports returns n ports of 127.0.0.1 that are reserved as long as this process lives: a server that it starts may
// listen there, end and come back, and nobody else can meanwhile.
func Ports(n int) (ports []int, err error) {
	for range n {
		port, _, err := testkit.ReservePort()
		if err != nil {
			return nil, err
		}
		ports = append(ports, port)
	}
	return ports, nil
}
