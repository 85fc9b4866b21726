// Package api serves the HTTP API, and the pages of people behind the same gate.
package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/decision"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
	"retry-worker/internal/web"
)

// Reader is what the API answers from.
type Reader interface {
	journal.Reader
	journal.Archive
	journal.Statistics
}

// Journal is what the API answers from and carries decisions out with, once it is open.
type Journal struct {
	Reader
	*guard.Guard
	// Sessions keeps those that ended before their time; needed where there are tokens.
	Sessions access.EndedSessions
}

// Options of an API; all but Pages are needed.
type Options struct {
	// Gate says who gets in, and by its clock also what is due; Ended is the API's own. Without Tokens and Provider the
	// API listens on loopback only.
	Gate access.Options
	// Policies in force.
	Policies func() decision.Policies
	// Zone is the hospital's, in which days begin; nil is UTC.
	Zone *time.Location
	// Pages answer everything that is not under /api/; nil: nothing does.
	Pages http.Handler
	Log   *zap.Logger
}

// API answers what is asked of the journal, and records outcomes and people's decisions in it. Safe for concurrent use.
type API struct {
	now      func() time.Time
	policies func() decision.Policies
	zone     *time.Location
	log      *zap.Logger
	gate     *access.Gate
	guarded  bool // by tokens, or a provider
	pages    http.Handler
	journal  atomic.Pointer[Journal]
}

// New returns an API that answers 503 where it needs the journal, until Open is called.
func New(o Options) *API {
	s := &API{
		now: o.Gate.Now, policies: o.Policies, zone: cmp.Or(o.Zone, time.UTC), log: o.Log, pages: o.Pages,
		guarded: o.Gate.Tokens != nil || o.Gate.Provider != nil,
	}
	o.Gate.Ended = s.endedSessions
	s.gate = access.New(o.Gate)
	return s
}

func (s *API) endedSessions() access.EndedSessions {
	if m := s.journal.Load(); m != nil {
		return m.Sessions
	}
	return nil
}

// Accounts returns whom the gate knows (access.Gate.Accounts).
func (s *API) Accounts() (known []access.Identity, others bool) { return s.gate.Accounts() }

// Open gives the API what it answers from and what it records with.
func (s *API) Open(m Journal) { s.journal.Store(&m) }

// Listen opens addr by open (host:port; port 0 picks one) and serves API and pages in the background until the server is
// closed. Without tokens it refuses an address that other machines reach. It speaks TLS where there is a certificate (c
// is not nil), and believes proxies as web.Listen does.
func (s *API) Listen(
	open web.Opener, addr string, c web.Certificate, proxies ...netip.Prefix,
) (*web.Server, error) {
	if !s.guarded {
		if err := access.MayServeWithoutTokens(addr); err != nil {
			return nil, err
		}
	}
	return web.Listen(open, addr, "the API", "RETRY_WORKER_HTTP_ADDR",
		s.gate.Limited(s.Handler()), c, web.Peers{Proxies: proxies, Crowded: s.gate.Crowded})
}

// Handler returns everything that is served, behind the gate.
func (s *API) Handler() http.Handler {
	api := s.routes()
	return s.recovering(s.gate.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The same path that the gate went by: what it let in as a page is never answered by the API, nor the reverse.
		if s.pages != nil && !strings.HasPrefix(r.URL.Path, "/api/") {
			s.pages.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})))
}

func (s *API) routes() http.Handler {
	mux := http.NewServeMux()
	for _, o := range Description() {
		var answer http.Handler = s.answer(o)
		again := []access.Action{access.Bulk, access.Order, access.Teach, access.Handover}
		if o.Method == http.MethodPut || slices.Contains(again, o.Action) { // and again, each a record
			answer = s.gate.Paced(answer)
		}
		mux.Handle(o.Method+" "+Root+o.Path, s.gate.Require(o.Action, answer)) // GET takes HEAD, too
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The router would send the caller on to the tidied path: a POST sent anew, or to where he did not mean to.
		clean := path.Clean(r.URL.EscapedPath()) == r.URL.EscapedPath()
		if _, found := mux.Handler(r); clean && found != "" {
			mux.ServeHTTP(w, r)
			return
		}
		var others []string
		for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut} {
			other := &http.Request{Method: method, URL: r.URL, Host: r.Host}
			if _, found := mux.Handler(other); clean && found != "" {
				others = append(others, method)
			}
		}
		if others == nil {
			s.fail(w, "not_found", "no such address; GET /api/v1/openapi.json describes those there are")
			return
		}
		w.Header().Set("Allow", strings.Join(others, ", "))
		s.fail(w, "method_not_allowed",
			"this address does not take that method; use "+text.Or(others...))
	})
}

// recovering answers 500 where a handler panics, and says in the log where.
func (s *API) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch why := recover(); why {
			case nil:
			case http.ErrAbortHandler:
				panic(why) // an answer that is cut off on purpose
			default:
				s.log.Error("a request broke its handler", zap.String("method", r.Method), zap.String("panic", panicked(why)),
					zap.StackSkip("stack", 1))
				s.fail(w, "internal_error",
					"the request broke something; the worker's log says where")
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// panicked returns what a panic may say in the log: the runtime's own words, and otherwise its type alone, since its text
// may hold what the request held.
func panicked(why any) string {
	if err, ok := why.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("%T", why)
}

// describe answers GET /api/v1/openapi.json.
func (c *call) describe(*struct{}) (json.RawMessage, error) { return Document(), nil }
