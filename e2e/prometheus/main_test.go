package prometheus_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"retry-worker/e2e/engine"
	"retry-worker/e2e/engine/fetch"
	"retry-worker/e2e/nats"
	"retry-worker/e2e/prometheus"
)

const (
	// patience bounds what a test waits for; it is reached only where the test fails.
	patience = 2 * time.Minute
	// fetchTime bounds what is fetched the first time.
	fetchTime = 15 * time.Minute
	// stopTime bounds the stop of one process.
	stopTime = 30 * time.Second
)

var update = flag.Bool("update", false, "draw the pictures of the dashboards anew")

// tools is the Prometheus under test.
var tools prometheus.Install

func TestMain(m *testing.M) {
	nats.ServeIfAsked()
	flag.Parse()
	if testing.Short() {
		fmt.Println("the tests with a real Prometheus are left out: -short")
		os.Exit(0)
	}
	if missing := provide(); missing != "" {
		fmt.Println("NOT RUN: alerts and dashboards in a real Prometheus (" + missing)
		if os.Getenv("CI") == "true" {
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// provide has there what the tests need; missing is what a person must install, and by what command. What goes wrong
// otherwise fails the tests, where it is said.
func provide() (missing string) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	var err error
	tools, err = prometheus.Provide(ctx, func(s string) { fmt.Println(s) })
	if why, ok := errors.AsType[fetch.Missing](err); ok {
		return why.Error() + ") — install with: " + prometheus.InstallCommand
	}
	_, errZeebe := engine.Fetch(ctx, version, nil)
	_, errJava := engine.ProvideJava(ctx, nil)
	for _, err := range []error{errZeebe, errJava} {
		if why, ok := errors.AsType[fetch.Missing](err); ok {
			return why.Error() + ") — install with: apt-get install -y maven openjdk-21-jre-headless"
		}
	}
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls until something holds, and fails the test where it never does; seen is what there was instead.
func eventually(t *testing.T, what string, holds func() (ok bool, seen any)) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		ok, seen := holds()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not seen: %s; there was: %v", what, seen)
		}
	}
}
