package console_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"retry-worker/e2e/chromium"
	"retry-worker/e2e/engine"
	"retry-worker/e2e/engine/fetch"
)

const (
	// patience bounds what a test waits for; it is reached only where the test fails.
	patience = 60 * time.Second
	// fetchTime bounds what is fetched or installed the first time.
	fetchTime = 15 * time.Minute
	// stopTime bounds the stop of one process.
	stopTime = 30 * time.Second
)

var update = flag.Bool("update", false, "draw the README's pictures anew")

// version of the broker.
const version = "8.6.0"

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("the console's tests in a real browser are left out: -short")
		os.Exit(0)
	}
	browser, missing := provide()
	if missing != "" {
		fmt.Println("NOT RUN: the console in a real Chromium on a real Zeebe (" + missing)
		if os.Getenv("CI") == "true" {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(run(m, browser))
}

// provide has there what the tests need. missing is what a person must install, and the command that does it; what
// goes wrong otherwise fails the tests, where it is said.
func provide() (browser chromium.Install, missing string) {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	say := func(s string) { fmt.Println(s) }
	browser, err := chromium.Provide(ctx, say)
	if why, ok := errors.AsType[fetch.Missing](err); ok {
		return browser, why.Error() + ") — install with: " + chromium.InstallCommand
	}
	_, errZeebe := engine.Fetch(ctx, version, nil)
	_, errJava := engine.ProvideJava(ctx, nil)
	for _, err := range []error{errZeebe, errJava} {
		if why, ok := errors.AsType[fetch.Missing](err); ok {
			return browser, why.Error() + ") — install with: apt-get install -y maven openjdk-21-jre-headless"
		}
	}
	return browser, ""
}

func run(m *testing.M, browser chromium.Install) int {
	begun := time.Now()
	shared.install = browser
	code := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	fmt.Printf("PRINT e2e  console in Chromium %s: %.0f s\n", browser.Version, time.Since(begun).Seconds())
	return code
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
	tick := time.NewTicker(20 * time.Millisecond)
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
