package metrics

import (
	"io"
	"maps"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"retry-worker/internal/web"
)

// Readiness says whether the service can work: it can unless there is a reason against it. It is safe for concurrent
// use.
type Readiness struct {
	mu sync.Mutex
	// reasons against it, and notes, by subject.
	reasons, notes map[string]string
	// gauges of some subjects: the journal's is 1 without a reason, the others' are 1 with a note.
	gauges map[string]prometheus.Gauge
}

// The subjects of /readyz.
const (
	AboutEngine      = "engine"
	AboutJournal     = "journal"
	AboutPurge       = "purge"
	AboutStop        = "stop"
	AboutCatalogue   = "catalogue"
	AboutTokens      = "tokens"
	AboutCertificate = "certificate"
)

// NotReady makes /readyz fail with a subject's reason; an empty one withdraws it. Several reasons share one line.
func (r *Readiness) NotReady(about, reason string) { r.say(r.reasons, about, reason) }

// Note adds a line to /readyz that does not affect readiness; an empty note removes it.
func (r *Readiness) Note(about, note string) { r.say(r.notes, about, note) }

// say sets or, if it is empty, removes a subject's text.
func (r *Readiness) say(all map[string]string, about, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all[about] = text
	if text == "" {
		delete(all, about)
	}
	if g := r.gauges[about]; g != nil {
		g.Set(oneIf((text == "") == (about == AboutJournal)))
	}
}

// answer returns the body of /readyz: the reasons in one line, or ok, then a line for each note.
func (r *Readiness) answer() (ready bool, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, notes := strings.Join(slices.Sorted(maps.Values(r.reasons)), "; "), slices.Sorted(maps.Values(r.notes))
	if ready = first == ""; ready {
		first = "ok"
	}
	return ready, strings.Join(append([]string{first}, notes...), "\n")
}

// Listen opens addr (host:port; port 0 picks one) with open and serves /metrics, /livez and /readyz in the background
// until the server is closed. With profiles it also serves /debug/pprof/, which reveals memory.
func (m *Metrics) Listen(open web.Opener, addr string, profiles bool) (*web.Server, error) {
	return web.Listen(open, addr, "metrics and probes", "RETRY_WORKER_OPS_ADDR", m.routes(profiles), nil,
		web.Peers{})
}

func (m *Metrics) routes(profiles bool) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		ready, body := m.Readiness.answer()
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
		web.Keep(r) // no logins here
		mux.ServeHTTP(w, r)
	})
}
