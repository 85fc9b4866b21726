// Command bench measures what the worker costs in addition to the one call per job that the engine demands. It
// compares CPU per job with a bare loop by the same protocol, in turn, on the development engine, which always has
// jobs. It measures memory with 1,000 jobs in flight, and the time from start to the first answer. Then it measures
// the journal alone, on SQLite and PostgreSQL, with every commit synced. Absolute figures vary with the machine; the
// ratios hold.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

func main() {
	var b bench
	flag.Int64Var(&b.jobs, "jobs", 60_000, "jobs of one run, after a fifth as many to start up; 0 leaves the worker out")
	flag.IntVar(&b.rounds, "rounds", 3, "how often each figure is measured")
	flag.StringVar(&b.worker, "worker", "bin/retry-worker", "the worker's binary")
	flag.StringVar(&b.dir, "dir", "", "folder on a disk for journals; empty: the system's for temporary files")
	flag.IntVar(&b.attempts, "attempts", 2_000_000, "attempts in the full journal; 0 leaves the journals out")
	flag.IntVar(&b.held, "held", 100_000, "claims that are held; 0 leaves them out")
	flag.DurationVar(&b.span, "span", time.Second, "how long decisions of a journal are counted, each time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := b.run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench holds the flags and what was made for the run.
type bench struct {
	jobs           int64
	worker, dir    string
	rounds         int
	attempts, held int
	span           time.Duration
	bare           string // path of its binary
	policies       string // a file: the built-in ones, and fast destinations
	journals       int
}

func (b *bench) run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp(b.dir, "retry-worker-bench")
	if err != nil {
		return fmt.Errorf("make a folder for the binaries: %w", err)
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	b.policies = filepath.Join(b.dir, "policies.yaml")
	const policies = "extends: built-in\ndestinations: {default: {pace: {most: 60000/min}}, portal-held: {pace: {most: 6000/min}}}\n"
	if err := os.WriteFile(b.policies, []byte(policies), 0o600); err != nil {
		return fmt.Errorf("write the policies: %w", err)
	}
	fmt.Fprintf(out, "%s, %d CPUs, %s; %d rounds\n", runtime.GOARCH, runtime.NumCPU(), runtime.Version(), b.rounds)
	if b.jobs > 0 {
		if err := b.clients(ctx, out); err != nil {
			return err
		}
	}
	if b.held > 0 {
		if err := b.heldClaims(ctx, out); err != nil {
			return err
		}
	}
	if b.attempts > 0 {
		return b.journalsAlone(ctx, out)
	}
	return nil
}

// clients measures the worker and the bare loop.
func (b *bench) clients(ctx context.Context, out io.Writer) error {
	b.bare = filepath.Join(b.dir, "bare")
	build := exec.CommandContext(ctx, "go", "build", "-o", b.bare, "retry-worker/bench/bare")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the bare loop: %w: %s", err, text)
	}
	table(out, "CPU per job of the client alone, start-up excluded", "bare loop", "worker", "ratio (goal ≤ 5)")
	var first time.Duration
	for _, s := range []struct {
		name string
		mix  mix
	}{
		{"transient errors only (one call a job)", mix{}},
		{"realistic mix (permanent and exhausted ones need two calls)", mix{unknown: 16, permanent: 15, exhausted: 8}},
		{"realistic mix over REST (goal ≤ 3)", mix{unknown: 16, permanent: 15, exhausted: 8, rest: true}},
		{"submission-gate while the destination is up (goal ≤ 1.5)", mix{gate: true}},
	} {
		bare, worker, started, err := b.alternate(ctx, s.mix)
		if err != nil {
			return err
		}
		if !s.mix.gate {
			first = max(first, started)
		}
		row(out, s.name, fmt.Sprintf("%.1f µs", bare), fmt.Sprintf("%.1f µs", worker), fmt.Sprintf("%.2f", worker/bare))
	}
	table(out, "", "measured", "goal")
	peak, held, err := b.memory(ctx)
	if err != nil {
		return err
	}
	row(out, fmt.Sprintf("memory, peak, up to 1,000 jobs in flight (%d seen)", held), peak, "< 40 MB")
	row(out, "start of the process to the first answer, at worst", fmt.Sprintf("%d ms", first.Milliseconds()), "< 300 ms")
	return nil
}

// freshDatabase returns the path of a new journal.
func (b *bench) freshDatabase() string {
	b.journals++
	return filepath.Join(b.dir, fmt.Sprintf("journal-%d.db", b.journals))
}
