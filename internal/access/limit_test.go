package access_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"retry-worker/internal/access"
)

// limitedAt is a handler behind the limit, on a clock that stands until it is moved.
func limitedAt(now *time.Time) http.Handler {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return access.New(access.Options{Now: func() time.Time { return *now }}).Limited(ok)
}

func askFrom(h http.Handler, address string) *httptest.ResponseRecorder {
	gone, cancel := context.WithCancel(context.Background())
	cancel() // who does not wait is not held
	r := httptest.NewRequestWithContext(gone, http.MethodGet, "/", nil)
	r.RemoteAddr = address
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// answered of n requests.
func answered(h http.Handler, n int, address func(i int) string) (fine int) {
	for i := range n {
		if askFrom(h, address(i)).Code == http.StatusNoContent {
			fine++
		}
	}
	return fine
}

// Who asks in a circle is told to wait; others are answered meanwhile, and he is after a moment.
func TestRateOfOneAddress(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	h := limitedAt(&now)
	busy := func(int) string { return "203.0.113.7:4000" }
	if fine := answered(h, 5000, busy); fine != 2000 {
		t.Errorf("%d of 5000 requests at once were answered, expected 2000", fine)
	}
	if refused := askFrom(h, busy(0)); refused.Code != http.StatusTooManyRequests || refused.Header().Get("Retry-After") != "1" {
		t.Errorf("it answers %d, Retry-After %q, expected 429 and 1", refused.Code, refused.Header().Get("Retry-After"))
	}
	if got := askFrom(h, "203.0.113.8:4000").Code; got != http.StatusNoContent {
		t.Errorf("another address gets %d while one asks too much", got)
	}
	now = now.Add(time.Second)
	if fine := answered(h, 5000, busy); fine != 500 {
		t.Errorf("%d requests were answered in the next second, expected 500", fine)
	}
}

// One machine has as many IPv6 addresses as it likes, all of one network; ports say nothing.
func TestRateOfOneNetwork(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	h := limitedAt(&now)
	if fine := answered(h, 3000, func(i int) string {
		return "[2001:db8::" + strconv.FormatInt(int64(i), 16) + "]:" + strconv.Itoa(1024+i)
	}); fine != 2000 {
		t.Errorf("%d of 3000 requests of one IPv6 network were answered, expected 2000", fine)
	}
	if fine := answered(h, 1, func(int) string { return "[2001:db8:0:1::1]:9" }); fine != 1 {
		t.Error("another network is refused with it")
	}
	if fine := answered(h, 3000, func(i int) string { return "::ffff:192.0.2.1%eth0" }); fine != 2000 { // no address and port: all such are one
		t.Errorf("%d of 3000 requests from nowhere were answered, expected 2000", fine)
	}
}
