package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"retry-worker/internal/console"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

func (c *cli) journalEraseCommand() *cobra.Command {
	var server serverFlags
	var subject journal.Subject
	var reason string
	cmd := &cobra.Command{
		Use:   "erase SUBJECT",
		Short: "Erase what was recorded of a claim, message or job (LGPD; role admin)",
		Long: "Asks a running worker to erase a subject for good: its records go, and its name wherever it stands. The records' digests,\n" +
			"the figures and the counts stay, under a pseudonym that is printed, and `audit verify` holds. It is refused while a retry, a\n" +
			"person's decision, an answer to the process or a bulk run is still under way. Backups keep the subject, and so does what was\n" +
			"exported, or sent as an event.",
		Example: `  retry-worker journal erase CLM-001-1234567890 --reason "pedido do titular, protocolo 4711"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d subjects given, expected one, such as CLM-001-1234567890; `%s --help` says more",
					len(args), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			subject.ID = args[0]
			return c.erase(cmd.Context(), &server, subject, reason)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "who asked for it, and why; kept in the audit")
	cmd.Flags().StringVar(&subject.Policy, "policy", decision.DefaultPolicy, "policy the subject belongs to")
	cmd.Flags().StringVar(&subject.Tenant, "tenant", journal.DefaultTenant, "tenant the subject belongs to")
	server.register(cmd.Flags())
	return cmd
}

func (c *cli) erase(ctx context.Context, server *serverFlags, s journal.Subject, reason string) error {
	if err := wrongUse(checkReason(reason)); err != nil {
		return err
	}
	client, err := server.client()
	if err != nil {
		return err
	}
	path := "/subjects/" + url.PathEscape(s.Policy) + "/" + url.PathEscape(s.ID) + "/erase?tenant=" + url.QueryEscape(s.Tenant)
	done, text, err := asked[console.Erased](ctx, client, path, map[string]string{"reason": reason})
	if err != nil {
		return err
	}
	if c.json() {
		_, err = fmt.Fprintln(c.out, string(text))
	} else {
		_, err = fmt.Fprintf(c.out, "erased: %d records; what is counted goes on as %s (record %d)\n",
			done.Records, inertLine(done.Pseudonym, 200), done.Record)
	}
	return err
}
