package decision_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// TestValues holds testdata/values.txt: how values are read, by the kind that begins each case.
func TestValues(t *testing.T) {
	p := patient(1<<63 - 1)
	p.HTTPStatusVariable = "httpStatus"
	read := func(v decision.Variables) (decision.Failure, decision.RejectionCode) {
		v.ID, v.Error = `"CLM-A-1"`, cmp.Or(v.Error, `"?"`)
		f, rejection := p.Read(v)
		if rejection != nil {
			return f, rejection.Code
		}
		return f, ""
	}
	kinds := map[string]func(given string) string{
		"retryCount": func(given string) string {
			f, code := read(decision.Variables{RetryCount: decision.Value(given)})
			if code == "" && !f.HasRetryCount {
				return "none"
			}
			return orRefused(fmt.Sprint(f.RetryCount), code, decision.InvalidRetryCount)
		},
		"lastSubmissionTime": func(given string) string {
			f, code := read(decision.Variables{LastSubmissionTime: decision.Value(given)})
			return orRefused(f.LastSubmission.Format(time.RFC3339Nano), code, decision.InvalidLastSubmissionTime)
		},
		"result": func(given string) string {
			r, rejection := decision.ReadResult(decision.Value(given))
			if rejection != nil {
				return orRefused("", rejection.Code, decision.InvalidOutcome)
			}
			return string(r)
		},
		"typed": func(given string) string { return string(decision.Typed(given)) },
		"destination": func(given string) string {
			f, _ := read(decision.Variables{Destination: decision.Value(given)})
			return f.Destination
		},
		"instant": func(given string) string {
			at, err := time.Parse(time.RFC3339, given)
			testkit.Must(t, err)
			return decision.Instant(at)
		},
		"matches": func(given string) string {
			m := p.Rules.Classify(given, 0)
			if class, code := oracleClass(given); class != m.Class || code != m.Name {
				t.Errorf("%q is %s by %q, and by the oracle %s by %q", given, m.Class, m.Name, class, code)
			}
			return cmp.Or(m.Name, string(m.Class))
		},
		"context": readContext,
	}
	for _, lines := range golden.Cases(t, "testdata/values.txt") {
		for _, line := range lines[1:] {
			given, want, _ := strings.Cut(line, " -> ")
			if got := kinds[lines[0]](given); got != want {
				t.Errorf("%s: %q is read as %q, want %q", lines[0], given, got, want)
			}
		}
	}
}

// orRefused is a value, or what it was refused as.
func orRefused(value string, code, as decision.RejectionCode) string {
	switch code {
	case "":
		return value
	case as:
		return "refused"
	default:
		return string(code)
	}
}

// readContext reads a value of a type, both in given.
func readContext(given string) string {
	p := decisiontest.TISSSubmission()
	of, value, _ := strings.Cut(given, " ")
	p.Context = []decision.ContextField{{Variable: "other"}, {Variable: "x", Type: decision.ContextType(of)}}
	v := claim("1", "TIMEOUT")
	v.Context = []decision.Value{"null", decision.Value(value)}
	f, _ := p.Read(v)
	if len(f.Context) != 1 || f.Context[0].Variable != "x" {
		return fmt.Sprintf("%+v", f.Context)
	}
	c := f.Context[0]
	text := string(c.Type) + " " + c.Value
	if cents := f.Context.Cents(); cents != 0 {
		text += fmt.Sprintf(", %d cents", cents)
	}
	_, isAmount := c.Cents()
	_, isTime := c.Time()
	if isAmount != (c.Type == decision.ContextMoney) || isTime != (c.Type == decision.ContextTime) {
		text += fmt.Sprintf(", an amount: %t, an instant: %t", isAmount, isTime)
	}
	return text
}
