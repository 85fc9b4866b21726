package main

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"retry-worker/internal/api"
	"retry-worker/internal/config"
	"retry-worker/internal/smallfile"
)

const (
	// apiTime bounds one request to the API.
	apiTime = 40 * time.Second
	// tokenVariable holds the token for the API. There is no flag for it, because process lists show flags.
	tokenVariable = "RETRY_WORKER_TOKEN"
)

// serverFlags say where the API is, and with which token to call it.
type serverFlags struct{ Server, TokenFile, CaFile string }

// api returns the client for the server that flags and environment name. It is made once. Its errors are usage errors.
func (c *cli) api() (*api.Client, error) {
	if c.client != nil {
		return c.client, nil
	}
	f := &c.server
	settings, err := config.Load("RETRY_WORKER_HTTP_ADDR")
	if err != nil {
		return nil, &usageError{err}
	}
	base, wrongServer := baseOf(cmp.Or(f.Server, settings.HTTPAddr), settings.TLSCertFile != "" && f.Server == "")
	source, token, noToken := tokenVariable, settings.Token, error(nil)
	if f.TokenFile != "" {
		source = "--token-file " + f.TokenFile
		token, noToken = readToken(f.TokenFile)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		noToken = fmt.Errorf("%s holds no token (not shown), expected one as `retry-worker token new` prints it", source)
	}
	roots, noRoots := smallfile.Authorities("--ca-file", f.CaFile)
	client := &api.Client{Base: base, Token: token, Flag: "server", TokenFrom: tokenVariable + " or --token-file",
		// No proxy: the environment's is for other hosts. No redirections: the token is for this server alone.
		Client: http.Client{
			Timeout:       apiTime,
			Transport:     &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}
	if err := wrongUse(wrongServer, noToken, noRoots); err != nil {
		return nil, err
	}
	c.client = client
	return client, nil
}

// baseOf returns the URL to which the API's paths are added.
func baseOf(server string, secure bool) (string, error) {
	if !strings.Contains(server, "://") {
		server = map[bool]string{false: "http://", true: "https://"}[secure] + reachable(server)
	}
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("--server is no address of a console (not shown), expected host:port such as 127.0.0.1:8095, or " +
			"https://…")
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// readToken reads a token from a file that others must not be able to read, since the token lets them in.
func readToken(path string) (string, error) {
	content, err := smallfile.ReadSecret(path, 4096) // no token is longer
	token := strings.TrimSpace(string(content))
	if err != nil {
		return "", fmt.Errorf("--token-file %s cannot be read: %w; name a readable file with a token in it", path, err)
	}
	if token == "" {
		return "", fmt.Errorf("--token-file %s is empty, expected a token as `retry-worker token new` prints it", path)
	}
	return token, nil
}
