package gateway

import (
	"net/http"
	"sync"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// rest serves the engine's REST API. It passes a request's origin and token on to the faults.
type rest struct {
	http.Server
	running sync.WaitGroup
}

func newREST(g *Gateway) *rest {
	s, engine := &rest{}, g.engine.REST()
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.running.Add(1)
		defer s.running.Done()
		ctx := peer.NewContext(r.Context(), &peer.Peer{Addr: remote(r.RemoteAddr)})
		ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("authorization", r.Header.Get("Authorization")))
		engine.ServeHTTP(w, r.WithContext(ctx))
	})
	return s
}

// remote is a request's origin.
type remote string

func (r remote) Network() string { return "tcp" }
func (r remote) String() string  { return string(r) }

// Stop cuts all connections and returns when no call runs.
func (s *rest) Stop() {
	_ = s.Close()
	s.running.Wait()
}
