package smallfile

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxPEM is the longest file of certificates or a key, in bytes; all public authorities take a fifth of it.
const maxPEM = 1 << 20

// Authorities returns the certificates of the PEM file at path, to trust instead of the system's; nil, meaning the
// system's, if path is empty. Its error is one line with setting and path.
func Authorities(setting, path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	const expected = "expected a PEM file with the certificates of the authorities to trust"
	content, err := Read(path, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("%s is %q, which cannot be read (%w), %s", setting, path, err, expected)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s is %q, which holds no certificate, %s", setting, path, expected)
	}
	return pool, nil
}

// NamesOf returns a certificate's host names, then its addresses.
func NamesOf(c *x509.Certificate) []string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// ReadPair returns a certificate's text, with its intermediate authorities, followed by its key's: a Watcher takes up
// both or neither. The error is one line that names the file.
func ReadPair(certFile, keyFile string) ([]byte, error) {
	cert, err := Read(certFile, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %s: %w, expected a PEM file", certFile, err)
	}
	key, err := ReadSecret(keyFile, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("read the certificate's key: %s: %w, expected a PEM file", keyFile, err)
	}
	return slices.Concat(cert, []byte("\n"), key), nil
}

// ParsePair returns the certificate and key that ReadPair has read. The error is one line that names both files, and
// shows nothing of the key.
func ParsePair(certFile, keyFile string, pair []byte) (*tls.Certificate, error) {
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
		words = words[:end] + "…"
	}
	return errors.New(words)
}
