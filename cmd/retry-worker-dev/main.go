// Command retry-worker-dev is the development engine, with the worker, its console and sample processes around it:
// `make run`. Nothing of it is for production.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"retry-worker/internal/config"
	"retry-worker/internal/engine/server"
)

// Exit codes, as those of retry-worker.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

const about = `retry-worker-dev is a development engine that speaks Zeebe's protocol, for trying things out and for tests.

  retry-worker-dev [--data DIR]             engine, worker, console and some seventy samples in one process
  retry-worker-dev --engine-only …          the engine alone
  retry-worker-dev --samples-only …         the samples, on the engine that ZEEBE_ADDRESS or ZEEBE_REST_ADDRESS names
`

const box = `┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┓
┃  DEVELOPMENT ENGINE: this is not Zeebe, and it is never for production.    ┃
┃  It leaves out: more than one partition, sub-processes, call activities,   ┃
┃  user tasks, DMN, signals, escalations, parallel gateways, most of FEEL,   ┃
┃  job streaming, authentication, exporters.                                 ┃
┗━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┛
`

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the whole program but for the process around it. It ends at the first Ctrl-C, SIGTERM or closed terminal; a second
// one ends the process at once.
func run(args []string, out, errOut io.Writer) int {
	var o options
	help, err := o.parse(args)
	if help != "" {
		fmt.Fprint(out, help)
		return exitDone
	}
	if err == nil {
		ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
		context.AfterFunc(ctx, restore)
		err = o.run(ctx, out)
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return exitDone
	}
	fmt.Fprintln(errOut, "retry-worker-dev:", strings.ReplaceAll(err.Error(), "\n", "; "))
	_, flags := errors.AsType[usageError](err)
	if _, environment := errors.AsType[config.Problems](err); flags || environment {
		return exitUsage
	}
	return exitFailed
}

// usageError is a wrong command line.
type usageError string

func (e usageError) Error() string { return string(e) + "; `retry-worker-dev --help` says more" }

// options of the command line.
type options struct {
	engineOnly, samplesOnly     bool
	engine                      server.Options
	doors                       doors
	apiURL, tokenFile, clockURL string
}

// parse reads the command line. help is what it asks to print instead; else it is empty.
func (o *options) parse(args []string) (help string, err error) {
	var sets [4]*pflag.FlagSet
	for i := range sets {
		sets[i] = pflag.NewFlagSet("", pflag.ContinueOnError)
		sets[i].SortFlags = false
	}
	f, engine, samples, all := sets[0], sets[1], sets[2], sets[3]
	f.StringVar(&o.engine.Data, "data", "", "`folder` of the engine's log and the journal; left out: all goes with the process")
	f.BoolVar(&o.engineOnly, "engine-only", false, "start the engine, and nothing else")
	f.BoolVar(&o.samplesOnly, "samples-only", false, "play the samples, and start nothing else")
	engine.StringVar(&o.doors.grpc, "grpc", "", "gRPC gateway at `host:port`; port 0 takes a free one; left out: it is not opened")
	engine.StringVar(&o.doors.rest, "rest", "", "REST API, below /v2, at `host:port`, likewise")
	engine.StringVar(&o.doors.control, "control", "", "clock, counters and events at `host:port`, likewise")
	engine.BoolVar(&o.engine.Fsync, "fsync", false, "sync the log before anything is acknowledged")
	engine.StringVar(&o.engine.Shape, "shape", server.Shape88, "`version` to answer as: 8.6 or 8.8")
	engine.IntVar(&o.engine.MaxInFlight, "max-in-flight", 0,
		"refuse commands beyond `N` at once, and answers to jobs beyond twice as many; 0: none")
	engine.StringSliceVar(&o.engine.Tenants, "tenants", nil, "`tenants` beside <default>, comma-separated")
	samples.StringVar(&o.apiURL, "api-url", "http://127.0.0.1:8095", "`URL` of the worker's API")
	samples.StringVar(&o.tokenFile, "token-file", "", "`file` with the token to show to it; left out: that in RETRY_WORKER_TOKEN")
	samples.StringVar(&o.clockURL, "clock-url", "",
		"`URL` of an engine's actuator to move its clock by, such as http://127.0.0.1:9600")
	for _, part := range sets[:3] {
		all.AddFlagSet(part)
	}
	all.Usage = func() {}
	switch err = all.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return about + "\n" + f.FlagUsages() + "\nWith --engine-only:\n" + engine.FlagUsages() +
			"\nWith --samples-only:\n" + samples.FlagUsages(), nil
	case err != nil:
		return "", usageError(err.Error())
	}
	changed := func(set *pflag.FlagSet) (name string) {
		set.VisitAll(func(f *pflag.Flag) {
			if f.Changed {
				name = f.Name
			}
		})
		return name
	}
	switch {
	case all.NArg() > 0:
		err = usageError(fmt.Sprintf("unexpected argument %q", all.Arg(0)))
	case o.engineOnly && o.samplesOnly:
		err = usageError("--engine-only and --samples-only are both given, expected one at most")
	case !o.engineOnly && changed(engine) != "":
		err = usageError("--" + changed(engine) + " is given, expected beside --engine-only only")
	case !o.samplesOnly && changed(samples) != "":
		err = usageError("--" + changed(samples) + " is given, expected beside --samples-only only")
	case o.samplesOnly && o.engine.Data != "":
		err = usageError("--data is given, but --samples-only keeps nothing")
	case o.engineOnly && o.doors == doors{}:
		err = usageError("--engine-only opens nothing, expected --grpc, --rest or --control beside it")
	case o.engine.Shape != server.Shape86 && o.engine.Shape != server.Shape88:
		err = usageError(fmt.Sprintf("--shape is %q, expected %s or %s", o.engine.Shape, server.Shape86, server.Shape88))
	}
	return "", err
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	switch {
	case o.engineOnly:
		return o.runEngine(ctx, out)
	case o.samplesOnly:
		return o.runSamples(ctx, out)
	default:
		return o.runAll(ctx, out)
	}
}
