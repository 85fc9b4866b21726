// Command retry-worker-dev is the development engine, with the worker, its console and sample processes around it:
// `make run`. Nothing of it is for production.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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

  retry-worker-dev [--data DIR]             engine, worker, console and seventy samples in one process
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

// run is the whole program but for the process around it. It ends at the first Ctrl-C or SIGTERM; a second one ends the
// process at once.
func run(args []string, out, errOut io.Writer) int {
	var o options
	code, err := exitUsage, o.parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprint(out, o.help())
		return exitDone
	}
	if err == nil {
		ctx, restore := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		context.AfterFunc(ctx, restore)
		code = exitFailed
		switch {
		case o.engineOnly:
			err = o.runEngine(ctx, out)
		case o.samplesOnly:
			err = o.runSamples(ctx, out)
		default:
			err = o.runAll(ctx, out)
		}
	}
	if err == nil {
		return exitDone
	}
	if _, wrong := errors.AsType[config.Problems](err); wrong {
		code = exitUsage
	}
	fmt.Fprintln(errOut, "retry-worker-dev:", strings.ReplaceAll(err.Error(), "\n", "; "))
	return code
}

// options of the command line.
type options struct {
	engineOnly, samplesOnly     bool
	engine                      server.Options
	grpc, rest, control         string
	apiURL, tokenFile, clockURL string

	general, ofEngine, ofSamples *pflag.FlagSet
}

func (o *options) parse(args []string) error {
	o.general = pflag.NewFlagSet("", pflag.ContinueOnError)
	o.general.StringVar(&o.engine.Data, "data", "",
		"folder to keep the engine's log, and the journal, in; left out: all goes with the process")
	o.general.BoolVar(&o.engineOnly, "engine-only", false, "start the engine, and nothing else")
	o.general.BoolVar(&o.samplesOnly, "samples-only", false, "play the samples, and start nothing else")

	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.SortFlags = false
	f.StringVar(&o.grpc, "grpc", "", "gRPC gateway: host:port; port 0 takes a free one; left out: it is not opened")
	f.StringVar(&o.rest, "rest", "", "REST API, below /v2: host:port, likewise")
	f.StringVar(&o.control, "control", "", "clock, counters and events: host:port, likewise")
	f.BoolVar(&o.engine.Fsync, "fsync", false, "sync the log before anything is acknowledged")
	f.StringVar(&o.engine.Shape, "shape", "8.8", "version to answer as: 8.6 or 8.8")
	f.IntVar(&o.engine.MaxInFlight, "max-in-flight", 0,
		"refuse commands beyond so many at once, and answers to jobs beyond twice as many; 0: none is refused")
	f.StringSliceVar(&o.engine.Tenants, "tenants", nil, "tenants beside <default>, comma-separated; left out: no tenants")
	o.ofEngine = f

	f = pflag.NewFlagSet("", pflag.ContinueOnError)
	f.SortFlags = false
	f.StringVar(&o.apiURL, "api-url", "http://127.0.0.1:8095", "worker's API and console")
	f.StringVar(&o.tokenFile, "token-file", "",
		"file with the token to show to the API; left out: the token in RETRY_WORKER_TOKEN, if there is one")
	f.StringVar(&o.clockURL, "clock-url", "",
		"actuator of an engine whose clock may be moved, such as http://127.0.0.1:9600; left out: timers take their time")
	o.ofSamples = f

	all := pflag.NewFlagSet("retry-worker-dev", pflag.ContinueOnError)
	all.SortFlags = false
	all.Usage = func() {}
	for _, part := range []*pflag.FlagSet{o.general, o.ofEngine, o.ofSamples} {
		all.AddFlagSet(part)
	}
	err := all.Parse(args)
	if err == nil {
		err = o.check(all.Args())
	}
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		err = fmt.Errorf("%w; `retry-worker-dev --help` says more", err)
	}
	return err
}

// check what flags cannot say by themselves.
func (o *options) check(args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("unexpected argument %q", args[0])
	case o.engineOnly && o.samplesOnly:
		return errors.New("--engine-only and --samples-only exclude each other")
	case o.engineOnly && o.grpc+o.rest+o.control == "":
		return errors.New("--engine-only without an address, expected --grpc, --rest or --control")
	case o.samplesOnly && o.engine.Data != "":
		return errors.New("--data is not for --samples-only, which keeps nothing")
	case o.engine.Shape != "8.6" && o.engine.Shape != "8.8":
		return fmt.Errorf("--shape is %q, expected 8.6 or 8.8", o.engine.Shape)
	case o.engine.MaxInFlight < 0:
		return fmt.Errorf("--max-in-flight is %d, expected 0 or more", o.engine.MaxInFlight)
	}
	if f := given(o.ofEngine); f != "" && !o.engineOnly {
		return fmt.Errorf("--%s goes with --engine-only", f)
	}
	if f := given(o.ofSamples); f != "" && !o.samplesOnly {
		return fmt.Errorf("--%s goes with --samples-only", f)
	}
	return nil
}

// given returns the name of a flag that the command line has; empty for none.
func given(flags *pflag.FlagSet) (name string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			name = f.Name
		}
	})
	return name
}

func (o *options) help() string {
	const width = 100
	return about + "Flags:\n" + o.general.FlagUsagesWrapped(width) +
		"\nWith --engine-only:\n" + o.ofEngine.FlagUsagesWrapped(width) +
		"\nWith --samples-only:\n" + o.ofSamples.FlagUsagesWrapped(width)
}

// runEngine runs the engine alone until ctx ends.
func (o *options) runEngine(ctx context.Context, out io.Writer) (err error) {
	engine, err := server.Open(o.engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	ready := "engine ready"
	for _, at := range []struct {
		flag, address string
		serve         func(net.Listener)
	}{{"grpc", o.grpc, engine.ServeGRPC}, {"rest", o.rest, engine.ServeREST}, {"control", o.control, engine.ServeControl}} {
		if at.address == "" {
			continue
		}
		l, err := net.Listen("tcp", at.address)
		if err != nil {
			return fmt.Errorf("--%s: %w; name another address, or port 0 for a free one", at.flag, err)
		}
		at.serve(l)
		ready += " " + at.flag + "=" + l.Addr().String()
	}
	fmt.Fprint(out, box, ready, "\n")
	<-ctx.Done()
	return nil
}
