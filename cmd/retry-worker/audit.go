package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"retry-worker/internal/audit"
	"retry-worker/internal/config"
	"retry-worker/internal/store"
)

func (c *cli) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Verify the audit's hash chain, or export its records",
		Long: "Verifies and exports the audit, which is kept in the journal that RETRY_WORKER_DATABASE_URL names.\n" +
			"Both read only, beside a running worker too.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q; `%s --help` lists the commands", args[0], cmd.CommandPath())
			}
			return fmt.Errorf("expected a command behind audit: verify or export; `%s --help` says more", cmd.CommandPath())
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(c.auditVerifyCommand(), c.auditExportCommand())
	return cmd
}

func (c *cli) auditVerifyCommand() *cobra.Command {
	var head string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Hold every record against the audit's hash chain",
		Long: "Holds every record of the audit against its digest, and every link of the hash chain against the one before it.\n" +
			"Finds what was edited, deleted, put in or put elsewhere. Only with --head, a head that was kept outside the\n" +
			"database (the worker logs it hourly), it finds a tail that was cut off and a chain that was written anew.\n" +
			"Exit 0 where all holds, 1 with the first broken record or link, and where the journal cannot be read.",
		Example: `  retry-worker audit verify
  retry-worker audit verify --head 1204:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
		Args: noArgs,
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
		if options.Head, err = audit.ParseMark(head); err != nil {
			return &usageError{fmt.Errorf("--head: %w", err)}
		}
	}
	ctx, reader, done, err := openJournal(ctx)
	if err != nil {
		return err
	}
	defer done()
	bar := c.progress("records hold")
	report, err := audit.Verify(ctx, reader, options, bar.show)
	bar.end()
	broken, isBroken := errors.AsType[*audit.Broken](err)
	if err != nil && !isBroken {
		return fmt.Errorf("verify the audit: %w", err)
	}
	switch {
	case c.json():
		if err := json.NewEncoder(c.out).Encode(verified{!isBroken, report, broken}); err != nil {
			return err
		}
	case !isBroken:
		c.printReport(&report)
	}
	if isBroken {
		return fmt.Errorf("the audit is broken: %w", broken)
	}
	return nil
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

// openJournal opens the journal for reading until done is called, or the user ends it: what was begun is cleaned up then.
func openJournal(ctx context.Context) (_ context.Context, _ store.Reader, done func(), _ error) {
	url, err := config.DatabaseURL()
	if err != nil {
		return ctx, nil, nil, &usageError{err}
	}
	ctx, cancel := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	reader, err := store.OpenReader(ctx, url)
	if err != nil {
		cancel()
		return ctx, nil, nil, err
	}
	return ctx, reader, func() {
		_ = reader.Close() // it only reads
		cancel()
	}, nil
}
