package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/text"
)

func (c *cli) decideCommand() *cobra.Command {
	op := operationOf("POST /decisions")
	cmd := &cobra.Command{
		Use:   "decide",
		Short: "Say what would be decided for one failure; needs no engine and no store",
		Long: "Says what would be decided for one failure. Needs no engine and no store, and remembers nothing. The worker that\n" +
			"--server names has its own policies, and knows what was learnt and taught of the cause, too.\n" +
			"Exit 0 for every decision, 2 for input that is rejected.",
		Example: `  retry-worker decide --id CLM-001-1234567890 --error "TIMEOUT - no answer after 30s" --retry-count 1
  retry-worker decide --policy whatsapp-message --id MSG-1 --error "not sent" --http-status 429 -o json
  retry-worker decide --policy job-queue --id JOB-1 --error "disk full" --var maxAttempts=3 --var delayBetweenAttempts=PT30S`,
	}
	op.register(cmd)
	flags := cmd.Flags()
	vars := flags.StringArray("var", nil,
		"NAME=VALUE of a variable that only some policies read, such as maxAttempts=3; may be given again")
	file := policiesFileFlag(cmd)
	c.server.register(flags)
	flags.Lookup("server").Usage = "worker to ask: host:port or https://…; left out: none is asked"
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		own, err := ownVariables(*vars)
		if err != nil {
			return err
		}
		_, body := op.given(cmd)
		body["variables"] = own
		answer, err := c.decision(cmd, body, *file)
		if refused, is := errors.AsType[*api.Refused](err); is {
			if c.json() && refused.Body != nil {
				fmt.Fprintln(c.out, string(refused.Body))
			}
			return &usageError{refused}
		}
		if err != nil {
			return err
		}
		return c.print(answer)
	}
	return cmd
}

// decision asks the worker that --server names; without --server it decides by the catalogue in force.
func (c *cli) decision(cmd *cobra.Command, body map[string]any, file string) ([]byte, error) {
	if c.server.server != "" {
		if file != "" {
			return nil, &usageError{errors.New("--policies-file is given, but a worker has its own policies; leave it or " +
				"--server out")}
		}
		return c.post(cmd.Context(), "/decisions", body)
	}
	from, err := loadCatalogue(file)
	if err != nil {
		return nil, err
	}
	answer, err := api.Decide(from.Policies, time.Now().Truncate(time.Second), text.JSON(body))
	if refused, is := errors.AsType[*api.Refused](err); is {
		refused.Message = operationOf("POST /decisions").inFlags(refused.Message)
		policy, _ := body["policy"].(string)
		if p, _ := from.Policies.Find(policy); p != nil {
			refused.Message = inFlag(inFlag(refused.Message, p.IDVariable, "--id"), p.ErrorVariable, "--error")
		}
	}
	return answer, err
}

// ownVariables returns the variables of --var. A value that is no JSON is a text.
func ownVariables(given []string) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	for _, g := range given {
		name, value, found := strings.Cut(g, "=")
		if _, twice := all[name]; !found || name == "" || twice {
			return nil, &usageError{fmt.Errorf("--var is %q, expected NAME=VALUE, such as maxAttempts=3, each name once", g)}
		}
		if all[name] = json.RawMessage(strings.TrimSpace(value)); !json.Valid([]byte(value)) {
			all[name] = json.RawMessage(decision.Text(value))
		}
	}
	return all, nil
}
