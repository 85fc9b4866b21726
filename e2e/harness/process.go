package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// leftoverTime is how long output is still read after the program's end, should something that it
// started hold its pipes open.
const leftoverTime = 2 * time.Second

// Command is a program to run.
type Command struct {
	Path string
	Args []string // without the program's name
	Env  []string // nil: this process's
	Dir  string
	// User runs it as somebody else, which takes root; nil: as this process's user.
	User *syscall.Credential
	// StopSignal is what Stop asks it with; 0: SIGTERM.
	StopSignal syscall.Signal
	// Output takes what the program prints on both streams, and nothing at the same time from
	// both; nil drops it.
	Output io.Writer
	// Screen takes its standard output instead, where set.
	Screen io.Writer
}

// Process is a started program. Its methods may be called by several goroutines.
type Process struct {
	cmd  *exec.Cmd
	stop syscall.Signal
	tail *Tail
	done chan struct{}
	err  error // how it ended; read after done

	mu    sync.Mutex
	ended bool // no signal after it: the number may be another's by then
}

// Start runs the program. On Linux the kernel kills it when this process ends in whatever way;
// elsewhere only Stop and Kill end it.
func Start(c Command) (*Process, error) {
	p := &Process{stop: cmp.Or(c.StopSignal, syscall.SIGTERM), tail: NewTail(c.Output), done: make(chan struct{})}
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Env, p.cmd.Dir, p.cmd.WaitDelay = c.Env, c.Dir, leftoverTime
	p.cmd.Stdout, p.cmd.Stderr = p.tail, p.tail
	if c.Screen != nil {
		p.cmd.Stdout = c.Screen
	}
	p.cmd.SysProcAttr = attributes()
	p.cmd.SysProcAttr.Credential = c.User
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	return p, nil
}

// run starts the program and waits for it on one thread, which therefore lives as long as the program:
// the kernel ties the death signal to the thread that started it.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	p.mu.Lock()
	p.ended = true
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL) // what it left in its group
	p.mu.Unlock()
	close(p.done)
}

// PID is the program's process id, and its group's.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the program has ended and its output is read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for the end and says how it ended; nil is exit status 0.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Lines are the last lines of its output, oldest first.
func (p *Process) Lines() []string { return p.tail.Lines() }

// LastLine is the last line of its output that says something; see [Tail.LastLine].
func (p *Process) LastLine() string { return p.tail.LastLine() }

// Signal sends a signal to the whole group; an error where the program has ended.
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

// Stop asks the program to end, and kills it when it has not within grace, or when ctx ends. It
// returns when it is dead; the error says that it had to be killed.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	_ = p.Signal(p.stop)
	_ = p.Signal(syscall.SIGCONT) // one that is paused would not hear it
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
