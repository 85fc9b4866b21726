package decision_test

import (
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// TestContextIsReadByItsType: what is not of its type is shown as it was given.
func TestContextIsReadByItsType(t *testing.T) {
	for _, tt := range []struct {
		of    decision.ContextType
		given decision.Value
		want  decision.ContextType
		value string
		cents int64
	}{
		{"text", `" Unimed SP "`, "text", "Unimed SP", 0},
		{"text", `17`, "text", "17", 0},
		{"number", `"1.234,5"`, "number", "1234.5", 0},
		{"number", `-3e2`, "number", "-300", 0},
		{"number", `1e23`, "number", "100000000000000000000000", 0},
		{"number", `1e24`, "text", "1e24", 0},
		{"number", `1e300`, "text", "1e300", 0},
		{"number", `1e-300`, "text", "1e-300", 0},
		{"number", `"três"`, "text", "três", 0},
		{"money", `1234.56`, "money", "1234.56", 123456},
		{"money", `"1234.56"`, "money", "1234.56", 123456},
		{"money", `"1.234,56"`, "money", "1234.56", 123456},
		{"money", `"1234,5"`, "money", "1234.50", 123450},
		{"money", `"1.234"`, "money", "1234.00", 123400},
		{"money", `"1.234.567,89"`, "money", "1234567.89", 123456789},
		{"money", `0`, "money", "0.00", 0},
		{"money", `0.1`, "money", "0.10", 10},
		{"money", `100000000000`, "money", "100000000000.00", 1e13},
		{"money", `100000000001`, "text", "100000000001", 0},
		{"money", `-1`, "text", "-1", 0},
		{"money", `1e400`, "text", "1e400", 0},
		{"money", `"1,234.56"`, "text", "1,234.56", 0},
		{"money", `"R$ 12"`, "text", "R$ 12", 0},
		{"money", `"12.34.56"`, "text", "12.34.56", 0},
		{"money", `""`, "text", "", 0},
		{"money", `true`, "text", "true", 0},
		{"time", `"2026-03-05T18:00:00-03:00"`, "time", "2026-03-05T21:00:00Z", 0},
		{"time", `"2026-03-05T18:00"`, "time", "2026-03-05T18:00:00Z", 0},
		{"time", `"05/03/2026"`, "text", "05/03/2026", 0},
	} {
		p := decisiontest.TISSSubmission()
		p.Context = []decision.ContextField{{Variable: "other"}, {Variable: "x", Type: tt.of}}
		v := claim("1", "TIMEOUT")
		v.Context = []decision.Value{"null", tt.given}
		f, rejection := p.Read(v)
		if rejection != nil {
			t.Fatal(rejection)
		}
		want := decision.ContextValue{Variable: "x", Type: tt.want, Value: tt.value}
		if len(f.Context) != 1 || f.Context[0] != want || f.Context.Cents() != tt.cents {
			t.Errorf("%s %s is %+v, %d cents, expected %+v, %d", tt.of, tt.given, f.Context, f.Context.Cents(), want, tt.cents)
		}
		_, isAmount := f.Context[0].Cents()
		_, isTime := f.Context[0].Time()
		if isAmount != (tt.want == "money") || isTime != (tt.want == "time") {
			t.Errorf("%s %s is an amount: %t, an instant: %t", tt.of, tt.given, isAmount, isTime)
		}
	}
}
