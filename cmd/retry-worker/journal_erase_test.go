package main

import (
	"strings"
	"testing"

	"retry-worker/internal/decision"
)

func TestJournalErase(t *testing.T) {
	w := open(t)
	w.Fail(decision.DefaultPolicy, "CLM-001-1", "TIMEOUT", -1)
	w.Fail("failed-job", "..", "TIMEOUT", -1)
	erase := []string{"journal", "erase", "CLM-001-1", "--reason", "protocolo 4711"}
	for _, tt := range []struct {
		who, says string
		code      int
		args      []string
	}{
		{"ada", "0 arguments given, expected", exitUsage, erase[:2]},
		{"ada", "--reason", exitUsage, erase[:3]},
		{"otto", "may not erase a subject", exitFailed, erase},
		{"ada", "a retry of it is under way", exitFailed, erase},
		{"ada", "a retry of it is under way", exitFailed, []string{"journal", "erase", "..", "--policy", "failed-job", "--reason", "x"}},
		{"ada", "the journal knows no such subject", exitFailed, append(erase[:5:5], "--policy", "no-retry")},
	} {
		w.as(tt.who)
		if r := retryWorker(tt.args...); r.code != tt.code || !strings.Contains(r.stderr, tt.says) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s asks %q: exit %d, %q, want %d and %q", tt.who, tt.args, r.code, r.stderr, tt.code, tt.says)
		}
	}
	w.Succeed(decision.DefaultPolicy, "CLM-001-1")
	if o := retryWorker(append(erase, "-o", "json")...).done(t).object(t); o["records"] != 2.0 || o["record"] != 4.0 {
		t.Errorf("it says %v", o)
	}
}
