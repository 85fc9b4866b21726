package web

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"retry-worker/internal/smallfile"
)

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
