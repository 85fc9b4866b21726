package worker_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/testkit"
	"retry-worker/internal/text"
	"retry-worker/internal/worker"
)

// talkative is a policy whose rules match what stands around their words, reads a status, and lets a job bring its own
// retry policy.
func talkative() *decision.Policy {
	p := policies()[quick]
	p.Name, p.IDVariable, p.ErrorVariable, p.HTTPStatusVariable = "talkative", "jobId", "jobError", "httpStatus"
	p.Own = &decision.OwnVariables{MaxAttempts: "maxAttempts", Delay: "delayBetweenAttempts", NonRetryable: "nonRetryable"}
	p.MaxRetries = 0 // without a retry policy of the job's own (R15)
	p.Rules = decisiontest.Rules(
		classify.Rule{Name: "patient", Class: decision.Permanent, Reason: "INVALID_PATIENT_DATA", Team: "cadastro", Hint: text.Translated{Portuguese: "corrija o cadastro"},
			Patterns: []string{`paciente .{0,200} .{0,100}recusado`}},
		classify.Rule{Name: "missing", Class: decision.Permanent, Reason: "NOT_FOUND", Team: "ti", Statuses: []string{"404"}},
		decisiontest.Transient("TIMEOUT"),
	)
	return p
}

// TestMatchedText: people see what a rule matched, and nothing personal of it.
func TestMatchedText(t *testing.T) {
	const cpf = "529.982.247-25"
	long := strings.Repeat("a ", 120)
	for _, tt := range []struct {
		name, text string
		want       string
	}{
		{"a code", "read Timeout after 30s", "Timeout"},
		{"personal data within", "paciente CPF " + cpf + " recusado", "paciente CPF [CPF] recusado"},
		{"a part of something personal", "not delivered to timeout@example.com", ""},
		{"a long one is cut", "paciente " + long + "recusado", "paciente " + long[:188] + "…"},
		{"behind the cut of the error that is kept", strings.Repeat("x ", 1500) + "TIMEOUT", "TIMEOUT"},
		{"personal, behind that cut", strings.Repeat("x ", 1500) + "timeout@example.com", ""},
		{"more than is looked at", strings.Repeat("x ", 10_000) + "TIMEOUT", ""},
		{"in two lines", "paciente\r\nfulano recusado", "paciente  fulano recusado"},
		{"nothing", "something new", ""},
	} {
		error, p := decision.Text(tt.text), talkative()
		dry := worker.DryRun(decision.Policies{p.Name: p}, p.Name, decision.Variables{ID: `"j-1"`, Error: error, MaxAttempts: "3"}, analysed, nil)
		if dry.MatchedText != tt.want {
			t.Errorf("%s: a dry run shows %q, want %q", tt.name, dry.MatchedText, tt.want)
		}
		logged := analyzedByTalkative(t, `"jobError":`+string(error)+`,"maxAttempts":3`)["matchedText"]
		if logged != tt.want {
			t.Errorf("%s: the log says %v, want %q", tt.name, logged, tt.want)
		}
	}
}

// analyzedByTalkative are the fields of the log line of one analysis.
func analyzedByTalkative(t *testing.T, variables string) map[string]any {
	t.Helper()
	core, logs := observer.New(zapcore.DebugLevel)
	clock := func() time.Time { return analysed }
	p := talkative()
	f := newInForce(decision.Policies{p.Name: p})
	a := worker.NewAnalyzer(f.policies, decision.RNBIL005, testkit.StartJournal(t, testkit.NewMemory(), clock), clock, worker.NoHooks(), zap.New(core))
	j := job(worker.AnalyzeRetry, `{"retryPolicy":"talkative"}`, `{"jobId":"j-1",`+variables+`}`)
	a.Begin().Handler(t.Context(), &j)
	if logs.Len() != 1 {
		t.Fatalf("%s: logged %v, want one line", variables, logs.All())
	}
	return logs.All()[0].ContextMap()
}

// TestDelayOfNothing: a job that asks for retries without a delay gets a second, and the log says so.
func TestDelayOfNothing(t *testing.T) {
	for delay, want := range map[string]any{"0": "delayBetweenAttempts is 0 and was raised to 1s", "1": nil} {
		line := analyzedByTalkative(t, `"jobError":"TIMEOUT","maxAttempts":3,"delayBetweenAttempts":`+delay)
		if line["warning"] != want {
			t.Errorf("a delay of %s: logged %v", delay, line)
		}
	}
}

// TestWhatOnlySomePoliciesRead: what a policy does not read does not reach its decision; that the rest does stands in
// internal/api.
func TestWhatOnlySomePoliciesRead(t *testing.T) {
	other := policies()
	with := worker.DryRun(other, "", decision.Variables{ID: `"CLM-1-1"`, Error: `"TIMEOUT"`, HTTPStatus: "7", MaxAttempts: "0", Delay: "true", NonRetryable: "true"}, analysed, nil)
	without := worker.DryRun(other, "", decision.Variables{ID: `"CLM-1-1"`, Error: `"TIMEOUT"`}, analysed, nil)
	if !reflect.DeepEqual(with, without) {
		t.Errorf("a policy that reads none of them decides\n%+v with them and\n%+v without", with, without)
	}
}

// TestLineNamesTheSubjectAsItsPolicyDoes: a message is no claim; no line has two fields of one name; and what a job
// brings beside its error is in none as it came.
func TestLineNamesTheSubjectAsItsPolicyDoes(t *testing.T) {
	for variable, field := range map[string]string{
		"claimId": "claimId", "messageId": "messageId", "jobId": "jobId", "message": "subjectId", "warning": "subjectId", "state": "subjectId",
	} {
		core, logs := observer.New(zapcore.DebugLevel)
		clock := func() time.Time { return analysed }
		p := talkative()
		p.IDVariable = variable
		f := newInForce(decision.Policies{p.Name: p})
		memory := testkit.StartJournal(t, testkit.NewMemory(), clock)
		for _, step := range []struct {
			jobType, variables, event string
			begin                     func() worker.Activation
		}{
			{worker.AnalyzeRetry, `,"jobError":"TIMEOUT","httpStatus":503,"maxAttempts":3,"delayBetweenAttempts":1234`, "retry_scheduled",
				worker.NewAnalyzer(f.policies, decision.RNBIL005, memory, clock, worker.NoHooks(), zap.New(core)).Begin},
			{worker.RecordRetryOutcome, "", "retry_outcome_recorded",
				worker.NewOutcomeRecorder(f.policies, memory, worker.NoHooks(), zap.New(core)).Begin},
		} {
			j := job(step.jobType, `{"retryPolicy":"talkative"}`, `{"`+variable+`":"j-1"`+step.variables+`}`)
			step.begin().Handler(t.Context(), &j)
			wantSubject(t, logs.TakeAll(), step.event, field, variable)
		}
	}
}

func wantSubject(t *testing.T, lines []observer.LoggedEntry, event, field, variable string) {
	t.Helper()
	if len(lines) != 1 {
		t.Fatalf("%s: logged %v, want one line", variable, lines)
	}
	got := lines[0].ContextMap()
	if got["event"] != event || got[field] != "j-1" {
		t.Errorf("%s: logged %v, want %s with j-1 as %s", variable, got, event, field)
	}
	if _, claim := got["claimId"]; claim && variable != "claimId" {
		t.Errorf("%s: named a claim: %v", variable, got)
	}
	for _, raw := range []string{"httpStatus", "maxAttempts", "delayBetweenAttempts"} {
		if _, there := got[raw]; there {
			t.Errorf("%s is in the line: %v", raw, got)
		}
	}
}
