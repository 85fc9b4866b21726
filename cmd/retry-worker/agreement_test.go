package main

import (
	"fmt"
	"strconv"
	"testing"
	"time"
)

// analysedAt is the instant of every decision of these tests: RN-BIL-005 §9.1's.
const analysedAt = "2025-01-12T10:40:00Z"

// agreed is one line of the specification: a failure, and what it says must follow.
type agreed struct {
	// says is where it stands.
	says string
	// failure as flags behind the policy's and the id's.
	failure []string
	outcome string
	// wait is the shortest and the longest; only of a retry.
	wait [2]time.Duration
	// Whatever is empty or 0 here is not looked at; rule - is none.
	class, reason, rule, team, sentence string
	retries                             float64
}

func failure(text string, count int, more ...string) []string {
	return append([]string{"--error", text, "--retry-count", strconv.Itoa(count)}, more...)
}

func exactly(d time.Duration) [2]time.Duration { return [2]time.Duration{d, d} }

func minutes(from, to int) [2]time.Duration {
	return [2]time.Duration{time.Duration(from) * time.Minute, time.Duration(to) * time.Minute}
}

// agree holds `decide` against lines of the specification.
func agree(t *testing.T, policy, id string, lines []agreed) {
	t.Helper()
	environment(t, nil)
	for _, want := range lines {
		args := append([]string{"decide", "--policy", policy, "--id", id, "--now", analysedAt, "-o", "json"}, want.failure...)
		r := retryWorker(args...)
		if r.code != exitDone || r.stderr != "" {
			t.Errorf("%s: %q: exit %d, %q", want.says, want.failure, r.code, r.stderr)
			continue
		}
		want.hold(t, policy, r.object(t))
	}
}

func (want *agreed) hold(t *testing.T, policy string, got map[string]any) {
	t.Helper()
	if got["retryPolicy"] != policy || got["shouldRetry"] != (want.outcome == "RETRY") {
		t.Errorf("%s: %q: policy %v, shouldRetry %v", want.says, want.failure, got["retryPolicy"], got["shouldRetry"])
	}
	for name, value := range map[string]string{
		"outcome": want.outcome, "errorClassification": want.class, "reason": want.reason, "matchedRule": want.rule,
		"responsibleTeam": want.team, "retryReason": want.sentence,
	} {
		if value == "-" && got[name] != nil || value != "" && value != "-" && got[name] != value {
			t.Errorf("%s: %q: %s is %v, want %s", want.says, want.failure, name, got[name], value)
		}
	}
	if want.retries > 0 && got["maxRetries"] != want.retries {
		t.Errorf("%s: %q: maxRetries %v, want %v", want.says, want.failure, got["maxRetries"], want.retries)
	}
	if want.outcome != "RETRY" {
		if got["nextRetryTime"] != nil || got["backoffMinutes"] != nil {
			t.Errorf("%s: %q: a next retry after %s", want.says, want.failure, want.outcome)
		}
		return
	}
	if wait := waitOf(t, got); wait < want.wait[0] || wait > want.wait[1] {
		t.Errorf("%s: %q: next after %v, want %v to %v", want.says, want.failure, wait, want.wait[0], want.wait[1])
	}
}

// waitOf is from the analysis to the next retry.
func waitOf(t *testing.T, got map[string]any) time.Duration {
	t.Helper()
	from, err := time.Parse(time.RFC3339, analysedAt)
	if err != nil {
		t.Fatal(err)
	}
	next, err := time.Parse(time.RFC3339, fmt.Sprint(got["nextRetryTime"]))
	if err != nil {
		t.Fatal(err)
	}
	return next.Sub(from)
}

// RN-BIL-005 and RN-BIL-004, R3, R5, R10, R20, R21.
func TestDecideAgreesOnClaims(t *testing.T) {
	lines := []agreed{
		{says: "RN-BIL-005 §9.1", failure: failure("TIMEOUT - Connection timeout after 30s", 1), outcome: "RETRY", wait: minutes(8, 12),
			class: "TRANSIENT", rule: "TIMEOUT", sentence: "Transient error, retry 2 of 5", retries: 5},
		{says: "RN-BIL-005 §9.2, R10", failure: failure("TIMEOUT", 4), outcome: "RETRY", wait: minutes(64, 96), sentence: "Transient error, retry 5 of 5"},
		{says: "RN-BIL-005 §9.2, R10", failure: failure("TIMEOUT", 5), outcome: "MAX_RETRIES_EXCEEDED", reason: "MAX_RETRIES", team: "faturamento",
			sentence: "Maximum of 5 retries reached"},
		{says: "R10", failure: failure("TIMEOUT", 7), outcome: "MAX_RETRIES_EXCEEDED", team: "faturamento"},
		{says: "RN-BIL-005 §9.3", failure: failure("INVALID_PATIENT_DATA - CPF inválido", 0), outcome: "PERMANENT_ERROR", class: "PERMANENT",
			reason: "INVALID_PATIENT_DATA", rule: "INVALID_PATIENT_DATA", team: "cadastro", sentence: "Permanent error, not retried"},
		{says: "RN-BIL-004 §9.1", failure: failure("SERVICE_UNAVAILABLE", 0), outcome: "RETRY", wait: minutes(5, 6), class: "TRANSIENT", rule: "SERVICE_UNAVAILABLE"},
		{says: "RN-BIL-004 §9.2", failure: failure("INVALID_PROCEDURE_CODE", 0), outcome: "PERMANENT_ERROR", rule: "INVALID_PROCEDURE_CODE", team: "faturamento"},
		{says: "RN-BIL-004 §9.3", failure: failure("SERVICE_UNAVAILABLE", 5), outcome: "MAX_RETRIES_EXCEEDED", class: "TRANSIENT", team: "faturamento"},
		{says: "R1: the limit beats a permanent error", failure: failure("DUPLICATE_CLAIM", 5), outcome: "MAX_RETRIES_EXCEEDED", class: "PERMANENT"},
		{says: "R2", failure: failure("TIMEOUT … DUPLICATE_CLAIM", 0), outcome: "PERMANENT_ERROR", rule: "DUPLICATE_CLAIM"},
		{says: "RN-BIL-005 §2.1, R1.6", failure: failure("ERRO_NUNCA_VISTO", 0), outcome: "RETRY", wait: minutes(5, 6), class: "UNKNOWN", reason: "UNKNOWN", rule: "-",
			sentence: "Unknown error, retry 1 of 5"},
		{says: "R20", failure: failure("TIMEOUT", 0, "--last-submission-time", "2025-01-10T10:46:00Z"), outcome: "RETRY", wait: minutes(5, 6)},
		{says: "R20", failure: failure("TIMEOUT", 0, "--last-submission-time", "2025-01-10T10:44:59Z"), outcome: "MAX_RETRIES_EXCEEDED", reason: "TIME_LIMIT",
			team: "faturamento", class: "TRANSIENT", sentence: "Time limit of 48h reached"},
		{says: "R21", failure: failure("<codigoErro>LoginInvalido</codigoErro> tissFault LoginInvalido", 0), outcome: "PERMANENT_ERROR", reason: "INVALID_CREDENTIALS", team: "ti"},
	}
	for code, team := range map[string]string{ // §2.1, R21
		"INVALID_PATIENT_DATA": "cadastro", "INSURANCE_EXPIRED": "cadastro",
		"AUTHORIZATION_DENIED": "faturamento", "DUPLICATE_CLAIM": "faturamento", "INVALID_PROCEDURE_CODE": "faturamento",
	} {
		lines = append(lines, agreed{says: "§2.1, R21", failure: failure("erro: "+code, 0), outcome: "PERMANENT_ERROR", class: "PERMANENT", rule: code, reason: code, team: team})
	}
	for _, code := range []string{"TIMEOUT", "CONNECTION_ERROR", "SERVICE_UNAVAILABLE", "NETWORK_ERROR", "TEMPORARY_ERROR", "RATE_LIMIT", "SERVER_ERROR", "503", "504"} {
		lines = append(lines, agreed{says: "§2.1, R3", failure: failure("erro "+code, 0), outcome: "RETRY", wait: minutes(5, 6), class: "TRANSIENT", rule: code, reason: code})
	}
	for text, rule := range map[string]string{
		"Service Unavailable": "SERVICE_UNAVAILABLE", "service-unavailable": "SERVICE_UNAVAILABLE", "SocketTimeoutException": "TIMEOUT",
		"HTTP 503": "503", "status=503": "503", "[503]": "503", "503, later": "503",
	} {
		lines = append(lines, agreed{says: "R3", failure: failure(text, 0), outcome: "RETRY", wait: minutes(5, 6), class: "TRANSIENT", rule: rule})
	}
	for _, text := range []string{"protocol 15037", "CLM-1-503123", "CPF 503.504.111-22", "R$ 1.504,00"} {
		lines = append(lines, agreed{says: "R3", failure: failure(text, 0), outcome: "RETRY", wait: minutes(5, 6), class: "UNKNOWN", rule: "-"})
	}
	agree(t, "tiss-submission", "CLM-001-1234567890", lines)
}

// R5: whole minutes, for many claims; both ends of every range are drawn.
func TestDecideAgreesOnTheLadderOfClaims(t *testing.T) {
	environment(t, nil)
	for count, bounds := range [][2]float64{{5, 6}, {8, 12}, {16, 24}, {32, 48}, {64, 96}} {
		seen := map[float64]bool{}
		for n := range 150 {
			o := retryWorker("decide", "--id", "CLM-"+strconv.Itoa(n)+"-1", "--error", "TIMEOUT", "--retry-count", strconv.Itoa(count), "--now", analysedAt, "-o", "json").object(t)
			got, _ := o["backoffMinutes"].(float64)
			if got < bounds[0] || got > bounds[1] || waitOf(t, o).Minutes() != got {
				t.Fatalf("retryCount %d: %v minutes until %v, want %v", count, got, o["nextRetryTime"], bounds)
			}
			seen[got] = true
		}
		if want := int(bounds[1]-bounds[0]) + 1; len(seen) < want*2/3 {
			t.Errorf("retryCount %d: only %d of %d waits were drawn", count, len(seen), want)
		}
	}
}

// TRD-0003, R13.
func TestDecideAgreesOnMessages(t *testing.T) {
	lines := []agreed{
		{says: "attempt 2", failure: failure("Timeout", 0), outcome: "RETRY", wait: exactly(5 * time.Second), class: "TRANSIENT", reason: "TIMEOUT", retries: 3},
		{says: "attempt 3", failure: failure("Timeout", 1), outcome: "RETRY", wait: exactly(30 * time.Second)},
		{says: "attempt 4", failure: failure("Timeout", 2), outcome: "RETRY", wait: exactly(5 * time.Minute)},
		{says: "after 4: DLQ", failure: failure("Timeout", 3), outcome: "MAX_RETRIES_EXCEEDED", reason: "MAX_RETRIES", team: "atendimento"},
		{says: "err on the side of retry", failure: failure("WhatsApp offline", 0), outcome: "RETRY", wait: exactly(5 * time.Second), class: "UNKNOWN", rule: "-"},
		{says: "err on the side of retry", failure: failure("recusado", 0, "--http-status", "418"), outcome: "RETRY", wait: exactly(5 * time.Second), class: "UNKNOWN"},
	}
	for status, text := range map[string]string{
		"429": "429 Too Many Requests", "500": "500 Internal Server Error", "502": "502 Bad Gateway", "503": "503 Service Unavailable", "504": "504 Gateway Timeout",
	} {
		lines = append(lines,
			agreed{says: "transient", failure: failure(text, 0), outcome: "RETRY", wait: exactly(5 * time.Second), class: "TRANSIENT"},
			agreed{says: "transient", failure: failure("falhou", 1, "--http-status", status), outcome: "RETRY", wait: exactly(30 * time.Second), class: "TRANSIENT"})
	}
	for status, text := range map[string]string{"400": "400 Bad Request", "404": "404 Not Found"} {
		lines = append(lines,
			agreed{says: "permanent", failure: failure(text, 0), outcome: "PERMANENT_ERROR", class: "PERMANENT", team: "atendimento"},
			agreed{says: "permanent", failure: failure("falhou", 2, "--http-status", status), outcome: "PERMANENT_ERROR", class: "PERMANENT", team: "atendimento"},
			agreed{says: "R1", failure: failure(text, 3), outcome: "MAX_RETRIES_EXCEEDED", class: "PERMANENT"})
	}
	agree(t, "whatsapp-message", "MSG-2001", lines)
}

// Retry Failed Job, R14.
func TestDecideAgreesOnFailedJobs(t *testing.T) {
	var lines []agreed
	for count, wait := range []time.Duration{time.Second, 5 * time.Second, 25 * time.Second} {
		lines = append(lines, agreed{says: "automatic", failure: failure("Serviço externo indisponível", count), outcome: "RETRY", wait: exactly(wait), retries: 3})
	}
	lines = append(lines,
		agreed{says: "3 at most", failure: failure("Serviço externo indisponível", 3), outcome: "MAX_RETRIES_EXCEEDED", reason: "MAX_RETRIES"},
		agreed{says: "it knows no final error", failure: failure("404 Not Found", 0), outcome: "RETRY", wait: exactly(time.Second), class: "UNKNOWN"})
	agree(t, "failed-job", "123e4567-e89b-12d3-a456-426614174000", lines)
}

// UC-004, R15.
func TestDecideAgreesOnTheJobQueue(t *testing.T) {
	policy := []string{"--var", "maxAttempts=3", "--var", "delayBetweenAttempts=PT30S"}
	lines := []agreed{
		{says: "6a, first", failure: failure("falhou", 0, policy...), outcome: "RETRY", wait: exactly(30 * time.Second), retries: 2, sentence: "Unknown error, retry 1 of 2"},
		{says: "6a, second", failure: failure("falhou", 1, policy...), outcome: "RETRY", wait: exactly(30 * time.Second)},
		{says: "6b", failure: failure("falhou", 2, policy...), outcome: "MAX_RETRIES_EXCEEDED", reason: "MAX_RETRIES", sentence: "Maximum of 2 retries reached"},
		{says: "R15, milliseconds", failure: failure("falhou", 0, "--var", "maxAttempts=2", "--var", "delayBetweenAttempts=90500"), outcome: "RETRY",
			wait: exactly(90500 * time.Millisecond), retries: 1},
		{says: "R15, one attempt", failure: failure("falhou", 0, "--var", "maxAttempts=1"), outcome: "MAX_RETRIES_EXCEEDED"},
		{says: "FA-004.1", failure: failure("falhou", 0), outcome: "MAX_RETRIES_EXCEEDED", reason: "MAX_RETRIES", sentence: "Maximum of 0 retries reached"},
		{says: "FA-004.1, a delay alone", failure: failure("falhou", 0, policy[2:]...), outcome: "MAX_RETRIES_EXCEEDED"},
		{says: "FA-004.2", failure: failure("falhou", 0, append(policy, "--var", "nonRetryable=true")...), outcome: "PERMANENT_ERROR", class: "PERMANENT",
			reason: "NON_RETRYABLE", rule: "nonRetryable"},
		{says: "FA-004.2", failure: failure("falhou", 0, append(policy, "--var", "nonRetryable=false")...), outcome: "RETRY", wait: exactly(30 * time.Second)},
	}
	agree(t, "job-queue", "JOB-7", lines)
	agree(t, "no-retry", "JOB-8", []agreed{
		{says: "R15, no-retry", failure: failure("TIMEOUT", 0), outcome: "MAX_RETRIES_EXCEEDED", reason: "MAX_RETRIES"},
		{says: "R15, no-retry", failure: nil, outcome: "MAX_RETRIES_EXCEEDED", class: "UNKNOWN"},
	})
}

// R15: a task that names no policy gets the one for claims.
func TestDecideWithoutAPolicy(t *testing.T) {
	environment(t, nil)
	o := retryWorker("decide", "--id", "CLM-1-1", "--error", "TIMEOUT", "-o", "json").object(t)
	if o["retryPolicy"] != "tiss-submission" || o["maxRetries"] != 5.0 {
		t.Errorf("got %v", o)
	}
}

// R9, R11, R13, R15: what each policy rejects, with its code and exit 2.
func TestDecideAgreesOnRejections(t *testing.T) {
	environment(t, nil)
	claim := []string{"--id", "CLM-1-1", "--error", "TIMEOUT"}
	message := []string{"--policy", "whatsapp-message", "--id", "MSG-1", "--error", "Timeout"}
	job := []string{"--policy", "job-queue", "--id", "JOB-1", "--error", "falhou"}
	for _, tt := range []struct {
		of   []string
		more []string
		code string
	}{
		{claim, []string{"--retry-count", "-1"}, "INVALID_RETRY_COUNT"},
		{claim, []string{"--retry-count", "2.5"}, "INVALID_RETRY_COUNT"},
		{claim, []string{"--retry-count", "true"}, "INVALID_RETRY_COUNT"},
		{claim, []string{"--error", " "}, "INVALID_ERROR_MESSAGE"},
		{claim, []string{"--id", "CLM-1"}, "INVALID_CLAIM_ID"},
		{claim, []string{"--last-submission-time", "ontem"}, "INVALID_LAST_SUBMISSION_TIME"},
		{claim, []string{"--policy", "nobody-s"}, "UNKNOWN_POLICY"},
		{message, []string{"--id", ""}, "INVALID_ID"},
		{message, []string{"--error", ""}, "INVALID_ERROR_MESSAGE"},
		{message, []string{"--http-status", "99"}, "INVALID_HTTP_STATUS"},
		{message, []string{"--http-status", "abc"}, "INVALID_HTTP_STATUS"},
		{job, []string{"--var", "maxAttempts=0"}, "INVALID_RETRY_POLICY"},
		{job, []string{"--var", "maxAttempts=x"}, "INVALID_RETRY_POLICY"},
		{job, []string{"--var", "maxAttempts=2", "--var", "delayBetweenAttempts=30"}, ""},
		{job, []string{"--var", "maxAttempts=2", "--var", "delayBetweenAttempts=30s"}, "INVALID_RETRY_POLICY"},
		{job, []string{"--var", "nonRetryable=1"}, "INVALID_RETRY_POLICY"},
		{[]string{"--policy", "failed-job", "--error", "falhou"}, nil, "INVALID_ID"},
		{[]string{"--policy", "no-retry", "--error", "falhou"}, nil, "INVALID_ID"},
	} {
		r := retryWorker(append(append([]string{"decide", "-o", "json"}, tt.of...), tt.more...)...)
		o := r.object(t)
		if tt.code == "" {
			if r.code != exitDone {
				t.Errorf("%q: exit %d, %s", tt.more, r.code, r.stderr)
			}
			continue
		}
		if o["outcome"] != "REJECTED" || o["rejection"] != tt.code || r.code != exitUsage {
			t.Errorf("%q: %v %v, exit %d, want %s, exit 2", tt.more, o["outcome"], o["rejection"], r.code, tt.code)
		}
	}
}
