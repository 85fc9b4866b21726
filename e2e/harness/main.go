// Package harness is what tests with real servers share: it starts processes that end with the tests, builds and runs
// the program under test, and holds the TestMain of their packages. The packages below it run the servers.
package harness

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// FetchTime bounds what is fetched, installed or built for the first time.
const FetchTime = 15 * time.Minute

// atEnd is what to do when all tests of a package have ended.
var atEnd struct {
	mu     sync.Mutex
	report []string
	stops  []func() error
}

// Main calls first, runs a package's tests, stops what they share, prints their report, and exits. A TestMain needs
// nothing else.
func Main(m *testing.M, first ...func()) {
	for _, do := range first {
		do()
	}
	code := m.Run()
	atEnd.mu.Lock()
	defer atEnd.mu.Unlock()
	for _, stop := range slices.Backward(atEnd.stops) {
		if err := stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	slices.Sort(atEnd.report)
	for _, line := range atEnd.report {
		fmt.Println(line)
	}
	os.Exit(code)
}

// Parallel makes Main run n tests at once, unless the command line says otherwise: tests with servers mostly wait.
func Parallel(n int) func() {
	return func() {
		if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
			panic(err) // the flag is there
		}
	}
}

// Setting returns a whole number from the environment, or otherwise if the variable is not set.
func Setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s is %q, expected a whole number", name, text)
	}
	return n
}

// Child makes the test binary run program, instead of its tests, if that environment variable is set. program gets
// the variable's value; an error is exit status 1.
func Child(variable string, program func(value string) error) func() {
	return func() {
		value := os.Getenv(variable)
		if value == "" {
			return
		}
		if err := program(value); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// AtEnd makes Main call stop after all tests, the last registered first. An error fails the package.
func AtEnd(stop func() error) {
	atEnd.mu.Lock()
	defer atEnd.mu.Unlock()
	atEnd.stops = append(atEnd.stops, stop)
}

// Report adds a line to what Main prints, which `make test` shows. A failed test's line is dropped.
func Report(t testing.TB, format string, args ...any) {
	if t.Failed() {
		return
	}
	atEnd.mu.Lock()
	defer atEnd.mu.Unlock()
	atEnd.report = append(atEnd.report, fmt.Sprintf(format, args...))
}

// Say tells the user what takes a while.
func Say(line string) { fmt.Println(line) }

// SkipIfShort skips a test with -short.
func SkipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: needs real servers or the built program")
	}
}

// Missing is an error about what a person must install: one line that says how.
type Missing string

func (m Missing) Error() string { return string(m) }

// Require ends the test if err, of providing a server, is not nil. install is the command that a person must run.
func Require(t testing.TB, server string, err error, install string) {
	t.Helper()
	if missing, ok := errors.AsType[Missing](err); ok {
		t.Fatalf("no %s (%v); install it with: %s", server, missing, install)
	}
	if err != nil {
		t.Fatal(err)
	}
}
