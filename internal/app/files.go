package app

import (
	"context"
	"strings"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/config"
	"retry-worker/internal/console"
	"retry-worker/internal/decision"
	"retry-worker/internal/metrics"
	"retry-worker/internal/notify"
	"retry-worker/internal/smallfile"
	"retry-worker/internal/web"
)

// watch takes up the changes of the file that a setting names; w and err are as it was opened. A wrong file is refused at
// the start. Later it changes nothing, and log, /readyz and the gauge about it say so until it is right. told, unless it
// is nil, is called as by smallfile.Watcher.Run.
func watch[T any](
	a *App, about, name, setting string, w *smallfile.Watcher[T], err error, told func(*T, error),
) (current func() *T, _ error) {
	if err != nil {
		var problems config.Problems
		for line := range strings.SplitSeq(err.Error(), "\n") {
			problems = append(problems, setting+": "+line)
		}
		return nil, problems
	}
	a.watches = append(a.watches, func(ends, _ context.Context) {
		w.Run(ends, func(next *T, err error) {
			if err != nil {
				lines := strings.Split(err.Error(), "\n")
				a.metrics.Readiness.Note(about, about+" rejected: "+strings.Join(lines, "; ")+"; the one before stays in force")
				a.log.Error(name+" has changed and is refused; the one before stays in force",
					zap.String("event", about+"_rejected"), zap.Strings("problems", lines))
			} else {
				a.metrics.Readiness.Note(about, "")
				a.log.Info(name+" has changed and is in force", zap.String("event", about+"_changed"))
			}
			if told != nil {
				told(next, err)
			}
		})
	})
	return w.Current, nil
}

// openCatalogue reads the policies file, or takes the built-in catalogue if there is none.
func (a *App) openCatalogue() (err error) {
	a.catalogue = catalogue.Default
	if path := a.settings.PoliciesFile; path != "" {
		w, wrong := catalogue.Open(path)
		a.catalogue, err = watch(a, metrics.AboutCatalogue, "the policies file", "RETRY_WORKER_POLICIES_FILE", w, wrong,
			func(next *catalogue.Catalogue, err error) {
				a.health.update(func(h *console.Health) { h.Rejection = err })
				if err == nil {
					a.takeCatalogue(next)
					a.logCatalogue(next)
				}
			})
	}
	if err != nil {
		return err
	}
	a.takeCatalogue(a.catalogue())
	return nil
}

// takeCatalogue creates the metric series of a catalogue.
func (a *App) takeCatalogue(c *catalogue.Catalogue) {
	a.metrics.StartPolicies(c.Policies)
	a.metrics.SetCatalogue(c.Version)
	for name := range c.Destinations.Named {
		a.metrics.Start(map[string]string{"destination": name})
	}
	for _, r := range notify.Receivers(c) {
		a.metrics.Start(map[string]string{"team": string(r.Team), "channel": string(r.Channel)})
	}
}

// logCatalogue logs the catalogue in force, and the teams that cannot be notified.
func (a *App) logCatalogue(c *catalogue.Catalogue) {
	a.log.Info("policy catalogue in force", zap.String("catalogue", c.Version), zap.String("source", c.Source),
		zap.Strings("policies", c.Policies.Names()))
	if teams := c.Untold(); len(teams) > 0 {
		a.log.Warn("nobody is told of the dead letters of some teams: give them an address in the policies file",
			zap.String("event", "nobody_told"), zap.Any("teams", teams))
	}
	for _, line := range notify.Problems(c, a.settings.Notify.SMTP != nil) {
		a.log.Warn("a team cannot be told of its dead letters: "+line, zap.String("event", "notice_problem"))
	}
}

// policies returns the policies in force.
func (a *App) policies() decision.Policies { return a.catalogue().Policies }

// openTokens reads the tokens file and returns the tokens in force; nil if there is no file.
func (a *App) openTokens() (current func() *access.Tokens, err error) {
	if a.settings.AuthTokensFile == "" {
		return nil, nil
	}
	w, err := access.Open(a.settings.AuthTokensFile)
	return watch(a, metrics.AboutTokens, "the tokens file", "RETRY_WORKER_AUTH_TOKENS_FILE", w, err, nil)
}

// openCertificate reads the console's certificate; nil without TLS.
func (a *App) openCertificate() (web.Certificate, error) {
	s := &a.settings
	if s.TLSCertFile == "" {
		return nil, nil
	}
	w, err := web.OpenCertificate(s.TLSCertFile, s.TLSKeyFile)
	return watch(a, metrics.AboutCertificate, "the console's certificate", "RETRY_WORKER_TLS_CERT_FILE", w, err, nil)
}
