package attacks_test

import (
	"crypto/tls"
	"strings"
	"testing"
)

// Only suites that agree on a key for each connection and authenticate what they encrypt are spoken.
func TestSuitesThatAuthenticate(t *testing.T) {
	w := start(t)
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		c, err := tls.Dial("tcp", w.API, &tls.Config{RootCAs: w.authority.Pool, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite.ID}}) //nolint:gosec // what is refused
		if err == nil {
			c.Close()
		}
		suits := strings.HasPrefix(suite.Name, "TLS_ECDHE_ECDSA") && (strings.Contains(suite.Name, "_GCM_") || strings.Contains(suite.Name, "_POLY1305_"))
		if suits != (err == nil) {
			t.Errorf("%s: %v, expected that it is spoken: %t", suite.Name, err, suits)
		}
	}
}
