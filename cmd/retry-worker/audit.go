package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/api"
	"retry-worker/internal/audit"
	"retry-worker/internal/config"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/store"
)

func (c *cli) auditCommand() *cobra.Command {
	return group("audit", "Verify the audit's hash chain, or export its records",
		"Verifies and exports the audit, which is kept in the journal that RETRY_WORKER_DATABASE_URL names.\n"+
			"Both read only, beside a running worker too.",
		c.auditVerifyCommand(), c.auditExportCommand())
}

func (c *cli) auditVerifyCommand() *cobra.Command {
	var head string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Hold every record against the audit's hash chain",
		Long: "Holds every record of the audit against its digest, and every link of the hash chain against the one " +
			"before it.\n" +
			"Finds what was edited, deleted, put in or put elsewhere. Only with --head, a head that was kept outside the\n" +
			"database (the worker logs it hourly), it finds a tail that was cut off and a chain that was written anew.\n" +
			"Exit 0 where all holds, 1 with the first broken record or link, and where the journal cannot be read.",
		Example: `  retry-worker audit verify
  retry-worker audit verify --head 1204:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.auditVerify(cmd.Context(), head) },
	}
	cmd.Flags().StringVar(&head, "head", "", "head of the chain as a log line has it, LINK:HASH; left out: none")
	return cmd
}

// verified is what `audit verify -o json` prints.
type verified struct {
	OK bool `json:"ok"`
	audit.Report
	Broken *audit.Broken `json:"broken"`
}

func (c *cli) auditVerify(ctx context.Context, head string) error {
	options := audit.VerifyOptions{}
	if head != "" {
		var err error
		if options.Head, err = audit.ParseCheckpoint(head); err != nil {
			return &usageError{fmt.Errorf("--head: %w", err)}
		}
	}
	return readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		bar := c.progress("records hold")
		report, err := audit.Verify(ctx, reader, options, bar.show)
		bar.end()
		broken, isBroken := errors.AsType[*audit.Broken](err)
		if err != nil && !isBroken {
			return fmt.Errorf("verify the audit: %w", err)
		}
		err = c.print(verified{!isBroken, report, broken}, func() {
			if !isBroken {
				c.printReport(&report)
			}
		})
		if err == nil && isBroken {
			err = fmt.Errorf("the audit is broken: %w", broken)
		}
		return err
	})
}

func (c *cli) printReport(r *audit.Report) {
	fmt.Fprintf(c.out, "the audit holds: %d links, %d records\n", r.Links, r.Records)
	if r.Erased > 0 {
		fmt.Fprintf(c.out, "erased: %d records of subjects, their digests are kept\n", r.Erased)
	}
	if r.Purged > 0 {
		fmt.Fprintf(c.out, "purged: %d records, their digests are kept\n", r.Purged)
	}
	fmt.Fprintf(c.out, "head: %s\n", r.Head)
}

// readJournal opens the journal for do, which the user may end: what was begun is cleaned up then.
func readJournal(ctx context.Context, do func(context.Context, store.Reader) error) error {
	url, err := config.DatabaseURL()
	if err != nil {
		return &usageError{err}
	}
	ctx, cancel := untilSignal(ctx)
	defer cancel()
	reader, err := store.OpenReader(ctx, url)
	if err != nil {
		return err
	}
	defer reader.Close() // it only reads
	return do(ctx, reader)
}

// exportFlags of audit export; what was not given is empty.
type exportFlags struct {
	subject, policy, tenant, since, until, format, file string
}

func (c *cli) auditExportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write the audit's records as JSON Lines or CSV: of a claim, of a period, or all",
		Long: "Writes the audit's records, the oldest first, to standard output or a file. Personal data was redacted\n" +
			"before they were recorded. A date is midnight UTC of that day; --since is included, --until is not:\n" +
			"March 2026 is --since 2026-03-01 --until 2026-04-01. CSV is as Excel opens it in Brazil: UTF-8 with a\n" +
			"byte order mark, semicolons, decimal commas; where it would take a part of a text for a formula, an\n" +
			"apostrophe stands before it. With --server it asks a worker for the records of one claim.\n" +
			"Exit 0 when all is written, 1 where the audit has no record of the claim or cannot be read.",
		Example: `  retry-worker audit export --subject CLM-001-1234567890
  retry-worker audit export --since 2026-03-01 --until 2026-04-01 --format csv --file march.csv
  retry-worker audit export --since 2026-03-01T08:00:00-03:00 | gzip > audit.jsonl.gz`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("subject") && f.subject == "" {
				return &usageError{errors.New("--subject is empty, expected an id such as CLM-001-1234567890; leave it out for " +
					"all claims")}
			}
			if c.server.server != "" && f.subject == "" {
				return &usageError{errors.New("--server exports the records of one claim, expected --subject with it")}
			}
			return c.auditExport(cmd.Context(), &f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.subject, "subject", "", "id of the claim (message, job); left out: all")
	flags.StringVar(&f.policy, "policy", "",
		"policy the records belong to; left out: "+decision.DefaultPolicy+" with --subject, otherwise all")
	flags.StringVar(&f.tenant, "tenant", "",
		"tenant the records belong to; left out: "+journal.DefaultTenant+" with --subject, otherwise all")
	flags.StringVar(&f.since, "since", "", "first instant, a date or RFC 3339; left out: the beginning")
	flags.StringVar(&f.until, "until", "", "end, itself not included, a date or RFC 3339; left out: now")
	flags.StringVar(&f.format, "format", string(audit.JSONLines), "how to write the records: jsonl or csv")
	flags.StringVar(&f.file, "file", "", "file to write, which must not exist; left out: standard output")
	c.server.registerAs(flags, askInstead)
	return cmd
}

// selection returns what the flags choose; its errors are wrong use.
func (f *exportFlags) selection() (audit.Selection, error) {
	s := audit.Selection{Policy: f.policy, Tenant: f.tenant}
	var noSince, noUntil error
	s.Since, noSince = boundFlag("since", f.since)
	s.Until, noUntil = boundFlag("until", f.until)
	if err := errors.Join(noSince, noUntil); err != nil {
		return s, err
	}
	if f.since != "" && f.until != "" && !s.Since.Before(s.Until) {
		return s, fmt.Errorf("the period is empty: --until %s is not later than --since %s, and is itself not included; "+
			"for one day give the next as --until", f.until, f.since)
	}
	if f.subject != "" {
		s.Subject = journal.Subject{Tenant: cmp.Or(f.tenant, journal.DefaultTenant),
			Policy: cmp.Or(f.policy, decision.DefaultPolicy), ID: f.subject}
		s.Policy, s.Tenant = "", ""
	}
	return s, nil
}

// boundFlag reads a date or an instant; the zero time where there is none.
func boundFlag(name, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, ok := decision.ParseInstant(s)
	if day, err := time.Parse(time.DateOnly, s); err == nil {
		t, ok = day, true
	}
	if ok && t.Year() >= 1 && t.Year() <= 9998 {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("--%s is %q, expected a date such as 2026-03-01 (midnight UTC) or an instant such as "+
		"2026-03-01T08:00:00-03:00", name, s)
}

// exported is what `audit export --file F -o json` prints.
type exported struct {
	File    string `json:"file"`
	Format  string `json:"format"`
	Records int64  `json:"records"`
}

func (c *cli) auditExport(ctx context.Context, f *exportFlags) error {
	s, err := f.selection()
	if err := wrongUse(err, oneOf("format", audit.Format(f.format), audit.Formats())); err != nil {
		return err
	}
	if c.server.server != "" {
		records, err := c.askRecords(ctx, &s)
		if err != nil {
			return err
		}
		return c.exportTo(f, &s, func(to io.Writer) (int64, error) {
			return audit.Write(to, audit.Format(f.format), func(yield func(audit.Record, error) bool) {
				for _, r := range records {
					if !yield(r, nil) {
						return
					}
				}
			})
		})
	}
	return readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		return c.exportTo(f, &s, func(to io.Writer) (int64, error) {
			bar := c.progress("records written")
			defer bar.end()
			return audit.Export(ctx, reader, to, s, audit.Format(f.format), bar.show)
		})
	})
}

// askRecords returns the records of one claim that a worker has in the period.
func (c *cli) askRecords(ctx context.Context, s *audit.Selection) (records []audit.Record, err error) {
	for path := subjectPath(s.Subject, "/audit"); path != ""; {
		some, _, err := asked[api.Page[audit.Record]](ctx, c, path, nil)
		if err != nil {
			return nil, err
		}
		records = append(records, some.Items...)
		if path = ""; some.Next != nil {
			path = subjectPath(s.Subject, "/audit") + "&cursor=" + url.QueryEscape(*some.Next)
		}
	}
	return slices.DeleteFunc(records, func(r audit.Record) bool {
		at, _ := decision.ParseInstant(r.Timestamp) // an API's own
		return at.Before(s.Since) || !s.Until.IsZero() && !at.Before(s.Until)
	}), nil
}

// exportTo has the records written to where the flags say, and prints how many there are.
func (c *cli) exportTo(f *exportFlags, s *audit.Selection, write func(io.Writer) (int64, error)) error {
	var n int64
	err := c.writeTo(f.file, func(to io.Writer) (err error) {
		if n, err = write(to); err != nil {
			return fmt.Errorf("export the audit: %w", err)
		}
		if n > 0 || f.subject == "" {
			return nil
		}
		period := ""
		if f.since+f.until != "" {
			period = " in that period"
		}
		return fmt.Errorf("the audit has no record of %q under policy %s, tenant %s%s; check the spelling, --policy and "+
			"--tenant", f.subject, s.Subject.Policy, s.Subject.Tenant, period)
	})
	switch {
	case err != nil:
		return err
	case f.file != "":
		return c.print(exported{f.file, f.format, n}, func() { fmt.Fprintf(c.out, "%d records written to %s\n", n, f.file) })
	case n == 0: // otherwise the records speak for themselves
		fmt.Fprintln(c.errOut, "retry-worker: no record was selected; see --since, --until, --policy and --tenant")
	}
	return nil
}

// writeTo writes a new file; without a name it writes standard output.
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
