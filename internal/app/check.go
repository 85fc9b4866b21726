package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/config"
	"retry-worker/internal/events"
	"retry-worker/internal/notify"
	"retry-worker/internal/smallfile"
	"retry-worker/internal/store"
	"retry-worker/internal/store/sqlstore"
	"retry-worker/internal/text"
	"retry-worker/internal/web"
	"retry-worker/internal/zeebe"
)

// CheckStep is one step of a check of what a worker needs. An empty result means nothing to report. If a needed step
// fails, the check ends.
type CheckStep struct {
	Name   string
	Needed bool
	Do     func(context.Context) (detail string, err error)
}

// CheckSteps returns the steps, in order, that check what a worker with these settings needs. They change nothing.
// client may be nil if noClient says why.
func CheckSteps(s *config.Settings, client *zeebe.Client, noClient error, version string) (all []CheckStep) {
	step := func(isSet bool, name string, do func(context.Context) (string, error)) {
		if isSet {
			all = append(all, CheckStep{name, false, do})
		}
	}
	for _, hint := range s.Unread {
		step(true, "settings", func(context.Context) (string, error) { return hint, nil })
	}
	step(s.AuthTokensFile != "", "tokens", func(context.Context) (string, error) { return inspectTokens(s) })
	step(s.TLSCertFile != "", "certificate", func(context.Context) (string, error) { return inspectCertificate(s) })
	step(true, "teams", func(context.Context) (string, error) { return inspectTeams(s) })
	step(s.Notify.SMTP != nil, "mail server", func(ctx context.Context) (string, error) {
		return fmt.Sprintf("%s:%d takes connections", s.Notify.SMTP.Host, s.Notify.SMTP.Port),
			Senders(s.Notify, version).Mailer.Check(ctx)
	})
	step(true, "database", func(ctx context.Context) (string, error) { return inspectDatabase(ctx, s.DatabaseURL) })
	step(s.Provider != nil, "OpenID provider", func(ctx context.Context) (string, error) {
		return s.Provider.Issuer + " describes itself", s.Provider.Check(ctx)
	})
	step(s.EventsURL != "", "NATS", func(ctx context.Context) (string, error) {
		return "the server takes connections and has JetStream", events.Check(ctx, s.EventsURL, s.WorkerName)
	})
	all = append(all, CheckStep{"engine", true, func(context.Context) (string, error) { return s.Engine.String(), noClient }})
	return append(all, engineSteps(client, s)...)
}

func engineSteps(client *zeebe.Client, s *config.Settings) []CheckStep {
	advised := func(err error) error {
		if err != nil {
			err = fmt.Errorf("%w; %s", err, s.Engine.Advice(err))
		}
		return err
	}
	return []CheckStep{
		{"address", true, s.Engine.CheckAddress},
		{"tls", true, s.Engine.CheckTLS},
		{"token", true, func(ctx context.Context) (string, error) {
			if s.Engine.Username != "" {
				return s.Engine.Said("none, but user and password (ZEEBE_BASIC_AUTH_USERNAME)"), nil
			}
			if s.Engine.OAuth == nil {
				return "none configured (ZEEBE_CLIENT_ID)", nil
			}
			return "issued by " + s.Engine.OAuth.URL, client.CheckToken(ctx)
		}},
		{"cluster", true, func(ctx context.Context) (string, error) {
			found, err := client.Topology(ctx)
			return found, advised(err)
		}},
		{"clock", false, func(ctx context.Context) (string, error) { return client.CheckClock(ctx, time.Now) }},
		{"tenants", false, func(ctx context.Context) (string, error) {
			return "jobs may be taken from " + cmp.Or(strings.Join(s.TenantIDs, ", "), "the default tenant"),
				advised(client.MayActivate(ctx, s.TenantIDs))
		}},
	}
}

func inspectTokens(s *config.Settings) (string, error) {
	t, err := access.Load(s.AuthTokensFile)
	if err != nil {
		return "", err
	}
	expired := t.Expired(time.Now())
	if expired == t.Len() {
		return "", fmt.Errorf("every token in %s is past its last day: nobody can log in; make one with `retry-worker "+
			"token new`", s.AuthTokensFile)
	}
	return fmt.Sprintf("%d valid, %d past their last day", t.Len()-expired, expired), nil
}

func inspectCertificate(s *config.Settings) (string, error) {
	c, err := web.OpenCertificate(s.TLSCertFile, s.TLSKeyFile)
	if err != nil {
		return "", err
	}
	leaf := c.Current().Leaf
	until := leaf.NotAfter.UTC()
	if !time.Now().Before(until) {
		return "", fmt.Errorf("the certificate %s ended at %s: browsers refuse it; renew it", s.TLSCertFile,
			until.Format(time.RFC3339))
	}
	return fmt.Sprintf("of %s, until %s", strings.Join(smallfile.NamesOf(leaf), ", "), until.Format(time.RFC3339)), nil
}

func inspectDatabase(ctx context.Context, url string) (string, error) {
	found, err := store.Inspect(ctx, url)
	if err != nil {
		return "", err
	}
	r, err := store.OpenReader(ctx, url)
	if err == nil {
		defer r.Close() // nothing was written
		_, err = r.Head(ctx)
	}
	if _, is := errors.AsType[*sqlstore.NotBegunError](err); is {
		return found + "; no journal yet: the worker makes it at its first start", nil
	}
	return found + "; the journal can be read", err
}

// inspectTeams says which teams have no address, and which cannot be notified.
func inspectTeams(s *config.Settings) (string, error) {
	from, err := catalogue.Default(), error(nil)
	if s.PoliciesFile != "" {
		from, err = catalogue.Load(s.PoliciesFile)
	}
	if err != nil {
		return "", err
	}
	untold := from.Untold()
	found := fmt.Sprintf("told of dead letters by e-mail or webhook: %d of %d", len(from.Teams)-len(untold), len(from.Teams))
	if len(untold) > 0 {
		found += fmt.Sprintf("; nobody is told for %s: give them an address in the policies file", text.And(untold...))
	}
	if wrong := notify.Problems(from, s.Notify.SMTP != nil); len(wrong) > 0 {
		err = errors.New(strings.Join(wrong, "; "))
	}
	return found, err
}
