package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/store"
)

type verifyFlags struct{ Head string }

// verified is what `audit verify -o json` prints.
type verified struct {
	OK bool `json:"ok"`
	audit.Report
	Broken *journal.Broken `json:"broken"`
}

func (c *cli) auditVerify(cmd *command, f *verifyFlags, _ []string) error {
	options := audit.VerifyOptions{}
	if f.Head != "" {
		var err error
		if options.Head, err = journal.ParseHead(f.Head); err != nil {
			return &usageError{fmt.Errorf("--head: %w", err)}
		}
	}
	return readJournal(cmd.Context(), func(ctx context.Context, reader store.Reader) error {
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
type exportFlags struct{ Subject, Policy, Tenant, Since, Until, Format, File string }

// selection returns what the flags select; its errors are usage errors.
func (f *exportFlags) selection() (audit.Selection, error) {
	s := audit.Selection{Policy: f.Policy, Tenant: f.Tenant}
	var noSince, noUntil error
	s.Since, noSince = instantOf("--since", f.Since)
	s.Until, noUntil = instantOf("--until", f.Until)
	switch {
	case noSince != nil || noUntil != nil:
		return s, errors.Join(noSince, noUntil)
	case f.Since != "" && f.Until != "" && !s.Since.Before(s.Until):
		return s, fmt.Errorf("the period is empty: --until %s is not later than --since %s, and is itself not included; "+
			"for one day give the next as --until", f.Until, f.Since)
	case !slices.Contains(audit.Formats(), audit.Format(f.Format)):
		return s, fmt.Errorf("--format is %q, expected jsonl or csv", f.Format)
	case f.Subject != "":
		s.Subject = journal.Subject{ID: f.Subject, Tenant: cmp.Or(f.Tenant, journal.DefaultTenant),
			Policy: cmp.Or(f.Policy, decision.DefaultPolicy)}
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

func (c *cli) auditExport(cmd *command, f *exportFlags, _ []string) error {
	if cmd.Flags().Changed("subject") && f.Subject == "" {
		return &usageError{errors.New("--subject is empty, expected an id; leave it out for all claims")}
	}
	s, err := f.selection()
	if err != nil {
		return &usageError{err}
	}
	var n int64
	err = readJournal(cmd.Context(), func(ctx context.Context, reader store.Reader) error {
		line := c.progress("records written")
		defer line.end()
		return c.writeTo(f.File, func(to io.Writer) (err error) {
			if n, err = audit.Export(ctx, reader, to, s, audit.Format(f.Format), line.show); err != nil {
				return fmt.Errorf("export the audit: %w", err)
			}
			if n == 0 && f.Subject != "" {
				return fmt.Errorf("the audit has no record of %q under policy %s, tenant %s in that period; check the spelling, "+
					"--policy and --tenant", f.Subject, s.Subject.Policy, s.Subject.Tenant)
			}
			return nil
		})
	})
	switch {
	case err != nil:
		return err
	case f.File != "":
		return c.print(exported{f.File, f.Format, n})
	case n == 0: // otherwise the export itself shows it
		fmt.Fprintln(c.errOut, "retry-worker: no record was selected; see --since, --until, --policy and --tenant")
	}
	return nil
}
