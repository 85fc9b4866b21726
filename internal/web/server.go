// Package web serves handlers on ports with bounded connections, times and sizes, and makes requests to the addresses
// that policies name: webhooks, and probes of destinations.
package web

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// Server serves one handler on one port.
type Server struct {
	what     string
	http     *http.Server
	listener net.Listener
	served   chan struct{} // closed when serving has ended
}

// Opener opens an address to listen on, as [net.Listen] does.
type Opener func(network, address string) (net.Listener, error)

// Listen opens addr (host:port; port 0 picks one) and serves handler in the background until Close: over TLS with c, in
// plain text if c is nil. Errors name what is served and the setting that holds its address.
func Listen(open Opener, addr, what, setting string, handler http.Handler, c Certificate, peers Peers) (*Server, error) {
	listener, err := open("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w; choose another %s", what, err, setting)
	}
	guarded := &guard{Listener: listener, peers: peers, of: map[netip.Prefix]int{}}
	s := &Server{what: what, listener: guarded, served: make(chan struct{}), http: &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
		// These bound a connection's memory: the defaults allow megabytes, and hundreds of streams. Browsers open six
		// connections at once over HTTP/1.1.
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 6, MaxReadFrameSize: 16 << 10,
			MaxReceiveBufferPerConnection: 64 << 10, MaxReceiveBufferPerStream: 32 << 10},
	}}
	guarded.watch(s.http)
	serve := s.http.Serve
	if c != nil {
		s.http.TLSConfig = configOf(c)
		s.http.ErrorLog = log.New(io.Discard, "", 0) // it would have a line for each scanner that speaks no TLS
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	go func() {
		defer close(s.served)
		_ = serve(s.listener) // returns when Close is called
	}()
	return s, nil
}

// Addr returns the address that s listens on.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close stops serving and frees the port. It cuts off requests that outlast ctx, which is no error: a silent client
// must not make a clean stop fail. Idempotent.
func (s *Server) Close(ctx context.Context) error {
	// A server closed before it began to serve frees its port a moment later.
	defer func() { <-s.served }()
	if s.http.Shutdown(ctx) == nil {
		return nil
	}
	if err := s.http.Close(); err != nil {
		return fmt.Errorf("stop serving %s: %w", s.what, err)
	}
	return nil
}
