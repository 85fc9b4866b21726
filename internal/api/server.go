// Package api serves the HTTP API, and the pages of people behind the same gate.
package api

import (
	"encoding/json"
	"fmt"
	"maps"
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
	"retry-worker/internal/webserver"
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
	// Pages answer everything that is not under /api/; nil: nothing does.
	Pages http.Handler
	Log   *zap.Logger
}

// API answers what is asked of the journal, and records outcomes and people's decisions in it. Safe for concurrent use.
type API struct {
	now      func() time.Time
	policies func() decision.Policies
	log      *zap.Logger
	gate     *access.Gate
	guarded  bool // by tokens, or a provider
	pages    http.Handler
	journal  atomic.Pointer[Journal]
}

// New is an API that answers 503 where it needs the journal, until Open is called.
func New(o Options) *API {
	s := &API{
		now: o.Gate.Now, policies: o.Policies, log: o.Log, pages: o.Pages,
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

// Open gives the API what it answers from and what it records with.
func (s *API) Open(m Journal) { s.journal.Store(&m) }

// Listen opens addr by open (host:port; port 0 picks one) and serves API and pages in the background until the server is
// closed. Without tokens it refuses an address that other machines reach. It speaks TLS where there is a certificate (c
// is not nil), and believes proxies as webserver.Listen does.
func (s *API) Listen(
	open webserver.Opener, addr string, c webserver.Certificate, proxies ...netip.Prefix,
) (*webserver.Server, error) {
	if !s.guarded {
		if err := access.MayServeWithoutTokens(addr); err != nil {
			return nil, err
		}
	}
	return webserver.Listen(open, addr, "the API", "RETRY_WORKER_HTTP_ADDR",
		s.gate.Limited(s.Handler()), c, webserver.Peers{Proxies: proxies, Crowded: s.gate.Crowded})
}

// Handler is everything that is served, behind the gate.
func (s *API) Handler() http.Handler {
	api := s.routes()
	return s.recovering(s.gate.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// By the path that the gate goes by: what it took for a page is never answered by the API, nor the other way round.
		if s.pages != nil && !strings.HasPrefix(r.URL.Path, "/api/") {
			s.pages.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})))
}

func (s *API) routes() http.Handler {
	mux := http.NewServeMux()
	addresses := map[string]methods{}
	for _, o := range Description() {
		if addresses[o.Path] == nil {
			addresses[o.Path] = methods{}
			mux.HandleFunc(Root+o.Path, s.byMethod(addresses[o.Path]))
		}
		var answer http.Handler = s.answer(o)
		switch o.Action {
		case access.Bulk, access.Order, access.Teach: // again and again, each a record
			answer = s.gate.Paced(answer)
		}
		addresses[o.Path][o.Method] = s.gate.Require(o.Action, answer)
	}
	mux.HandleFunc("/", s.nowhere)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The router would send the caller on to the tidied path: a POST sent anew, or to where he did not mean to.
		if p := r.URL.EscapedPath(); path.Clean(p) != p {
			s.nowhere(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *API) nowhere(w http.ResponseWriter, _ *http.Request) {
	s.fail(w, http.StatusNotFound, "not_found", "no such address; GET /api/v1/openapi.json describes those there are")
}

// methods of one address.
type methods map[string]http.Handler

// byMethod answers an address, and refuses what it is not asked by. The router is not told of methods: it would take an
// address that is spelled out for another's {id} where only the method differs.
func (s *API) byMethod(m methods) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		method := r.Method
		if method == http.MethodHead {
			method = http.MethodGet
		}
		if answer := m[method]; answer != nil {
			answer.ServeHTTP(w, r)
			return
		}
		names := slices.Sorted(maps.Keys(m))
		allowed := strings.Join(names, ", ")
		w.Header().Set("Allow", strings.Replace(allowed, http.MethodGet, "GET, HEAD", 1))
		s.fail(w, http.StatusMethodNotAllowed, "method_not_allowed",
			"this address does not take that method; use "+strings.Join(names, " or "))
	}
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
				s.fail(w, http.StatusInternalServerError, "internal_error",
					"the request broke something; the worker's log says where")
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// panicked is what a panic may say in the log: the runtime's own words, and otherwise its type alone, since its text
// may hold what the request held.
func panicked(why any) string {
	if err, ok := why.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("%T", why)
}

// describe answers GET /api/v1/openapi.json.
func (c *call) describe(*struct{}) (json.RawMessage, error) { return Document(), nil }
