// Package console serves the HTTP API to people and programs on this machine.
package console

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/journal"
	"retry-worker/internal/webserver"
)

// API answers what is asked of the journal. Safe for concurrent use.
type API struct {
	now     func() time.Time
	log     *zap.Logger
	journal atomic.Pointer[journal.Reader]
}

// New is an API that answers 503 until Open is called. now tells what is due.
func New(now func() time.Time, log *zap.Logger) *API { return &API{now: now, log: log} }

// Open gives the API what it answers from.
func (s *API) Open(r journal.Reader) { s.journal.Store(&r) }

// Listen opens addr (host:port; port 0 picks one) and serves the API in the background until the server is
// closed.
func (s *API) Listen(addr string) (*webserver.Server, error) {
	return webserver.Listen(addr, "the API", "RETRY_WORKER_HTTP_ADDR", s.routes())
}

func (s *API) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/subjects/{policy}/{id}", s.subject)
	mux.HandleFunc("/api/v1/subjects/{policy}/{id}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", "GET, HEAD")
		s.fail(w, http.StatusMethodNotAllowed, "method_not_allowed", "a subject can be read only; use GET")
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.fail(w, http.StatusNotFound, "not_found", "no such address; GET /api/v1/subjects/{policy}/{id} is one")
	})
	return s.guard(mux)
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

// isLoopback tells whether a Host header names this machine to itself.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// failure is every error's body.
type failure struct {
	Error   string `json:"error"`
	Message string `json:"message"`
}

func (s *API) fail(w http.ResponseWriter, status int, code, message string) {
	s.write(w, status, failure{code, message})
}

func (s *API) write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.log.Debug("an answer of the API was not taken", zap.Error(err))
	}
}
