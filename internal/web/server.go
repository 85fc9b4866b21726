// Package web opens ports for handlers, bounded in every direction, and makes requests to addresses that stand in the
// policies: webhooks, and probes of destinations.
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
	served   chan struct{} // closed when nothing is accepted any more
}

// Opener opens an address to listen on, as [net.Listen] does.
type Opener func(network, address string) (net.Listener, error)

// Listen has open open addr (host:port; port 0 picks one) and serves handler in the background until Close: by TLS with
// that certificate, in plaintext where it is nil. what is served and the setting that names its address stand in the
// errors.
func Listen(open Opener, addr, what, setting string, handler http.Handler, c Certificate, peers Peers) (*Server, error) {
	listener, err := open("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w; choose another %s", what, err, setting)
	}
	guarded := &guard{Listener: listener, peers: peers, of: map[netip.Prefix]int{}}
	s := &Server{what: what, listener: guarded, served: make(chan struct{}), http: &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10,
		// What a connection may have the process hold: the defaults allow megabytes, and hundreds of streams. Six at
		// once are what browsers have had by HTTP/1.1.
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 6, MaxReadFrameSize: 16 << 10,
			MaxReceiveBufferPerConnection: 64 << 10, MaxReceiveBufferPerStream: 32 << 10},
	}}
	guarded.watch(s.http)
	serve := s.http.Serve
	if c != nil {
		s.http.TLSConfig = configOf(c)
		s.http.ErrorLog = log.New(io.Discard, "", 0) // a line for each scanner that speaks no TLS
		serve = func(l net.Listener) error { return s.http.ServeTLS(l, "", "") }
	}
	go func() {
		defer close(s.served)
		_ = serve(s.listener) // returns when Close is called
	}()
	return s, nil
}

// Addr returns the address that was opened.
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
		return fmt.Errorf("stop serving %s: %w", s.what, err)
	}
	return nil
}
