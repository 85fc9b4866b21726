// Package webclient makes requests to addresses that stand in the policies: webhooks, and probes of destinations.
package webclient

import (
	"crypto/tls"
	"net/http"
	"time"
)

const (
	// connectTime bounds one connection.
	connectTime = 10 * time.Second
	// maxHead is the bytes that are read of an answer's head.
	maxHead = 16 << 10
)

// New returns a client that goes to public addresses and to those that are allowed; version is what it says it is. It
// uses no proxy, follows no redirect, and keeps no connection.
func New(allowed Allowed, version string) *http.Client {
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: agent{version, &http.Transport{
			DialContext: allowed.dial, TLSHandshakeTimeout: connectTime, MaxResponseHeaderBytes: maxHead,
			TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true, ForceAttemptHTTP2: true,
		}},
	}
}

// agent says what sends.
type agent struct {
	version string
	next    http.RoundTripper
}

func (a agent) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("User-Agent", "retry-worker/"+a.version)
	return a.next.RoundTrip(r)
}
