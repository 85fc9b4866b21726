// Package harness is what tests with real servers share: it starts processes that end with the tests, builds and runs the
// program under test, and has the TestMain of all their packages. The servers are in packages below it.
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

// FetchTime bounds what is fetched or installed the first time, and built.
const FetchTime = 15 * time.Minute

// atEnd is what is left to do when all tests of a package have ended.
var atEnd struct {
	mu     sync.Mutex
	report []string
	stops  []func() error
}

// Main calls first, runs a package's tests, stops what they share, prints their report, and exits. It is the whole of a
// TestMain.
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

// Parallel has Main run that many tests at once, unless the command line says otherwise: tests with servers mostly wait.
func Parallel(n int) func() {
	return func() {
		if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
			panic(err) // the flag is there
		}
	}
}

// Setting returns a whole number from the environment, or otherwise where none is there.
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

// Child has a test's process be a program instead, where the one that started it set that variable; the program gets its
// value and exit status 1 with an error.
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

// AtEnd has Main call stop when all tests have ended, what was registered last first. An error fails the package.
func AtEnd(stop func() error) {
	atEnd.mu.Lock()
	defer atEnd.mu.Unlock()
	atEnd.stops = append(atEnd.stops, stop)
}

// Report adds a line to what Main prints, which `make test` shows. That of a test that failed is dropped.
func Report(t testing.TB, format string, args ...any) {
	if t.Failed() {
		return
	}
	atEnd.mu.Lock()
	defer atEnd.mu.Unlock()
	atEnd.report = append(atEnd.report, fmt.Sprintf(format, args...))
}

// Say prints what takes a while.
func Say(line string) { fmt.Println(line) }

// SkipIfShort leaves a test out with -short.
func SkipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: needs real servers or the built program")
	}
}

// Missing is what a person must install, as an error of one line that says how.
type Missing string

func (m Missing) Error() string { return string(m) }

// Require ends the test for the error of what provides a server, if there is one, with the command that installs what a
// person must install.
func Require(t testing.TB, server string, err error, install string) {
	t.Helper()
	if missing, ok := errors.AsType[Missing](err); ok {
		t.Fatalf("no %s (%v); install it with: %s", server, missing, install)
	}
	if err != nil {
		t.Fatal(err)
	}
}
