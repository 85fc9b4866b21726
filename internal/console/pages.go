// Package console serves the pages that people use: server-rendered HTML, in Portuguese and English.
package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/statistics"
)

// AssetsPrefix is where styles and scripts are served, to everybody, logged in or not.
const AssetsPrefix = "/assets/"

// Options configures the pages.
type Options struct {
	Now       func() time.Time            // that ages and countdowns go by
	Catalogue func() *catalogue.Catalogue // in force
	Health    func() Health
	Log       *zap.Logger
	// Operate and Grafana are the addresses of these programs, without a slash at the end; empty if there is none.
	Operate, Grafana string
	// Claim is the address of a claim's page in the hospital's own system, with {id} and {VARIABLE}s of its context;
	// empty if there is none.
	Claim string
	Zone  *time.Location // the hospital's, in which pages show and read times
}

// Pages serves everything that is not the API. Safe for concurrent use. It stands behind access.Gate.Middleware, which
// identifies the reader, checks the forms' tokens and sets the headers.
type Pages struct {
	Options
	mux        *http.ServeMux
	compressed http.HandlerFunc // serve, compressed
	open       atomic.Pointer[open]
}

// open is the journal, once it can be read, with the guard that changes it for people.
type open struct {
	Source
	*guard.Guard
}

// New returns pages that say that the journal is not open, until Open is called.
func New(o Options) *Pages {
	p := &Pages{Options: o, mux: http.NewServeMux()}
	p.route()
	// A random length hides how a guess at the form token would change a page's size.
	compress, err := gzhttp.NewWrapper(gzhttp.ContentTypes([]string{"text/html", "text/css", "text/javascript", "image/svg+xml"}),
		gzhttp.RandomJitter(32, 0, false))
	if err != nil {
		panic("pages: " + err.Error()) // the options are constants
	}
	p.compressed = compress(http.HandlerFunc(p.serve))
	return p
}

// Open gives the pages the journal to read from, and the guard that carries out people's decisions.
func (p *Pages) Open(from Source, to *guard.Guard) { p.open.Store(&open{Source: from, Guard: to}) }

// ServeHTTP answers everything that is not the API.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.compressed(w, r) }

// route registers every address.
func (p *Pages) route() {
	pages := map[string]func(*visit) *page{
		"GET /{$}":                           p.overview,
		"GET /search":                        p.search,
		"GET /dead-letters":                  p.deadLetters,
		"GET /dead-letters.csv":              p.exportLetters,
		"GET /dead-letters/groups":           p.groups,
		"GET /dead-letters/{id}":             p.deadLetter,
		"POST /dead-letters/{id}/retry":      p.decide,
		"POST /dead-letters/{id}/discard":    p.decide,
		"POST /dead-letters/{id}/accept":     p.decide,
		"POST /dead-letters/{id}/undo":       p.note,
		"POST /dead-letters/{id}/comment":    p.note,
		"POST /dead-letters/{id}/assignment": p.assign,
		"POST /assignees/{name}":             p.handover,
		"GET /assignees/{name}":              p.handover,
		"GET /subjects/{policy}/{id}":        p.subject,
		"GET /causes/{id}":                   p.causePage,
		"POST /causes/{id}/teach":            p.teach,
		"POST /causes/{id}/forget":           p.teach,
		"GET /bulk-runs":                     p.runs,
		"POST /bulk-runs":                    p.startRun,
		"GET /bulk-runs/new":                 p.planRun,
		"POST /bulk-runs/new":                p.replan,
		"GET /bulk-runs/{id}":                p.run,
		"POST /bulk-runs/{id}/pause":         p.steer,
		"POST /bulk-runs/{id}/resume":        p.steer,
		"POST /bulk-runs/{id}/cancel":        p.steer,
		"GET /destinations":                  p.portals,
		"GET /destinations/{name}":           p.portal,
		"POST /destinations/{name}/hold":     p.order,
		"POST /destinations/{name}/probe":    p.order,
		"POST /destinations/{name}/release":  p.order,
		"POST /destinations/{name}/up":       p.order,
		"GET /audit":                         p.audit,
		"GET /audit/export":                  p.export,
	}
	for pattern, make := range pages {
		p.mux.HandleFunc(pattern, p.answer(func(v *visit) *page {
			if v.o == nil {
				check(&problem{status: http.StatusServiceUnavailable, key: "starting"})
			}
			return make(v)
		}))
	}
	p.mux.HandleFunc("GET /policies", p.answer(p.policies))
	p.mux.HandleFunc("GET "+AssetsPrefix+"{version}/{name}", p.asset)
}

// serve answers with the page of an address, or says that there is none, or none by that method.
func (p *Pages) serve(w http.ResponseWriter, r *http.Request) {
	none := func(method string) bool {
		by := r.WithContext(r.Context())
		by.Method = method
		_, pattern := p.mux.Handler(by)
		return pattern == ""
	}
	if !none(r.Method) {
		p.mux.ServeHTTP(w, r)
		return
	}
	allowed := slices.DeleteFunc([]string{http.MethodGet, http.MethodPost}, none)
	p.answer(func(v *visit) *page {
		switch {
		case len(allowed) == 0:
			check(notFound)
		case r.Method == http.MethodGet, r.Method == http.MethodHead: // of a form's address, as after a log-in
			return v.to(path.Dir(r.URL.EscapedPath()))
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		check(&problem{status: http.StatusMethodNotAllowed, key: "method"})
		return nil
	})(w, r)
}

// answer returns a handler that answers with the page that make makes, which is nil if make has answered already.
func (p *Pages) answer(make func(*visit) *page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := p.visit(w, r)
		if v.tag = p.tag(v); v.tag != "" && strings.Contains(r.Header.Get("If-None-Match"), `"`+v.tag+`"`) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		defer func() {
			switch why := recover().(type) {
			case nil:
			case unread:
				p.fail(v, why.error)
			default:
				panic(why)
			}
		}()
		if pg := make(v); pg != nil {
			p.write(v, pg)
		}
	}
}

// unread is what must and check end a page with.
type unread struct{ error }

// must returns what was read. An error ends the page, and is what it is answered with: a page is made of all its parts,
// or not at all.
func must[T any](read T, err error) T {
	check(err)
	return read
}

// check ends the page with err, unless that is nil.
func check(err error) {
	if err != nil {
		panic(unread{err})
	}
}

// tag returns a hash of all that a page is made from: its address, the reader, the ledger's head, the policies, the
// state of the worker and of the portals, and the minute. It is empty if a page must be made anew each time.
func (p *Pages) tag(v *visit) string {
	if v.r.Method != http.MethodGet || v.who.Role == "" {
		return ""
	}
	health, hash := p.Health(), sha256.New()
	tell := func(of ...any) { _, _ = fmt.Fprintf(hash, "%q\n", of) }
	tell(assetVersion, v.r.URL.RequestURI(), v.Lang, v.mine, v.who, access.FormToken(v.r.Context()), v.Catalogue.Version,
		v.Now.Truncate(time.Minute))
	tell(health.Rejection, health.Journal.Up, health.Engine.Up, len(health.Notices))
	if v.o != nil {
		head, err := v.o.Head(v.r.Context())
		if err != nil {
			return ""
		}
		tell(head.Record, head.Link)
		portals, _ := v.o.Destinations.Destinations() // an error means that none is known yet
		for i := range portals {
			tell(portals[i].Name, portals[i].State.Phase, portals[i].Held)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}

// Source reads the journal's store, beside its writers. Its errors hold a *journal.StoreError. Safe for concurrent use.
type Source interface {
	journal.Reader
	deadletter.Reader
}

// Health is the state of the worker's parts.
type Health struct {
	// Journal says whether it can be written, Engine whether it can be reached.
	Journal, Engine Signal
	Rejection       error // why the catalogue's file is not in force; nil if it is
	// Notices wait to be sent, the oldest first. Backlog is the number of messages in each queue of the outbox.
	Notices []notify.Waiting
	Backlog map[string]int64
	KPIs    []statistics.KPI
}

// Signal says whether something works, and since when. The zero value means that this is not known yet.
type Signal struct {
	Up    bool
	Since time.Time
}

// Set records the state now. Since changes only with the state.
func (s *Signal) Set(up bool, now time.Time) {
	if s.Since.IsZero() || s.Up != up {
		*s = Signal{up, now}
	}
}

// State returns unknown, up or down.
func (s Signal) State() string {
	switch {
	case s.Since.IsZero():
		return "unknown"
	case s.Up:
		return "up"
	}
	return "down"
}

//go:embed assets/*
var assetFiles embed.FS

// assetKinds holds the content types, whatever the machine's own tables say.
var assetKinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml"}

// assetVersion is a hash of all assets. Their addresses hold it, so that a browser may keep them for good.
var assetVersion = func() string {
	files, _ := assetFiles.ReadDir("assets") // embedded, so it exists
	sum := sha256.New()
	for _, f := range files {
		content, _ := assetFiles.ReadFile("assets/" + f.Name())
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}()

// assetURL returns the address of an asset. A test finds missing ones.
func assetURL(name string) string { return AssetsPrefix + assetVersion + "/" + name }

func (p *Pages) asset(w http.ResponseWriter, r *http.Request) {
	content, err := assetFiles.ReadFile("assets/" + r.PathValue("name"))
	if err != nil || r.PathValue("version") != assetVersion {
		p.fail(p.visit(w, r), notFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", assetKinds[path.Ext(r.PathValue("name"))])
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(content) // an error means that the client has gone
}
