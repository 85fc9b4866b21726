package metrics_test

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/metrics"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// canary is a person's data in a claim's id and error text.
const canary = "529.982.247-25"

var analysed = time.Date(2025, 1, 12, 10, 40, 0, 0, time.UTC)

// theFour are a failure of each kind, and its count.
var theFour = []struct {
	text  string
	count int64
}{
	{"TIMEOUT for " + canary, 1},
	{"something new about " + canary, 0},
	{"INVALID_PATIENT_DATA of " + canary, 2},
	{"503 for " + canary, 5},
}

func decide(t *testing.T, text string, count int64) *decision.Decision {
	t.Helper()
	p := decisiontest.TISSSubmission()
	f, rejection := p.Read(decision.Variables{
		ID: decision.Text("CLM-" + canary + "-1"), Error: decision.Text(text), RetryCount: decision.Value(strconv.FormatInt(count, 10)),
	})
	if rejection != nil {
		t.Fatalf("read %q at %d: %v", text, count, rejection)
	}
	d := decision.Decide(&f, p, decision.Past{}, analysed)
	if d.Rejection != nil {
		t.Fatalf("decide %q at %d: %v", text, count, d.Rejection)
	}
	return &d
}

// served returns the metrics of a worker with the three job types, and their address.
func served(t *testing.T) (*metrics.Metrics, string) {
	t.Helper()
	m := metrics.New(metrics.Build{Version: "v1.2.3", Commit: "abc1234", GoVersion: "go1.26"})
	m.StartPolicies(decisiontest.Policies())
	for _, jobType := range []string{worker.AnalyzeRetry, worker.RetrySubmissionBackoff, worker.RecordRetryOutcome} {
		m.Start(map[string]string{"job_type": jobType})
	}
	m.SetCatalogue("0123456789ab")
	m.Readiness.NotReady(metrics.AboutEngine, "not yet")
	return m, listen(t, m, false)
}

// listen serves metrics, with profiles or without, and returns the address.
func listen(t *testing.T, m *metrics.Metrics, profiles bool) string {
	t.Helper()
	s, err := m.Listen(net.Listen, "127.0.0.1:0", profiles)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Close(context.Background())) })
	return "http://" + s.Addr()
}

// scrape returns the text exposition, without the Go run-time's own metrics.
func scrape(t *testing.T, url string) string {
	t.Helper()
	status, body := testkit.Get(t, url+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("/metrics: %d %s", status, body)
	}
	var ours strings.Builder
	for line := range strings.Lines(body) {
		name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
		if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			ours.WriteString(line)
		}
	}
	return ours.String()
}

func families(t *testing.T, exposition string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(strings.NewReader(exposition))
	testkit.Must(t, err)
	return all
}
