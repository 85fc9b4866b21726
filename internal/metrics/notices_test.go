package metrics_test

import (
	"testing"

	"retry-worker/internal/notify"
)

// TestNotices: the series of a team and way start at 0.
func TestNotices(t *testing.T) {
	m, url := served(t)
	m.StartNotices("ti", notify.Email)
	m.NoticeTried("ti", notify.Email, notify.Failed)
	m.NoticeTried("ti", notify.Email, notify.Failed)
	wantLines(t, scrape(t, url), map[string]bool{
		`retry_worker_notices_total{channel="email",result="failed",team="ti"} 2`:  true,
		`retry_worker_notices_total{channel="email",result="sent",team="ti"} 0`:    true,
		`retry_worker_notices_total{channel="email",result="refused",team="ti"} 0`: true,
		`retry_worker_notices_total{channel="email",result="dropped",team="ti"} 0`: true,
		`retry_worker_notices_total{channel="webhook",`:                            false,
	})
}
