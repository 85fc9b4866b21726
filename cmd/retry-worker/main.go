// Command retry-worker decides retries for a Zeebe process. Its subcommands operate the worker.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/config"
	"retry-worker/internal/metrics"
	"retry-worker/internal/redact"
	"retry-worker/internal/smallfile"
	"retry-worker/internal/statistics"
	"retry-worker/internal/text"
)

// Exit codes of the contract.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the program and returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	return (&cli{out: &checkedWriter{w: stdout}, errOut: stderr}).run(args)
}

// run runs the command that args name and returns the exit code.
func (c *cli) run(args []string) int {
	root := c.root()
	root.SetArgs(args)
	root.SetOut(c.out)
	root.SetErr(c.errOut)
	err := root.ExecuteContext(context.Background())
	if err == nil && c.out.err != nil {
		err = fmt.Errorf("write the output: %w", c.out.err)
	}
	if err == nil {
		return exitDone
	}
	said := err.Error()
	if redact.HoldsOwn(said) {
		said = redact.Text(said)
	}
	for line := range strings.Lines(said) {
		fmt.Fprintln(c.errOut, "retry-worker:", strings.TrimSuffix(line, "\n"))
	}
	if c.misused(err) {
		return exitUsage
	}
	return exitFailed
}

// misused reports whether the cause of an error is what the caller gave: nothing was begun, or what it met says so.
func (c *cli) misused(err error) bool {
	_, settings := errors.AsType[config.Problems](err)
	_, tokens := errors.AsType[access.FileError](err)
	_, policy := errors.AsType[*statistics.UnknownPolicyError](err)
	refused, is := errors.AsType[*access.Refusal](err)
	is = is && (refused.Status == http.StatusUnprocessableEntity || refused.Status == http.StatusBadRequest)
	return c.out.err == nil && (!c.begun || is || settings || tokens || policy || errors.Is(err, smallfile.ErrThere))
}

// checkedWriter remembers a write error, so that callers need not check each line.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.err = cmp.Or(c.err, err)
	return n, err
}

// cli holds what the subcommands share.
type cli struct {
	out    *checkedWriter
	errOut io.Writer
	format string // text or json
	begun  bool   // the task: what it was given is valid
	flags
	client  *api.Client // of the server, once it is needed
	command *command    // the one that runs
}

func (c *cli) json() bool { return c.format == "json" }

func (c *cli) root() *cobra.Command {
	root := c.commands()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		// Flags of several commands share a field: it holds the default that was set last.
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Changed && f.Value.Type() == "string" {
				_ = f.Value.Set(f.DefValue) // cannot fail for a text
			}
		})
		if c.format != "text" && !c.json() {
			return fmt.Errorf("--output is %q, expected text or json", c.format)
		}
		return nil
	}
	root.PersistentFlags().StringVarP(&c.format, "output", "o", "text", "how to print: text or json")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"},
		cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			err = fmt.Errorf("--%s is %q, expected %s", invalid.GetFlag().Name, invalid.GetValue(),
				map[string]string{"bool": "true or false", "int64": "a whole number", "float64": "a number"}[invalid.GetFlag().Value.Type()])
		}
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
			var known []string
			cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
			if near := text.Nearest(unknown.GetSpecifiedName(), known); near != "" {
				err = fmt.Errorf("%w (did you mean --%s?)", err, near)
			}
		}
		return fmt.Errorf("%w; `%s --help` lists the flags", err, cmd.CommandPath())
	})
	return root
}

// noSuchCommand returns an error that lists the commands of a group.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 && !cmd.HasParent() {
		return nil
	}
	found, expected := "no command is given", each(cmd.Commands(), (*cobra.Command).Name)
	if len(args) > 0 {
		cmd.SuggestionsMinimumDistance = 2
		found = fmt.Sprintf("unknown command %q", args[0])
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 || !cmd.HasParent() {
			expected = near
		}
	}
	if len(expected) > 0 {
		found += ", expected " + text.Or(expected...)
	}
	return fmt.Errorf("%s; `%s --help` lists the commands", found, cmd.CommandPath())
}

// takes returns a check for exactly n arguments.
func takes(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			given := "1 argument"
			if len(args) != 1 {
				given = fmt.Sprint(len(args), " arguments")
			}
			return fmt.Errorf("%s given, expected `%s`; `%s --help` says more", given, cmd.UseLine(), cmd.CommandPath())
		}
		return nil
	}
}

// Set by the linker (see the Makefile).
var (
	version = "dev"
	commit  = "unknown"
	date    = "unknown" // of the commit, in RFC 3339
)

func build() metrics.Build {
	return metrics.Build{Version: version, Commit: commit, GoVersion: runtime.Version()}
}

func (c *cli) version(context.Context, []string) error {
	return c.print(map[string]string{"version": version, "commit": commit, "date": date, "goVersion": runtime.Version()})
}

// ready asks the worker whether it is ready.
func (c *cli) ready(context.Context, []string) error {
	settings, err := config.Load("RETRY_WORKER_OPS_ADDR")
	if err != nil {
		return err
	}
	c.begun = true
	addr := settings.OpsAddr
	// No proxy: the environment's is for other hosts.
	client := http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + reachable(addr) + "/readyz")
	if err != nil {
		return fmt.Errorf("no worker answers at %s: %w; start `retry-worker serve`, or set RETRY_WORKER_OPS_ADDR", addr,
			errors.Unwrap(err))
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", addr, err)
	}
	detail := strings.TrimSpace(string(answer))
	ready := response.StatusCode == http.StatusOK
	if err := c.print(map[string]any{"ready": ready, "detail": detail}); err != nil || ready {
		return err
	}
	return fmt.Errorf("not ready: %s", detail)
}

// reachable turns an address to listen on into one to call; every interface becomes this machine.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}
