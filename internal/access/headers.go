package access

import "net/http"

// onlyTLS has a browser ask over TLS only from then on, for a year.
const onlyTLS = "max-age=31536000; includeSubDomains"

// secure sets the headers of every answer. A page may load from its own server; scripts and styles within it do
// nothing. An API answer may do nothing at all.
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
