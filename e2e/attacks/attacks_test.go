package attacks_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
)

// Whoever tries wrong tokens, a hundred a second from one address or from fifty, keeps nobody out, at his own address neither.
func TestNobodyIsLockedOut(t *testing.T) {
	for _, addresses := range []int{1, 50} {
		t.Run(fmt.Sprint(addresses), func(t *testing.T) {
			w := start(t)
			var attackers []*http.Client
			for i := range addresses {
				attackers = append(attackers, w.client(fmt.Sprintf("127.0.2.%d", i+1)))
			}
			people := []*http.Client{attackers[0], w.client(other)}
			wrong := "rwt_" + strings.Repeat("wrong", 8)
			every := time.NewTicker(10 * time.Millisecond)
			defer every.Stop()
			slowed, in, slowest := 0, 0, time.Duration(0)
			for i := 0; in < 100; i++ {
				<-every.C
				if w.logIn(attackers[i%addresses], wrong) == http.StatusTooManyRequests {
					slowed++
				}
				if slowed == 0 {
					continue
				}
				began := time.Now()
				if status := w.logIn(people[i%2], w.secret); status != http.StatusSeeOther {
					t.Fatalf("a right token is answered %d, after %d right ones, while wrong ones are slowed", status, in)
				}
				slowest = max(slowest, time.Since(began))
				in++
			}
			harness.Report(t, "wrong tokens, 100 a second from %d address(es): %d of them slowed; right ones let in: %d of 100, the slowest in %v",
				addresses, slowed, in, slowest.Round(time.Millisecond))
		})
	}
}

// Two thousand connections of one address, silent, slow and kept alive, shut neither probes nor console, to that address neither.
func TestFlood(t *testing.T) {
	w := start(t)
	for what, target := range map[string]string{"probes": w.Ops + "/livez", "console": w.API + "/login"} {
		t.Run(what, func(t *testing.T) {
			addr, path, _ := strings.Cut(target, "/")
			whole := "GET /" + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n"
			for i := range 2000 {
				c, err := dialer(attacker).DialContext(t.Context(), "tcp", addr)
				testkit.Must(t, err)
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(patience))
				_, _ = io.WriteString(c, []string{"", whole[:len(whole)-2], whole}[i%3]) // a refusal shows on reading
				if i%3 == 2 {
					if line, err := bufio.NewReader(c).ReadString('\n'); line != "HTTP/1.1 200 OK\r\n" {
						t.Fatalf("connection %d gets %q, %v", i, line, err)
					}
				}
			}
			slowest := time.Duration(0)
			for range 100 {
				for url, from := range map[string]string{"http://" + w.Ops + "/livez": attacker, "http://" + w.API + "/login": other} {
					began := time.Now()
					r, err := w.client(from).Get(url) // each by a connection of its own
					testkit.Must(t, err)
					if r.Body.Close(); r.StatusCode != http.StatusOK {
						t.Fatalf("%s answers %d", url, r.StatusCode)
					}
					slowest = max(slowest, time.Since(began))
				}
			}
			harness.Report(t, "2,000 connections of one address to the %s: /livez and /login answered 100 of 100 times, the slowest in %v", what, slowest.Round(time.Millisecond))
		})
	}
}

// Only suites that agree on a key for each connection and authenticate what they encrypt are spoken.
func TestSuitesThatAuthenticate(t *testing.T) {
	w := startTLS(t)
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
