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

	"retry-worker/internal/audit"
	"retry-worker/internal/config"
	"retry-worker/internal/destination"
	"retry-worker/internal/events"
	"retry-worker/internal/journal"
	"retry-worker/internal/smallfile"
	"retry-worker/internal/store"
)

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

func (c *cli) journalBackup(ctx context.Context, args []string) error {
	name := args[0]
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

type rebuildFlags struct{ FromUnverified bool }

func (c *cli) journalRebuild(cmd *command, f *rebuildFlags, _ []string) error {
	return writeJournal(cmd.Context(), func(ctx context.Context, w *journalWriter) error {
		line := c.progress("subjects made anew")
		err := audit.Rebuild(ctx, w, time.Now(), f.FromUnverified, w.publish, line.show)
		if line.end(); err != nil {
			return err
		}
		return c.print(map[string]bool{"rebuilt": true})
	})
}

type purgeFlags struct{ Confirm bool }

func (c *cli) journalPurge(cmd *command, f *purgeFlags, _ []string) error {
	return writeJournal(cmd.Context(), func(ctx context.Context, w *journalWriter) error {
		n, err := journal.New(w, time.Now, w.publish, journal.NoHooks()).Purge(ctx, w, w.retention, f.Confirm)
		if err != nil {
			return err
		}
		return c.print(map[string]int{"purged": n})
	})
}

// journalWriter is the journal, opened by a command that writes.
type journalWriter struct {
	store.Store
	retention time.Duration
	publish   journal.Publisher // nil if events are off
}

// writeJournal opens the journal for do. A signal ends do's context.
func writeJournal(ctx context.Context, do func(context.Context, *journalWriter) error) error {
	settings, err := config.Load("RETRY_WORKER_DATABASE_URL", "RETRY_WORKER_RETENTION", "RETRY_WORKER_EVENTS_URL")
	if err != nil {
		return &usageError{err}
	}
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
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

type eraseFlags struct{ Policy string }

func (c *cli) journalErase(cmd *command, f *eraseFlags, args []string) error {
	return c.send(cmd, cmd.op, []string{f.Policy, args[0]})
}
