package scenarios

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"retry-worker/e2e/build"
	"retry-worker/e2e/engine"
	"retry-worker/e2e/nats"
	"retry-worker/e2e/postgres"
)

const (
	// enough for anything that is expected to happen soon, on a busy machine too.
	enough = 60 * time.Second
	// stopTime bounds the stop of a process.
	stopTime = 30 * time.Second
	// fetchTime bounds what is fetched the first time.
	fetchTime = 10 * time.Minute
)

func TestMain(m *testing.M) {
	nats.ServeIfAsked()
	flag.Parse()
	if testing.Short() {
		fmt.Println("the scenarios on a real broker are left out: -short")
		os.Exit(0)
	}
	if missing := provide(); missing != nil {
		fmt.Printf("NOT RUN: the end-to-end scenarios on a real Zeebe (%v) — install with: apt-get install -y maven openjdk-21-jre-headless\n", missing)
		if os.Getenv("CI") == "true" {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(run(m))
}

// provide fetches what the scenarios need; the error is what a person must install. What goes wrong
// otherwise fails the tests, where it is said.
func provide() error {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	var all []error
	for _, version := range engine.Versions {
		_, err := engine.Fetch(ctx, version, nil)
		all = append(all, err)
	}
	_, err := engine.ProvideJava(ctx, nil)
	all = append(all, err)
	for _, err := range all {
		if missing, ok := errors.AsType[engine.Missing](err); ok {
			return missing
		}
	}
	return nil
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "scenarios-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "a place for the binary:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary, err = build.Worker(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := errors.Join(closeSites(), postgres.CloseShared()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	report.print()
	return code
}

// report is what the scenarios have to say when all of them have ended.
var report results

type results struct {
	mu    sync.Mutex
	lines []string
}

func (r *results) add(version, scenario, figures string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf("PRINT e2e  %-6s %-34s %s", version, scenario, figures))
}

func (r *results) print() {
	slices.Sort(r.lines)
	for _, line := range r.lines {
		fmt.Println(line)
	}
}
