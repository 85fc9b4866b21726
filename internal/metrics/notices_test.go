package metrics_test

import (
	"testing"
	"time"

	"retry-worker/internal/notify"
)

// TestNotices: the series of a team and way start at 0, and the oldest message's wait is there only while one waits.
func TestNotices(t *testing.T) {
	m, _, url := served(t)
	now := analysed
	m.StartNotices("ti", notify.Email)
	m.NoticeTried("ti", notify.Email, notify.Failed)
	m.NoticeTried("ti", notify.Email, notify.Failed)
	m.SetNotices([]notify.Waiting{{Team: "ti", Channel: notify.Email, Since: now.Add(-time.Hour)}, {Team: "ti", Channel: notify.Email, Since: now.Add(-time.Minute)},
		{Team: "cadastro", Channel: notify.Webhook, Since: now.Add(time.Hour)}}, now)
	wantLines(t, scrape(t, url), map[string]bool{
		`retry_worker_notices_total{channel="email",result="failed",team="ti"} 2`:  true,
		`retry_worker_notices_total{channel="email",result="sent",team="ti"} 0`:    true,
		`retry_worker_notices_total{channel="email",result="refused",team="ti"} 0`: true,
		`retry_worker_notices_total{channel="email",result="dropped",team="ti"} 0`: true,
		`retry_worker_notices_total{channel="webhook",`:                            false,
		`retry_worker_notices_oldest_seconds{channel="email",team="ti"} 3600`:      true,
		`retry_worker_notices_oldest_seconds{channel="webhook",team="cadastro"} 0`: true,
	})
	m.SetNotices(nil, now)
	wantLines(t, scrape(t, url), map[string]bool{`retry_worker_notices_oldest_seconds{`: false})
}
