package notify

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"retry-worker/e2e/engine/fetch"
	"retry-worker/e2e/mail"
	"retry-worker/e2e/serving"
)

// binary is the program under test and exim the mail server, provided by TestMain.
var (
	binary string
	exim   mail.Install
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("what teams are told by a real mail server is left out: -short")
		os.Exit(0)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	var err error
	exim, err = mail.Provide(ctx, func(s string) { fmt.Println(s) })
	cancel()
	if missing, ok := errors.AsType[fetch.Missing](err); ok {
		fmt.Printf("NOT RUN: what teams are told, by a real mail server (%v) — install with: %s\n", missing, mail.InstallCommand)
		if os.Getenv("CI") == "true" {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(serving.Main(m, &binary, func() []string { return report }))
}

// report is what the tests, which run side by side, have to say when all of them have ended.
var (
	reporting sync.Mutex
	report    []string
)

// done adds a test's line.
func done(t *testing.T, what, figures string, args ...any) {
	reporting.Lock()
	defer reporting.Unlock()
	if !t.Failed() {
		report = append(report, fmt.Sprintf("PRINT e2e  %-6s %-34s %s", "", what, fmt.Sprintf(figures, args...)))
	}
}
