package decision_test

import (
	"reflect"
	"strings"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// TestR26SuccessProbability: what is learnt of a cause is told of a retry, and changes nothing that is decided.
func TestR26SuccessProbability(t *testing.T) {
	p := decisiontest.TISSSubmission()
	for count, want := range map[string]float64{"0": 0.25, "4": 0.25, "5": 0} {
		f, _ := p.Read(claim(count, "TIMEOUT"))
		plain := decision.Decide(&f, p, decision.Past{}, analysed)
		f.SuccessProbability = 0.25
		d := decision.Decide(&f, p, decision.Past{}, analysed)
		if plain.SuccessProbability = want; !reflect.DeepEqual(d, plain) {
			t.Errorf("after %s retries: %+v\nwant %+v", count, d, plain)
		}
	}
}

// TestDestinationOfAClaim: what cannot be a name is the policy's own.
func TestDestinationOfAClaim(t *testing.T) {
	for given, want := range map[decision.Value]string{
		"": "tiss", "null": "tiss", `""`: "tiss", "true": "tiss", `" unimed "`: "unimed", "17": "17", `"\u0001x"`: "tiss",
		decision.Text(strings.Repeat("x", 64)): strings.Repeat("x", 64), decision.Text(strings.Repeat("x", 65)): "tiss",
	} {
		v := claim("0", "TIMEOUT")
		v.Destination = given
		if f, _ := decisiontest.TISSSubmission().Read(v); f.Destination != want {
			t.Errorf("%s is %q, want %q", given, f.Destination, want)
		}
	}
}
