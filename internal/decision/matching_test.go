package decision_test

import (
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// TestR03Matching: RESOLUTIONS' examples, then hostile ones. want is the code that matches, empty for
// UNKNOWN.
func TestR03Matching(t *testing.T) {
	tests := []struct{ text, want string }{
		// RESOLUTIONS' own.
		{"Service Unavailable", "SERVICE_UNAVAILABLE"},
		{"service-unavailable", "SERVICE_UNAVAILABLE"},
		{"SocketTimeoutException", "TIMEOUT"},
		{"TEMPORARY_ERROR", "TEMPORARY_ERROR"},
		{"HTTP 503", "503"},
		{"status=503", "503"},
		{"[503]", "503"},
		{"503, later", "503"},
		{"protocol 15037", ""},
		{"CLM-1-503123", ""},
		{"CPF 503.504.111-22", ""},
		{"R$ 1.504,00", ""},

		// Letters: anywhere in the text, any run between its words, in any case.
		{"timeout", "TIMEOUT"},
		{"xxtimeoutxx", "TIMEOUT"},
		{"time out", ""},
		{"TIME_OUT", ""},
		{"ServiceUnavailable", ""},
		{"service  --  unavailable", "SERVICE_UNAVAILABLE"},
		{"service.unavailable", "SERVICE_UNAVAILABLE"},
		{"service\r\nunavailable", "SERVICE_UNAVAILABLE"},
		{"<service>unavailable</service>", "SERVICE_UNAVAILABLE"},
		{"service__unavailable", "SERVICE_UNAVAILABLE"},
		{"service2unavailable", ""},
		{"service não unavailable", ""},
		{"rate limiting", "RATE_LIMIT"},
		{"corporate limit", "RATE_LIMIT"},
		{"rate", ""},
		{"_TIMEOUT", "TIMEOUT"},
		{"duplicate claim", "DUPLICATE_CLAIM"},
		{"Invalid Procedure Code: 40101010", "INVALID_PROCEDURE_CODE"},
		{"INVALID_PATIENT", ""},
		{"PATIENT_DATA_INVALID", ""},
		{"EXPIRED_INSURANCE", ""},

		// Two codes of one class: the policy's order decides, not the text's.
		{"504 then 503 then TIMEOUT", "TIMEOUT"},
		{"504 then 503", "503"},
		{"DUPLICATE_CLAIM, INSURANCE_EXPIRED", "INSURANCE_EXPIRED"},
	}
	checkMatches(t, tests)
}

// TestR03Numbers: a code of digits matches a whole number in the message as it came: no digit beside
// it, nor one of . , - with a digit behind it.
func TestR03Numbers(t *testing.T) {
	tests := []struct{ text, want string }{
		{"503", "503"}, {"504", "504"}, {"502", ""}, {"50", ""}, {"53", ""},
		// A digit beside it.
		{"5030", ""}, {"1503", ""}, {"15031", ""}, {"503504", ""}, {"50350", ""}, {"503503", ""}, {"0503", ""},
		// A separator with a digit behind it, on either side.
		{"1.503", ""}, {"1,503", ""}, {"1-503", ""}, {"503.1", ""}, {"503,1", ""}, {"503-1", ""}, {"503-504", ""}, {"1.503,00", ""},
		// A separator with no digit behind it.
		{".503", "503"}, {",503", "503"}, {"-503", "503"}, {"503.", "503"}, {"503,", "503"}, {"503-", "503"},
		{"a.503", "503"}, {"HTTP-503", "503"}, {"CLM-A-503", "503"}, {"503-a", "503"}, {"503. 1", "503"}, {"1 -503", "503"},
		{"1..503", "503"}, {"503--1", "503"}, {"1,-503", "503"}, {"503.-1", "503"}, {"-.503.-", "503"},
		// Other characters separate.
		{"HTTP/1.1 503", "503"}, {"503/1", "503"}, {"1:503", "503"}, {"503:1", "503"}, {"1_503", "503"}, {"1 503", "503"}, {"#503;1", "503"},
		{"E503", "503"}, {"503ms", "503"}, {"x503x", "503"}, {"1e503", "503"}, {"+503", "503"}, {"503%", "503"}, {"\"503\"", "503"},
		{"1\n503\n1", "503"}, {"1\t503", "503"}, {"10:40:503", "503"},
		// Dates, times, money, identifiers that hold the digits.
		{"2025-01-12T10:40:00.503Z", ""}, {"10.503.0.1", ""}, {"192.168.503.1:80", ""}, {"R$ 504,00", ""}, {"(11) 95030-5031", ""},
		{"CNS 700503504111222", ""}, {"guia 503", "503"}, {"lote 504.", "504"}, {"1.503.504", ""}, {"tel 503-1111", ""},
		// One that stands alone beside one that does not.
		{"15037 503", "503"}, {"503 15037", "503"}, {"5035 1.503 503.1 503", "503"}, {"503.504.111-22 504", "504"}, {"503503 503", "503"},
		// The message as it came: neither upper-casing nor underscores make or break a number.
		{"5 03", ""}, {"5_03", ""}, {"503_504", "503"},
	}
	checkMatches(t, tests)
}

func checkMatches(t *testing.T, tests []struct{ text, want string }) {
	t.Helper()
	p := decisiontest.TISSSubmission()
	for _, tt := range tests {
		if m := p.Rules.Classify(tt.text, 0); m.Name != tt.want {
			t.Errorf("%q matches %q, want %q", tt.text, m.Name, tt.want)
		}
		class, code := oracleClass(tt.text)
		if code != tt.want {
			t.Errorf("the oracle itself: %q matches %q, want %q", tt.text, code, tt.want)
		}
		if m := p.Rules.Classify(tt.text, 0); m.Class != class {
			t.Errorf("%q is %s, want %s", tt.text, m.Class, class)
		}
	}
}

// TestR21WhoActs: the team of each permanent code, and of the limit whatever the error.
func TestR21WhoActs(t *testing.T) {
	p := decisiontest.TISSSubmission()
	for code, team := range map[string]decision.Team{
		"INVALID_PATIENT_DATA": "cadastro", "INSURANCE_EXPIRED": "cadastro",
		"AUTHORIZATION_DENIED": "faturamento", "DUPLICATE_CLAIM": "faturamento", "INVALID_PROCEDURE_CODE": "faturamento",
	} {
		if d := decide(p, claim("0", code)); d.Team != team || string(d.Reason) != code {
			t.Errorf("%s is %s's by reason %s, want %s's", code, d.Team, d.Reason, team)
		}
		if d := decide(p, claim("5", code)); d.Team != "faturamento" || d.Reason != decision.ReasonMaxRetries {
			t.Errorf("%s at the limit is %s's by reason %s, want faturamento's by MAX_RETRIES", code, d.Team, d.Reason)
		}
	}
	for _, text := range []string{"TIMEOUT", "?"} {
		if d := decide(p, claim("0", text)); d.Team != "" {
			t.Errorf("%q is retried, yet %s is to act", text, d.Team)
		}
	}
}
