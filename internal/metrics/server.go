package metrics

import (
	"io"
	"maps"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"retry-worker/internal/web"
)

// Readiness says whether the service can do its work. Without a reason against it it can; safe for concurrent
// use.
type Readiness struct {
	mu sync.Mutex
	// reasons against it, and notes, by what they are about.
	reasons, notes map[string]string
}

// NotReady is what /readyz answers, in one line with the other reasons, until what it is about is ready again. The
// reason is not empty.
func (r *Readiness) NotReady(about, reason string) { r.say(&r.reasons, about, reason) }

// Ready takes back what NotReady said.
func (r *Readiness) Ready(about string) { r.say(&r.reasons, about, "") }

// Note sets what /readyz says besides, a line, whether ready or not; an empty note takes back what was said about it.
func (r *Readiness) Note(about, note string) { r.say(&r.notes, about, note) }

// say puts a text among all; an empty one takes back what was said about it.
func (r *Readiness) say(all *map[string]string, about, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if *all == nil {
		*all = make(map[string]string)
	}
	(*all)[about] = text
	if text == "" {
		delete(*all, about)
	}
}

// answer returns what /readyz says: the reasons against it in one line, or ok, then a line for each note.
func (r *Readiness) answer() (ready bool, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, notes := strings.Join(slices.Sorted(maps.Values(r.reasons)), "; "), slices.Sorted(maps.Values(r.notes))
	if ready = first == ""; ready {
		first = "ok"
	}
	return ready, strings.Join(append([]string{first}, notes...), "\n")
}

// Listen has open open addr (host:port; port 0 picks one) and serves /metrics, /livez and /readyz in the background
// until the server is closed; with profiles /debug/pprof/ too, whose profiles hold what is in memory.
func Listen(open web.Opener, addr string, m *Metrics, r *Readiness, profiles bool) (*web.Server, error) {
	return web.Listen(open, addr, "metrics and probes", "RETRY_WORKER_OPS_ADDR", routes(m, r, profiles), nil,
		web.Peers{})
}

func routes(m *Metrics, r *Readiness, profiles bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		ready, body := r.answer()
		if !ready {
			http.Error(w, body, http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, body+"\n")
	})
	if profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		web.Keep(r) // nobody logs in here
		mux.ServeHTTP(w, r)
	})
}
