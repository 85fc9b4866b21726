package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/web"
)

const (
	most, mostOfOne = 1000, 100
	held            = "GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n"
	kept            = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
)

// crowd is a server whose requests for /held are answered at the end.
type crowd struct {
	*web.Server
	t       *testing.T
	held    atomic.Int64
	release chan struct{}
	told    chan netip.Addr // for whom there was no place left
}

func newCrowd(t *testing.T, proxies ...netip.Prefix) *crowd {
	c := &crowd{t: t, release: make(chan struct{}), told: make(chan netip.Addr, most)}
	c.Server = listen(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/held":
			web.Keep(r)
			c.held.Add(1)
			<-c.release
		case "/dawdle": // nobody says who asks
			<-c.release
		}
		_, _ = io.WriteString(w, r.RemoteAddr)
	}, web.Peers{Proxies: proxies, Crowded: func(a netip.Addr) { c.told <- a }})
	t.Cleanup(func() { close(c.release) })
	return c
}

func (c *crowd) connect(from, send string) net.Conn {
	c.t.Helper()
	return connect(c.t, c.Server, from, send)
}

// hold n connections from an address in the midst of a request.
func (c *crowd) hold(from string, n int) {
	c.t.Helper()
	want := c.held.Load() + int64(n)
	for range n {
		c.connect(from, held)
	}
	wait.Until(c.t, fmt.Sprintf("%d requests are under way", want), func() bool { return c.held.Load() == want })
}

// answered returns the body of the next answer; false where the connection was closed instead.
func answered(conn net.Conn) (string, bool) {
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", false
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err == nil
}

func (c *crowd) expect(what, from string, served bool) {
	c.t.Helper()
	if _, ok := answered(c.connect(from, kept)); ok != served {
		c.t.Errorf("%s is served: %t, expected %t", what, ok, served)
	}
}

// One address gets a tenth of a port at once, and however many it opens others are served.
func TestConnectionsOfOneAddress(t *testing.T) {
	c := newCrowd(t)
	c.hold("127.0.0.2", mostOfOne)
	c.expect("one more of that address", "127.0.0.2", false)
	c.expect("another address", "127.0.0.3", true)
	if n := len(c.told); n != 1 || (<-c.told).String() != "127.0.0.2" {
		t.Errorf("%d were told of, expected the one that was closed", n)
	}
}

// What no request of somebody known is handled on makes room, the oldest first: kept alive, silent, slow to ask, or to be
// answered.
func TestWaitingConnectionsMakeRoom(t *testing.T) {
	for what, send := range map[string]string{"kept alive": kept, "silent": "", "slow": "GET / HTTP/1.1\r\nX-Slow: ",
		"a stranger's": "GET /dawdle HTTP/1.1\r\nHost: localhost\r\n\r\n"} {
		t.Run(what, func(t *testing.T) {
			c := newCrowd(t)
			other := c.connect("127.0.0.3", kept)
			if _, ok := answered(other); !ok {
				t.Fatal("the first one is not served")
			}
			var all []net.Conn
			for range mostOfOne {
				all = append(all, c.connect("127.0.0.2", send))
				if send == kept {
					answered(all[len(all)-1])
				}
			}
			c.expect("one more of that address", "127.0.0.2", true)
			if n, err := all[0].Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("the oldest reads %d bytes, %v, expected its end", n, err)
			}
			still := []net.Conn{other}
			if send == kept { // the others are about to be cut off for what they are
				still = append(still, all[1])
			}
			for _, conn := range still {
				_, _ = io.WriteString(conn, kept)
				if _, ok := answered(conn); !ok {
					t.Error("one that is younger, or of another address, has made room too")
				}
			}
		})
	}
}

func TestConnectionsOfAPort(t *testing.T) {
	c := newCrowd(t)
	for i := range most / mostOfOne {
		c.hold(fmt.Sprintf("127.0.1.%d", i+1), mostOfOne)
	}
	c.expect("one more than all", "127.0.0.2", false)
}

// A proxy has no share of its own, and is believed whom it asks for; nobody else is.
func TestProxies(t *testing.T) {
	c := newCrowd(t, netip.MustParsePrefix("127.0.0.2/32"), netip.MustParsePrefix("10.0.0.0/8"))
	c.hold("127.0.0.2", mostOfOne)
	for header, want := range map[string]string{
		"":                          "127.0.0.2:",
		"203.0.113.7":               "203.0.113.7:0",
		"198.51.100.1, 203.0.113.7": "203.0.113.7:0",
		"203.0.113.7, 10.0.0.9":     "203.0.113.7:0",
		"10.0.0.8, 10.0.0.9":        "127.0.0.2:",
		"203.0.113.7, unknown":      "127.0.0.2:",
		"::ffff:10.0.0.9":           "127.0.0.2:",
		"2001:db8::1,10.0.0.9":      "[2001:db8::1]:0",
		"1.2.3.4\r\nX-Forwarded-For: 203.0.113.7": "203.0.113.7:0",
	} {
		got, _ := answered(c.connect("127.0.0.2", "GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: "+header+"\r\n\r\n"))
		if !strings.HasPrefix(got, want) {
			t.Errorf("asked for %q: it is %q, expected %q", header, got, want)
		}
	}
	if got, _ := answered(c.connect("127.0.0.3", "GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 203.0.113.7\r\n\r\n")); !strings.HasPrefix(got, "127.0.0.3:") {
		t.Errorf("who is no proxy is %q, expected its own address", got)
	}
}

func TestNetworks(t *testing.T) {
	for remote, want := range map[string]string{
		"10.0.0.1:9": "10.0.0.1/32", "[::ffff:10.0.0.1]:9": "10.0.0.1/32", "[2001:db8::1]:9": "2001:db8::/64", "[2001:db8:0:0:ffff:1:2:3]:9": "2001:db8::/64",
		"[2001:db8:0:1::1]:9": "2001:db8:0:1::/64", "[fe80::1%eth0]:9": "fe80::/64", "10.0.0.1": "invalid Prefix", "": "invalid Prefix",
	} {
		if got := web.Network(web.Address(remote)).String(); got != want {
			t.Errorf("%q is of %s, expected %s", remote, got, want)
		}
	}
}
