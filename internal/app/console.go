package app

import (
	"slices"
	"sync"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/console"
	"retry-worker/internal/notify"
	"retry-worker/internal/web"
)

// openConsole serves the API and the pages, which say that the journal is not open until it is.
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

// engineUp returns since when the engine answers this process; the zero time where it does not.
func (h *health) engineUp() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.shown.Engine.Up {
		return time.Time{}
	}
	return h.shown.Engine.Since
}
