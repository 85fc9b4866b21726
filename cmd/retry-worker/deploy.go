package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"retry-worker/bpmn"
	"retry-worker/internal/config"
	"retry-worker/internal/zeebe"
)

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
	engine, tenants, err := config.LoadEngine()
	if err != nil {
		return &usageError{err}
	}
	engine.UserAgent = zeebe.UserAgent(version)
	client, err := zeebe.Dial(engine, zap.NewNop())
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	var all []deployed
	for _, tenant := range tenantsOrDefault(tenants) {
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
	return c.print(all, func() {
		for _, d := range all {
			fmt.Fprintf(c.out, "%s version %d deployed (%s, tenant %s)\n", d.Process, d.Version, d.File, d.Tenant)
		}
	})
}

// tenantsOrDefault returns each tenant to deploy to; the empty one is the engine's default.
func tenantsOrDefault(ids []string) []string {
	if len(ids) == 0 {
		return []string{""}
	}
	return ids
}
