package main

import (
	"cmp"
	"context"
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

func (c *cli) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check what the worker needs step by step, and say what to do where one fails",
		Long: "Checks settings, tokens file, certificate, teams, mail server, database, OpenID provider, NATS, and of the\n" +
			"engine address, TLS, token, cluster, clock and tenants. Changes nothing anywhere.\n" +
			"Exit 1 when a step fails.",
		RunE: func(cmd *cobra.Command, _ []string) error { return c.check(cmd.Context()) },
	}
}

// finding is one step of what `check -o json` prints.
type finding struct {
	Step   string `json:"step"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func (c *cli) check(ctx context.Context) error {
	settings, err := config.Load()
	steps := []app.CheckStep{{Name: "settings", Needed: true, Do: func(context.Context) (string, error) {
		return "the environment is understood", err
	}}}
	if err == nil {
		client, noClient := zeebe.Dial(engineOptions(settings.Engine), zap.NewNop())
		if noClient == nil {
			defer client.Close()
		}
		steps = append(steps, app.CheckSteps(&settings, client, noClient, version)...)
	}
	ok, findings := true, []finding{}
	for _, s := range steps {
		f, err := c.inspect(ctx, &s)
		if f != nil {
			findings = append(findings, *f)
		}
		if ok = ok && err == nil; err != nil && s.Needed {
			break
		}
	}
	if c.json() {
		if err := c.print(map[string]any{"ok": ok, "steps": findings}); err != nil {
			return err
		}
	}
	if !ok {
		return errors.New("the check found something to fix (see above)")
	}
	return nil
}

// inspect carries out a step and prints the result.
func (c *cli) inspect(ctx context.Context, s *app.CheckStep) (*finding, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	detail, err := s.Do(ctx)
	mark := "ok  "
	switch {
	case err != nil:
		mark, detail = "FAIL", strings.ReplaceAll(err.Error(), "\n", "; ")
	case detail == "":
		return nil, nil
	}
	if !c.json() {
		fmt.Fprintf(c.out, "%s  %-24s %s\n", mark, s.Name, detail)
	}
	return &finding{s.Name, err == nil, detail}, err
}

// engineOptions returns the engine's settings with this program's user agent.
func engineOptions(o zeebe.Options) zeebe.Options {
	o.UserAgent = zeebe.UserAgent(version)
	return o
}

const deployTimeout = 30 * time.Second

func (c *cli) deployCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "deploy",
		Short: "Deploy the bundled models to Zeebe",
		Long: "Deploys the bundled models to Zeebe, to each of RETRY_WORKER_TENANT_IDS. A model that is there already " +
			"keeps its version.",
		RunE: func(cmd *cobra.Command, _ []string) error { return c.deploy(cmd.Context()) },
	}
}

type deployed struct {
	Process string `json:"process"`
	Version int32  `json:"version"`
	Key     int64  `json:"key"`
	File    string `json:"file"`
	Tenant  string `json:"tenant"`
}

func (c *cli) deploy(ctx context.Context) error {
	settings, err := config.Load(config.OfEngine...)
	if err != nil {
		return &usageError{err}
	}
	client, err := zeebe.Dial(engineOptions(settings.Engine), zap.NewNop())
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	var all []deployed
	tenants := settings.TenantIDs
	if len(tenants) == 0 {
		tenants = []string{""} // the engine's default
	}
	for _, tenant := range tenants {
		for _, m := range bpmn.Models() {
			done, err := client.Deploy(ctx, m.Name, m.Content, tenant)
			if _, refused := errors.AsType[*zeebe.RefusedModel](err); refused {
				return fmt.Errorf("%w; correct it there, or deploy a model that this engine's version takes", err)
			}
			if err != nil {
				return fmt.Errorf("%w; `retry-worker check` says what is wrong with the connection", err)
			}
			for _, d := range done {
				all = append(all, deployed{d.ProcessID, d.Version, d.Key, m.Name, cmp.Or(tenant, "<default>")})
			}
		}
	}
	return c.print(all)
}
