package chromium

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"retry-worker/e2e/harness"
)

// patience bounds what a test waits for; it is reached only where the test fails.
const patience = time.Minute

// browser is the one under test, as Provide found or installed it.
var browser Install

// roleName makes this binary a program that starts a browser and waits to be killed.
const roleName = "RETRY_WORKER_CHROMIUM_ROLE"

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("the tests on a real Chromium are left out: -short")
		os.Exit(0)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	var err error
	browser, err = Provide(ctx, func(s string) { fmt.Println(s) })
	cancel()
	if missing, ok := errors.AsType[harness.Missing](err); ok {
		fmt.Printf("NOT RUN: the tests of the browser (%v) — install with: %s\n", missing, InstallCommand)
		if os.Getenv("CI") == "true" {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Getenv(roleName) != "" {
		hold()
	}
	os.Exit(m.Run())
}

// hold starts a browser, prints its folder, and waits to be killed.
func hold() {
	b, err := Start(context.Background(), browser, Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(b.profile.path)
	select {}
}
