package access

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// MayServeWithoutTokens returns nil if addr (host:port) can be reached from this machine only. Otherwise its error is
// the line that the user reads: why the console does not start there without tokens, and what to do.
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

// IsLoopback reports whether a host, without its port, names this machine to itself. No other name is looked up: what
// it resolves to is somebody else's to say.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// ownHost reports whether a request was sent to this machine under a name of its own. Any web page can make a browser
// ask a loopback address, by a name of the page's that resolves to it (DNS rebinding), but not under these.
func ownHost(r *http.Request) bool {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if inner, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	return IsLoopback(host)
}
