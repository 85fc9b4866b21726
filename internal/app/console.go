package app

import (
	"sync"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/console"
	"retry-worker/internal/web"
)

// openConsole serves the API and the pages. Until the journal is open they say so.
func (a *App) openConsole(open web.Opener) (err error) {
	tokens, err := a.openTokens()
	if err != nil {
		return err
	}
	cert, err := a.openCertificate()
	if err != nil {
		return err
	}
	a.pages = console.New(console.Options{Now: a.clock.Now, Catalogue: a.catalogue, Health: a.health.snapshot, Log: a.log,
		Operate: a.settings.OperateURL, Claim: a.settings.ClaimURL, Grafana: a.settings.GrafanaURL, Zone: a.settings.Notify.Zone})
	gate := access.Options{
		Now: a.clock.Now, Tokens: tokens, Provider: a.settings.Provider, Log: a.log,
		Public: []string{console.AssetsPrefix}, LoginPage: a.pages.Login, Refuse: a.pages.Refuse,
	}
	a.api = api.New(api.Options{Gate: gate, Policies: a.policies, Zone: a.settings.Notify.Zone, Pages: a.pages, Log: a.log})
	if a.http, err = a.api.Listen(open, a.settings.HTTPAddr, cert, a.settings.Proxies...); err != nil {
		return err
	}
	a.cleanups = append(a.cleanups, cleanup{"API and pages", a.http.Close})
	return nil
}

// health is the service's state as the pages show it. It is safe for concurrent use.
type health struct {
	mu    sync.Mutex
	shown console.Health
}

func (h *health) update(change func(*console.Health)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.shown)
}

func (h *health) snapshot() (shown console.Health) {
	h.update(func(now *console.Health) { shown = *now })
	return shown
}

// engineUp returns since when the engine answers this process; zero if it does not.
func (h *health) engineUp() time.Time {
	if engine := h.snapshot().Engine; engine.Up {
		return engine.Since
	}
	return time.Time{}
}
