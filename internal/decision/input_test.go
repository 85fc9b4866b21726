package decision_test

import (
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// refused marks a value that R9 rejects.
const refused = -1

// TestR09RetryCount: a whole number from 0 up, however JSON writes it, and nothing else.
func TestR09RetryCount(t *testing.T) {
	tests := []struct {
		value decision.Value
		want  int64
	}{
		// RESOLUTIONS' own.
		{"2", 2}, {"2.0", 2}, {`"2"`, refused}, {"2.5", refused}, {"-1", refused}, {"true", refused},
		// Whole numbers in other clothes.
		{"0", 0}, {"0.0", 0}, {"2e0", 2}, {"2E0", 2}, {"2.000", 2}, {"20e-1", 2}, {"200e-2", 2}, {"0.2e1", 2}, {"0.02e2", 2}, {"0.02e+2", 2},
		{"1e1", 10}, {"1.5e1", 15}, {"10e0", 10}, {"1E18", 1e18}, {"100", 100},
		// Nothing, and less than nothing.
		{"-0", 0}, {"-0.0", 0}, {"-0e5", 0}, {"0e-5", 0}, {"0e400", 0}, {"0e99999999999999999999", 0}, {"-0e-99999999999999999999", 0},
		{"-1.0", refused}, {"-2e0", refused}, {"-0.1", refused}, {"-9223372036854775808", refused}, {"-1e400", refused},
		// Parts of a number.
		{"0.5", refused}, {"2.5e0", refused}, {"25e-1", refused}, {"2e-1", refused}, {"1e-400", refused}, {"1e-99999999999999999999", refused},
		{"2.00000000000000000000000000001", refused}, {"1.99999999999999999999999999999", refused},
		// The largest integer, and what lies beyond.
		{"9223372036854775807", 9223372036854775807}, {"9223372036854775807.0", 9223372036854775807},
		{"9.223372036854775807e18", 9223372036854775807}, {"92233720368547758070e-1", 9223372036854775807},
		{"9223372036854775808", refused}, {"9223372036854775807.5", refused}, {"92233720368547758080", refused}, {"18446744073709551616", refused},
		{"9.3e18", refused}, {"1e19", refused}, {"1e400", refused}, {"1e1000000000", refused}, {"1e99999999999999999999", refused},
		// Digits and power that make up for each other.
		{"0." + decision.Value(strings.Repeat("0", 5000)) + "3e5001", 3}, {"3" + decision.Value(strings.Repeat("0", 5000)) + "e-5000", 3},
		// No number at all.
		{"false", refused}, {"[]", refused}, {"[2]", refused}, {"{}", refused}, {`{"value":2}`, refused}, {`""`, refused}, {`"null"`, refused}, {`"two"`, refused},
		// No JSON either; the engine never sends it.
		{"+2", refused}, {"007", refused}, {"02", refused}, {"2.", refused}, {".5", refused}, {"2e", refused}, {"1_000", refused}, {"0x2", refused},
		{"NaN", refused}, {"Infinity", refused}, {" 2", refused}, {"2 ", refused}, {"2e0 ", refused}, {"-", refused}, {"--0", refused}, {"２", refused}, {"\x00", refused}, {"NULL", refused},
	}
	p := patient(1<<63 - 1)
	for _, tt := range tests {
		f, rejection := p.Read(decision.Variables{ID: `"CLM-A-1"`, Error: `"?"`, RetryCount: tt.value})
		switch {
		case tt.want == refused && (rejection == nil || rejection.Code != decision.InvalidRetryCount):
			t.Errorf("%.40s is taken as %d (%v), want INVALID_RETRY_COUNT", tt.value, f.RetryCount, rejection)
		case tt.want == refused:
			// as it should be
		case rejection != nil:
			t.Errorf("%.40s is refused: %.80s; want %d", tt.value, rejection.Error(), tt.want)
		case f.RetryCount != tt.want || !f.HasRetryCount:
			t.Errorf("%.40s is %d (given %v), want %d", tt.value, f.RetryCount, f.HasRetryCount, tt.want)
		}
	}
}

// TestR09AbsentCount: absent or null is what the journal holds of the open episode, 0 where it holds none.
func TestR09AbsentCount(t *testing.T) {
	p := decisiontest.TISSSubmission()
	tests := []struct {
		value      decision.Value
		remembered int64
		outcome    decision.Outcome
		count      int64
	}{
		{"", 3, decision.Retry, 4},
		{"null", 4, decision.Retry, 5},
		{"0", 3, decision.Retry, 1}, // raising a given count is the journal's rule, not this one's
	}
	for _, tt := range tests {
		d := decideWith(p, claim(string(tt.value), "TIMEOUT"), decision.Past{Retries: tt.remembered}, analysed)
		if d.Outcome != tt.outcome || d.RetryCount != tt.count {
			t.Errorf("%q with %d remembered: %s, count %d; want %s, %d", tt.value, tt.remembered, d.Outcome, d.RetryCount,
				tt.outcome, tt.count)
		}
	}
	given := decide(p, claim("3", "TIMEOUT"))
	remembered := decideWith(p, claim("", "TIMEOUT"), decision.Past{Retries: 3}, analysed)
	if given.Backoff != remembered.Backoff {
		t.Errorf("a remembered count waits %s, the same given %s", remembered.Backoff.Delay, given.Backoff.Delay)
	}
}

// TestR11Rejected: the code first, then the variable, what was found and what was expected, in one line.
func TestR11Rejected(t *testing.T) {
	const id, text = decision.Value(`"CLM-A-1"`), decision.Value(`"TIMEOUT"`)
	wantID := `, expected text that matches ^CLM-.*-\d+$, printable, at most 512 bytes`
	const wantCount = ", expected a whole number from 0 to 9223372036854775807, or none"
	const wantTime = ", expected an instant such as 2025-01-12T10:40:00Z (without a zone: UTC), or none"
	const wantText = ", expected text that says what failed"
	tests := []struct {
		name string
		v    decision.Variables
		want string
	}{
		{"no id", decision.Variables{Error: text}, "INVALID_CLAIM_ID: claimId is missing" + wantID},
		{"id of another form", decision.Variables{ID: `"CLM-1"`, Error: text}, `INVALID_CLAIM_ID: claimId is "CLM-1" (text)` + wantID},
		{"id in lower case", decision.Variables{ID: `"clm-a-1"`, Error: text}, `INVALID_CLAIM_ID: claimId is "clm-a-1" (text)` + wantID},
		{"id with more behind it", decision.Variables{ID: `"CLM-A-1\n"`, Error: text}, `INVALID_CLAIM_ID: claimId is "CLM-A-1\n" (text)` + wantID},
		{"id that is a number", decision.Variables{ID: "1", Error: text}, "INVALID_CLAIM_ID: claimId is 1" + wantID},
		{"id that came escaped is shown as it reads", decision.Variables{ID: `"\u003cb\u003e"`, Error: text}, `INVALID_CLAIM_ID: claimId is "<b>" (text)` + wantID},
		{"id that is no JSON", decision.Variables{ID: `"CLM-A-1`, Error: text}, `INVALID_CLAIM_ID: claimId is "\"CLM-A-1" (no JSON)` + wantID},

		{"count as text", decision.Variables{ID: id, Error: text, RetryCount: `"2"`}, `INVALID_RETRY_COUNT: retryCount is "2" (text)` + wantCount},
		{"count of a half", decision.Variables{ID: id, Error: text, RetryCount: "2.5"}, "INVALID_RETRY_COUNT: retryCount is 2.5" + wantCount},
		{"negative count", decision.Variables{ID: id, Error: text, RetryCount: "-1"}, "INVALID_RETRY_COUNT: retryCount is -1" + wantCount},
		{"list for a count", decision.Variables{ID: id, Error: text, RetryCount: "[2]"}, "INVALID_RETRY_COUNT: retryCount is a list" + wantCount},

		{"time in words", decision.Variables{ID: id, Error: text, LastSubmissionTime: `"ontem"`}, `INVALID_LAST_SUBMISSION_TIME: lastSubmissionTime is "ontem" (text)` + wantTime},
		{"time as a number", decision.Variables{ID: id, Error: text, LastSubmissionTime: "1736678400"}, "INVALID_LAST_SUBMISSION_TIME: lastSubmissionTime is 1736678400" + wantTime},

		{"no error", decision.Variables{ID: id}, "INVALID_ERROR_MESSAGE: submissionError is missing" + wantText},
		{"empty error", decision.Variables{ID: id, Error: `""`}, `INVALID_ERROR_MESSAGE: submissionError is "" (text)` + wantText},
		{"white space", decision.Variables{ID: id, Error: `" \t\r\n"`}, `INVALID_ERROR_MESSAGE: submissionError is " \t\r\n" (text)` + wantText},
		{"nothing visible", decision.Variables{ID: id, Error: `"\u200b\ufeff \u200c\u200d\u2060\u00ad"`}, `INVALID_ERROR_MESSAGE: submissionError is "\u200b\ufeff \u200c\u200d\u2060\u00ad" (text)` + wantText},
		{"error as a number", decision.Variables{ID: id, Error: "503"}, "INVALID_ERROR_MESSAGE: submissionError is 503" + wantText},
		{"error as an object", decision.Variables{ID: id, Error: `{"code":"TIMEOUT"}`}, "INVALID_ERROR_MESSAGE: submissionError is an object" + wantText},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := decide(decisiontest.TISSSubmission(), tt.v)
			if d.Outcome != decision.Rejected || d.Rejection == nil {
				t.Fatalf("outcome is %s, want REJECTED", d.Outcome)
			}
			if got := d.Rejection.Error(); got != tt.want {
				t.Errorf("message\n%s\nwant\n%s", got, tt.want)
			}
			if d.Rejection.Code == decision.InvalidErrorMessage && (d.SubjectID != "CLM-A-1" || !d.AnalysedAt.Equal(analysed)) {
				t.Errorf("refused is the error of %q at %s", d.SubjectID, d.AnalysedAt)
			}
			if d.ShouldRetry() || d.RetryReason != "" || d.Event(decision.RNBIL005, "") != nil {
				t.Errorf("a rejection decides something: %+v", d)
			}
		})
	}
}

// TestR11NotRejected: what comes near to the rejected, and is not.
func TestR11NotRejected(t *testing.T) {
	long := "CLM-" + strings.Repeat("x", 512-len("CLM--1")) + "-1"
	for name, v := range map[string]decision.Variables{
		"nothing between the dashes":   {ID: `"CLM--1"`, Error: `"?"`},
		"more dashes":                  {ID: `"CLM-ENC-001-1234567890"`, Error: `"?"`},
		"a space and accents inside":   {ID: `"CLM-São José-1"`, Error: `"?"`},
		"the id escaped":               {ID: `"\u0043LM-A-1"`, Error: `"?"`},
		"the longest id":               {ID: decision.Text(long), Error: `"?"`},
		"an error of one mark":         {ID: `"CLM-A-1"`, Error: `"."`},
		"an error of a NUL":            {ID: `"CLM-A-1"`, Error: `"\u0000"`},
		"half a surrogate pair":        {ID: `"CLM-A-1"`, Error: `"\ud800"`},
		"bytes that are no UTF-8":      {ID: `"CLM-A-1"`, Error: "\"\xff\xfe\""},
		"nulls for all that may be so": {ID: `"CLM-A-1"`, Error: `"?"`, RetryCount: "null", LastSubmissionTime: "null"},
	} {
		if d := decide(decisiontest.TISSSubmission(), v); d.Outcome != decision.Retry {
			t.Errorf("%s: %s (%v), want RETRY", name, d.Outcome, d.Rejection)
		}
	}
	for _, hidden := range []string{`\u0000`, `\u202e`, `\u2028`, `\u200b`} {
		id := decision.Value(`"CLM-` + hidden + `-1"`)
		if d := decide(decisiontest.TISSSubmission(), decision.Variables{ID: id, Error: `"?"`}); d.Outcome != decision.Rejected {
			t.Errorf("an id with %s: %s, want REJECTED", hidden, d.Outcome)
		}
	}
	tooLong := decision.Variables{ID: decision.Text("x" + long), Error: `"?"`}
	tooLong.ID = decision.Value(strings.Replace(string(tooLong.ID), "xCLM-", "CLM-x", 1))
	if d := decide(decisiontest.TISSSubmission(), tooLong); d.Rejection == nil || d.Rejection.Code != decision.InvalidClaimID {
		t.Errorf("an id of 513 bytes: %s, want INVALID_CLAIM_ID", d.Outcome)
	}
}

// TestTyped: a number where it is one and nothing but that, else a text.
func TestTyped(t *testing.T) {
	for typed, want := range map[string]decision.Value{"7": "7", "-1.5e3": "-1.5e3", "0.2E+1": "0.2E+1", "-0": "-0", "9223372036854775808": "9223372036854775808", "1e400": "1e400",
		"": `""`, " 7": `" 7"`, "007": `"007"`, "0x2": `"0x2"`, "+2": `"+2"`, "NaN": `"NaN"`, "null": `"null"`, "true": `"true"`, "{}": `"{}"`, "[2]": `"[2]"`, `"7"`: `"\"7\""`} {
		if got := decision.Typed(typed); got != want {
			t.Errorf("%q is %s, want %s", typed, got, want)
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

func TestReadResult(t *testing.T) {
	for v, want := range map[decision.Value]decision.Result{"": "success", "null": "success", `"success"`: "success", `"\u0073uccess"`: "success",
		`"failure"`: "failure", `"accepted"`: "accepted"} {
		if got, rejection := decision.ReadResult(v); got != want || rejection != nil {
			t.Errorf("%s is %q, %v", v, got, rejection)
		}
	}
	for _, v := range []decision.Value{`"Success"`, `"ok"`, `""`, `"`, "success", "true", "0", "{}", "\x00"} {
		if _, rejection := decision.ReadResult(v); rejection == nil || rejection.Code != decision.InvalidOutcome {
			t.Errorf("%s: %v", v, rejection)
		}
	}
}
