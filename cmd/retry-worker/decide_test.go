package main

import (
	"testing"
	"time"

	"retry-worker/internal/testkit"
)

func TestDecideWithoutNowIsNow(t *testing.T) {
	before := time.Now().Truncate(time.Second)
	o := retryWorker("decide", "--id", "CLM-1-1", "--error", "TIMEOUT", "-o", "json").object(t)
	next, err := time.Parse(time.RFC3339, o["nextRetryTime"].(string))
	testkit.Must(t, err)
	analysed := next.Add(-time.Duration(o["backoffMinutes"].(float64)) * time.Minute)
	if analysed.Before(before) || analysed.After(time.Now()) {
		t.Errorf("analysed at %v, want now (%v)", analysed, before)
	}
}
