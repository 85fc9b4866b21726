package app

import (
	"net/url"
	"os"
	"strings"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/config"
)

// warnOfPlaintext says once what travels unencrypted though nobody asked for that.
func (a *App) warnOfPlaintext() {
	for _, line := range unencrypted(&a.settings) {
		a.log.Warn(line, zap.String("event", "unencrypted"))
	}
}

// unencrypted are the connections over which secrets or patients' data may travel in the clear, a line each, with what
// to do. Connections within this machine, and what a setting says in so many words, are none.
func unencrypted(s *config.Settings) (lines []string) {
	console := url.URL{Host: s.HTTPAddr}
	if s.TLSCertFile == "" && !access.IsLoopback(console.Hostname()) {
		lines = append(lines, "console and API speak plain HTTP to other machines, log-ins among it: put a proxy with TLS "+
			"before them, or set RETRY_WORKER_TLS_CERT_FILE")
	}
	if strings.HasPrefix(s.DatabaseURL, "postgres") && mayBePlain(s.DatabaseURL) {
		lines = append(lines, "the connection to PostgreSQL is encrypted only if the server offers it, and the server is "+
			"not verified: add sslmode=verify-full to the database's address")
	}
	if u, err := url.Parse(s.EventsURL); err == nil && u.Scheme == "nats" && u.User != nil &&
		!access.IsLoopback(u.Hostname()) {
		lines = append(lines, "user and password of the events' NATS server may travel unencrypted: write tls:// instead "+
			"of nats://")
	}
	if o := s.Engine.OAuth; o != nil {
		if u, err := url.Parse(o.URL); err == nil && u.Scheme == "http" && !access.IsLoopback(u.Hostname()) {
			lines = append(lines, "the engine's client secret travels unencrypted to the identity provider: write https:// "+
				"in ZEEBE_AUTHORIZATION_SERVER_URL")
		}
	}
	return lines
}

// mayBePlain reports whether a PostgreSQL address leaves the encryption to the server.
func mayBePlain(address string) bool {
	_, query, _ := strings.Cut(address, "?")
	values, _ := url.ParseQuery(query) // what cannot be read, the store refuses
	mode := values.Get("sslmode")
	if mode == "" {
		mode = os.Getenv("PGSSLMODE")
	}
	if mode != "" && mode != "allow" && mode != "prefer" {
		return false
	}
	u, err := url.Parse(address)
	return err != nil || !access.IsLoopback(u.Hostname()) && !strings.HasPrefix(values.Get("host"), "/")
}
