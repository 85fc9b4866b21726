package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/procfs"

	"retry-worker/e2e/harness/postgres"
)

// place is a kind of store that journals are made in.
type place struct {
	name   string
	fresh  func(ctx context.Context) (url string, err error) // of a new journal
	size   func(ctx context.Context, url string) (bytes int64, err error)
	cpu    func() time.Duration // of its server so far
	warmUp int                  // decisions
	rate   float64              // decisions a second, once measured
}

// places returns the kinds of store that this machine has; end removes them.
func (b *bench) places(ctx context.Context, out io.Writer) (all []*place, end func()) {
	all, end = []*place{b.sqlite()}, func() {}
	server, err := postgres.Start(ctx, postgres.Options{})
	if err != nil {
		fmt.Fprintf(out, "\nNOT RUN: PostgreSQL (%v)\n", err)
		return all, end
	}
	return append(all, b.postgres(server)), func() { _ = server.Remove() }
}

func (b *bench) sqlite() *place {
	return &place{
		name: "SQLite", warmUp: min(5000, b.attempts), cpu: func() time.Duration { return 0 },
		fresh: func(context.Context) (string, error) { return "sqlite:" + b.freshDatabase(), nil },
		size: func(_ context.Context, url string) (int64, error) {
			info, err := os.Stat(strings.TrimPrefix(url, "sqlite:"))
			if err != nil {
				return 0, err
			}
			return info.Size(), nil
		},
	}
}

func (b *bench) postgres(s *postgres.Server) *place {
	return &place{
		name: "PostgreSQL", warmUp: min(5000, b.attempts), cpu: func() time.Duration { return cpuTime(s.PID()) },
		fresh: s.CreateDatabase,
		size: func(ctx context.Context, url string) (size int64, err error) {
			c, err := pgx.Connect(ctx, url)
			if err != nil {
				return 0, err
			}
			defer c.Close(ctx)
			return size, c.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&size)
		},
	}
}

// ownCPU returns the CPU time of this process so far.
func ownCPU() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // cannot fail for this process
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// cpuTime returns the CPU time so far of a process and its children, ended ones included.
func cpuTime(pid int) time.Duration {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux Go runs on
	all, _ := procfs.AllProcs()
	var ticks uint
	for _, p := range all {
		used, err := p.Stat()
		if err != nil || p.PID != pid && used.PPID != pid {
			continue
		}
		ticks += used.UTime + used.STime
		if p.PID == pid {
			ticks += uint(used.CUTime + used.CSTime) // its ended children's
		}
	}
	return time.Duration(ticks) * tick
}

// table and row print Markdown; the first column is text.
func table(out io.Writer, head ...string) {
	fmt.Fprintf(out, "\n| %s |\n| ---%s |\n", strings.Join(head, " | "), strings.Repeat(" | ---:", len(head)-1))
}

func row(out io.Writer, cells ...string) { fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | ")) }

// repeat calls measure that many times.
func repeat(rounds int, measure func() sample) (all []sample) {
	for range rounds {
		all = append(all, measure())
	}
	return all
}

func each(all []sample, value func(sample) float64) (values []float64) {
	for _, one := range all {
		values = append(values, value(one))
	}
	return values
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// spread returns the median with the lowest and the highest figure.
func spread(all []float64, decimals int) string {
	least, most := slices.Min(all), slices.Max(all)
	return fmt.Sprintf("%.*f (%.*f–%.*f)", decimals, median(all), decimals, least, decimals, most)
}

// ratio returns the spread of of ÷ to by rounds; the two figures of a round were measured one right after the other.
func ratio(of, to []float64) string {
	ratios := make([]float64, len(of))
	for i := range of {
		ratios[i] = of[i] / to[i]
	}
	return spread(ratios, 2)
}
