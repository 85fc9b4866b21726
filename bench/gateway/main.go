// Command gateway is the stub gateway of the benchmark: it always has claims to
// decide, and says in the end what became of them.
//
// The first line on standard output is the address it listens on. When all jobs
// of -endless are answered, or at SIGTERM or SIGINT, it prints one JSON object,
// the [summary].
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"retry-worker/internal/gatewaytest"
)

// patience is how long calls that run may take to end at the stop.
const patience = 5 * time.Second

// settings are the command's flags.
type settings struct {
	addr    string
	types   string
	jobs    int64
	mix     gatewaytest.Mix
	limit   int
	latency time.Duration
	stay    bool
	profile string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run exits as the process does: 0 done, 1 failed, 2 wrong use.
func run(ctx context.Context, args []string, out, problems io.Writer) int {
	s, err := parse(args, problems)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(problems, "gateway:", err)
		return 2
	}
	if err := serve(ctx, s, out); err != nil {
		fmt.Fprintln(problems, "gateway:", err)
		return 1
	}
	return 0
}

func parse(args []string, problems io.Writer) (settings, error) {
	s := settings{mix: gatewaytest.DefaultMix()}
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // an error is one line, printed by run
	flags.StringVar(&s.addr, "addr", "127.0.0.1:0", "where to listen")
	flags.StringVar(&s.types, "types", "analyze-retry", "job types that always have jobs, separated by commas")
	flags.Int64Var(&s.jobs, "endless", 0, "how many jobs to hand out in all types together; 0: for ever")
	flags.Func("variables-mix", "shares of the kinds of claims in per cent (default "+s.mix.String()+")", func(text string) (err error) {
		s.mix, err = gatewaytest.ParseMix(text)
		return err
	})
	flags.IntVar(&s.limit, "max-in-flight", 0, "commands under way before the next is refused; 0: no limit")
	flags.DurationVar(&s.latency, "latency", 0, "time between a command's effect and its answer")
	flags.BoolVar(&s.stay, "stay", false, "after the summary go on serving until a signal")
	flags.StringVar(&s.profile, "cpuprofile", "", "file for a CPU profile")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(problems)
		flags.PrintDefaults()
	}
	if err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("found %q, expected flags only", flags.Arg(0))
	}
	if s.jobs < 0 {
		return s, fmt.Errorf("-endless: found %d, expected 0 or more", s.jobs)
	}
	return s, nil
}

func serve(ctx context.Context, s settings, out io.Writer) error {
	debug.SetGCPercent(400) // its memory is not measured, its time is shared with the worker's
	stopProfile, err := startProfile(s.profile)
	if err != nil {
		return err
	}
	defer stopProfile()
	s.mix.At = time.Now()
	g, err := gatewaytest.Listen(s.options())
	if err != nil {
		return err
	}
	defer g.Close()
	fmt.Fprintln(out, g.Addr())
	if s.jobs == 0 {
		<-ctx.Done()
	} else {
		_ = g.WaitAnswers(ctx, int(s.jobs)) // a signal ends it early: the summary says how far it came
	}
	if err := json.NewEncoder(out).Encode(summarize(g)); err != nil {
		return fmt.Errorf("print the summary: %w", err)
	}
	if s.stay {
		<-ctx.Done()
	}
	g.DownGracefully(patience) // the last answers are still on their way
	return nil
}

func (s settings) options() gatewaytest.Options {
	o := gatewaytest.Options{Addr: s.addr}
	o.MaxInFlight, o.CommandLatency = s.limit, s.latency
	o.Endless = &gatewaytest.Endless{Types: strings.Split(s.types, ","), Limit: s.jobs, Job: s.mix.Job}
	return o
}

// startProfile does nothing without a file.
func startProfile(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("write the CPU profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("write the CPU profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

// summary is what became of the jobs. Times are null where nothing happened.
type summary struct {
	HandedOut      int        `json:"handed_out"`
	Answered       answered   `json:"answered"`
	HandedBack     int        `json:"handed_back"` // FailJob with retries left: handed out again
	Refused        int        `json:"refused"`     // commands the engine refused, such as a second answer
	TimedOut       int        `json:"timed_out"`   // jobs nobody answered in time
	MaxHeld        int        `json:"max_held"`    // jobs a worker held at once
	Polls          int        `json:"polls"`
	FirstHandedOut *time.Time `json:"first_handed_out_at"`
	FirstAnswer    *time.Time `json:"first_answer_at"`
	LastAnswer     *time.Time `json:"last_answer_at"`
	CPUUser        float64    `json:"cpu_user_s"` // of this process, from its start
	CPUSystem      float64    `json:"cpu_sys_s"`
}

// answered are the answers that settled a job.
type answered struct {
	Completed int `json:"completed"`
	Thrown    int `json:"thrown"`
	Failed    int `json:"failed"` // retries 0: an incident
}

func summarize(g *gatewaytest.Gateway) summary {
	c := g.Counts()
	s := summary{
		HandedOut: c.HandedOut, HandedBack: c.HandedBack, Refused: c.Refused,
		TimedOut: c.TimedOut, MaxHeld: c.MaxHeld, Polls: c.Polls,
		FirstHandedOut: at(c.FirstHandedOut), FirstAnswer: at(c.FirstAnswer), LastAnswer: at(c.LastAnswer),
		Answered: answered{
			Completed: c.In(gatewaytest.Completed),
			Thrown:    c.In(gatewaytest.ErrorThrown),
			Failed:    c.In(gatewaytest.Incident),
		},
	}
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) == nil {
		s.CPUUser = time.Duration(used.Utime.Nano()).Seconds()
		s.CPUSystem = time.Duration(used.Stime.Nano()).Seconds()
	}
	return s
}

func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
