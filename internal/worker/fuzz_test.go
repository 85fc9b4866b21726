package worker_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// oddities are variables and headers that a model, a client or an attacker may come up with.
var oddities = []string{
	``, ` `, `{}`, `{ }`, `null`, `true`, `0`, `[]`, `[{}]`, `""`, `{`, `}`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":}`, `{"a":1`, `{"a":1,}`,
	`{,}`, `{"a" 1}`, `{a:1}`, `{"a":1}}`, `{"a":1} x`, "\x00", "\xff", "{\"\xff\":1}", "\ufeff{}",
	`{"claimId":"CLM-1-1","submissionError":"TIMEOUT"`, `{"claimId":"CLM-1-1","submissionError":"a\`,
	`{"claimId":"CLM-1-1","submissionError":"\ud800 TIMEOUT"}`, `{"claimId":"CLM-1-1","submissionError":"\u0000"}`,
	"{\"claimId\":\"CLM-1-1\",\"submissionError\":\"\xc3\x28 TIMEOUT\"}", `{"claimId":"CLM-\u0000-1","submissionError":"TIMEOUT"}`,
	`{"claimId":"CLM--1","claimId":null,"submissionError":"x"}`, `{"":{"":[]},"claimId":"CLM-1-1","submissionError":"[]{}\",:"}`,
	`{"claimId":"CLM-1-1","submissionError":"TIMEOUT","retryCount":9223372036854775807}`,
	`{"claimId":"CLM-1-1","submissionError":"TIMEOUT","retryCount":9223372036854775808}`,
	`{"claimId":"CLM-1-1","submissionError":"TIMEOUT","retryCount":1e-400}`, `{"claimId":"CLM-1-1","submissionError":"TIMEOUT","retryCount":-0.0}`,
	`{"claimId":"CLM-1-1","submissionError":"TIMEOUT","retryCount":1E+2}`,
	`{"claimId":"CLM-1-1","submissionError":"TIMEOUT","lastSubmissionTime":"0000-01-01T00:00:00Z"}`,
	`{"claimId":"CLM-1-1","submissionError":"TIMEOUT","lastSubmissionTime":"9999-12-31T23:59:60Z"}`,
	`{"retryOutcome":"failure","claimId":"CLM-1-1"}`, `{"retryOutcome":"","claimId":"CLM-1-1"}`,
	`{"retryPolicy":"tiss-submission"}`, `{"retryPolicy":"quick"}`, `{"retryPolicy":""}`, `{"retryPolicy":null}`, `{"retryPolicy":"a\nb"}`,
	`{"retryPolicy":"x","retryPolicy":"quick"}`, `{"messageId":"1","sendError":[[[[]]]],"retryCount":3}`,
	strings.Repeat(`{"a":`, 10_001) + "1" + strings.Repeat("}", 10_001), `{"a":` + strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001) + `}`,
}

func seed(f *testing.F) {
	for _, v := range oddities {
		f.Add("{}", v)
		f.Add(v, `{"claimId":"CLM-1-1","messageId":"m","submissionError":"TIMEOUT"}`)
	}
	for _, value := range []string{ // errors, which come back to the byte
		`"\u0054IMEOUT \u00E9\u00e9 \uD83D\uDE00 \/ \b\f\t \u0000"`, `"é 😀 \u2028  <script>&'"`, `""`, `"   "`, `null`, `true`, `0`, `-0`, `1e400`,
		`1.0000000000000000000001`, `[1, 2 ,{"a":"]}"}]`, `{ "b" : 1, "a" : { } , "b" : 2 }`, `"CPF 529.982.247-25"`,
	} {
		for _, count := range []string{"0", "5"} {
			f.Add("{}", claim(`"retryCount":`+count+`,"submissionError" : `+value+`  `))
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:analyze|outcome).* \| (.*) \| (.*)$`).FindAllStringSubmatch(
		testkit.Read(f, "testdata/analysis.txt")+testkit.Read(f, "testdata/outcome.txt"), -1) {
		f.Add(m[1], m[2])
	}
}

// FuzzAnalysis gives any bytes to the analysis: it decides or names what is wrong, once, as a naive
// reading of the same bytes does.
func FuzzAnalysis(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, headers, variables string) {
		h := handle(job(worker.AnalyzeRetry, headers, variables))
		wantContract(t, h.reply)
		if len(h.decided)+len(h.rejected) != 1 {
			t.Errorf("%d decisions and %d rejections", len(h.decided), len(h.rejected))
		}
		want, original := naively(headers, variables)
		switch {
		case h.reply.Action == worker.Failed:
			if want.Rejection == nil || want.Rejection.Code != h.rejected[0] {
				t.Errorf("rejected as %s, naively %s %v", h.rejected[0], want.Outcome, want.Rejection)
			}
			return
		case want.Rejection != nil || withoutText(h.decided[0]) != withoutText(want): // which is redacted in the one
			t.Errorf("decided %+v, naively %+v", h.decided[0], want)
		}
		outputs := h.reply.Variables + h.reply.Error.Variables
		var line bytes.Buffer // without blanks between its tokens
		testkit.Must(t, json.Compact(&line, []byte(original)))
		if !strings.Contains(outputs, `"originalError":`+line.String()+`,"retryPolicy"`) {
			t.Errorf("the error came as %q and goes back in %q", original, outputs)
		}
		if utf8.ValidString(variables) && !utf8.ValidString(outputs) {
			t.Errorf("the outputs are no UTF-8: %q", outputs)
		}
	})
}

func withoutText(d decision.Decision) decision.Decision {
	d.MatchedText = ""
	return d
}

// naively is the decision on a job, read by encoding/json into maps, and its error as it came.
func naively(headers, variables string) (decision.Decision, string) {
	named := map[string]string{}
	if headers != "" && json.Unmarshal([]byte(headers), &named) != nil {
		return decision.Decision{Outcome: decision.Rejected, Rejection: &decision.Rejection{Code: decision.InvalidVariables}}, ""
	}
	policy, rejection := policies().Find(named["retryPolicy"])
	if rejection != nil {
		return decision.Decision{Outcome: decision.Rejected, Rejection: rejection}, ""
	}
	var values map[string]json.RawMessage
	if len(variables) > 1<<20 || json.Unmarshal([]byte(variables), &values) != nil || values == nil {
		return decision.Decision{Outcome: decision.Rejected, Rejection: &decision.Rejection{Code: decision.InvalidVariables}}, ""
	}
	failure, rejection := policy.Read(decision.Variables{
		ID:                 decision.Value(values[policy.IDVariable]),
		Error:              decision.Value(values[policy.ErrorVariable]),
		RetryCount:         decision.Value(values["retryCount"]),
		LastSubmissionTime: decision.Value(values["lastSubmissionTime"]),
	})
	if rejection != nil {
		return decision.Decision{Outcome: decision.Rejected, Rejection: rejection}, ""
	}
	original := string(values[policy.ErrorVariable])
	if original == "" {
		original = "null"
	}
	return decision.Decide(&failure, policy, decision.Past{}, analysed), original
}

// FuzzOutcome gives any bytes to the recorder of outcomes: it completes or names what is wrong.
func FuzzOutcome(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, headers, variables string) {
		h := handle(job(worker.RecordRetryOutcome, headers, variables))
		switch {
		case h.reply.Action == worker.Completed && h.reply.Variables == "{}" && len(h.rejected) == 0:
		case h.reply.Action == worker.Failed && len(h.rejected) == 1:
			wantRejection(t, h.reply.Failure)
		default:
			t.Errorf("reply %+v with %d rejections", h.reply, len(h.rejected))
		}
	})
}
