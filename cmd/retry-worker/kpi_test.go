package main

import (
	"bytes"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/testkit/golden"
)

// kpiAt runs the command at an instant.
func kpiAt(t *testing.T, format string, now time.Time) string {
	t.Helper()
	var out, errOut bytes.Buffer
	c := &cli{out: &checkedWriter{w: &out}, errOut: &errOut, format: format}
	if err := c.kpi(t.Context(), []string{decision.DefaultPolicy}, "", now); err != nil || errOut.Len() > 0 {
		t.Fatal(err, errOut.String())
	}
	return out.String()
}

func TestKPI(t *testing.T) {
	audited(t)
	later := auditBegin.Add(15 * time.Hour)
	golden.Check(t, "testdata/audit/kpi.txt", kpiAt(t, "text", later))
	golden.Check(t, "testdata/audit/kpi.json", kpiAt(t, "json", later))
	golden.Check(t, "testdata/audit/kpi-long-after.txt", kpiAt(t, "text", later.AddDate(1, 0, 0)))
}
