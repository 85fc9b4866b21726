package worker_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// BenchmarkHandle is one job's way from its variables to its reply, for a failure that the journal knows: what is
// measured does not grow with what was decided before.
func BenchmarkHandle(b *testing.B) {
	for _, e := range []example{
		{"transient", "{}", claim(`"submissionError":"TIMEOUT - Connection timeout after 30s","retryCount":1,"lastSubmissionTime":null`)},
		{"permanent", `{"retryPolicy":"tiss-submission"}`, claim(`"submissionError":"HTTP 422: {\"code\":\"INVALID_PATIENT_DATA\"}","retryCount":0`)},
	} {
		b.Run(e.name, func(b *testing.B) {
			j := job(worker.AnalyzeRetry, e.headers, e.variables)
			clock := func() time.Time { return analysed }
			memory := testkit.StartJournal(b, testkit.NewMemory(), clock)
			h := handlerOf(j.Type, memory, analysed, worker.NoHooks(), zap.NewNop())
			b.ReportAllocs()
			for b.Loop() {
				if r := h(context.Background(), &j); r.Action == worker.Released || r.Action == worker.Failed {
					b.Fatalf("replied %+v", r)
				}
			}
		})
	}
}
