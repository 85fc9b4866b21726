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
	"retry-worker/internal/access"
	"retry-worker/internal/app"
	"retry-worker/internal/config"
	"retry-worker/internal/events"
	"retry-worker/internal/notify"
	"retry-worker/internal/store"
	"retry-worker/internal/store/sqlstore"
	"retry-worker/internal/webserver"
	"retry-worker/internal/zeebe"
)

// checkTimeout of one step.
const checkTimeout = 10 * time.Second

func (c *cli) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check the connection to the engine step by step, and say what to do where one fails",
		Long: "Checks settings, tokens file, certificate, teams, mail server, database, OpenID provider, NATS, and of the\n" +
			"engine address, TLS, token, cluster and tenants. Changes nothing anywhere.\n" +
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

// inspection runs steps in order, prints what they find and gathers it.
type inspection struct {
	c        *cli
	findings []finding
	failed   bool
}

// step carries out one step and reports whether nothing is wrong.
func (i *inspection) step(ctx context.Context, name string, do func(context.Context) (string, error)) bool {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	detail, err := do(ctx)
	return i.note(name, detail, err)
}

// note prints and gathers what a step found, and reports whether nothing is wrong.
func (i *inspection) note(name, detail string, err error) bool {
	mark := "ok  "
	if err != nil {
		mark, detail = "FAIL", strings.ReplaceAll(err.Error(), "\n", "; ")
		i.failed = true
	}
	i.findings = append(i.findings, finding{name, err == nil, detail})
	if !i.c.json() {
		fmt.Fprintf(i.c.out, "%s  %-24s %s\n", mark, name, detail)
	}
	return err == nil
}

func (c *cli) check(ctx context.Context) error {
	i := &inspection{c: c}
	inspect(ctx, i)
	if c.json() {
		if err := c.print(map[string]any{"ok": !i.failed, "steps": i.findings}); err != nil {
			return err
		}
	}
	if i.failed {
		return errors.New("the check found something to mend (see above)")
	}
	return nil
}

func inspect(ctx context.Context, i *inspection) {
	settings, err := config.Load()
	if !i.note("settings", "the environment is understood", err) {
		return
	}
	for _, hint := range settings.Unread {
		i.note("settings", hint, nil)
	}
	inspectConsole(i, &settings, time.Now())
	inspectTeams(ctx, i, settings)
	inspectConnections(ctx, i, &settings)
	options := settings.Engine
	options.UserAgent = zeebe.UserAgent(version)
	client, err := zeebe.Dial(options, zap.NewNop())
	if err != nil {
		i.note("connection", "", err)
		return
	}
	defer client.Close()
	if !i.note("engine", options.String(), nil) || !i.step(ctx, "address", func(ctx context.Context) (string, error) {
		address, err := zeebe.CheckAddress(ctx, options)
		return address + " takes connections", err
	}) || !i.step(ctx, "tls", func(ctx context.Context) (string, error) {
		return zeebe.CheckTLS(ctx, options)
	}) {
		return
	}
	inspectEngine(ctx, i, client, settings)
}

func inspectEngine(ctx context.Context, i *inspection, client *zeebe.Client, s config.Settings) {
	if !i.step(ctx, "token", func(ctx context.Context) (string, error) {
		if s.Engine.Username != "" {
			return "none, but user and password (ZEEBE_BASIC_AUTH_USERNAME)", nil
		}
		if s.Engine.OAuth == nil {
			return "none configured (ZEEBE_CLIENT_ID)", nil
		}
		claims, err := client.CheckToken(ctx)
		return "issued by " + s.Engine.OAuth.URL + ": " + claims, err
	}) || !i.step(ctx, "cluster", func(ctx context.Context) (string, error) {
		t, err := client.Topology(ctx)
		if err == nil && t.Leaders < t.Partitions {
			err = fmt.Errorf("%d of %d partitions have a leader; wait until the cluster is healthy", t.Leaders, t.Partitions)
		}
		return fmt.Sprintf("gateway %s, %s, %s with %s", t.GatewayVersion, counted(int64(t.Brokers), "broker"),
			counted(int64(t.Partitions), "partition"), counted(int64(t.Leaders), "leader")), advised(&s.Engine, err)
	}) {
		return
	}
	if s.Engine.RESTAddress != "" {
		i.step(ctx, "clock", func(ctx context.Context) (string, error) { return zeebe.CheckClock(ctx, s.Engine, time.Now) })
	}
	i.step(ctx, "tenants", func(ctx context.Context) (string, error) {
		tenants := cmp.Or(strings.Join(s.TenantIDs, ", "), "the default tenant")
		return "jobs may be taken from " + tenants, advised(&s.Engine, client.MayActivate(ctx, s.TenantIDs))
	})
}

func advised(engine *zeebe.Options, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; %s", err, engine.Advice(err))
}

// inspectConsole looks at the files that let people in, as far as there are any.
func inspectConsole(i *inspection, s *config.Settings, now time.Time) {
	if s.AuthTokensFile != "" {
		detail, err := inspectTokens(s.AuthTokensFile, now)
		i.note("tokens", detail, err)
	}
	if s.TLSCertFile != "" {
		detail, err := inspectCertificate(s.TLSCertFile, s.TLSKeyFile, now)
		i.note("certificate", detail, err)
	}
}

func inspectTokens(path string, now time.Time) (string, error) {
	t, err := access.Load(path)
	if err != nil {
		return "", err
	}
	if t.Expired(now) == t.Len() {
		return "", fmt.Errorf("every token in %s is past its last day: nobody can log in; make one with `retry-worker "+
			"token new`", path)
	}
	return fmt.Sprintf("%d that hold, %d past their last day", t.Len()-t.Expired(now), t.Expired(now)), nil
}

func inspectCertificate(certFile, keyFile string, now time.Time) (string, error) {
	c, err := webserver.LoadCertificate(certFile, keyFile, webserver.CertificateHooks{})
	if err != nil {
		return "", err
	}
	names, until := c.Names(), c.Until()
	if !now.Before(until) {
		return "", fmt.Errorf("the certificate %s ended at %s: browsers refuse it; renew it", certFile,
			until.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("of %s, until %s", strings.Join(names, ", "), until.UTC().Format(time.RFC3339)), nil
}

// inspectConnections opens what the worker connects to beside the engine.
func inspectConnections(ctx context.Context, i *inspection, s *config.Settings) {
	i.step(ctx, "database", func(ctx context.Context) (string, error) { return inspectDatabase(ctx, s.DatabaseURL) })
	if s.Provider != nil {
		i.step(ctx, "OpenID provider", func(ctx context.Context) (string, error) {
			return s.Provider.Issuer + " describes itself", s.Provider.Check(ctx)
		})
	}
	if s.EventsURL != "" {
		i.step(ctx, "NATS", func(ctx context.Context) (string, error) {
			sink, err := events.NewSink(s.EventsURL, s.WorkerName)
			if err == nil {
				err = sink.Check(ctx)
			}
			return "the server takes connections and has JetStream", err
		})
	}
}

func inspectDatabase(ctx context.Context, url string) (string, error) {
	found, err := store.Inspect(ctx, url)
	if err != nil {
		return "", err
	}
	r, err := store.OpenReader(ctx, url)
	if _, is := errors.AsType[*sqlstore.NotBegunError](err); is {
		return found + "; no journal yet: the worker makes it at its first start", nil
	}
	if err != nil {
		return "", err
	}
	defer r.Close() // it only reads
	_, err = r.Head(ctx)
	return found + "; the journal can be read", err
}

// inspectTeams says which team cannot be told of its dead letters; nothing where none is to be.
func inspectTeams(ctx context.Context, i *inspection, s config.Settings) {
	from, err := loadCatalogue(s.PoliciesFile)
	if err != nil {
		i.note("policies", "", err)
		return
	}
	told := int64(0)
	for _, t := range from.Teams {
		if len(notify.ChannelsOf(&t)) > 0 {
			told++
		}
	}
	if told > 0 {
		var err error
		if wrong := notify.Problems(from, s.Notify.SMTP != nil); len(wrong) > 0 {
			err = errors.New(strings.Join(wrong, "; "))
		}
		i.note("teams", counted(told, "team")+" to be told of dead letters by e-mail or webhook", err)
	}
	if s.Notify.SMTP != nil {
		i.step(ctx, "mail server", func(ctx context.Context) (string, error) {
			return fmt.Sprintf("%s:%d takes connections", s.Notify.SMTP.Host,
				s.Notify.SMTP.Port), app.Senders(s.Notify, version).Mailer.Check(ctx)
		})
	}
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
