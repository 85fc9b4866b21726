package main

import (
	"strings"
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

// However a value is written, what is wrong with it stays one line.
func TestDecideRejectsInOneLine(t *testing.T) {
	for _, args := range [][]string{
		{"--id", "a\nb"}, {"--id", "CLM-1-1", "--retry-count", "2.5\n"}, {"--id", "CLM-1-1", "--retry-count", "\n2"},
		{"--policy", "a\nb"}, {"--id", "CLM-1-1", "--last-submission-time", "a\r\nb"}, {"--id", "CLM-1-1", "--error", "\n \n"},
		{"--now", "a\nb"},
	} {
		r := retryWorker(append([]string{"decide"}, args...)...)
		if r.code != exitUsage || strings.Count(r.stderr, "\n") != 1 || !strings.HasPrefix(r.stderr, "retry-worker: ") {
			t.Errorf("%q: exit %d, standard error %q, want one line", args, r.code, r.stderr)
		}
	}
}
