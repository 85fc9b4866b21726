package audit_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
)

// TestPolicyThatIsGone: a reload took the policy away; what was recorded under it is shown, exported and verified as
// before, and its figures are asked for by its name as long as anybody may remember it.
func TestPolicyThatIsGone(t *testing.T) {
	w := write(t)
	memory := w.Memory
	w.fails("CLM-1-1", "TIMEOUT", 0)
	w.Advance(10 * time.Minute)
	w.succeeds("CLM-1-1")
	known := []string{"whatsapp-message"}
	valued := func(k statistics.KPI) bool { return k.Value != nil }
	for _, test := range []struct {
		ago    time.Duration
		values bool // whether its figures have any
		listed bool // whether they are among those of all policies
	}{{time.Hour, true, true}, {6 * 24 * time.Hour, true, true}, {30 * 24 * time.Hour, false, false}, {5 * 365 * 24 * time.Hour, false, false}} {
		now := begin.Add(test.ago)
		of, err := statistics.KPIs(t.Context(), memory, known, decision.DefaultPolicy, now)
		if err != nil || len(of) != 10 || slices.ContainsFunc(of, valued) != test.values {
			t.Errorf("after %s: %+v (%v)", test.ago, of, err)
		}
		all, err := statistics.KPIs(t.Context(), memory, known, "", now)
		if listed := len(all) == 20; err != nil || listed != test.listed {
			t.Errorf("after %s all are %d figures (%v)", test.ago, len(all), err)
		}
	}
	_, err := statistics.KPIs(t.Context(), memory, known, "tiss", begin)
	if unknown, ok := errors.AsType[*statistics.UnknownPolicyError](err); !ok || !strings.Contains(unknown.Error(), "whatsapp-message") {
		t.Errorf("a policy that never was is answered with %v", err)
	}

	var exported bytes.Buffer
	n, err := audit.Export(t.Context(), memory, &exported, audit.Selection{Policy: decision.DefaultPolicy}, audit.CSV, nil)
	if err != nil || n != 2 || !strings.Contains(exported.String(), "3f9a1c77d0e2") {
		t.Errorf("%d records exported (%v):\n%s", n, err, exported.String())
	}
	if report, err := audit.Verify(t.Context(), memory, journal.Head{}, nil); err != nil || report.Records != 2 {
		t.Errorf("verified %+v (%v)", report, err)
	}
}
