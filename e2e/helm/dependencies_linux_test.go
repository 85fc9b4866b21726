package helm

import (
	"crypto/tls"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"retry-worker/e2e/harness/engine"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/tlstest"
)

// guarded is Zeebe's gateway, behind TLS and a check of tokens as Camunda Identity makes it.
type guarded struct {
	passed, refused atomic.Int64
}

// serveGateway at 127.0.0.1:26500 of the pod.
func serveGateway(t *testing.T, n *network, e *engine.Engine, idp *gateway.IDP, certificate tls.Certificate) *guarded {
	t.Helper()
	g := &guarded{}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	forward := proxy(t, "http://"+e.GatewayAddress())
	forward.Transport = &http.Transport{Protocols: protocols}
	serve(t, n, "127.0.0.1:26500", certificate, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, bears := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !bears || !idp.Accepts(token) {
			g.refused.Add(1)
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", "16") // UNAUTHENTICATED
			return
		}
		g.passed.Add(1)
		forward.ServeHTTP(w, r)
	}))
	return g
}

// serveIDP at https://keycloak of the pod.
func serveIDP(t *testing.T, n *network, idp *gateway.IDP, certificate tls.Certificate) {
	t.Helper()
	serve(t, n, "127.0.0.1:443", certificate, proxy(t, idp.URL()[:len(idp.URL())-len("/oauth/token")]))
}

func proxy(t *testing.T, target string) *httputil.ReverseProxy {
	t.Helper()
	to, err := url.Parse(target)
	testkit.Must(t, err)
	return &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
}

func serve(t *testing.T, n *network, addr string, certificate tls.Certificate, handler http.Handler) {
	t.Helper()
	listener := n.listen(t, addr)
	server := &http.Server{Handler: handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2", "http/1.1"}}} //nolint:gosec // of a test
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.ServeTLS(listener, "", "") // ends by Close only
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
}

// certificate of an authority for a name.
func certificate(t *testing.T, a *tlstest.Authority, name string) tls.Certificate {
	t.Helper()
	dir := t.TempDir()
	a.Issue(t, dir+"/crt", dir+"/key", name)
	c, err := tls.LoadX509KeyPair(dir+"/crt", dir+"/key")
	testkit.Must(t, err)
	return c
}
