package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/store"
)

func (c *cli) auditCommand() *cobra.Command {
	return group("audit", "Verify the audit's hash chain, or export its records",
		"Reads the audit in the journal that RETRY_WORKER_DATABASE_URL names, beside a running worker too.",
		c.auditVerifyCommand(), c.auditExportCommand())
}

func (c *cli) auditVerifyCommand() *cobra.Command {
	var head string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check every record against the audit's hash chain",
		Long: "Checks every record of the audit against its digest, and every link of the hash chain against the one\n" +
			"before it. Finds what was edited, deleted, inserted or moved. Only with --head, a head that was kept outside the\n" +
			"database (the worker logs it hourly), does it find a tail that was cut off, or a chain that was rewritten.\n" +
			"Exit 0 if all is sound, 1 with the first broken record or link, or if the journal cannot be read.",
		Example: `  retry-worker audit verify --head 1204:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.auditVerify(cmd.Context(), head) },
	}
	cmd.Flags().StringVar(&head, "head", "", "head of the chain as a log line has it, LINK:HASH; left out: none")
	return cmd
}

// verified is what `audit verify -o json` prints.
type verified struct {
	OK bool `json:"ok"`
	audit.Report
	Broken *journal.Broken `json:"broken"`
}

func (c *cli) auditVerify(ctx context.Context, head string) error {
	options := audit.VerifyOptions{}
	if head != "" {
		var err error
		if options.Head, err = journal.ParseHead(head); err != nil {
			return &usageError{fmt.Errorf("--head: %w", err)}
		}
	}
	return readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		report, err := c.verify(ctx, reader, options)
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
func (c *cli) verify(ctx context.Context, reader store.Reader, options audit.VerifyOptions) (audit.Report, error) {
	line := c.progress("records hold")
	defer line.end()
	return audit.Verify(ctx, reader, options, line.show)
}

// exportFlags holds the flags of audit export; those not given are empty.
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
			"apostrophe stands before it.\n" +
			"Exit 0 when all is written, 1 where the audit has no record of the claim or cannot be read.",
		Example: `  retry-worker audit export --subject CLM-001-1234567890
  retry-worker audit export --since 2026-03-01 --until 2026-04-01 --format csv --file march.csv`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("subject") && f.subject == "" {
				return &usageError{errors.New("--subject is empty, expected an id; leave it out for all claims")}
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
	return cmd
}

// selection returns what the flags select; its errors are usage errors.
func (f *exportFlags) selection() (audit.Selection, error) {
	s := audit.Selection{Policy: f.policy, Tenant: f.tenant}
	var noSince, noUntil error
	s.Since, noSince = instantOf("--since", f.since)
	s.Until, noUntil = instantOf("--until", f.until)
	switch {
	case noSince != nil || noUntil != nil:
		return s, errors.Join(noSince, noUntil)
	case f.since != "" && f.until != "" && !s.Since.Before(s.Until):
		return s, fmt.Errorf("the period is empty: --until %s is not later than --since %s, and is itself not included; "+
			"for one day give the next as --until", f.until, f.since)
	case !slices.Contains(audit.Formats(), audit.Format(f.format)):
		return s, fmt.Errorf("--format is %q, expected jsonl or csv", f.format)
	case f.subject != "":
		s.Subject = journal.Subject{ID: f.subject, Tenant: cmp.Or(f.tenant, journal.DefaultTenant),
			Policy: cmp.Or(f.policy, decision.DefaultPolicy)}
		s.Policy, s.Tenant = "", ""
	}
	return s, nil
}

// exported is what `audit export --file F -o json` prints.
type exported struct {
	File    string `json:"file"`
	Format  string `json:"format"`
	Records int64  `json:"records"`
}

func (c *cli) auditExport(ctx context.Context, f *exportFlags) error {
	s, err := f.selection()
	if err != nil {
		return &usageError{err}
	}
	var n int64
	err = readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		line := c.progress("records written")
		defer line.end()
		return c.writeTo(f.file, func(to io.Writer) (err error) {
			if n, err = audit.Export(ctx, reader, to, s, audit.Format(f.format), line.show); err != nil {
				return fmt.Errorf("export the audit: %w", err)
			}
			if n == 0 && f.subject != "" {
				return fmt.Errorf("the audit has no record of %q under policy %s, tenant %s in that period; check the spelling, "+
					"--policy and --tenant", f.subject, s.Subject.Policy, s.Subject.Tenant)
			}
			return nil
		})
	})
	switch {
	case err != nil:
		return err
	case f.file != "":
		return c.print(exported{f.file, f.format, n})
	case n == 0: // otherwise the export itself shows it
		fmt.Fprintln(c.errOut, "retry-worker: no record was selected; see --since, --until, --policy and --tenant")
	}
	return nil
}
