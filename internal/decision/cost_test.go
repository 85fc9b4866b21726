package decision_test

import (
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// cases of one job's reading and deciding; unknown is the worst, as every rule is tried.
var cases = []struct {
	name    string
	v       decision.Variables
	outcome decision.Outcome
	// allocations at most: issue 4's 5, and one for a text that is longer than usual.
	allocations float64
}{
	{"transient", claim("1", "TIMEOUT - Connection timeout after 30s"), decision.Retry, 5},
	{"unknown", claim("1", "Falha não prevista no lote 15037, guia 1.503,00"), decision.Retry, 5},
	{"permanent", claim("1", "INVALID_PROCEDURE_CODE - código 40101010 inexistente"), decision.PermanentError, 5},
	{"limit", claim("5", "TIMEOUT - Connection timeout after 30s"), decision.MaxRetriesExceeded, 5},
	{"2 kB", claim("1", strings.Repeat("at br.com.hospital.Envio(Envio.java:15037)\t", 48)), decision.Retry, 6},
}

// TestDecisionAllocations: issue 4's bound, which unlike nanoseconds is the same on every machine.
func TestDecisionAllocations(t *testing.T) {
	p := decisiontest.TISSSubmission()
	for _, c := range cases {
		if got := testing.AllocsPerRun(100, func() { decide(p, c.v) }); got > c.allocations {
			t.Errorf("%s: %v allocations, want %v at most", c.name, got, c.allocations)
		}
	}
}

// TestHostile: a message, however it is built, is analysed in a time that grows with its length alone (R22): a quarter of what a
// job's variables may hold takes a fraction of a second, and by the square of it would take minutes.
func TestHostile(t *testing.T) {
	const size, most = 1 << 18, 10 * time.Second
	p := decisiontest.TISSSubmission()
	for _, piece := range []string{"5035", "503-", "SERVICE_UNAVAILABL_", "\n", "ſı", "\xff"} {
		v, began := claim("0", strings.Repeat(piece, size/len(piece))), time.Now()
		decide(p, v)
		if took := time.Since(began); took > most {
			t.Errorf("%d bytes of %q take %s, want %s at most", size, piece, took, most)
		}
	}
}
