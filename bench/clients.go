package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// alternate runs both clients in turn. It returns each one's median CPU time per job, in µs, and the worker's longest
// time from its start to its first answer.
func (b *bench) alternate(ctx context.Context, m mix) (bare, worker float64, first time.Duration, err error) {
	bareLoop := func(address string) *exec.Cmd { return exec.Command(b.bare, address, m.jobType()) }
	clients := []func(string) *exec.Cmd{bareLoop, b.workerCommand}
	var costs [2][]float64
	for range b.rounds {
		for i, client := range clients {
			// The difference of a long and a short run leaves out the start-up.
			short, err := b.measure(ctx, &gateway{mix: m, jobs: b.jobs / 5}, client)
			if err != nil {
				return 0, 0, 0, err
			}
			long, err := b.measure(ctx, &gateway{mix: m, jobs: b.jobs/5 + b.jobs}, client)
			if err != nil {
				return 0, 0, 0, err
			}
			costs[i] = append(costs[i], float64((long.cpu-short.cpu).Microseconds())/float64(b.jobs))
			if i == 1 {
				first = max(first, short.firstAnswer)
			}
		}
	}
	return median(costs[0]), median(costs[1]), first, nil
}

// result is what was measured of a client.
type result struct {
	cpu, firstAnswer time.Duration // the latter from the process's start
	peak             uint64        // memory, in bytes
}

// measure has client answer the gateway's jobs.
func (b *bench) measure(ctx context.Context, g *gateway, client func(address string) *exec.Cmd) (r result, err error) {
	if err := g.open(ctx); err != nil {
		return r, err
	}
	defer g.Close()
	address, err := g.listen()
	if err != nil {
		return r, err
	}
	cmd, began := client(address), time.Now()
	cmd.Stderr = new(bytes.Buffer)
	if err := cmd.Start(); err != nil {
		return r, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	select {
	case <-g.allServed:
		r.peak, err = peakOf(cmd.Process.Pid)
	case err := <-gone:
		return r, fmt.Errorf("%s ended before the jobs were answered: %w: %s", cmd.Path, err, cmd.Stderr)
	case <-time.After(5 * time.Minute):
		err = fmt.Errorf("%s has not answered %d jobs in five minutes", cmd.Path, g.jobs)
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
	<-gone
	kill.Stop()
	if err == nil && g.refused > 0 {
		err = fmt.Errorf("%s: %d answers were refused; the figures would mean nothing", cmd.Path, g.refused)
	}
	used := cmd.ProcessState
	r.cpu, r.firstAnswer = used.UserTime()+used.SystemTime(), g.firstAnswer.Sub(began)
	return r, err
}

// peakOf returns a process's peak of memory, in bytes. The system's figure for an ended process would include what
// its parent had when it started it.
func peakOf(pid int) (bytes uint64, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	status, err := p.NewStatus()
	return status.VmHWM, err
}

func (b *bench) workerCommand(address string) *exec.Cmd {
	cmd := exec.Command(b.worker, "serve") // its log goes to the null device: written, not kept
	setting := "ZEEBE_ADDRESS="
	if strings.HasPrefix(address, "http:") {
		setting = "ZEEBE_REST_ADDRESS="
	}
	cmd.Env = append(os.Environ(), setting+address, "ZEEBE_INSECURE_CONNECTION=true",
		"RETRY_WORKER_OPS_ADDR=127.0.0.1:0", "RETRY_WORKER_HTTP_ADDR=127.0.0.1:0",
		"RETRY_WORKER_POLICIES_FILE="+b.policies, "RETRY_WORKER_DATABASE_URL=sqlite:"+b.freshDatabase())
	return cmd
}

// memory measures the worker with 1,000 jobs at once: the gateway answers late, so that they pile up.
func (b *bench) memory(ctx context.Context) (peak string, held int, err error) {
	g := &gateway{latency: 50 * time.Millisecond, jobs: min(20_000, b.jobs)}
	r, err := b.measure(ctx, g, func(address string) *exec.Cmd {
		cmd := b.workerCommand(address)
		cmd.Env = append(cmd.Env, "RETRY_WORKER_MAX_JOBS_ACTIVE=1000")
		return cmd
	})
	return fmt.Sprintf("%.1f MB", float64(r.peak)/(1<<20)), g.maxHeld, err
}
