// The tests check the package against the business rules and RESOLUTIONS, by its public API alone. Statement
// coverage, at least 96 % (§13.1 of both rules), is checked by `make cover`, which is `go test -cover
// ./internal/decision`. `make fuzz` runs the fuzz targets.
package decision_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// analysed is the instant of RN-BIL-005 §9.1's example.
var analysed = time.Date(2025, 1, 12, 10, 40, 0, 0, time.UTC)

// claim returns a valid failure with that count (as JSON; empty: absent) and error text.
func claim(count, text string) decision.Variables {
	return decision.Variables{
		ID:         decision.Text("CLM-001-123"),
		Error:      decision.Text(text),
		RetryCount: decision.Value(count),
	}
}

// decide reads v and decides on it under p with nothing remembered, as the worker does.
func decide(p *decision.Policy, v decision.Variables) decision.Decision {
	return decideWith(p, v, decision.Past{}, analysed)
}

func decideWith(p *decision.Policy, v decision.Variables, past decision.Past, now time.Time) decision.Decision {
	f, rejection := p.Read(v)
	if rejection != nil {
		return decision.Decision{Outcome: decision.Rejected, Policy: p.Name, Rejection: rejection}
	}
	return decision.Decide(&f, p, past, now)
}

// patient returns tiss-submission with so many retries that its backoff reaches the cap.
func patient(maxRetries int64) *decision.Policy {
	p := decisiontest.TISSSubmission()
	p.MaxRetries = maxRetries
	return p
}

// TestMain makes rapid check each property 1,000 times unless -rapid.checks says otherwise.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "1000"); err != nil {
		panic(err)
	}
	os.Exit(m.Run()) // parses the command line, which overrides that
}
