// Package web serves handlers on ports with bounded connections, times and sizes, and makes requests to the addresses
// that policies name: webhooks, and probes of destinations.
package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/smallfile"
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

// Certificate returns the certificate that a TLS server presents now.
type Certificate = func() *tls.Certificate

// OpenCertificate reads a certificate, with its intermediate authorities, and its key from two PEM files. The watcher
// reads them again when they change, so a renewed certificate needs no restart. The error is one line that names the
// file.
func OpenCertificate(certFile, keyFile string) (*smallfile.Watcher[tls.Certificate], error) {
	return smallfile.Watch(certFile,
		func(path string) ([]byte, error) { return readPair(path, keyFile) },
		func(path string, pair []byte) (*tls.Certificate, error) { return parsePair(path, keyFile, pair) })
}

// authenticated lists the TLS 1.2 cipher suites with authenticated encryption (AEAD) and forward secrecy. All suites of
// TLS 1.3 have both.
var authenticated = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// configOf returns the TLS configuration of a server that presents c.
func configOf(c Certificate) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		CipherSuites:   authenticated,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c(), nil },
	}
}

// readPair returns the certificate's text followed by the key's, so that the watcher takes up both or neither.
func readPair(certFile, keyFile string) ([]byte, error) {
	cert, err := smallfile.Read(certFile, maxPEMBytes)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %s: %w, expected a PEM file", certFile, err)
	}
	key, err := smallfile.ReadSecret(keyFile, maxPEMBytes)
	if err != nil {
		return nil, fmt.Errorf("read the certificate's key: %s: %w, expected a PEM file", keyFile, err)
	}
	return slices.Concat(cert, []byte("\n"), key), nil
}

// maxPEMBytes bounds each of the two files.
const maxPEMBytes = 1 << 20

func parsePair(certFile, keyFile string, pair []byte) (*tls.Certificate, error) {
	c, err := tls.X509KeyPair(pair, pair)
	if err != nil {
		return nil, fmt.Errorf("the certificate %s and the key %s: %w; expected two PEM files that belong together", certFile,
			keyFile, plain(err))
	}
	return &c, nil
}

// plain returns err without any part of a key that it may quote.
func plain(err error) error {
	if _, of := errors.AsType[x509.CertificateInvalidError](err); of {
		return err
	}
	// crypto/tls says what is wrong first; what it found follows a quote or a line break.
	words := err.Error()
	if end := strings.IndexAny(words, "\"\n"); end >= 0 {
		words = words[:end]
	}
	return errors.New(words)
}
