package metrics

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Readiness says whether the service can do its work. It starts unready; safe for concurrent use.
type Readiness struct{ reason atomic.Pointer[string] }

// NewReadiness is unready for reason.
func NewReadiness(reason string) *Readiness {
	r := &Readiness{}
	r.NotReady(reason)
	return r
}

// NotReady gives the one line that /readyz answers with.
func (r *Readiness) NotReady(reason string) { r.reason.Store(&reason) }

// Ready makes /readyz answer 200.
func (r *Readiness) Ready() { r.reason.Store(nil) }

// Server serves /metrics, /livez and /readyz.
type Server struct {
	http     *http.Server
	listener net.Listener
	served   chan struct{} // closed when nothing is accepted any more
}

// Listen opens addr (host:port; port 0 picks one) and serves in the background until Close.
func Listen(addr string, m *Metrics, r *Readiness) (*Server, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics and probes: %w; choose another RETRY_WORKER_OPS_ADDR", err)
	}
	s := &Server{listener: listener, served: make(chan struct{}), http: &http.Server{
		Handler: routes(m, r), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
	}}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // returns when Close is called
	}()
	return s, nil
}

// Addr is the address that was opened.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close stops serving and frees the port. Requests under way are given until ctx ends and are then cut
// off, which is no error: a client that says nothing must not make a clean stop a failed one. Idempotent.
func (s *Server) Close(ctx context.Context) error {
	// A server that is closed before it began to serve frees its port a moment later.
	defer func() { <-s.served }()
	if s.http.Shutdown(ctx) == nil {
		return nil
	}
	if err := s.http.Close(); err != nil {
		return fmt.Errorf("stop serving metrics and probes: %w", err)
	}
	return nil
}

func routes(m *Metrics, r *Readiness) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if reason := r.reason.Load(); reason != nil {
			http.Error(w, *reason, http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	return mux
}
