package decision_test

import (
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// TestR07Milliseconds: where the policy's delays are below a minute, instants keep their milliseconds.
func TestR07Milliseconds(t *testing.T) {
	now := analysed.Add(123_999_999 * time.Nanosecond)
	tests := []struct {
		least time.Duration
		want  string
	}{
		{time.Second, "2025-01-12T10:40:01.123Z"},
		{59_999 * time.Millisecond, "2025-01-12T10:41:00.122Z"},
		{time.Minute, "2025-01-12T10:41:00Z"},
		{time.Hour, "2025-01-12T11:40:00Z"},
	}
	for _, tt := range tests {
		p := decisiontest.TISSSubmission()
		p.Backoff = decision.BackoffRule{Base: tt.least, Min: tt.least, Max: tt.least, Factor: 1}
		d := decideWith(p, claim("2", "TIMEOUT"), decision.Past{}, now)
		if got := d.NextRetryTime.Format(time.RFC3339Nano); got != tt.want {
			t.Errorf("delays of %s: nextRetryTime %s, want %s", tt.least, got, tt.want)
		}
	}
}

// TestR23LastSubmissionTime: RFC 3339, or the same without a zone (UTC); anything else is refused.
func TestR23LastSubmissionTime(t *testing.T) {
	tests := []struct {
		value decision.Value
		want  string // in UTC; empty: INVALID_LAST_SUBMISSION_TIME
	}{
		{`"2025-01-12T10:40:00Z"`, "2025-01-12T10:40:00Z"},
		{`"2025-01-12t10:40:00z"`, "2025-01-12T10:40:00Z"}, // RFC 3339 §5.6 lets them be lower case
		{`"2025-01-12T10:40:00.5Z"`, "2025-01-12T10:40:00.5Z"},
		{`"2025-01-12T10:40:00.123456789Z"`, "2025-01-12T10:40:00.123456789Z"},
		{`"2025-01-12T10:40:00.1234567891Z"`, "2025-01-12T10:40:00.123456789Z"},
		{`"2025-01-12T07:40:00-03:00"`, "2025-01-12T10:40:00Z"},
		{`"2025-01-12T23:59:59+14:00"`, "2025-01-12T09:59:59Z"},
		{`"2025-01-12T10:40:00+00:00"`, "2025-01-12T10:40:00Z"},
		{`"2025-01-12T10:40:00-00:00"`, "2025-01-12T10:40:00Z"},
		{`"2025-01-12T10:40:00+23:59"`, "2025-01-11T10:41:00Z"},
		{`"2024-02-29T00:00:00Z"`, "2024-02-29T00:00:00Z"},
		{`"2025-01-12T10:40:00\u005a"`, "2025-01-12T10:40:00Z"},
		{`"9999-12-31T23:59:59Z"`, "9999-12-31T23:59:59Z"},
		// What many write for "never", and what no record could be written with: a year of five digits, or before 0.
		{`"9999-12-31T23:59:59-03:00"`, "9999-12-31T23:59:59.999Z"}, {`"0000-01-01T00:00:00+01:00"`, "0000-01-01T00:00:00Z"},
		// Without a zone, as java.time.LocalDateTime prints it.
		{`"2025-01-12T10:40:07"`, "2025-01-12T10:40:07Z"},
		{`"2025-01-12T10:40:07.25"`, "2025-01-12T10:40:07.25Z"},
		{`"2025-01-12T10:40:07.123456789"`, "2025-01-12T10:40:07.123456789Z"},
		{`"2025-01-12T10:40"`, "2025-01-12T10:40:00Z"},
		// As engines and java.time's other types print it.
		{`"2025-01-12T10:40Z"`, "2025-01-12T10:40:00Z"}, {`"2025-01-12T07:40-03:00"`, "2025-01-12T10:40:00Z"},
		{`"2025-01-12T10:40:00Z[Etc/UTC]"`, "2025-01-12T10:40:00Z"}, {`"2025-01-12T07:40:00.5-03:00[America/Sao_Paulo]"`, "2025-01-12T10:40:00.5Z"},
		{`"2024-03-01T17:00+02:00[Europe/Berlin]"`, "2024-03-01T15:00:00Z"},
		// Anything else.
		{`""`, ""}, {`" "`, ""}, {`"null"`, ""}, {`"ontem"`, ""}, {`"2025"`, ""}, {`"2025-01"`, ""}, {`"2025-01-12"`, ""}, {`"2025-01-12T10"`, ""}, {`"10:40:00"`, ""},
		{`"12/01/2025 10:40"`, ""}, {`"2025-01-12 10:40:00"`, ""}, {`"2025-01-12 10:40:00Z"`, ""}, {`"20250112T104000Z"`, ""}, {`"2025-W02-7T10:40:00Z"`, ""},
		{`"2025-01-12T10:40:00-0300"`, ""}, {`"2025-01-12T10:40:00-03"`, ""}, {`"2025-01-12T10:40:00 -03:00"`, ""},
		{`"2025-01-12T10:40:00[America/Sao_Paulo]"`, ""}, {`"2025-01-12T10:40:00Z[]"`, ""}, {`"2025-01-12T10:40:00Z[a b]"`, ""}, {`"2025-01-12T10:40:00Z[UTC]Z"`, ""}, {`"2025-01-12T10:40:00 BRT"`, ""}, {`"2025-01-12T10:40:00America/Sao_Paulo"`, ""}, {`"2025-01-12T10:40:00ZZ"`, ""},
		{`" 2025-01-12T10:40:00Z"`, ""}, {`"2025-01-12T10:40:00Z "`, ""}, {`"2025-01-12T10:40:00Z\n"`, ""}, {`"+2025-01-12T10:40:00Z"`, ""}, {`"-2025-01-12T10:40:00Z"`, ""},
		{`"2025-01-12T10:40:00."`, ""}, {`"2025-01-12T10:40:00.Z"`, ""}, {`"2025-01-12T10:40:00,5Z"`, ""}, {`"2025-01-12T10:40:00,5"`, ""},
		{`"2025-1-12T10:40:00Z"`, ""}, {`"2025-01-2T10:40:00Z"`, ""}, {`"2025-01-12T1:40:00Z"`, ""}, {`"2025-01-12T1:40:00"`, ""}, {`"2025-01-12T1:40"`, ""}, {`"2025-01-12T10:4:00Z"`, ""}, {`"25-01-12T10:40:00Z"`, ""},
		{`"2025-02-29T00:00:00Z"`, ""}, {`"2025-13-01T00:00:00Z"`, ""}, {`"2025-00-01T00:00:00Z"`, ""}, {`"2025-01-00T00:00:00Z"`, ""}, {`"2025-04-31T00:00:00Z"`, ""},
		{`"2025-01-12T24:00:00Z"`, ""}, {`"2025-01-12T10:60:00Z"`, ""}, {`"2025-01-12T10:40:60Z"`, ""}, {`"10000-01-01T00:00:00Z"`, ""},
		{`"2025-01-12T10:40:00+24:00"`, ""}, {`"2025-01-12T10:40:00-03:60"`, ""}, {`"2025-01-12T10:40:00+99:99"`, ""},
		{`"２０２５-01-12T10:40:00Z"`, ""}, {`"2025-01-12T10:40:00Z\u0000"`, ""},
		{"1736678400", ""}, {"1736678400000", ""}, {"0", ""}, {"true", ""}, {"[2025,1,12,10,40]", ""}, {"{}", ""}, {"2025-01-12T10:40:00Z", ""}, {`"2025-01-12T10:40:00Z`, ""},
	}
	for _, tt := range tests {
		v := claim("0", "TIMEOUT")
		v.LastSubmissionTime = tt.value
		f, rejection := decisiontest.TISSSubmission().Read(v)
		got := ""
		if rejection == nil {
			got = f.LastSubmission.Format(time.RFC3339Nano)
		} else if rejection.Code != decision.InvalidLastSubmissionTime {
			t.Errorf("%s is rejected as %s", tt.value, rejection.Code)
		}
		if got != tt.want {
			t.Errorf("%s is read as %q, want %q", tt.value, got, tt.want)
		}
	}
}

// TestRebase: the same answer with the same backoff, from now on (architecture, "Identity and episodes").
func TestRebase(t *testing.T) {
	p := decisiontest.TISSSubmission()
	f, r := p.Read(decision.Variables{ID: `"CLM-1-1"`, Error: `"TIMEOUT"`, RetryCount: "2"})
	if r != nil {
		t.Fatal(r)
	}
	made := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	d := decision.Decide(&f, p, decision.Past{}, made)
	later := made.Add(7*time.Hour + 1500*time.Millisecond)
	got := d.Rebase(p, &decision.Failure{}, later.In(time.FixedZone("", -3*3600)))
	want := d
	want.AnalysedAt = later.Truncate(time.Second)
	want.NextRetryTime = want.AnalysedAt.Add(d.Backoff.Delay)
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.NextRetryTime.Before(later) || d.NextRetryTime.After(later) {
		t.Errorf("re-based from %s to %s at %s", d.NextRetryTime, got.NextRetryTime, later)
	}
}

// TestInstant: RFC 3339 in UTC, milliseconds only where there are any (R7).
func TestInstant(t *testing.T) {
	at := time.Date(2025, 1, 12, 7, 40, 0, 0, time.FixedZone("", -3*3600))
	for instant, want := range map[time.Time]string{
		at: "2025-01-12T10:40:00Z", at.Add(250 * time.Millisecond): "2025-01-12T10:40:00.25Z", at.Add(time.Nanosecond): "2025-01-12T10:40:00Z",
	} {
		if got := decision.Instant(instant); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
