// Command journal measures the journal alone, on SQLite and on PostgreSQL, both on a real disk with every commit
// synced: decisions per second, the wait that recording adds, what a decision costs in an empty and in a full
// journal, and bytes per attempt. It makes the disk's and the machine's share visible rather than hide it:
// compared figures come from one run, in alternation. `make bench` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "bench of the journal: interrupted")
		os.Exit(130) // as a shell reports a Ctrl-C
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench of the journal:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	var s settings
	var names, profile string
	flags := flag.NewFlagSet("journal", flag.ContinueOnError)
	flags.StringVar(&names, "stores", "sqlite,postgres", "which stores, separated by commas")
	flags.Int64Var(&s.attempts, "attempts", 2_000_000, "attempts in the full journal")
	flags.IntVar(&s.rounds, "rounds", 3, "how often each figure is measured")
	flags.DurationVar(&s.flood, "flood", time.Second, "how long decisions per second are counted, each time")
	flags.DurationVar(&s.paced, "paced", 2*time.Second, "how long latency is measured, each time")
	flags.IntVar(&s.replay, "replay", 15_000, "decisions whose cost is measured, each time")
	flags.Int64Var(&s.letters, "letters", 10_000, "dead letters of the bulk run; 0 leaves it out")
	flags.StringVar(&profile, "cpuprofile", "", "file for a CPU profile of everything but the filling")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || s.rounds < 1 || s.attempts < 1 || s.replay < usualCallers {
		return fmt.Errorf("found %q; expected flags only, -rounds and -attempts from 1, -replay from %d", args, usualCallers)
	}
	s.stores = strings.Split(names, ",")
	pause, end, err := startProfile(profile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	return s.run(ctx, out, progress, pause)
}

// run measures and prints. The full journals are filled at the same time, unmeasured.
func (s settings) run(ctx context.Context, out, progress io.Writer, pause func(func() error) error) (err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(usualProcessors))
	say := func(format string, args ...any) {
		fmt.Fprintf(progress, "bench of the journal: "+format+"\n", args...)
	}
	portal, err := newPortal()
	if err != nil {
		return err
	}
	kinds, missing, err := openKinds(ctx, s.stores)
	defer func() {
		for _, k := range kinds {
			err = errors.Join(err, k.close())
		}
	}()
	if err != nil {
		return err
	}
	var all []*bench
	for _, k := range kinds {
		all = append(all, &bench{settings: s, kind: k, portal: portal})
	}
	for _, b := range all {
		say("%s: decisions per second and latency", b.name)
		if err := b.throughput(ctx); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		if err := b.freshLatency(ctx); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	if err := bulkRuns(ctx, all, say); err != nil {
		return err
	}
	say("filling with %s attempts (not measured)", grouped(float64(s.attempts)))
	if err := pause(func() error { return fillAll(ctx, all) }); err != nil {
		return err
	}
	for _, b := range all {
		say("%s: empty against full (filled in %.0f s)", b.name, b.filled.took.Seconds())
		if err := b.flatness(ctx); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return report(out, s, all, missing)
}

func bulkRuns(ctx context.Context, all []*bench, say func(string, ...any)) error {
	for _, b := range all {
		if b.letters == 0 {
			continue
		}
		say("%s: a bulk run of %s", b.name, grouped(float64(b.letters)))
		if err := b.bulkRun(ctx); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return nil
}

func fillAll(ctx context.Context, all []*bench) error {
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, b := range all {
		group.Go(func() {
			if err := b.fillUp(ctx); err != nil {
				errs[i] = fmt.Errorf("%s: %w", b.name, err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// startProfile begins a CPU profile; pause leaves something out of it. Without a file they do nothing.
func startProfile(file string) (pause func(func() error) error, end func() error, err error) {
	if file == "" {
		return func(do func() error) error { return do() }, func() error { return nil }, nil
	}
	part := 0
	var current *os.File
	begin := func() error {
		part++
		f, err := os.Create(fmt.Sprintf("%s.%d", file, part))
		if err != nil {
			return fmt.Errorf("write the CPU profile: %w", err)
		}
		current = f
		return pprof.StartCPUProfile(f)
	}
	end = func() error {
		pprof.StopCPUProfile()
		return current.Close()
	}
	pause = func(do func() error) error {
		return errors.Join(end(), do(), begin())
	}
	return pause, end, begin()
}
