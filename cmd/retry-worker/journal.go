package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"retry-worker/internal/api"
	"retry-worker/internal/audit"
	"retry-worker/internal/config"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/events"
	"retry-worker/internal/journal"
	"retry-worker/internal/smallfile"
	"retry-worker/internal/statistics"
	"retry-worker/internal/store"
)

// readJournal opens the journal for do. A signal ends do's context, so that it can clean up.
func (c *cli) readJournal(ctx context.Context, do func(context.Context, store.Reader) error) error {
	settings, err := config.Load("RETRY_WORKER_DATABASE_URL")
	if err != nil {
		return err
	}
	c.begun = true
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
	return c.readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		source, is := reader.(interface {
			Backup(ctx context.Context, path string) error
		})
		if c.begun = is; !is {
			return errors.New("the journal is in PostgreSQL, expected one in a SQLite file; save it by pg_dump --format=custom")
		}
		shown := verified{OK: true}
		err := smallfile.Create(name, func(part string) error {
			if err := source.Backup(ctx, part); err != nil {
				return fmt.Errorf("back up to %s: %w", name, err)
			}
			return readStore(ctx, "sqlite:"+part, func(ctx context.Context, copied store.Reader) (err error) {
				if shown.Report, err = c.verify(ctx, copied, journal.Head{}); err != nil {
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
	return smallfile.Create(name, func(part string) error {
		file, err := os.OpenFile(part, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(file), file.Sync(), file.Close())
	})
}

func (c *cli) journalRebuild(ctx context.Context, _ []string) error {
	return c.writeJournal(ctx, func(ctx context.Context, w *journalWriter) error {
		line := c.progress("subjects made anew")
		err := audit.Rebuild(ctx, w, time.Now(), c.FromUnverified, w.publish, line.show)
		if line.end(); err != nil {
			return err
		}
		return c.print(map[string]bool{"rebuilt": true})
	})
}

func (c *cli) journalPurge(ctx context.Context, _ []string) error {
	return c.writeJournal(ctx, func(ctx context.Context, w *journalWriter) error {
		n, err := journal.New(w, time.Now, w.publish, journal.NoHooks()).Purge(ctx, w, w.retention, c.Confirm)
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
func (c *cli) writeJournal(ctx context.Context, do func(context.Context, *journalWriter) error) error {
	settings, err := config.Load("RETRY_WORKER_DATABASE_URL", "RETRY_WORKER_RETENTION", "RETRY_WORKER_EVENTS_URL")
	if err != nil {
		return err
	}
	c.begun = true
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

func (c *cli) journalErase(ctx context.Context, args []string) error {
	return c.send(ctx, c.command.op, []string{c.Policy, args[0]})
}

// verified is what `audit verify -o json` prints.
type verified struct {
	OK bool `json:"ok"`
	audit.Report
	Broken *journal.Broken `json:"broken"`
}

func (c *cli) auditVerify(ctx context.Context, _ []string) error {
	var kept journal.Head
	if c.Head != "" {
		var err error
		if kept, err = journal.ParseHead(c.Head); err != nil {
			return fmt.Errorf("--head: %w", err)
		}
	}
	return c.readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		report, err := c.verify(ctx, reader, kept)
		broken, isBroken := errors.AsType[*journal.Broken](err)
		if err != nil && !isBroken {
			return fmt.Errorf("verify the audit: %w", err)
		}
		err = c.print(verified{!isBroken, report, broken})
		if err == nil && isBroken {
			err = fmt.Errorf("the audit is broken: %w", broken)
		}
		return err
	})
}

// verify checks a journal's records against its hash chain.
func (c *cli) verify(ctx context.Context, reader store.Reader, kept journal.Head) (audit.Report, error) {
	line := c.progress("records hold")
	defer line.end()
	return audit.Verify(ctx, reader, kept, line.show)
}

// selection returns what the flags of audit export select.
func (c *cli) selection() (audit.Selection, error) {
	s := audit.Selection{Policy: c.Policy, Tenant: c.Tenant}
	var noSince, noUntil error
	s.Since, noSince = instantOf("--since", c.Since)
	s.Until, noUntil = instantOf("--until", c.Until)
	switch {
	case noSince != nil || noUntil != nil:
		return s, errors.Join(noSince, noUntil)
	case c.Since != "" && c.Until != "" && !s.Since.Before(s.Until):
		return s, fmt.Errorf("the period is empty: --until %s is not later than --since %s, and is itself not included; "+
			"for one day give the next as --until", c.Until, c.Since)
	case !slices.Contains(audit.Formats(), audit.Format(c.Format)):
		return s, fmt.Errorf("--format is %q, expected jsonl or csv", c.Format)
	case c.Subject != "":
		s.Subject = journal.Subject{ID: c.Subject, Tenant: cmp.Or(c.Tenant, journal.DefaultTenant),
			Policy: cmp.Or(c.Policy, decision.DefaultPolicy)}
		s.Policy, s.Tenant = "", ""
	}
	return s, nil
}

func (c *cli) auditExport(ctx context.Context, _ []string) error {
	if c.command.Flags().Changed("subject") && c.Subject == "" {
		return errors.New("--subject is empty, expected an id; leave it out for all claims")
	}
	s, err := c.selection()
	if err != nil {
		return err
	}
	var n int64
	err = c.readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		line := c.progress("records written")
		defer line.end()
		return c.writeTo(c.File, func(to io.Writer) (err error) {
			if n, err = audit.Export(ctx, reader, to, s, audit.Format(c.Format), line.show); err != nil {
				return fmt.Errorf("export the audit: %w", err)
			}
			if n == 0 && c.Subject != "" {
				return fmt.Errorf("the audit has no record of %q under policy %s, tenant %s in that period; check the spelling, "+
					"--policy and --tenant", c.Subject, s.Subject.Policy, s.Subject.Tenant)
			}
			return nil
		})
	})
	switch {
	case err != nil:
		return err
	case c.File != "":
		return c.print(map[string]any{"file": c.File, "format": c.Format, "records": n})
	case n == 0: // otherwise the export itself shows it
		fmt.Fprintln(c.errOut, "retry-worker: no record was selected; see --since, --until, --policy and --tenant")
	}
	return nil
}

// subjectHistory is what `history -o json` prints.
type subjectHistory struct {
	Subject string `json:"subject"`
	Policy  string `json:"policy"`
	api.View
}

func (c *cli) history(ctx context.Context, args []string) error {
	s := journal.Subject{Tenant: c.Tenant, Policy: c.Policy, ID: args[0]}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return c.readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		story, found, err := reader.Story(ctx, s)
		if err == nil && !found {
			err = fmt.Errorf("the journal knows no failure of %q under policy %s, tenant %s; check the spelling, --policy and "+
				"--tenant", s.ID, s.Policy, s.Tenant)
		}
		if err != nil {
			return err
		}
		return c.print(subjectHistory{s.ID, s.Policy, api.ViewOf(&story, time.Now())},
			"episodes: number state retryCount firstFailure closedAt nextRetryTime deadLetterId",
			"attempts: episode attemptNumber revision timestamp outcome retryReason nextRetryTime responsibleTeam error")
	})
}

func (c *cli) kpi(ctx context.Context, _ []string) error {
	from, err := loadCatalogue(c.PoliciesFile)
	if err != nil {
		return err
	}
	return c.kpis(ctx, from.Policies.Names(), c.Policy, time.Now())
}

// kpis prints the figures of policies, or of the one named policy, at now or at the last record, whichever is later: a
// worker of make run is ahead.
func (c *cli) kpis(ctx context.Context, policies []string, policy string, now time.Time) error {
	return c.readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		head, err := reader.Head(ctx)
		if err != nil {
			return err
		}
		last, err := reader.Records(ctx, journal.RecordFilter{Since: now}, head.Record-1, 1)
		if err != nil {
			return err
		}
		if len(last) > 0 {
			now = last[0].At
		}
		kpis, err := statistics.KPIs(ctx, reader, policies, policy, now)
		if unknown, is := errors.AsType[*statistics.UnknownPolicyError](err); is {
			return fmt.Errorf("--policy: %w", unknown)
		}
		if err != nil {
			return err
		}
		if c.json() {
			return c.print(map[string]any{"kpis": kpis})
		}
		var rows []map[string]any // one for each goal, or for a figure without any
		for i := range kpis {
			if len(kpis[i].Goals) == 0 {
				rows = append(rows, map[string]any{"of": kpis[i]})
			}
			for _, g := range kpis[i].Goals {
				rows = append(rows, map[string]any{"of": kpis[i], "goal": g})
			}
		}
		return c.print(map[string]any{"kpis": rows}, "kpis: of.policy of.name of.value of.unit of.windowHours of.samples "+
			"goal.kind goal.compare goal.limit goal.rule goal.holds")
	})
}
