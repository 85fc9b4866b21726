package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/config"
	"retry-worker/internal/webserver"
)

// inspectConsole looks at the files that let people in, as far as there are any.
func inspectConsole(ctx context.Context, i *inspection, s *config.Settings, now time.Time) {
	if s.AuthTokensFile != "" {
		i.step(ctx, "tokens", false, func(context.Context) (string, error) { return inspectTokens(s.AuthTokensFile, now) })
	}
	if s.TLSCertFile != "" {
		i.step(ctx, "certificate", false, func(context.Context) (string, error) { return inspectCertificate(s.TLSCertFile, s.TLSKeyFile, now) })
	}
}

func inspectTokens(path string, now time.Time) (string, error) {
	t, err := access.Load(path)
	if err != nil {
		return "", err
	}
	if t.Expired(now) == t.Len() {
		return "", fmt.Errorf("every token in %s is past its last day: nobody can log in; make one with `retry-worker token new`", path)
	}
	return fmt.Sprintf("%d that hold, %d past their last day", t.Len()-t.Expired(now), t.Expired(now)), nil
}

func inspectCertificate(certFile, keyFile string, now time.Time) (string, error) {
	c, err := webserver.LoadCertificate(certFile, keyFile, webserver.CertificateHooks{})
	if err != nil {
		return "", err
	}
	names, until := c.Names(), c.Until()
	if !now.Before(until) {
		return "", fmt.Errorf("the certificate %s ended at %s: browsers refuse it; renew it", certFile, until.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("of %s, until %s", strings.Join(names, ", "), until.UTC().Format(time.RFC3339)), nil
}
