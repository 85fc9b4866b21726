package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/audit"
	"retry-worker/internal/config"
	"retry-worker/internal/journal"
	"retry-worker/internal/store"
)

func (c *cli) journalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "Rebuild what the journal derives from its records, or confirm a purge",
		Long: "Writes the journal that RETRY_WORKER_DATABASE_URL names. A SQLite file has one writer: stop the worker before.\n" +
			"On PostgreSQL workers go on meanwhile.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q; `%s --help` lists the commands", args[0], cmd.CommandPath())
			}
			return fmt.Errorf("expected a command behind journal: rebuild or purge; `%s --help` says more", cmd.CommandPath())
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(c.journalRebuildCommand(), c.journalPurgeCommand())
	return cmd
}

func (c *cli) journalRebuildCommand() *cobra.Command {
	var unverified bool
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Make anew what is derived from the journal's records",
		Long: "Holds every record against the hash chain, and makes anew all that is derived from them: subjects, dead letters, counts,\n" +
			"figures, causes and bulk runs, in one transaction. Where the records do not hold it changes nothing, unless --from-unverified\n" +
			"is given. That it was done is a record itself.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.journalRebuild(cmd.Context(), unverified) },
	}
	cmd.Flags().BoolVar(&unverified, "from-unverified", false, "take the records as they are, though they do not hold")
	return cmd
}

func (c *cli) journalRebuild(ctx context.Context, unverified bool) error {
	ctx, s, done, err := openForWriting(ctx)
	if err != nil {
		return err
	}
	defer done()
	bar := c.progress("subjects made anew")
	err = audit.Rebuild(ctx, s, time.Now(), unverified, bar.show)
	bar.end()
	if err != nil {
		return err
	}
	fmt.Fprintln(c.out, "rebuilt from the records; `retry-worker audit verify` holds it against them")
	return nil
}

func (c *cli) journalPurgeCommand() *cobra.Command {
	var confirm bool
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Purge what is older than RETRY_WORKER_RETENTION, once, by a clock that you have checked",
		Long: "The worker purges by itself, but not while the clock stands further past the journal's last commit than a tenth of the\n" +
			"retention, and a day: a clock that is years ahead would purge everything. Check the clock, and confirm.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.journalPurge(cmd.Context(), confirm) },
	}
	cmd.Flags().BoolVar(&confirm, "confirm", false, "the clock is right")
	return cmd
}

func (c *cli) journalPurge(ctx context.Context, confirm bool) error {
	retention, err := config.Retention()
	if err != nil {
		return &usageError{err}
	}
	ctx, s, done, err := openForWriting(ctx)
	if err != nil {
		return err
	}
	defer done()
	n, err := journal.New(s, time.Now, nil, journal.NoHooks()).Purge(ctx, s, retention, confirm)
	if errors.Is(err, journal.ErrClockAhead) {
		return fmt.Errorf("%w: `retry-worker journal purge --confirm`", err)
	}
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	fmt.Fprintf(c.out, "%d records purged, their digests stay\n", n)
	return nil
}

// openForWriting opens the journal until done is called, or the user ends it.
func openForWriting(ctx context.Context) (_ context.Context, _ store.Store, done func(), _ error) {
	url, err := config.DatabaseURL()
	if err != nil {
		return ctx, nil, nil, &usageError{err}
	}
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	s, err := store.Open(ctx, url)
	if err != nil {
		cancel()
		return ctx, nil, nil, err
	}
	return ctx, s, func() {
		_ = s.Close() // what was done is committed
		cancel()
	}, nil
}
