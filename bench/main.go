// Command bench measures what the worker costs beside the one call per job that the engine demands: CPU
// per job against a bare gRPC loop, in alternation, on a stub gateway that always has jobs; memory with
// 1,000 jobs in flight; time from start to the first answer. Absolute figures swing with the machine;
// the ratio holds. Then bench/journal measures the journal alone.
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
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	var b bench
	flag.IntVar(&b.jobs, "jobs", 60_000, "jobs measured in one run, after a fifth as many to start up")
	flag.IntVar(&b.rounds, "rounds", 3, "runs of each client")
	flag.StringVar(&b.worker, "worker", "bin/retry-worker", "the worker's binary")
	flag.StringVar(&b.journalFlags, "journal", "", "flags for bench/journal, separated by spaces; \"none\" leaves it out")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := b.run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

type bench struct {
	jobs, rounds  int
	worker        string
	gateway, bare string
	journal       string // bench/journal's binary
	dir           string // of binaries and journals
	journals      int    // made so far
	journalFlags  string
}

func (b *bench) run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "retry-worker-bench")
	if err != nil {
		return fmt.Errorf("make a folder for the binaries: %w", err)
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	b.gateway, b.bare, b.journal = filepath.Join(dir, "gateway"), filepath.Join(dir, "bare"), filepath.Join(dir, "journal")
	for path, pkg := range map[string]string{b.gateway: "./bench/gateway", b.bare: "./bench/bare", b.journal: "./bench/journal"} {
		if text, err := exec.CommandContext(ctx, "go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", pkg, err, text)
		}
	}
	fmt.Fprintf(out, "%s, %d CPUs, %s; %d jobs a run, %d rounds, clients in alternation\n\n", cpuModel(), runtime.NumCPU(), runtime.Version(), b.jobs, b.rounds)
	fmt.Fprintf(out, "CPU per job (user + sys of the client alone, start-up excluded)\n\n")
	fmt.Fprintf(out, "| jobs | bare loop | retry-worker | ratio |\n| --- | ---: | ---: | ---: |\n")
	for _, s := range []scenario{
		{"transient errors only (one call a job)", "transient=100"},
		{"realistic mix (permanent and exhausted ones need two calls)", "transient=61,unknown=16,permanent=15,exhausted=8"},
	} {
		bare, worker, err := b.alternate(ctx, s)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %s | %.1f µs | %.1f µs | %.2f |\n", s.name, bare, worker, worker/bare)
	}
	memory, err := b.memory(ctx)
	if err != nil {
		return err
	}
	first, err := b.firstAnswer(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n| | measured | goal |\n| --- | ---: | ---: |\n")
	if err := decisionCosts(out); err != nil {
		return err
	}
	fmt.Fprintf(out, "| memory, peak, up to 1,000 jobs in flight (%d seen) | %.1f MB | < 40 MB |\n", memory.held, float64(memory.peakKB)/1024)
	fmt.Fprintf(out, "| start of the process to the first answer (median of %d) | %d ms | < 300 ms |\n\n", b.rounds, first.Milliseconds())
	return b.journalAlone(ctx, out)
}

// journalAlone measures the journal without a worker around it, in a process of its own.
func (b *bench) journalAlone(ctx context.Context, out io.Writer) error {
	if b.journalFlags == "none" {
		return nil
	}
	cmd := exec.CommandContext(ctx, b.journal, strings.Fields(b.journalFlags)...)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it removes its files
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("measure the journal alone: %w", err)
	}
	return nil
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return runtime.GOARCH
}

// field is the number behind name in a file of "name: number" lines.
func field(file, name string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strconv.Atoi(strings.Fields(rest)[0])
		}
	}
	return 0, fmt.Errorf("%s holds no %s", file, name)
}
