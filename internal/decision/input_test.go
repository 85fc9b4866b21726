package decision_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// TestR11LongestID: at most 512 bytes.
func TestR11LongestID(t *testing.T) {
	for n, want := range map[int]decision.Outcome{512: decision.Retry, 513: decision.Rejected} {
		id := "CLM-" + strings.Repeat("x", n-len("CLM--1")) + "-1"
		if d := decide(decisiontest.TISSSubmission(), decision.Variables{ID: decision.Text(id), Error: `"?"`}); d.Outcome != want {
			t.Errorf("an id of %d bytes: %s (%v), want %s", n, d.Outcome, d.Rejection, want)
		}
	}
}

// TestBytesThatAreNoText: what reaches a database or a process again is UTF-8.
func TestBytesThatAreNoText(t *testing.T) {
	f, rejection := decisiontest.TISSSubmission().Read(decision.Variables{ID: "\"CLM-\xff-1\"", Error: "\"TIMEOUT \xc3\""})
	if rejection != nil || f.ID != "CLM-\ufffd-1" || f.Error != "TIMEOUT \ufffd" {
		t.Errorf("id %q, error %q (%v)", f.ID, f.Error, rejection)
	}
}

// TestOriginalErrorAsItCame: the process gets its error back word for word, with what it was read from.
func TestOriginalErrorAsItCame(t *testing.T) {
	v := decision.Variables{ID: `"CLM-A-1"`, Error: `"Tempo \u0065sgotado: TIMEOUT\n"`, RetryCount: "1.0", LastSubmissionTime: "null"}
	f, rejection := decisiontest.TISSSubmission().Read(v)
	if rejection != nil {
		t.Fatal(rejection)
	}
	if f.OriginalError != v.Error || f.Error != "Tempo esgotado: TIMEOUT\n" {
		t.Errorf("original %s, read as %q", f.OriginalError, f.Error)
	}
	if got, want := f.Inputs(), [4]decision.Value{v.ID, v.RetryCount, v.LastSubmissionTime, v.Error}; !slices.Equal(got, want[:]) {
		t.Errorf("inputs %q, want them as they came, in the contract's order: %q", got, want)
	}
}

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
