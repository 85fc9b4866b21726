package catalogue_test

import (
	"testing"
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// BenchmarkDecide is one decision by a policy of the built-in catalogue on 2 kB that none of its rules knows, or only one of
// the last (the Portuguese text says "necessárias").
func BenchmarkDecide(b *testing.B) {
	p := catalogue.Default().Policies["tiss-submission"]
	for name, message := range decisiontest.Messages() {
		b.Run(name, func(b *testing.B) {
			v := decision.Variables{ID: decision.Text("CLM-001-1"), Error: decision.Text(message), RetryCount: "1"}
			b.ReportAllocs()
			for b.Loop() {
				f, rejection := p.Read(v)
				if rejection != nil {
					b.Fatal(rejection)
				}
				decision.Decide(&f, p, decision.Past{}, time.Unix(1736690400, 0))
			}
		})
	}
}
