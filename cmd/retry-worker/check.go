package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"retry-worker/bpmn"
	"retry-worker/internal/app"
	"retry-worker/internal/config"
	"retry-worker/internal/zeebe"
)

// checkTimeout of one step.
const checkTimeout = 10 * time.Second

func (c *cli) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the connection to the engine step by step, and say what to do where one fails",
		Long:  "Checks settings, tokens file, certificate, teams, mail server, address, TLS, token, cluster, tenants and deployed processes. Changes nothing in the engine.\nExit 1 when a step fails.",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return c.check(cmd.Context()) },
	}
}

// finding is one line of the check.
type finding struct {
	Step   string `json:"step"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// inspection runs steps in order; after one that the others need has failed, nothing else is tried.
type inspection struct {
	findings []finding
	failed   bool
	report   func(finding)
}

func (i *inspection) step(ctx context.Context, name string, needed bool, do func(context.Context) (string, error)) bool {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	detail, err := do(ctx)
	f := finding{name, err == nil, detail}
	if err != nil {
		f.Detail = strings.ReplaceAll(err.Error(), "\n", "; ")
		i.failed = true
	}
	i.findings = append(i.findings, f)
	i.report(f)
	return err == nil || !needed
}

func (c *cli) check(ctx context.Context) error {
	i := &inspection{report: c.printFinding}
	c.inspect(ctx, i)
	if c.json() {
		if err := json.NewEncoder(c.out).Encode(map[string]any{"ok": !i.failed, "steps": i.findings}); err != nil {
			return err
		}
	}
	if i.failed {
		return errors.New("the check found something to mend (see above)")
	}
	return nil
}

func (c *cli) printFinding(f finding) {
	if c.json() {
		return
	}
	mark := "ok  "
	if !f.OK {
		mark = "FAIL"
	}
	fmt.Fprintf(c.out, "%s  %-24s %s\n", mark, f.Step, f.Detail)
}

func (c *cli) inspect(ctx context.Context, i *inspection) {
	var settings config.Settings
	if !i.step(ctx, "settings", true, func(context.Context) (_ string, err error) {
		settings, err = config.Load()
		return "the environment is understood", err
	}) {
		return
	}
	inspectConsole(ctx, i, &settings, time.Now())
	inspectTeams(ctx, i, settings)
	options := app.EngineOptions(settings.Engine, version)
	if !i.step(ctx, "address", true, func(ctx context.Context) (string, error) {
		return options.Address + " takes connections", zeebe.CheckAddress(ctx, options)
	}) || !i.step(ctx, "tls", true, func(ctx context.Context) (string, error) {
		if options.Plaintext {
			return "off (ZEEBE_INSECURE_CONNECTION)", nil
		}
		return zeebe.CheckTLS(ctx, options)
	}) {
		return
	}
	client, err := zeebe.Dial(options, zap.NewNop())
	if err != nil {
		i.step(ctx, "connection", true, func(context.Context) (string, error) { return "", err })
		return
	}
	defer client.Close()
	inspectEngine(ctx, i, client, settings)
}

func inspectEngine(ctx context.Context, i *inspection, client *zeebe.Client, s config.Settings) {
	if !i.step(ctx, "token", true, func(ctx context.Context) (string, error) {
		if s.Engine.OAuth == nil {
			return "none configured (ZEEBE_CLIENT_ID)", nil
		}
		return "issued by " + s.Engine.OAuth.URL, client.CheckToken(ctx)
	}) || !i.step(ctx, "cluster", true, func(ctx context.Context) (string, error) {
		t, err := client.Topology(ctx)
		if err == nil && t.Leaders < t.Partitions {
			err = fmt.Errorf("%d of %d partitions have a leader; wait until the cluster is healthy", t.Leaders, t.Partitions)
		}
		return fmt.Sprintf("gateway %s, %d broker(s), %d partition(s)", t.GatewayVersion, t.Brokers, t.Partitions), advised(err)
	}) {
		return
	}
	if !i.step(ctx, "tenants", true, func(ctx context.Context) (string, error) {
		return "jobs may be taken from " + tenantNames(s.TenantIDs), advised(client.MayActivate(ctx, s.TenantIDs))
	}) {
		return // an engine that refuses the tenant says the same of a process it has and of one it has not
	}
	for _, tenant := range tenantsOrDefault(s.TenantIDs) {
		for _, m := range bpmn.Models() {
			i.step(ctx, "process "+m.ProcessID, false, func(ctx context.Context) (string, error) {
				found, err := client.HasProcess(ctx, m.ProcessID, tenant)
				if err == nil && !found {
					return "", errors.New("not deployed; run `retry-worker deploy`, or leave it if you use a model of your own")
				}
				return "deployed", advised(err)
			})
		}
	}
}

func advised(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; %s", err, zeebe.Advice(err))
}

// tenantsOrDefault is each tenant to look at; the empty one is the engine's default.
func tenantsOrDefault(ids []string) []string {
	if len(ids) == 0 {
		return []string{""}
	}
	return ids
}

func tenantNames(ids []string) string {
	if len(ids) == 0 {
		return "the default tenant"
	}
	return strings.Join(ids, ", ")
}
