package access

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/web"
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

const (
	// An address may send perSecond requests each second in the long run, and burst at once. An open page asks every
	// two seconds: this is enough for a hospital behind one proxy and for a program that reads a list, and bounds one
	// that asks in a loop.
	perSecond = 500
	burst     = 2000
	// An account may make a change every perChange in the long run, and changesAtOnce at once.
	perChange     = 2 * time.Second
	changesAtOnce = 120
	// An address may send a wrong token every perGuess in the long run, and guessesAtOnce at once: enough for a person
	// with a bad copy of a token. A right token is never limited, so that guessing keeps nobody out.
	perGuess      = 30 * time.Second
	guessesAtOnce = 6
)

// limits lets each of many (addresses, accounts) do something burst times at once, and once per every in the long run.
// It is safe for concurrent use.
type limits[K comparable] struct {
	every time.Duration
	burst int

	mu sync.Mutex
	// recent and older hold when each may do burst at once again; older has those seen before recent began.
	recent, older map[K]time.Time
}

// mostRecent is how many recent holds. When it is full, it becomes older, and a new one begins.
const mostRecent = 4096

// wait returns how long one of them must wait first; if 0, it has counted one more.
func (l *limits[K]) wait(of K, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	full, known := l.recent[of]
	if !known {
		full = l.older[of]
		if l.recent == nil || len(l.recent) == mostRecent {
			l.recent, l.older = map[K]time.Time{}, l.recent
		}
	}
	if full.Before(now) {
		full = now
	}
	span := time.Duration(l.burst) * l.every
	if latest := now.Add(span); full.After(latest) { // the clock was set back
		full = latest
	}
	wait := max(0, full.Add(l.every).Sub(now)-span)
	if wait == 0 {
		full = full.Add(l.every)
	}
	l.recent[of] = full
	return wait
}

// Limited answers 429 to an address that sends too many requests. An IPv6 network of 64 bits counts as one address.
func (g *Gate) Limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.asked.wait(web.Network(peer(r)), g.Now()) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		// An HTTP/2 client can ask thousands of times a second, and would do so if it were answered at once.
		clock.Machine{}.Rest(r.Context(), time.Second)
		g.Crowded(peer(r))
		secure(w.Header(), r)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests from this address: wait a second", http.StatusTooManyRequests)
	})
}

// peer returns the address that a request comes from. web.Listen takes it from a header if a trusted proxy sends that.
func peer(r *http.Request) netip.Addr { return web.Address(r.RemoteAddr) }

// Of the lines that strangers cause, the log takes sampleFirst of a kind each second, and every sampleThen-th after
// that, so that nobody can fill a disk.
const (
	sampleFirst = 10
	sampleThen  = 100
)

// warn logs that a client at an address was not let in.
func (g *Gate) warn(from netip.Addr, event, message string, more ...zap.Field) {
	g.strangers.Warn(message, append(more, zap.String("event", event), zap.Stringer("from", from))...)
}

// Crowded logs that an address sends too many requests, or holds too many connections (web.Peers).
func (g *Gate) Crowded(from netip.Addr) {
	g.warn(from, "requests_limited", "an address sends too many requests, or holds too many connections")
}

func (g *Gate) providerFailed(err error) {
	g.strangers.Error("the OpenID provider cannot be reached; who is logged in stays so for 15 minutes at most, and "+
		"nobody else comes in by it", zap.String("event", "oidc_unavailable"), zap.Error(err))
}
