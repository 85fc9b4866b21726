package access

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// MayServeWithoutTokens returns nil if addr (host:port) can be reached from this machine only. Otherwise the error
// tells the user why the console does not start there without tokens, and what to do.
func MayServeWithoutTokens(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err == nil && IsLoopback(host) {
		return nil
	}
	return fmt.Errorf("RETRY_WORKER_HTTP_ADDR is %q, expected a loopback address such as 127.0.0.1:8095 as long as "+
		"neither RETRY_WORKER_AUTH_TOKENS_FILE nor RETRY_WORKER_OIDC_ISSUER is set: "+
		"other machines reach this one, patients' claims are served there, and nobody has to log in; "+
		"`retry-worker token new --name NAME --role admin --file FILE` makes the first", addr)
}

// IsLoopback reports whether a host, without its port, is localhost or a loopback address. It looks up no name, since
// others decide what a name resolves to.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// ownHost reports whether a request was sent to localhost or a loopback address. Another site's page can read answers
// from here, but only under its own host's name (DNS rebinding).
func ownHost(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if inner, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	return IsLoopback(host)
}

// onlyTLS tells a browser to use TLS alone for a year.
const onlyTLS = "max-age=31536000; includeSubDomains"

// secure sets the security headers of an answer. A page may load from its own server only; inline scripts and styles do
// not run. An API answer may load nothing.
func secure(h http.Header, r *http.Request) {
	policy := "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	if !isAPI(r) {
		policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
			"connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// Not no-referrer: under that, browsers send the Origin of a form as "null", which the cross-origin protection
	// refuses where they send no Sec-Fetch-Site (plain HTTP on another address than loopback).
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if OverTLS(r) && !ownHost(r) { // under localhost it would hold for every other program of this machine
		h.Set("Strict-Transport-Security", onlyTLS)
	}
}
