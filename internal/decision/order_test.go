package decision_test

import (
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// TestR01Order: malformed input, the limit, an empty error, a permanent error, a transient one,
// anything else; within malformed input the contract's order: id, count, time, error.
func TestR01Order(t *testing.T) {
	const noPlace = decision.Value(`"amanhã"`)
	reject, assume := decisiontest.TISSSubmission(), assumingTransient()
	tests := []struct {
		name    string
		policy  *decision.Policy
		id      string
		count   decision.Value
		last    decision.Value
		text    string
		outcome decision.Outcome
		// code of the rejection, or what matched.
		code  string
		class decision.ErrorClassification
	}{
		{"everything is wrong: the id is named", reject, "CLM", "-1", noPlace, "", "REJECTED", "INVALID_CLAIM_ID", ""},
		{"count, time and error are wrong: the count", reject, "CLM-A-1", "-1", noPlace, "", "REJECTED", "INVALID_RETRY_COUNT", ""},
		{"time and error are wrong: the time", reject, "CLM-A-1", "0", noPlace, "", "REJECTED", "INVALID_LAST_SUBMISSION_TIME", ""},
		{"only the error is wrong", reject, "CLM-A-1", "0", "", "", "REJECTED", "INVALID_ERROR_MESSAGE", ""},

		{"1 before 2: an id at the limit", reject, "CLM", "5", "", "TIMEOUT", "REJECTED", "INVALID_CLAIM_ID", ""},
		{"1 before 2: a time at the limit", reject, "CLM-A-1", "5", noPlace, "TIMEOUT", "REJECTED", "INVALID_LAST_SUBMISSION_TIME", ""},
		{"1 before 4: a count beside a permanent error", reject, "CLM-A-1", "2.5", "", "DUPLICATE_CLAIM", "REJECTED", "INVALID_RETRY_COUNT", ""},
		{"1 before 5: an id beside a transient error", reject, "clm-a-1", "0", "", "TIMEOUT", "REJECTED", "INVALID_CLAIM_ID", ""},
		{"1 comes first where empty errors are transient too", assume, "CLM-A-1", "-1", "", "", "REJECTED", "INVALID_RETRY_COUNT", ""},

		{"2 before 3: no error at the limit", reject, "CLM-A-1", "5", "", "", "MAX_RETRIES_EXCEEDED", "", "UNKNOWN"},
		{"2 before 3: white space at the limit", reject, "CLM-A-1", "5", "", " \t\n", "MAX_RETRIES_EXCEEDED", "", "UNKNOWN"},
		{"2 before 3: no error at the limit, assumed transient below it", assume, "CLM-A-1", "5", "", "", "MAX_RETRIES_EXCEEDED", "", "UNKNOWN"},
		{"2 before 4: a permanent error at the limit, classified all the same", reject, "CLM-A-1", "5", "", "DUPLICATE_CLAIM", "MAX_RETRIES_EXCEEDED", "DUPLICATE_CLAIM", "PERMANENT"},
		{"2 before 5: a transient error at the limit", reject, "CLM-A-1", "5", "", "HTTP 503", "MAX_RETRIES_EXCEEDED", "503", "TRANSIENT"},
		{"2 before 6: an unknown error at the limit", reject, "CLM-A-1", "5", "", "?", "MAX_RETRIES_EXCEEDED", "", "UNKNOWN"},

		{"3 by the policy: an empty error is transient", assume, "CLM-A-1", "0", "", "", "RETRY", "", "TRANSIENT"},
		{"3 by the policy: so is white space", assume, "CLM-A-1", "4", "", "\u00a0", "RETRY", "", "TRANSIENT"},
		{"4 is no less final where empty errors are transient", assume, "CLM-A-1", "0", "", "DUPLICATE_CLAIM", "PERMANENT_ERROR", "DUPLICATE_CLAIM", "PERMANENT"},
		{"4 before 5", reject, "CLM-A-1", "0", "", "TIMEOUT: DUPLICATE_CLAIM", "PERMANENT_ERROR", "DUPLICATE_CLAIM", "PERMANENT"},
		{"5 a transient error", reject, "CLM-A-1", "4", "", "RATE_LIMIT", "RETRY", "RATE_LIMIT", "TRANSIENT"},
		{"6 anything else", reject, "CLM-A-1", "4", "", "ORA-00001", "RETRY", "", "UNKNOWN"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := decision.Variables{
				ID: decision.Text(tt.id), RetryCount: tt.count, LastSubmissionTime: tt.last, Error: decision.Text(tt.text),
			}
			d := decide(tt.policy, v)
			code := d.MatchedRule
			if d.Rejection != nil {
				code = string(d.Rejection.Code)
			}
			if d.Outcome != tt.outcome || code != tt.code || d.ErrorClassification != tt.class {
				t.Errorf("got %s %q %q, want %s %q %q", d.Outcome, code, d.ErrorClassification, tt.outcome, tt.code, tt.class)
			}
		})
	}
}

// TestR04Labels: the three labels and no others; UNKNOWN_TRANSIENT is not used.
func TestR04Labels(t *testing.T) {
	p := decisiontest.TISSSubmission()
	for text, want := range map[string]string{
		"TIMEOUT": "TRANSIENT", "DUPLICATE_CLAIM": "PERMANENT", "UNKNOWN_TRANSIENT": "UNKNOWN", "PERMANENT": "UNKNOWN", "": "UNKNOWN",
	} {
		if got := p.Rules.Classify(text, 0).Class; string(got) != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

// TestR08RetryReason: the sentences, at both ends of the ladder.
func TestR08RetryReason(t *testing.T) {
	none := patient(0)
	tests := []struct {
		policy      *decision.Policy
		count, text string
		want        string
	}{
		{decisiontest.TISSSubmission(), "1", "TIMEOUT", "Transient error, retry 2 of 5"},
		{decisiontest.TISSSubmission(), "1", "?", "Unknown error, retry 2 of 5"},
		{decisiontest.TISSSubmission(), "0", "TIMEOUT", "Transient error, retry 1 of 5"},
		{decisiontest.TISSSubmission(), "4", "?", "Unknown error, retry 5 of 5"},
		{decisiontest.TISSSubmission(), "0", "DUPLICATE_CLAIM", "Permanent error, not retried"},
		{decisiontest.TISSSubmission(), "5", "TIMEOUT", "Maximum of 5 retries reached"},
		{decisiontest.TISSSubmission(), "7", "DUPLICATE_CLAIM", "Maximum of 5 retries reached"},
		{assumingTransient(), "1", " ", "Transient error, retry 2 of 5"},
		{none, "0", "TIMEOUT", "Maximum of 0 retries reached"},
		{patient(1<<63 - 1), "9223372036854775806", "TIMEOUT", "Transient error, retry 9223372036854775807 of 9223372036854775807"},
	}
	for _, tt := range tests {
		if got := decide(tt.policy, claim(tt.count, tt.text)).RetryReason; got != tt.want {
			t.Errorf("retryCount %s, %q: %q, want %q", tt.count, tt.text, got, tt.want)
		}
	}
}

// TestR10AboveLimit: the limit itself and whatever lies above it.
func TestR10AboveLimit(t *testing.T) {
	p := decisiontest.TISSSubmission()
	for count, want := range map[string]decision.Outcome{
		"4": decision.Retry, "5": decision.MaxRetriesExceeded, "6": decision.MaxRetriesExceeded, "7": decision.MaxRetriesExceeded,
		"1000": decision.MaxRetriesExceeded, "9223372036854775807": decision.MaxRetriesExceeded,
	} {
		if d := decide(p, claim(count, "TIMEOUT")); d.Outcome != want {
			t.Errorf("retryCount %s: %s, want %s", count, d.Outcome, want)
		}
	}
	if d := decide(p, claim("7", "TIMEOUT")); d.RetryCount != 7 || d.MaxRetries != 5 {
		t.Errorf("7 of 5 comes out as %d of %d", d.RetryCount, d.MaxRetries)
	}
}

// TestR12Attempts follows one claim whose every try fails: one submission, five retries, the end.
func TestR12Attempts(t *testing.T) {
	p := decisiontest.TISSSubmission()
	now, count := analysed, int64(0)
	submissions := 1
	for {
		f, rejection := p.Read(claim("", "TIMEOUT"))
		if rejection != nil {
			t.Fatal(rejection)
		}
		d := decision.Decide(&f, p, decision.Past{Retries: count, FirstFailure: analysed}, now)
		if !d.ShouldRetry() {
			wantFinal(t, d, decision.MaxRetriesExceeded, 5)
			event := d.Event(decision.RNBIL005, "TIMEOUT").Fields
			if event["totalAttempts"] != int64(submissions) || event["totalDuration"] != decision.ISODuration(now.Sub(analysed)) {
				t.Errorf("the event counts %+v, want %d attempts in %s", event, submissions, now.Sub(analysed))
			}
			break
		}
		count, now = d.RetryCount, d.NextRetryTime
		submissions++
		if submissions > 6 {
			t.Fatal("a seventh submission is scheduled")
		}
	}
	if submissions != 6 {
		t.Errorf("%d submissions, want one and five retries", submissions)
	}
}

// TestR20LadderHoldsItsTimes: BIL-004's "5 em 4 horas" and BIL-005's "dentro de 24h" hold by the ladder
// itself, 155 minutes nominal and 186 at most.
func TestR20LadderHoldsItsTimes(t *testing.T) {
	p := decisiontest.TISSSubmission()
	var nominal, shortest, longest time.Duration
	for n := range p.MaxRetries {
		nominal += p.Backoff.Raw(n)
		shortest += p.Backoff.After(0, n).Delay
		longest += p.Backoff.After(almostOne, n).Delay
	}
	if nominal != 155*time.Minute || shortest != 125*time.Minute || longest != 186*time.Minute {
		t.Errorf("the ladder takes %s nominal, %s to %s; want 155, 125 to 186 minutes", nominal, shortest, longest)
	}
	if longest > 4*time.Hour {
		t.Errorf("the unluckiest claim waits %s, more than 4 hours", longest)
	}
}

// TestR22OneAnalysisIsShort: a message as large as a job's variables may be is analysed far within the
// 2 s of RN-BIL-004 §13.3, however it is built.
func TestR22OneAnalysisIsShort(t *testing.T) {
	const size = 1 << 20
	p := decisiontest.TISSSubmission()
	for name, piece := range map[string]string{
		"nearly numbers": "5035", "joined numbers": "503-", "nearly codes": "SERVICE_UNAVAILABL_", "escapes": "\n", "Unicode": "ſı", "bytes": "\xff",
	} {
		v := claim("0", strings.Repeat(piece, size/len(piece)))
		var d decision.Decision
		took := time.Hour
		for range 3 { // the machine may be busy elsewhere
			start := time.Now()
			d = decide(p, v)
			took = min(took, time.Since(start))
		}
		if took > 2*time.Second {
			t.Errorf("%s: %s for one analysis, allowed 2 s", name, took)
		}
		if d.Outcome == decision.PermanentError || d.MatchedRule != "" {
			t.Errorf("%s: %s by %q", name, d.Outcome, d.MatchedRule)
		}
	}
}
