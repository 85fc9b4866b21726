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

// Certificate returns what a server shows that speaks TLS, at the moment.
type Certificate = func() *tls.Certificate

// OpenCertificate reads a certificate (with the authorities between it and the root behind it) and its key: two PEM
// files, taken up again when they change, so that a renewed certificate needs no restart. Its error is one line that
// names the file.
func OpenCertificate(certFile, keyFile string) (*smallfile.Watcher[tls.Certificate], error) {
	return smallfile.Watch(certFile,
		func(path string) ([]byte, error) { return readPair(path, keyFile) },
		func(path string, pair []byte) (*tls.Certificate, error) { return parsePair(path, keyFile, pair) })
}

// authenticated are the suites of TLS 1.2 that encrypt and authenticate in one (AEAD), with forward secrecy; those of
// TLS 1.3 are no other.
var authenticated = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// configOf returns the configuration of a server that shows the certificate in force.
func configOf(c Certificate) *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		CipherSuites:   authenticated,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c(), nil },
	}
}

// readPair returns the certificate's text and the key's, one behind the other: they change together or not at all.
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

// maxPEMBytes of a certificate with those behind it, or of a key.
const maxPEMBytes = 1 << 20

func parsePair(certFile, keyFile string, pair []byte) (*tls.Certificate, error) {
	c, err := tls.X509KeyPair(pair, pair)
	if err != nil {
		return nil, fmt.Errorf("the certificate %s and the key %s: %w; expected two PEM files that belong together", certFile,
			keyFile, plain(err))
	}
	return &c, nil
}

// plain returns err without what it may quote of a key.
func plain(err error) error {
	if _, of := errors.AsType[x509.CertificateInvalidError](err); of {
		return err
	}
	// crypto/tls says first what is wrong, and behind a quote or on the next line what it found.
	words := err.Error()
	if end := strings.IndexAny(words, "\"\n"); end >= 0 {
		words = words[:end]
	}
	return errors.New(words)
}
