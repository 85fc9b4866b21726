package worker

import (
	"testing"

	"retry-worker/internal/decision"
)

// TestProtocolNumber: engines and models hold it as a text or as a number (R33).
func TestProtocolNumber(t *testing.T) {
	for v, want := range map[decision.Value]string{
		`"2026/0001-7"`: "2026/0001-7", "77": "77", "": "", "null": "", `""`: "", "true": "", "7.5": "", "-7": "", `{"a":1}`: "",
		`"de Maria"`: "", `"\u0037"`: "7",
	} {
		if got := protocolNumber(v); got != want {
			t.Errorf("%s is %q, want %q", v, got, want)
		}
	}
}
