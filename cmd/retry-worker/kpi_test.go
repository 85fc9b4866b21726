package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/kpi"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// kpiAt runs the command at an instant.
func kpiAt(t *testing.T, format string, now time.Time) string {
	t.Helper()
	var out, errOut bytes.Buffer
	c := &cli{out: &out, errOut: &errOut, format: format}
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

// What the command prints can be read as what the journal computes.
func TestKPIAsJSON(t *testing.T) {
	audited(t)
	var got struct{ KPIs []kpi.KPI }
	testkit.Must(t, json.Unmarshal([]byte(retryWorker("kpi", "--policy", "tiss-submission", "-o", "json").done(t).stdout), &got))
	if len(got.KPIs) != 10 || got.KPIs[0].Name != kpi.SuccessRate || got.KPIs[0].Policy != "tiss-submission" || len(got.KPIs[0].Goals) != 2 {
		t.Errorf("got %+v", got)
	}
}
