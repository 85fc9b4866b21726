package gateway

import (
	"net/http"
	"sync"

	"google.golang.org/grpc/metadata"
)

// rest serves the engine's REST API. It passes a request's token on to the faults.
type rest struct {
	http.Server
	running sync.WaitGroup
}

func newREST(g *Gateway) *rest {
	s, engine := &rest{}, g.engine.REST()
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.running.Add(1)
		defer s.running.Done()
		ctx := metadata.NewIncomingContext(r.Context(), metadata.Pairs("authorization", r.Header.Get("Authorization")))
		engine.ServeHTTP(w, r.WithContext(ctx))
	})
	return s
}

// Stop cuts all connections and returns when no call runs.
func (s *rest) Stop() {
	_ = s.Close()
	s.running.Wait()
}
