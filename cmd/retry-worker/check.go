package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"retry-worker/bpmn"
	"retry-worker/internal/app"
	"retry-worker/internal/config"
	"retry-worker/internal/zeebe"
)

// finding is one step of what `check -o json` prints.
type finding struct {
	Step   string `json:"step"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func (c *cli) check(ctx context.Context, _ []string) error {
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

type deployed struct {
	Process string `json:"process"`
	Version int32  `json:"version"`
	Key     int64  `json:"key"`
	File    string `json:"file"`
	Tenant  string `json:"tenant"`
}

func (c *cli) deploy(ctx context.Context, _ []string) error {
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
