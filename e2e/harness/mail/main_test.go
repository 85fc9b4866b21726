package mail

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

// exim is the one under test, as Provide found or installed it.
var exim Install

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("the tests on a real mail server are left out: -short")
		os.Exit(0)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	var err error
	exim, err = Provide(ctx, func(s string) { fmt.Println(s) })
	cancel()
	if missing, ok := errors.AsType[harness.Missing](err); ok {
		fmt.Printf("NOT RUN: the tests of the mail server (%v) — install with: %s\n", missing, InstallCommand)
		if os.Getenv("CI") == "true" {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
