package metrics

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"retry-worker/internal/webserver"
)

// Readiness says whether the service can do its work. Without a reason against it it can; safe for concurrent
// use.
type Readiness struct {
	mu      sync.Mutex
	reasons map[string]string
}

// NotReady is what /readyz answers, in one line with the other reasons, until what it is about is ready again.
func (r *Readiness) NotReady(about, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reasons == nil {
		r.reasons = make(map[string]string)
	}
	r.reasons[about] = reason
}

// Ready takes back what NotReady said.
func (r *Readiness) Ready(about string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.reasons, about)
}

// against are the reasons in one line; empty where there is none.
func (r *Readiness) against() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Values(r.reasons)), "; ")
}

// Listen opens addr (host:port; port 0 picks one) and serves /metrics, /livez and /readyz in the background
// until the server is closed.
func Listen(addr string, m *Metrics, r *Readiness) (*webserver.Server, error) {
	return webserver.Listen(addr, "metrics and probes", "RETRY_WORKER_OPS_ADDR", routes(m, r))
}

func routes(m *Metrics, r *Readiness) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if reasons := r.against(); reasons != "" {
			http.Error(w, reasons, http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	return mux
}
