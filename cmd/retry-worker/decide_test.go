package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/testkit"
)

// The contract: one flat object of the outcome, the outputs (no deadLetterId) and the rule that matched; behind them, what
// it matched and why, the hint and the catalogue.
func TestDecideJSON(t *testing.T) {
	both := []string{"outcome", "shouldRetry", "retryCount", "maxRetries", "retryReason", "errorClassification", "originalError", "retryPolicy", "matchedRule",
		"reason", "matchedText", "hint", "catalogue"}
	retry := append(slices.Clone(both), "backoffMinutes", "backoffDuration", "nextRetryTime")
	final := append(slices.Clone(both), "responsibleTeam")
	rejected := []string{"outcome", "retryPolicy", "matchedRule", "rejection", "message"}
	for _, c := range []struct {
		text, count string
		outcome     string
		fields      []string
		code        int
	}{
		{"TIMEOUT", "0", "RETRY", retry, exitDone},
		{"nobody knows", "4", "RETRY", retry, exitDone},
		{"DUPLICATE_CLAIM", "0", "PERMANENT_ERROR", final, exitDone},
		{"TIMEOUT", "5", "MAX_RETRIES_EXCEEDED", final, exitDone},
		{"", "5", "MAX_RETRIES_EXCEEDED", final, exitDone},
		{"", "4", "REJECTED", rejected, exitUsage},
	} {
		r := retryWorker("decide", "--policy", "tiss-submission", "--id", "CLM-1-1", "--error", c.text, "--retry-count", c.count, "-o", "json")
		o := r.object(t)
		slices.Sort(c.fields)
		if got := slices.Sorted(maps.Keys(o)); !slices.Equal(got, c.fields) {
			t.Errorf("%q at %s: fields %v, want %v", c.text, c.count, got, c.fields)
		}
		if o["outcome"] != c.outcome || r.code != c.code {
			t.Errorf("%q at %s: %v, exit %d, want %s, exit %d", c.text, c.count, o["outcome"], r.code, c.outcome, c.code)
		}
		for name, value := range o {
			switch value.(type) {
			case map[string]any, []any:
				t.Errorf("%s is not flat", name)
			}
		}
	}
}

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
