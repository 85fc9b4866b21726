package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
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

// R7: nextRetryTime − now is backoffMinutes exactly, whatever the zone of --now and the time of day.
func TestDecideTimeIsExact(t *testing.T) {
	for _, now := range []string{"2025-01-12T10:40:00Z", "2025-06-30T23:59:59-03:00", "2024-02-29T12:00:00.5+05:45"} {
		for count, bounds := range map[string][2]float64{"0": {5, 6}, "1": {8, 12}, "2": {16, 24}, "3": {32, 48}, "4": {64, 96}} { // R5
			o := retryWorker("decide", "--id", "CLM-1-1", "--error", "TIMEOUT", "--retry-count", count, "--now", now, "-o", "json").object(t)
			at, err := time.Parse(time.RFC3339, now)
			if err != nil {
				t.Fatal(err)
			}
			next, err := time.Parse("2006-01-02T15:04:05Z", o["nextRetryTime"].(string))
			if err != nil {
				t.Fatal(err)
			}
			minutes := o["backoffMinutes"].(float64)
			if got := next.Sub(at.Truncate(time.Second)).Minutes(); got != minutes || minutes < bounds[0] || minutes > bounds[1] {
				t.Errorf("count %s at %s: next in %v min, backoffMinutes %v, want the same, within %v", count, now, got, minutes, bounds)
			}
		}
	}
}

func TestDecideWithoutNowIsNow(t *testing.T) {
	before := time.Now().Truncate(time.Second)
	o := retryWorker("decide", "--id", "CLM-1-1", "--error", "TIMEOUT", "-o", "json").object(t)
	next, err := time.Parse(time.RFC3339, o["nextRetryTime"].(string))
	if err != nil {
		t.Fatal(err)
	}
	analysed := next.Add(-time.Duration(o["backoffMinutes"].(float64)) * time.Minute)
	if analysed.Before(before) || analysed.After(time.Now()) {
		t.Errorf("analysed at %v, want now (%v)", analysed, before)
	}
}

// The contract: the first of policy, id, count, time, error that is wrong is the one that is named.
func TestDecideRejectsInTheContractsOrder(t *testing.T) {
	wrong := []struct{ flag, bad, good, code string }{
		{"--policy", "nobody-s", "tiss-submission", "UNKNOWN_POLICY"},
		{"--id", "1-1", "CLM-1-1", "INVALID_CLAIM_ID"},
		{"--retry-count", "2.5", "2", "INVALID_RETRY_COUNT"},
		{"--last-submission-time", "soon", "2025-01-12T10:40:00Z", "INVALID_LAST_SUBMISSION_TIME"},
		{"--error", " ", "TIMEOUT", "INVALID_ERROR_MESSAGE"},
	}
	for first := range wrong {
		args := []string{"decide", "-o", "json"}
		for i, w := range wrong {
			value := w.bad
			if i < first {
				value = w.good
			}
			args = append(args, w.flag, value)
		}
		r := retryWorker(args...)
		o := r.object(t)
		if o["rejection"] != wrong[first].code || o["outcome"] != "REJECTED" || o["matchedRule"] != nil || r.code != exitUsage {
			t.Errorf("%v: got %v, exit %d, want %s", args, o, r.code, wrong[first].code)
		}
		if message, _ := o["message"].(string); !strings.HasPrefix(message, wrong[first].code+": ") || r.stderr != "retry-worker: "+message+"\n" {
			t.Errorf("%v: message %q, standard error %q, want the same line", args, o["message"], r.stderr)
		}
	}
}

// R1: at the limit the error does not matter, but a malformed id and count do.
func TestDecideLimitComesBeforeTheError(t *testing.T) {
	for count, want := range map[string]string{"4": "REJECTED", "5": "MAX_RETRIES_EXCEEDED", "7": "MAX_RETRIES_EXCEEDED"} {
		o := retryWorker("decide", "--id", "CLM-1-1", "--retry-count", count, "-o", "json").object(t)
		if o["outcome"] != want {
			t.Errorf("no error text at %s: got %v, want %s", count, o["outcome"], want)
		}
		if want != "REJECTED" && o["errorClassification"] != "UNKNOWN" {
			t.Errorf("no error text at %s: got %v, want UNKNOWN", count, o["errorClassification"])
		}
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

// The error goes back to the process as it came.
func TestDecideKeepsTheErrorAsItCame(t *testing.T) {
	const text = "TIMEOUT <\"ação\" & 'x'>\n\tCPF 529.982.247-25"
	o := retryWorker("decide", "--id", "CLM-1-1", "--error", text, "-o", "json").object(t)
	if o["originalError"] != text {
		t.Errorf("got %q, want %q", o["originalError"], text)
	}
}

// Nothing personal in what is said about input that was refused.
func TestDecideRejectsWithoutPersonalData(t *testing.T) {
	for _, args := range [][]string{
		{"--id", "529.982.247-25"}, {"--id", "CLM-1-1", "--retry-count", "529.982.247-25"}, {"--policy", "529.982.247-25"},
	} {
		r := retryWorker(append([]string{"decide"}, args...)...)
		if r.code != exitUsage || strings.Contains(r.stderr, "529.982.247-25") {
			t.Errorf("%q: exit %d, standard error %q, want it without the CPF", args, r.code, r.stderr)
		}
	}
}
