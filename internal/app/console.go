package app

import (
	"crypto/tls"
	"net/netip"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/console"
	"retry-worker/internal/notify"
	"retry-worker/internal/webserver"
)

// openConsole serves the API and the pages, which say that the journal is not open until it is.
func (a *App) openConsole(open webserver.Opener) (err error) {
	tokens, err := a.openTokens()
	if err != nil {
		return err
	}
	cert, err := a.openCertificate()
	if err != nil {
		return err
	}
	a.pages = console.New(console.Options{Now: a.clock.Now, Catalogue: a.catalogue, Health: a.health.snapshot, Log: a.log,
		Operate: a.settings.OperateURL, Grafana: a.settings.GrafanaURL, Zone: a.settings.Notify.Zone})
	gate := access.Options{
		Now: a.clock.Now, Tokens: tokens, Provider: a.settings.Provider, Hooks: a.accessHooks(),
		Public: []string{console.AssetsPrefix}, LoginPage: a.pages.Login, Refuse: a.pages.Refuse,
	}
	a.api = api.New(api.Options{Gate: gate, Policies: a.policies, Pages: a.pages, Log: a.log})
	if a.http, err = a.api.Listen(open, a.settings.HTTPAddr, cert, a.settings.Proxies...); err != nil {
		return err
	}
	a.cleanups = append(a.cleanups, cleanup{"API and pages", a.http.Close})
	return nil
}

// openTokens reads the tokens file and returns those in force; nil where there is none. One that is wrong is refused at
// the start; later it changes nothing.
func (a *App) openTokens() (current func() *access.Tokens, err error) {
	path := a.settings.AuthTokensFile
	if path == "" {
		return nil, nil
	}
	first, err := access.Load(path)
	if err != nil {
		return nil, problemsWith("RETRY_WORKER_AUTH_TOKENS_FILE", err)
	}
	file := watchedFile{a, aboutTokens, "the tokens file", a.metrics.SetTokensRejected}
	watcher := access.Watch(path, first, access.WatchHooks{
		Changed:   func(_, _ *access.Tokens) { file.changed() },
		Rejected:  func(err error) { file.rejected(err, "the tokens before stay in force") },
		Recovered: func(*access.Tokens) { file.recovered() },
	})
	a.watches = append(a.watches, watcher.Run)
	return watcher.Current, nil
}

// openCertificate reads what the console shows where it speaks TLS; nil where it does not. Files that are wrong are
// refused at the start; later they change nothing.
func (a *App) openCertificate() (*webserver.Certificate, error) {
	s := &a.settings
	if s.TLSCertFile == "" {
		return nil, nil
	}
	file := watchedFile{a, aboutCertificate, "the console's certificate", a.metrics.SetCertificateRejected}
	cert, err := webserver.LoadCertificate(s.TLSCertFile, s.TLSKeyFile, webserver.CertificateHooks{
		Changed:   func(_, _ *tls.Certificate) { file.changed() },
		Rejected:  func(err error) { file.rejected(err, "the one before stays in force") },
		Recovered: func(*tls.Certificate) { file.recovered() },
	})
	if err != nil {
		return nil, problemsWith("RETRY_WORKER_TLS_CERT_FILE", err)
	}
	a.watches = append(a.watches, cert.Run)
	return cert, nil
}

// Of what strangers cause, the log takes sampleFirst lines of a kind each second and every sampleThen-th beyond: nobody
// fills a disk by asking.
const (
	sampleFirst = 10
	sampleThen  = 100
)

// accessHooks say in the log who comes in and who does not.
func (a *App) accessHooks() access.Hooks {
	// Made when the first stranger comes: the sampler's counters have half a megabyte, and most never see one.
	log := sync.OnceValue(func() *zap.Logger {
		return a.log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(c, time.Second, sampleFirst, sampleThen)
		}))
	})
	warning := func(event, message string) func(from netip.Addr) {
		return func(from netip.Addr) {
			log().Warn(message, zap.String("event", event), zap.Stringer("from", from))
		}
	}
	return access.Hooks{
		LoggedIn: func(who access.Identity) {
			a.log.Info("somebody logged in", zap.String("event", "logged_in"), zap.String("token", who.Name),
				zap.Stringer("role", who.Role))
		},
		TokenRefused: warning("token_refused", "a token was refused: unknown, or past its last day"),
		Slowed:       warning("login_slowed", "tokens are tried too fast; that address has to wait"),
		Limited: warning("requests_limited",
			"an address asks too much, with too many headers, or by too many connections"),
		Forbidden: func(from netip.Addr, who access.Identity, code string) {
			log().Warn("a request was refused: it may not do that", zap.String("event", "request_forbidden"),
				zap.String("code", code),
				zap.String("token", who.Name), zap.Stringer("role", who.Role), zap.Stringer("from", from))
		},
		LoginFailed: func(from netip.Addr, err error) {
			log().Warn("the OpenID provider's answer lets somebody not in", zap.String("event", "oidc_refused"),
				zap.Stringer("from", from), zap.Error(err))
		},
		ProviderFailed: func(err error) {
			log().Error("the OpenID provider cannot be reached; who is logged in stays so for 15 minutes at most, and nobody "+
				"else comes in by it",
				zap.String("event", "oidc_unavailable"), zap.Error(err))
		},
		Unkept: func(err error) {
			log().Error("it cannot be told whether a session has ended, or kept that it has; nobody is let in by one until "+
				"it can",
				zap.String("event", "sessions_unavailable"), zap.Error(err))
		},
	}
}

// health is what the service knows of itself, for the people who look at it. Safe for concurrent use.
type health struct {
	now   func() time.Time
	mu    sync.Mutex
	shown console.Health
}

// set notes how a signal stands; since when stays where that is no change.
func (h *health) set(s *console.Signal, up bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !s.Known || s.Up != up {
		*s = console.Signal{Known: true, Up: up, Since: h.now()}
	}
}

// reject notes why the policies file is not the one in force; nil where it is.
func (h *health) reject(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shown.Rejection = err
}

// untold notes which teams could not be told so far: of several addresses, the one that waits longest.
func (h *health) untold(waiting []notify.Waiting) {
	var failed []console.Notice
	for _, w := range waiting {
		known := slices.ContainsFunc(failed, func(n console.Notice) bool {
			return n.Team == w.Team && n.Way == string(w.Channel)
		})
		if w.Failure != "" && !known {
			failed = append(failed,
				console.Notice{Team: w.Team, Way: string(w.Channel), Since: w.Since, Failure: w.Failure})
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shown.Notices = failed
}

// snapshot returns what the pages show.
func (h *health) snapshot() console.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shown
}

// engineUp is since when the engine answers this process; the zero time where it does not.
func (h *health) engineUp() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.shown.Engine.Up {
		return time.Time{}
	}
	return h.shown.Engine.Since
}
