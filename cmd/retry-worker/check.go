package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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

// step is one of a check; one that has nothing to say is not there. Where it fails and is needed, the check ends.
type step struct {
	name   string
	needed bool
	do     func(context.Context) (detail string, err error)
}

// finding is one step of what `check -o json` prints.
type finding struct {
	Step   string `json:"step"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func (c *cli) check(ctx context.Context) error {
	settings, err := config.Load()
	steps := []step{{"settings", true, func(context.Context) (string, error) { return "the environment is understood", err }}}
	if err == nil {
		client, err := zeebe.Dial(engineOptions(settings.Engine), zap.NewNop())
		if err == nil {
			defer client.Close()
		}
		for _, hint := range settings.Unread {
			steps = append(steps, step{"settings", false, func(context.Context) (string, error) { return hint, nil }})
		}
		steps = slices.Concat(steps, consoleSteps(&settings, time.Now()), connectionSteps(&settings),
			[]step{{"engine", true, func(context.Context) (string, error) { return settings.Engine.String(), err }}},
			engineSteps(client, &settings))
	}
	ok, findings := true, []finding{}
	for _, s := range steps {
		f, err := c.inspect(ctx, &s)
		if f != nil {
			findings = append(findings, *f)
		}
		if ok = ok && err == nil; err != nil && s.needed {
			break
		}
	}
	if c.json() {
		if err := c.print(map[string]any{"ok": ok, "steps": findings}); err != nil {
			return err
		}
	}
	if !ok {
		return errors.New("the check found something to mend (see above)")
	}
	return nil
}

// inspect carries out a step and prints what it found.
func (c *cli) inspect(ctx context.Context, s *step) (*finding, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	detail, err := s.do(ctx)
	mark := "ok  "
	switch {
	case err != nil:
		mark, detail = "FAIL", strings.ReplaceAll(err.Error(), "\n", "; ")
	case detail == "":
		return nil, nil
	}
	if !c.json() {
		fmt.Fprintf(c.out, "%s  %-24s %s\n", mark, s.name, detail)
	}
	return &finding{s.name, err == nil, detail}, err
}

// engineOptions returns the settings of the engine for this program.
func engineOptions(o zeebe.Options) zeebe.Options {
	o.UserAgent = zeebe.UserAgent(version)
	return o
}

func engineSteps(client *zeebe.Client, s *config.Settings) []step {
	advised := func(err error) error {
		if err != nil {
			err = fmt.Errorf("%w; %s", err, s.Engine.Advice(err))
		}
		return err
	}
	return []step{
		{"address", true, func(ctx context.Context) (string, error) {
			address, err := zeebe.CheckAddress(ctx, s.Engine)
			return address + " takes connections", err
		}},
		{"tls", true, func(ctx context.Context) (string, error) { return zeebe.CheckTLS(ctx, s.Engine) }},
		{"token", true, func(ctx context.Context) (string, error) {
			if s.Engine.Username != "" {
				return "none, but user and password (ZEEBE_BASIC_AUTH_USERNAME)", nil
			}
			if s.Engine.OAuth == nil {
				return "none configured (ZEEBE_CLIENT_ID)", nil
			}
			claims, err := client.CheckToken(ctx)
			return "issued by " + s.Engine.OAuth.URL + ": " + claims, err
		}},
		{"cluster", true, func(ctx context.Context) (string, error) {
			t, err := client.Topology(ctx)
			if err == nil && t.Leaders < t.Partitions {
				err = fmt.Errorf("%d of %d partitions have a leader; wait until the cluster is healthy", t.Leaders, t.Partitions)
			}
			return fmt.Sprintf("gateway %s, %s, %s with %s", t.GatewayVersion, counted(int64(t.Brokers), "broker"),
				counted(int64(t.Partitions), "partition"), counted(int64(t.Leaders), "leader")), advised(err)
		}},
		{"clock", false, func(ctx context.Context) (string, error) {
			if s.Engine.RESTAddress == "" {
				return "", nil
			}
			return zeebe.CheckClock(ctx, s.Engine, time.Now)
		}},
		{"tenants", false, func(ctx context.Context) (string, error) {
			return "jobs may be taken from " + cmp.Or(strings.Join(s.TenantIDs, ", "), "the default tenant"),
				advised(client.MayActivate(ctx, s.TenantIDs))
		}},
	}
}

// consoleSteps look at the files that let people in, as far as there are any.
func consoleSteps(s *config.Settings, now time.Time) []step {
	return []step{
		{"tokens", false, func(context.Context) (string, error) {
			if s.AuthTokensFile == "" {
				return "", nil
			}
			t, err := access.Load(s.AuthTokensFile)
			if err != nil {
				return "", err
			}
			if t.Expired(now) == t.Len() {
				return "", fmt.Errorf("every token in %s is past its last day: nobody can log in; make one with `retry-worker "+
					"token new`", s.AuthTokensFile)
			}
			return fmt.Sprintf("%d that hold, %d past their last day", t.Len()-t.Expired(now), t.Expired(now)), nil
		}},
		{"certificate", false, func(context.Context) (string, error) {
			if s.TLSCertFile == "" {
				return "", nil
			}
			c, err := webserver.LoadCertificate(s.TLSCertFile, s.TLSKeyFile, webserver.CertificateHooks{})
			if err != nil {
				return "", err
			}
			until := c.Until().UTC()
			if !now.Before(until) {
				return "", fmt.Errorf("the certificate %s ended at %s: browsers refuse it; renew it", s.TLSCertFile,
					until.Format(time.RFC3339))
			}
			return fmt.Sprintf("of %s, until %s", strings.Join(c.Names(), ", "), until.Format(time.RFC3339)), nil
		}},
	}
}

// connectionSteps open what the worker connects to beside the engine.
func connectionSteps(s *config.Settings) []step {
	return []step{
		{"teams", false, func(context.Context) (string, error) { return inspectTeams(s) }},
		{"mail server", false, func(ctx context.Context) (string, error) {
			if s.Notify.SMTP == nil {
				return "", nil
			}
			return fmt.Sprintf("%s:%d takes connections", s.Notify.SMTP.Host, s.Notify.SMTP.Port),
				app.Senders(s.Notify, version).Mailer.Check(ctx)
		}},
		{"database", false, func(ctx context.Context) (string, error) { return inspectDatabase(ctx, s.DatabaseURL) }},
		{"OpenID provider", false, func(ctx context.Context) (string, error) {
			if s.Provider == nil {
				return "", nil
			}
			return s.Provider.Issuer + " describes itself", s.Provider.Check(ctx)
		}},
		{"NATS", false, func(ctx context.Context) (string, error) {
			if s.EventsURL == "" {
				return "", nil
			}
			sink, err := events.NewSink(s.EventsURL, s.WorkerName)
			if err == nil {
				err = sink.Check(ctx)
			}
			return "the server takes connections and has JetStream", err
		}},
	}
}

func inspectDatabase(ctx context.Context, url string) (string, error) {
	found, err := store.Inspect(ctx, url)
	if err != nil {
		return "", err
	}
	err = readStore(ctx, url, func(ctx context.Context, reader store.Reader) error {
		_, err := reader.Head(ctx)
		return err
	})
	if _, is := errors.AsType[*sqlstore.NotBegunError](err); is {
		return found + "; no journal yet: the worker makes it at its first start", nil
	}
	return found + "; the journal can be read", err
}

// inspectTeams says which team cannot be told of its dead letters; nothing where none is to be.
func inspectTeams(s *config.Settings) (string, error) {
	from, err := loadCatalogue(s.PoliciesFile)
	if err != nil {
		return "", err
	}
	told := int64(0)
	for _, t := range from.Teams {
		if len(notify.ChannelsOf(&t)) > 0 {
			told++
		}
	}
	if told == 0 {
		return "", nil
	}
	if wrong := notify.Problems(from, s.Notify.SMTP != nil); len(wrong) > 0 {
		err = errors.New(strings.Join(wrong, "; "))
	}
	return counted(told, "team") + " to be told of dead letters by e-mail or webhook", err
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
	client, err := zeebe.Dial(engineOptions(engine), zap.NewNop())
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
