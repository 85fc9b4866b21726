// Package tlstest issues certificates for tests of TLS.
package tlstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority is a certificate authority for one test. Its certificates are for localhost, 127.0.0.1 and a name. Not
// safe for concurrent use.
type Authority struct {
	// File holds its certificate in PEM, Pool the same for clients in this process.
	File string
	Pool *x509.CertPool

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns an Authority whose files go with the test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{File: filepath.Join(t.TempDir(), "authority.pem"), Pool: x509.NewCertPool(), key: newKey(t)}
	template := named("authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a.cert = sign(t, template, template, &a.key.PublicKey, a.key)
	a.Pool.AddCert(a.cert)
	write(t, a.File, "CERTIFICATE", a.cert.Raw)
	return a
}

// Issue writes a new certificate for that name, valid for a day, and its key, over the files.
func (a *Authority) Issue(t testing.TB, certFile, keyFile, name string) {
	t.Helper()
	a.IssueUntil(t, certFile, keyFile, name, time.Now().Add(24*time.Hour))
}

// IssueUntil is Issue with a certificate that is valid until an instant.
func (a *Authority) IssueUntil(t testing.TB, certFile, keyFile, name string, until time.Time) {
	t.Helper()
	key := newKey(t)
	template := named(name)
	template.NotAfter = until
	template.DNSNames, template.IPAddresses = []string{"localhost", name}, []net.IP{net.IPv4(127, 0, 0, 1)}
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{
		x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, certFile, "CERTIFICATE", sign(t, template, a.cert, &key.PublicKey, a.key).Raw)
	write(t, keyFile, "PRIVATE KEY", private)
}

func named(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t testing.TB, template, parent *x509.Certificate, public *ecdsa.PublicKey, by *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func write(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}
