package decision_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// rejections is the closed set of what Read and Decide may refuse under tiss-submission.
var rejections = []string{"INVALID_CLAIM_ID", "INVALID_RETRY_COUNT", "INVALID_LAST_SUBMISSION_TIME", "INVALID_ERROR_MESSAGE"}

// plain is a text in which every character stands for itself: accents, entities, escapes and damaged characters are read
// by internal/text, which the oracle does not repeat.
var plain = regexp.MustCompile(`^[\x00-%'-\[\]-\x7f]*$`)

// FuzzVariables: any bytes as each of the four variables come to the oracle's decision or its named
// rejection, in one line, and never to a panic.
func FuzzVariables(f *testing.F) {
	for _, seed := range []decision.Variables{
		{},
		claim("1", "TIMEOUT - Connection timeout after 30s"),
		{ID: `"CLM-A-1"`, Error: `"DUPLICATE_CLAIM 503"`, RetryCount: "5", LastSubmissionTime: `"2025-01-12T10:40:00Z"`},
		{ID: `"CLM-A-1"`, Error: `"\u0054IMEOUT"`, RetryCount: "2.0", LastSubmissionTime: `"2025-01-12T10:40"`},
		{ID: `"CLM-A-1"`, Error: `" \t"`, RetryCount: "20e-1", LastSubmissionTime: "null"},
		{ID: `"CLM-A-1"`, Error: "null", RetryCount: "null", LastSubmissionTime: `"2025-01-12T07:40:00.5-03:00"`},
		{ID: `"CLM-A-1`, Error: `"?"`, RetryCount: "9223372036854775807", LastSubmissionTime: `"2025-01-12T1:40:00Z"`},
		{ID: "\"CLM-\xff-1\"", Error: `"?"`, RetryCount: "1.5e-99999999999999999999"},
		{ID: `"CLM-\n-1"`, Error: "\"\xff\"", RetryCount: "9223372036854775808", LastSubmissionTime: `"2025-01-12T10:40:00,5"`},
		{ID: "[]", Error: "{}", RetryCount: "1e400", LastSubmissionTime: `"2025-01-12T10:40:00+24:00"`},
		{ID: "\x00", Error: "\x00", RetryCount: "-0", LastSubmissionTime: "0"},
		{ID: `"`, Error: `"`, RetryCount: "0e99999999999999999999", LastSubmissionTime: `"`},
		{ID: `"\"`, Error: "\"\n\"", RetryCount: "+2", LastSubmissionTime: `"0001-01-01T00:00:00Z"`},
		{ID: `"CLM-A-1"`, Error: `"?"`, RetryCount: "0." + decision.Value(strings.Repeat("0", 5000)) + "3e5001"},
		{ID: `"CLM-A-1"`, Error: `"?"`, RetryCount: "3" + decision.Value(strings.Repeat("0", 5000)) + "e-5000"},
		{ID: `"CLM-` + decision.Value(strings.Repeat("9", 600)) + `-1"`, Error: `"?"`, RetryCount: "1e-400"},
	} {
		f.Add(string(seed.ID), string(seed.Error), string(seed.RetryCount), string(seed.LastSubmissionTime))
	}
	for _, text := range []string{ // codes, and what is none
		"", "TIMEOUT", "SocketTimeoutException", "service-unavailable", "HTTP 503", "status=503", "[503]", "503, later",
		"protocol 15037", "CLM-1-503123", "CPF 503.504.111-22", "R$ 1.504,00", "TIMEOUT … DUPLICATE_CLAIM",
		"ſervice unavailable", "tımeout", "TİMEOUT", "５０３", "٣503", "503²", "\x00503\x00", "RATE\xff\xfeLIMIT",
		"1..503", "503--1", "503503 503", "5035 1.503 503.1 503", "invalid\r\npatient\tdata", "invalid_procedure__code", "INSURANCE\u00a0EXPIRED",
	} {
		f.Add(`"CLM-A-1"`, string(decision.Text(text)), "", "")
	}
	p := decisiontest.TISSSubmission()
	f.Fuzz(func(t *testing.T, id, text, count, last string) {
		all := decision.Variables{ID: decision.Value(id), Error: decision.Value(text), RetryCount: decision.Value(count), LastSubmissionTime: decision.Value(last)}
		// Each alone beside sound ones too: a wrong id must not hide what the others would do.
		alone := [5]decision.Variables{all, claim("1", "TIMEOUT"), claim("1", "TIMEOUT"), claim("1", "TIMEOUT"), claim("1", "TIMEOUT")}
		alone[1].ID, alone[2].Error, alone[3].RetryCount, alone[4].LastSubmissionTime = all.ID, all.Error, all.RetryCount, all.LastSubmissionTime
		for _, v := range alone {
			checkAnswer(t, p, v)
		}
	})
}

func checkAnswer(t *testing.T, p *decision.Policy, v decision.Variables) {
	t.Helper()
	past := decision.Past{Retries: 2, FirstFailure: analysed.Add(-time.Hour)}
	d := decideWith(p, v, past, analysed)
	if text, _ := oracleText(v.Error); !plain.MatchString(text) {
		v.Error = `"?"` // the rest of the decision is the same, but for what follows from its class
		d = decideWith(p, v, past, analysed)
	}
	if wrong := disagreement(&d, v, past, analysed); wrong != "" {
		t.Fatalf("%q: %s", v, wrong)
	}
	if (d.Outcome == decision.Rejected) != (d.Rejection != nil) {
		t.Fatalf("%q: %s with the rejection %v", v, d.Outcome, d.Rejection)
	}
	if d.Rejection == nil {
		return
	}
	message := d.Rejection.Error()
	code, rest, _ := strings.Cut(message, ": ")
	if !slices.Contains(rejections, code) || rest == "" {
		t.Fatalf("%q: the message begins with no code of the set: %s", v, message)
	}
	if strings.ContainsAny(message, "\r\n\x00\u2028\u2029\u0085") {
		t.Fatalf("%q: the message is not one line: %q", v, message)
	}
}
