// Package api serves the HTTP API and, behind the same gate, the console's pages.
package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"runtime"
	"slices"
	"strconv"
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

// Journal is what the API reads and decides with once the journal is open.
type Journal struct {
	journal.Reader
	*guard.Guard
	// Sessions keeps the sessions that ended early; required with tokens.
	Sessions access.EndedSessions
}

// Options configure an API. All but Zone and Pages are required.
type Options struct {
	// Gate decides who gets in. The API goes by its clock, and sets its Ended. Without Tokens and Provider the API
	// listens on loopback only.
	Gate access.Options
	// Policies returns the policies in force.
	Policies func() decision.Policies
	// Zone is the hospital's time zone, for dates; nil is UTC.
	Zone *time.Location
	// Pages serves all paths outside /api/; if nil, they are not found.
	Pages http.Handler
	Log   *zap.Logger
}

// API answers from the journal and records outcomes and people's decisions in it. It is safe for concurrent use.
type API struct {
	Options
	gate    *access.Gate
	journal atomic.Pointer[Journal]
}

// New returns an API. Until Open is called, it answers 503 to whatever needs the journal.
func New(o Options) *API {
	o.Zone = cmp.Or(o.Zone, time.UTC)
	s := &API{Options: o}
	o.Gate.Ended = func() access.EndedSessions {
		if m := s.journal.Load(); m != nil {
			return m.Sessions
		}
		return nil
	}
	s.gate = access.New(o.Gate)
	return s
}

// now returns the instant by the gate's clock.
func (s *API) now() time.Time { return s.Gate.Now() }

// Accounts returns the accounts that the gate knows (access.Gate.Accounts).
func (s *API) Accounts() (known []access.Identity, others bool) { return s.gate.Accounts() }

// Open gives the API the open journal.
func (s *API) Open(m Journal) { s.journal.Store(&m) }

// Listen opens addr (host:port; port 0 picks one) and serves API and pages until the server is closed. Without tokens
// or a provider it refuses an address that other machines reach. It speaks TLS if c is not nil, and trusts proxies as
// web.Listen does.
func (s *API) Listen(
	open web.Opener, addr string, c web.Certificate, proxies ...netip.Prefix,
) (*web.Server, error) {
	if s.Gate.Tokens == nil && s.Gate.Provider == nil {
		if err := access.MayServeWithoutTokens(addr); err != nil {
			return nil, err
		}
	}
	return web.Listen(open, addr, "the API", "RETRY_WORKER_HTTP_ADDR",
		s.gate.Limited(s.Handler()), c, web.Peers{Proxies: proxies, Crowded: s.gate.Crowded})
}

// Handler returns the handler of API and pages, behind the gate.
func (s *API) Handler() http.Handler {
	api := s.routes()
	return s.recovering(s.gate.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The gate goes by the same path, so the API never answers what was let in as a page, nor the reverse.
		if s.Pages != nil && !strings.HasPrefix(r.URL.Path, "/api/") {
			s.Pages.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})))
}

func (s *API) routes() http.Handler {
	mux := http.NewServeMux()
	for _, o := range Description() {
		mux.Handle(o.Method+" "+Root+o.Path, s.answer(o)) // a GET pattern serves HEAD too
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The router would redirect an untidy path: a POST would be sent again, perhaps to an address nobody meant.
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
			s.gate.Deny(w, r, refused("not_found", "no such address; GET /api/v1/openapi.json describes those there are"))
			return
		}
		w.Header().Set("Allow", strings.Join(others, ", "))
		s.gate.Deny(w, r, refused("method_not_allowed", "this address does not take that method; use %s", text.Or(others...)))
	})
}

// recovering answers 500 if next panics, and logs where.
func (s *API) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch why := recover(); why {
			case nil:
			case http.ErrAbortHandler:
				panic(why) // an answer that is cut off on purpose
			default:
				s.Log.Error("a request broke its handler", zap.String("method", r.Method), zap.String("panic", panicked(why)),
					zap.StackSkip("stack", 1))
				failure := refused("internal_error", "the request broke something; the worker's log says where")
				s.write(w, failure.Status, failure)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// panicked returns what the log may show of a panic: a runtime error's text, and otherwise only the value's type,
// since the value may hold the request's data.
func panicked(why any) string {
	if err, ok := why.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("%T", why)
}

// answerTime bounds a request. It is shorter than the server's own limit, so that an answer is still sent.
const answerTime = 20 * time.Second

// call is one request, with all that its operation needs.
type call struct {
	*http.Request
	*Journal
	*API
}

// paced are the actions that can be repeated, each time a record.
var paced = []access.Action{access.Bulk, access.Order, access.Teach, access.Handover}

// answer returns the handler of an operation.
func (s *API) answer(o *Operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := access.Check(r.Context(), o.Action)
		if err == nil && (o.Method == http.MethodPut || slices.Contains(paced, o.Action)) {
			err = s.gate.Pace(r.Context())
		}
		if err != nil {
			s.gate.Deny(w, r, err)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), answerTime)
		defer cancel()
		c := &call{r.WithContext(ctx), s.journal.Load(), s}
		if c.Journal == nil && !o.early {
			s.gate.Deny(w, r, refused(journalUnavailable, "the journal is not open yet; /readyz says why"))
			return
		}
		c.Body = http.MaxBytesReader(w, c.Body, maxBodyBytes)
		body, err := o.do(c)
		if err != nil {
			s.refuse(w, r, o, err)
			return
		}
		s.write(w, http.StatusOK, body)
	}
}

// journalUnavailable is the code for what cannot be answered or recorded now.
const journalUnavailable = "journal_unavailable"

func refused(code, format string, args ...any) *access.Refusal {
	status, _ := strconv.Atoi(codes()[code])
	return &access.Refusal{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// refusalOf returns err as a refusal; nil if it means that the journal could not be reached.
func refusalOf(err error) *access.Refusal {
	if r, is := errors.AsType[*access.Refusal](err); is {
		return r
	}
	if r := journal.RefusalOf(err); r != nil {
		return refused(string(r.Code), "%s", r.Message)
	}
	if errors.Is(err, journal.ErrInvalid) {
		return refused("unrecordable", "the journal cannot hold this; the worker's log says why")
	}
	return nil
}

// refuse answers a request that failed with err: it was refused, or the journal could not be reached.
func (s *API) refuse(w http.ResponseWriter, r *http.Request, o *Operation, err error) {
	why := refusalOf(err)
	if (why == nil || errors.Is(err, journal.ErrInvalid)) && r.Context().Err() == nil { // the caller still waits
		s.Log.Error("the API could not carry out a request", zap.String("request", r.Pattern), zap.Error(err))
	}
	switch {
	case why == nil && o.Action == access.Read:
		why = refused(journalUnavailable, "the journal cannot be read now; the worker's log says why")
	case why == nil:
		why = refused(journalUnavailable,
			"it is not known whether this was recorded; look at it by GET, and send it again if it was not")
	}
	s.gate.Deny(w, r, why)
}

func (s *API) write(w http.ResponseWriter, status int, body any) {
	answer, err := json.Marshal(body)
	if err != nil {
		s.Log.Error("an answer of the API could not be written", zap.Error(err))
		status = http.StatusInternalServerError
		answer = []byte(`{"error":"internal_error","message":"the answer broke something; the worker's log says where"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if _, err := w.Write(append(text.InertJSON(answer), '\n')); err != nil {
		s.Log.Debug("an answer of the API was not taken", zap.Error(err))
	}
}

// Page is one page of a list.
type Page[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next" doc:"The cursor of the next page; null on the last."`
}

// paged returns a function that answers with a page of views.
func paged[T, V any](of func(*T) V) func([]T, string, error) (Page[V], error) {
	return func(all []T, next string, err error) (Page[V], error) {
		return Page[V]{journal.Views(all, of), journal.OrNull(next)}, err
	}
}

// shown returns a function that answers with a view.
func shown[T, V any](of func(*T) V) func(T, error) (V, error) {
	return func(v T, err error) (V, error) { return of(&v), err }
}
