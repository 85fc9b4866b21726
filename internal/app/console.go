package app

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/console"
	"retry-worker/internal/console/pages"
)

// openConsole serves the API and the pages, which say that the journal is not open until it is.
func (a *App) openConsole() (err error) {
	if err = a.openTokens(); err != nil {
		return err
	}
	a.pages = pages.New(pages.Options{Now: time.Now, Catalogue: a.catalogue, Health: a.health.told, Log: a.log})
	options := console.Options{
		Now: time.Now, Policies: a.policies, Hooks: a.accessHooks(), Log: a.log,
		Pages: console.Site{Handler: a.pages, Public: []string{pages.AssetsPrefix}, Login: a.pages.Login, Refuse: a.pages.Refuse},
	}
	if a.tokens != nil {
		options.Tokens = a.tokens.Current
	}
	a.api = console.New(options)
	if a.http, err = a.api.Listen(a.settings.HTTPAddr); err != nil {
		return err
	}
	a.cleanups = append(a.cleanups, cleanup{"API and pages", a.http.Close})
	return nil
}

// openTokens reads the tokens file. One that is wrong is refused at the start; later it changes nothing.
func (a *App) openTokens() error {
	path := a.settings.AuthTokensFile
	if path == "" {
		return nil
	}
	first, err := access.Load(path)
	if err != nil {
		return problemsWith("RETRY_WORKER_AUTH_TOKENS_FILE", strings.Split(err.Error(), "\n"))
	}
	a.tokens = access.Watch(path, first, access.WatchHooks{Changed: a.tokensChanged, Rejected: a.tokensRejected, Recovered: a.tokensRecovered})
	return nil
}

// watchTokens takes changes of the tokens file up until ctx ends.
func (a *App) watchTokens(ctx context.Context) {
	if a.tokens != nil {
		a.tokens.Run(ctx)
	}
}

func (a *App) tokensChanged(_, _ *access.Tokens) {
	a.log.Info("the tokens file has changed and is in force", zap.String("event", "tokens_changed"))
}

func (a *App) tokensRejected(err error) {
	lines := strings.Split(err.Error(), "\n")
	a.readiness.Note(aboutTokens, "tokens file rejected: "+strings.Join(lines, "; ")+"; the tokens before stay in force")
	a.log.Error("the tokens file has changed and is refused; the tokens before stay in force",
		zap.String("event", "tokens_rejected"), zap.Strings("problems", lines))
}

// tokensRecovered is told when a file that was refused is what is in force: as it was before, or corrected.
func (a *App) tokensRecovered(*access.Tokens) {
	a.readiness.Note(aboutTokens, "")
	a.log.Info("the tokens file is right again and in force", zap.String("event", "tokens_recovered"))
}

// accessHooks say in the log who comes in and who does not.
func (a *App) accessHooks() access.Hooks {
	return access.Hooks{
		LoggedIn: func(who access.Identity) {
			a.log.Info("somebody logged in", zap.String("event", "logged_in"), zap.String("token", who.Name), zap.Stringer("role", who.Role))
		},
		TokenRefused: func(from netip.Addr) {
			a.log.Warn("a token was refused: unknown, or past its last day", zap.String("event", "token_refused"), zap.Stringer("from", from))
		},
		Slowed: func(from netip.Addr) {
			a.log.Warn("tokens are tried too fast; that address has to wait", zap.String("event", "login_slowed"), zap.Stringer("from", from))
		},
	}
}
