package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type scenario struct{ name, mix string }

// summary is what the gateway prints when all its jobs are answered.
type summary struct {
	MaxHeld     int       `json:"max_held"`
	Refused     int       `json:"refused"`
	TimedOut    int       `json:"timed_out"`
	FirstAnswer time.Time `json:"first_answer_at"`
}

// alternate runs both clients in turn and returns each one's median CPU time per job, in µs.
func (b *bench) alternate(ctx context.Context, s scenario) (bare, worker float64, err error) {
	clients := []func(string) *exec.Cmd{b.bareCommand, b.workerCommand}
	var costs [2][]float64
	for range b.rounds {
		for i, client := range clients {
			cost, err := b.costPerJob(ctx, s, client)
			if err != nil {
				return 0, 0, err
			}
			costs[i] = append(costs[i], cost)
		}
	}
	return median(costs[0]), median(costs[1]), nil
}

// costPerJob is the difference between a long and a short run, so that start-up drops out.
func (b *bench) costPerJob(ctx context.Context, s scenario, client func(string) *exec.Cmd) (float64, error) {
	short, err := b.measure(ctx, []string{"-variables-mix", s.mix}, b.jobs/5, client)
	if err != nil {
		return 0, err
	}
	long, err := b.measure(ctx, []string{"-variables-mix", s.mix}, b.jobs/5+b.jobs, client)
	if err != nil {
		return 0, err
	}
	return float64((long.cpu - short.cpu).Microseconds()) / float64(b.jobs), nil
}

type result struct {
	summary
	cpu     time.Duration
	peakKB  int
	started time.Time
}

// measure lets client answer jobs from a fresh gateway and reads its figures when the last is answered.
func (b *bench) measure(ctx context.Context, gatewayFlags []string, jobs int, client func(string) *exec.Cmd) (r result, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	gateway := exec.CommandContext(ctx, b.gateway, append(gatewayFlags, "-endless", strconv.Itoa(jobs), "-stay")...)
	out, err := gateway.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := gateway.Start(); err != nil {
		return r, fmt.Errorf("start the gateway: %w", err)
	}
	gone := waitFor(gateway)
	defer end(gateway, gone)
	lines := bufio.NewReader(out)
	address, err := lines.ReadString('\n')
	if err != nil {
		return r, fmt.Errorf("read the gateway's address: %w", err)
	}
	cmd := client(strings.TrimSpace(address))
	r.started = time.Now()
	if err := cmd.Start(); err != nil {
		return r, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	left := waitFor(cmd)
	defer end(cmd, left)
	reported := make(chan []byte, 1)
	go func() {
		report, _ := lines.ReadBytes('\n') // empty where the gateway ended early
		reported <- report
	}()
	var report []byte
	select {
	case report = <-reported:
	case <-left:
		return r, fmt.Errorf("%s ended before the jobs were answered: %v %s", cmd.Path, cmd.ProcessState, cmd.Stderr)
	case <-ctx.Done():
		return r, fmt.Errorf("%s has not answered %d jobs in time: %w", cmd.Path, jobs, ctx.Err())
	}
	if err := json.Unmarshal(report, &r.summary); err != nil {
		return r, fmt.Errorf("read the gateway's summary %q: %w", report, err)
	}
	if r.Refused > 0 || r.TimedOut > 0 {
		return r, fmt.Errorf("%s: %d answers refused, %d jobs timed out; the figures would mean nothing", cmd.Path, r.Refused, r.TimedOut)
	}
	if r.cpu, err = cpuTime(cmd.Process.Pid); err != nil {
		return r, err
	}
	r.peakKB, err = field(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid), "VmHWM")
	return r, err
}

func (b *bench) bareCommand(address string) *exec.Cmd {
	cmd := exec.Command(b.bare, "-addr", address)
	cmd.Stderr = new(bytes.Buffer)
	return cmd
}

func (b *bench) workerCommand(address string) *exec.Cmd {
	cmd := exec.Command(b.worker, "serve") // its log goes to the null device: written, not kept
	cmd.Stderr = new(bytes.Buffer)
	cmd.Env = append(os.Environ(), "ZEEBE_ADDRESS="+address, "ZEEBE_INSECURE_CONNECTION=true", "RETRY_WORKER_OPS_ADDR=127.0.0.1:0",
		"RETRY_WORKER_HTTP_ADDR=127.0.0.1:0", "RETRY_WORKER_DATABASE_URL=sqlite:"+b.freshDatabase())
	return cmd
}

// freshDatabase is the path of a journal that does not exist yet.
func (b *bench) freshDatabase() string {
	b.journals++
	return filepath.Join(b.dir, fmt.Sprintf("journal-%d.db", b.journals))
}

// memory lets the worker hold 1,000 jobs at once: the gateway answers late, so that they pile up.
func (b *bench) memory(ctx context.Context) (m struct{ peakKB, held int }, err error) {
	r, err := b.measure(ctx, []string{"-latency", "50ms"}, 20_000, func(address string) *exec.Cmd {
		cmd := b.workerCommand(address)
		cmd.Env = append(cmd.Env, "RETRY_WORKER_MAX_JOBS_ACTIVE=1000")
		return cmd
	})
	m.peakKB, m.held = r.peakKB, r.MaxHeld
	return m, err
}

func (b *bench) firstAnswer(ctx context.Context) (time.Duration, error) {
	var all []time.Duration
	for range b.rounds {
		r, err := b.measure(ctx, nil, 100, b.workerCommand)
		if err != nil {
			return 0, err
		}
		all = append(all, r.FirstAnswer.Sub(r.started))
	}
	return median(all), nil
}

// cpuTime is user and system time of a running process.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the client's CPU time: %w", err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name, which may hold anything
	fields := strings.Fields(rest)
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, fmt.Errorf("read the client's CPU time: %w", err)
	}
	system, err := strconv.Atoi(fields[12])
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux Go runs on
	return time.Duration(user+system) * tick, err
}

// waitFor returns a channel that is closed when the process has ended.
func waitFor(cmd *exec.Cmd) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended stands in cmd.ProcessState
		close(gone)
	}()
	return gone
}

// end asks a process to stop and makes sure that it does.
func end(cmd *exec.Cmd, gone <-chan struct{}) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		_ = cmd.Process.Kill()
		<-gone
	}
}

func median[T float64 | time.Duration](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}
