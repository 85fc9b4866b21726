// Command local runs the worker on a real Zeebe on this machine and shows what it decides; it is `make run`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"retry-worker/e2e/harness/zeebe"
)

// Exit codes, as those of retry-worker.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
	exitKilled = 130 // as a shell reports a Ctrl-C
)

func main() {
	stop, hard := signals()
	os.Exit(run(stop, hard, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the whole program but for the process around it: until stop ends, or the demo where it is asked
// to end then; hard ends it at once.
func run(stop, hard context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	s := &session{options: o, screen: newScreen(stdout), hard: hard}
	err = s.run(stop)
	if errors.Is(err, errAsked) {
		err = nil
	}
	s.close(err != nil)
	if err != nil {
		fmt.Fprintln(stderr, "\n"+strings.ReplaceAll(err.Error(), "\n", " "))
		return exitFailed
	}
	if hard.Err() != nil {
		return exitKilled
	}
	return exitDone
}

type options struct {
	binary string // retry-worker
	zeebe  string // version
	once   bool   // end after the demo
}

func parse(args []string, stderr io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("local", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.binary, "bin", filepath.Join("bin", "retry-worker"), "the worker, as `make build` makes it")
	flags.StringVar(&o.zeebe, "zeebe", zeebe.Versions[0], "version of Zeebe: "+strings.Join(zeebe.Versions, " or "))
	flags.BoolVar(&o.once, "once", false, "end after the demo")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q; `-help` lists the flags", flags.Arg(0))
	}
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return o, fmt.Errorf("find the worker: %w", err)
	}
	return o, nil
}
