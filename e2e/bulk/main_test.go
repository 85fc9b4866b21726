package bulk

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
	"retry-worker/e2e/mail"
	"retry-worker/e2e/serving"
)

const (
	// version of Zeebe that it is tried on.
	version = "8.6.0"
	// enough for anything that is expected to happen soon, on a busy machine too.
	enough = serving.Enough
	// fetchTime bounds what is fetched the first time.
	fetchTime = 10 * time.Minute
)

// binary is the program under test and exim the mail server, provided by TestMain.
var (
	binary string
	exim   mail.Install
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("the bulk runs on a real broker are left out: -short")
		os.Exit(0)
	}
	if missing := provide(); missing != nil {
		fmt.Printf("NOT RUN: the bulk runs on a real Zeebe (%v) — install with: apt-get install -y maven openjdk-21-jre-headless exim4-daemon-light\n", missing)
		if os.Getenv("CI") == "true" {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(serving.Main(m, &binary, func() []string { return report }))
}

// provide fetches what the tests need; the error is what a person must install. What goes wrong otherwise fails the tests,
// where it is said.
func provide() error {
	ctx, cancel := context.WithTimeout(context.Background(), fetchTime)
	defer cancel()
	_, errZeebe := engine.Fetch(ctx, version, nil)
	_, errJava := engine.ProvideJava(ctx, nil)
	var errMail error
	exim, errMail = mail.Provide(ctx, func(s string) { fmt.Println(s) })
	for _, err := range []error{errZeebe, errJava, errMail} {
		if missing, ok := errors.AsType[fetch.Missing](err); ok {
			return missing
		}
	}
	return nil
}

// report is what the tests have to say when all of them have ended.
var report []string

// done adds a test's line.
func done(t *testing.T, what, figures string, args ...any) {
	if !t.Failed() {
		report = append(report, fmt.Sprintf("PRINT e2e  %-6s %-34s %s", version, what, fmt.Sprintf(figures, args...)))
	}
}
