// Package console serves the HTTP API to people and programs on this machine.
package console

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/webserver"
)

// Reader is what the API answers from.
type Reader interface {
	journal.Reader
	journal.Archive
	journal.Statistics
}

// Recorder records what the API is told. Its errors hold journal.ErrUnavailable, journal.ErrInvalid, or are the
// context's.
type Recorder interface {
	Conclude(ctx context.Context, o *journal.Outcome) (journal.Concluded, error)
}

// API answers what is asked of the journal, and records outcomes in it. Safe for concurrent use.
type API struct {
	now      func() time.Time
	policies func() decision.Policies
	log      *zap.Logger
	journal  atomic.Pointer[memory]
}

// memory is the journal once it is open.
type memory struct {
	Reader
	Recorder
}

// New is an API that answers 503 where it needs the journal, until Open is called. now tells what is due, policies those
// in force.
func New(now func() time.Time, policies func() decision.Policies, log *zap.Logger) *API {
	return &API{now: now, policies: policies, log: log}
}

// Open gives the API what it answers from and what it records with.
func (s *API) Open(from Reader, to Recorder) { s.journal.Store(&memory{from, to}) }

// Listen opens addr (host:port; port 0 picks one) and serves the API in the background until the server is
// closed.
func (s *API) Listen(addr string) (*webserver.Server, error) {
	return webserver.Listen(addr, "the API", "RETRY_WORKER_HTTP_ADDR", s.routes())
}

func (s *API) routes() http.Handler {
	mux := http.NewServeMux()
	for _, route := range []struct {
		method, path string
		answer       http.HandlerFunc
	}{
		{http.MethodPost, "/api/v1/decisions", s.decide},
		{http.MethodGet, "/api/v1/subjects/{policy}/{id}", s.withJournal(s.subject)},
		{http.MethodGet, "/api/v1/subjects/{policy}/{id}/audit", s.withJournal(s.audit)},
		{http.MethodPost, "/api/v1/outcomes", s.withJournal(s.conclude)},
		{http.MethodGet, "/api/v1/kpis", s.withJournal(s.kpis)},
	} {
		mux.HandleFunc(route.method+" "+route.path, route.answer)
		mux.HandleFunc(route.path, s.onlyBy(route.method))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.fail(w, http.StatusNotFound, "not_found", "no such address; GET /api/v1/subjects/{policy}/{id} is one")
	})
	return s.guard(s.ownOrigin(mux))
}

// onlyBy refuses what an address is not asked by.
func (s *API) onlyBy(method string) http.HandlerFunc {
	allowed := method
	if method == http.MethodGet {
		allowed = "GET, HEAD"
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", allowed)
		s.fail(w, http.StatusMethodNotAllowed, "method_not_allowed", "this address does not take that method; use "+method)
	}
}

// withJournal answers 503 until the journal is open.
func (s *API) withJournal(next func(http.ResponseWriter, *http.Request, *memory)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if m := s.journal.Load(); m != nil {
			next(w, r, m)
			return
		}
		s.fail(w, http.StatusServiceUnavailable, journalUnavailable, "the journal is not open yet; /readyz says why")
	}
}

// guard answers this machine only: any web page can make a browser ask loopback, but not under its name.
func (s *API) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		if !isLoopback(r.Host) {
			s.fail(w, http.StatusForbidden, "forbidden_host", "asked under a name that is not this machine's own; use 127.0.0.1 or localhost")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownOrigin refuses what another site's page makes a browser change.
func (s *API) ownOrigin(next http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.fail(w, http.StatusForbidden, "forbidden_origin", "a page of another site asks for a change; send it from this machine's own pages or programs")
	}))
	return p.Handler(next)
}

// isLoopback tells whether a Host header names this machine to itself.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// journalUnavailable is the code of what cannot be answered, or recorded, now.
const journalUnavailable = "journal_unavailable"

// failure is every error's body.
type failure struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

func (s *API) fail(w http.ResponseWriter, status int, code, message string) {
	s.write(w, status, failure{code, message})
}

// unreadable answers that the journal could not be read; why is for the log.
func (s *API) unreadable(w http.ResponseWriter, err error) {
	s.log.Error("the API could not read the journal", zap.Error(err))
	s.fail(w, http.StatusServiceUnavailable, journalUnavailable, "the journal cannot be read now; the worker's log says why")
}

func (s *API) write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // it is never HTML, and nosniff says so
	if err := e.Encode(body); err != nil {
		s.log.Debug("an answer of the API was not taken", zap.Error(err))
	}
}
