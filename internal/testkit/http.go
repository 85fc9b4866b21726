package testkit

import (
	"io"
	"net/http"
	"testing"
	"time"
)

// Send sends a request by a client, and returns the answer.
func Send(t testing.TB, c *http.Client, r *http.Request) (status int, header http.Header, body string) {
	t.Helper()
	answer, err := c.Do(r)
	Must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	Must(t, err)
	return answer.StatusCode, answer.Header, string(text)
}

// Get requests a URL, by a connection of its own, and returns the answer.
func Get(t testing.TB, url string) (status int, body string) {
	t.Helper()
	// Compressing metrics, which are read often, would cost more than all else about them.
	c := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
	r, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	Must(t, err)
	status, _, body = Send(t, &c, r)
	return status, body
}
