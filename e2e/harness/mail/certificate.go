package mail

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"time"
)

// validity of certificates, which outlives every test.
const validity = 24 * time.Hour

// certify makes an authority, whose key is thrown away, and a certificate of it for this machine.
func (s *Server) certify() error {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "retry-worker tests"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	own := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "correio.teste"}, NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	root, errRoot := x509.CreateCertificate(rand.Reader, authority, authority, authorityKey.Public(), authorityKey)
	leaf, errLeaf := x509.CreateCertificate(rand.Reader, own, authority, key.Public(), authorityKey)
	secret, errKey := x509.MarshalPKCS8PrivateKey(key)
	if err := errors.Join(errRoot, errLeaf, errKey); err != nil {
		return err
	}
	block := func(kind string, content []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}))
	}
	return errors.Join(s.give(authorityFile, block("CERTIFICATE", root), 0o644), s.give(certificate, block("CERTIFICATE", leaf), 0o644),
		s.give(privateKey, block("PRIVATE KEY", secret), 0o600))
}
