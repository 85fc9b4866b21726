package worker_test

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// analysed is the instant of RN-BIL-005 §9.1's example, with a part of a second that R7 cuts off.
var analysed = time.Date(2025, 1, 12, 10, 40, 0, 123_456_789, time.UTC)

// What a rejection ends with: a wrong variable is corrected in the incident, a wrong header in the model.
const (
	variableAdvice = "; correct the variable and resolve the incident"
	headerAdvice   = "; correct the task's header in the model, deploy it and move the instance to it"
)

// policies are the built-in one and one with everything it has not: delays below a minute, an id of
// its own, empty errors that are retried.
func policies() decision.Policies {
	ps := decisiontest.Policies()
	quick := decisiontest.TISSSubmission()
	quick.Name, quick.IDVariable, quick.ErrorVariable = "quick", "messageId", "sendError"
	quick.IDPattern, quick.InvalidID = regexp.MustCompile(`^\S+$`), decision.InvalidID
	quick.Backoff = decision.BackoffRule{Base: 5 * time.Second, Min: 5 * time.Second, Max: 5 * time.Minute, Factor: 6, Rounding: time.Second}
	quick.MaxRetries = 3
	quick.EmptyError = decision.AssumeTransient
	ps[quick.Name] = quick
	for _, p := range ps {
		p.Catalogue = version
	}
	return ps
}

// version of the catalogue that policies are of.
const version = "0123456789ab"

var nopLog = zap.NewNop()

// handled is what one job came to.
type handled struct {
	*tally
	reply worker.Reply
}

// handlerOf builds the use case of a job type.
func handlerOf(jobType string, memory *journal.Journal, now time.Time, hooks worker.Hooks, log *zap.Logger) worker.Handler {
	return worker.NewHandlers(worker.Options{Policies: policies, Memory: memory, Now: func() time.Time { return now }, Hooks: hooks,
		Log: log}).Begin(jobType).Handler
}

// handle gives a job to the use case of its type, with a memory of nothing.
func handle(j worker.Job) handled {
	now := func() time.Time { return analysed }
	memory := journal.New(testkit.NewMemory(), now, nil, journal.NoHooks())
	stop, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { memory.Run(stop, context.Background()) })
	defer running.Wait()
	defer end()
	h := handled{tally: newTally()}
	h.reply = handlerOf(j.Type, memory, analysed, h.hooks(), nopLog)(context.Background(), &j)
	return h
}

// job is one of a claim that failed.
func job(jobType, headers, variables string) worker.Job {
	return worker.Job{
		Key: 2251799813685301, ProcessInstanceKey: 2251799813685200, ElementInstanceKey: 2251799813685300,
		Type: jobType, TenantID: "<default>", Retries: 3, Headers: headers, Variables: variables,
	}
}

// claim are the variables of claim CLM-001-123 with members of their own.
func claim(members string) string {
	return `{"claimId":"CLM-001-123",` + members + `}`
}

// The contract's outputs: name → what its JSON must look like.
var (
	always = map[string]string{
		"retryCount":          `^\d+$`,
		"maxRetries":          `^[235]$`,
		"retryReason":         `^"[A-Z][^"]+"$`,
		"errorClassification": `^"(TRANSIENT|PERMANENT|UNKNOWN)"$`,
		"originalError":       `(?s)^.+$`,
		"retryPolicy":         `^"(tiss-submission|quick|talkative)"$`,
		"possiblyAccepted":    `^(true|false)$`,
	}
	onCompletion = with(always, map[string]string{
		"shouldRetry":     `^true$`,
		"backoffMinutes":  `^[1-9]\d*$`,
		"backoffDuration": `^"PT([1-9]\d*M|[1-9]\d*(\.\d{1,3})?S)"$`,
		"nextRetryTime":   `^"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z"$`,
	})
	onError = with(always, map[string]string{
		"shouldRetry":     `^false$`,
		"deadLetterId":    `^"[0-9a-f-]{36}"$`,
		"responsibleTeam": `^"(cadastro|faturamento|ti)"$`,
	})
)

func with(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// wantContract fails unless r is a reply as the contract has it: outputs by name and form, or a
// rejection that begins with a code of the closed set and ends with what to do.
func wantContract(t testing.TB, r worker.Reply) {
	t.Helper()
	switch r.Action {
	case worker.Completed:
		wantOutputs(t, r.Variables, onCompletion)
	case worker.Thrown:
		if r.Error.Code != "MAX_RETRIES_EXCEEDED" && r.Error.Code != "PERMANENT_ERROR" || r.Error.Message == "" {
			t.Errorf("BPMN error %q with message %q", r.Error.Code, r.Error.Message)
		}
		wantOutputs(t, r.Error.Variables, onError)
	case worker.Failed:
		wantRejection(t, r.Failure)
	default:
		t.Errorf("a handler's reply is %q", r.Action)
	}
}

func wantOutputs(t testing.TB, variables string, want map[string]string) {
	t.Helper()
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(variables), &got); err != nil {
		t.Fatalf("the outputs are no JSON object: %v: %q", err, variables)
	}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, slices.Sorted(maps.Keys(want))) {
		t.Errorf("the outputs are %v, want %v", names, slices.Sorted(maps.Keys(want)))
	}
	for name, form := range want {
		if !regexp.MustCompile(form).Match(got[name]) {
			t.Errorf("%s is %s, want %s", name, got[name], form)
		}
	}
	var text struct{ NextRetryTime, DeadLetterID string }
	testkit.Must(t, json.Unmarshal([]byte(variables), &text))
	if next, err := time.Parse(time.RFC3339, text.NextRetryTime); text.NextRetryTime != "" && (err != nil || !next.After(analysed)) {
		t.Errorf("nextRetryTime %s is no instant in the future", text.NextRetryTime) // BIL-005-V5
	}
	if id, err := uuid.Parse(text.DeadLetterID); text.DeadLetterID != "" && (err != nil || id.Version() != 5) {
		t.Errorf("deadLetterId %s is no name-based UUID", text.DeadLetterID)
	}
}

func wantRejection(t testing.TB, f worker.Failure) {
	t.Helper()
	code, _, _ := strings.Cut(f.Message, ": ")
	if !regexp.MustCompile(`^(INVALID_[A-Z_]+|UNKNOWN_POLICY)$`).MatchString(code) {
		t.Errorf("the message does not begin with a rejection's code: %q", f.Message)
	}
	if strings.ContainsFunc(f.Message, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 }) {
		t.Errorf("the message is not one line: %q", f.Message)
	}
	advice := variableAdvice
	if code == string(decision.UnknownPolicy) || strings.HasPrefix(f.Message, "INVALID_VARIABLES: the JSON of the task's headers") {
		advice = headerAdvice
	}
	if !strings.HasSuffix(f.Message, advice) || !strings.Contains(f.Message, ", expected ") {
		t.Errorf("the message does not end with what was expected and what to do: %q", f.Message)
	}
	if f.Retries != 0 || f.Backoff != 0 {
		t.Errorf("%d retries after %s, want none: the engine is to raise an incident (R11)", f.Retries, f.Backoff)
	}
	if !utf8.ValidString(f.Message) || utf8.RuneCountInString(f.Message) > 1000 {
		t.Errorf("the engine would not show the message whole: %q", f.Message)
	}
}
