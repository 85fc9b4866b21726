package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/audit"
	"retry-worker/internal/config"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/events"
	"retry-worker/internal/journal"
	"retry-worker/internal/smallfile"
	"retry-worker/internal/store"
)

func (c *cli) journalCommand() *cobra.Command {
	return group("journal", "Back the journal up, rebuild what it derives, confirm a purge, or erase a subject",
		"rebuild and purge write the journal that RETRY_WORKER_DATABASE_URL names. A SQLite file has one\n"+
			"writer: stop the worker before. On PostgreSQL workers go on meanwhile. backup reads beside a running\n"+
			"worker, erase asks one.",
		&cobra.Command{
			Use:   "backup FILE",
			Short: "Copy the journal in a SQLite file into another file, beside a running worker",
			Long: "Writes the journal as it stands to a new file, makes that durable and verifies the audit of the copy. The\n" +
				"file gets its name when all of that is done, and is never written over another. How much the worker\n" +
				"writes meanwhile does not matter. A journal in PostgreSQL is saved by pg_dump.",
			Example: "  retry-worker journal backup /backup/retry-worker.db",
			Args:    takes(1),
			RunE:    func(cmd *cobra.Command, args []string) error { return c.journalBackup(cmd.Context(), args[0]) },
		}, c.journalRebuildCommand(), c.journalPurgeCommand(), c.journalEraseCommand())
}

// readJournal opens the journal for do. A signal ends do's context, so that it can clean up.
func readJournal(ctx context.Context, do func(context.Context, store.Reader) error) error {
	settings, err := config.Load("RETRY_WORKER_DATABASE_URL")
	if err != nil {
		return &usageError{err}
	}
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	return readStore(ctx, settings.DatabaseURL, do)
}

func readStore(ctx context.Context, url string, do func(context.Context, store.Reader) error) error {
	reader, err := store.OpenReader(ctx, url)
	if err != nil {
		return err
	}
	defer reader.Close() // nothing was written
	return do(ctx, reader)
}

func (c *cli) journalBackup(ctx context.Context, name string) error {
	return readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		source, is := reader.(interface {
			Backup(ctx context.Context, path string) error
		})
		if !is {
			return &usageError{errors.New("the journal is in PostgreSQL, expected one in a SQLite file; save it by pg_dump " +
				"--format=custom")}
		}
		shown := verified{OK: true}
		err := newFile(name, func(part string) error {
			if err := source.Backup(ctx, part); err != nil {
				return fmt.Errorf("back up to %s: %w", name, err)
			}
			return readStore(ctx, "sqlite:"+part, func(ctx context.Context, copied store.Reader) (err error) {
				if shown.Report, err = c.verify(ctx, copied, audit.VerifyOptions{}); err != nil {
					err = fmt.Errorf("back up to %s: the copy is not sound: %w; check whether the journal is: `retry-worker audit "+
						"verify`", name, err)
				}
				return err
			})
		})
		if err != nil {
			return err
		}
		return c.print(shown)
	})
}

// writeTo writes a new file, or standard output if name is empty.
func (c *cli) writeTo(name string, write func(io.Writer) error) error {
	if name == "" {
		return write(c.out)
	}
	return newFile(name, func(part string) error {
		file, err := os.OpenFile(part, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(file), file.Sync(), file.Close())
	})
}

// newFile creates a file that write fills.
func newFile(name string, write func(part string) error) error {
	err := smallfile.Create(name, write)
	if errors.Is(err, smallfile.ErrThere) {
		err = &usageError{err}
	}
	return err
}

func (c *cli) journalRebuildCommand() *cobra.Command {
	var unverified bool
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Rebuild what is derived from the journal's records",
		Long: "Checks every record against the hash chain, and rebuilds all that is derived from them: subjects,\n" +
			"dead letters, counts, figures, causes and bulk runs, in one transaction. Where the records do not hold\n" +
			"it changes nothing, unless --from-unverified is given. That it was done is a record itself.",
		RunE: writesJournal(func(ctx context.Context, w *journalWriter) error {
			line := c.progress("subjects made anew")
			err := audit.Rebuild(ctx, w, time.Now(), unverified, w.publish, line.show)
			if line.end(); err != nil {
				return err
			}
			return c.print(map[string]bool{"rebuilt": true})
		}),
	}
	cmd.Flags().BoolVar(&unverified, "from-unverified", false, "take the records as they are, though they do not hold")
	return cmd
}

func (c *cli) journalPurgeCommand() *cobra.Command {
	var confirm bool
	cmd := &cobra.Command{
		Use:   "purge",
		Short: "Purge what is older than RETRY_WORKER_RETENTION, once, by a clock that you have checked",
		Long: "The worker purges by itself, but not once the clock went on by more than a tenth of the retention, and\n" +
			"a day, between two commits since the last purge, or since the last one: a clock that is years ahead\n" +
			"would purge everything. Check the clock, and confirm. That it was confirmed is a record itself.",
		RunE: writesJournal(func(ctx context.Context, w *journalWriter) error {
			n, err := journal.New(w, time.Now, w.publish, journal.NoHooks()).Purge(ctx, w, w.retention, confirm)
			if err != nil {
				return err
			}
			return c.print(map[string]int{"purged": n})
		}),
	}
	cmd.Flags().BoolVar(&confirm, "confirm", false, "the clock is right")
	return cmd
}

// journalWriter is the journal, opened by a command that writes.
type journalWriter struct {
	store.Store
	retention time.Duration
	publish   journal.Publisher // nil if events are off
}

// writesJournal returns a command that opens the journal for do. A signal ends do's context.
func writesJournal(do func(ctx context.Context, w *journalWriter) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		settings, err := config.Load("RETRY_WORKER_DATABASE_URL", "RETRY_WORKER_RETENTION", "RETRY_WORKER_EVENTS_URL")
		if err != nil {
			return &usageError{err}
		}
		ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer cancel()
		// Only serve begins a journal: to begin one here would hide that the address is wrong.
		is := func(context.Context, store.Reader) error { return nil }
		if err := readStore(ctx, settings.DatabaseURL, is); err != nil {
			return err
		}
		s, err := store.Open(ctx, settings.DatabaseURL)
		if err != nil {
			return err
		}
		defer s.Close() // everything is committed
		w := &journalWriter{Store: s, retention: settings.Retention}
		if settings.EventsURL != "" {
			w.publish = events.Publisher(destination.Configured{}.Label)
		}
		return do(ctx, w)
	}
}

func (c *cli) journalEraseCommand() *cobra.Command {
	cmd := c.action("journal", &action{use: "erase POLICY SUBJECT", request: "POST /subjects/{policy}/{id}/erase",
		example: `CLM-001-1234567890 --reason "pedido do titular, protocolo 4711"`})
	cmd.Use, cmd.Args = "erase SUBJECT", takes(1)
	cmd.Long += "\nAsks a running worker. It is refused while a retry, a person's decision, an answer to the process or a bulk\n" +
		"run is still under way. Backups keep the subject, and so does what was exported, or sent as an event."
	policy := cmd.Flags().String("policy", decision.DefaultPolicy, "policy the subject belongs to")
	ask := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return ask(cmd, []string{*policy, args[0]}) }
	return cmd
}
