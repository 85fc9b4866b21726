package decision_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/destination"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// TestDecisions holds testdata/decisions.txt: each line of it is a failure, and behind an arrow what is decided of it by
// the policy above. `go test -update` writes what stands behind the arrows.
func TestDecisions(t *testing.T) {
	const file = "testdata/decisions.txt"
	d := &decider{t: t}
	var got strings.Builder
	for line := range strings.Lines(testkit.Read(t, file)) {
		line = strings.TrimSpace(line)
		asked, _, _ := strings.Cut(line, " ->")
		a, err := golden.Parse(asked)
		testkit.Must(t, err)
		switch {
		case line == "", strings.HasPrefix(line, "#"):
			got.WriteString(line + "\n")
		case a.Words["policy"]:
			d.policy = d.policyOf(a)
			got.WriteString(line + "\n")
		default:
			got.WriteString(asked + " -> " + d.decide(a) + "\n")
		}
	}
	golden.Check(t, file, got.String())
}

// decider decides by a policy.
type decider struct {
	t       *testing.T
	policy  *decision.Policy
	failure decision.Failure
	last    decision.Decision
}

func (d *decider) policyOf(a *golden.Arguments) *decision.Policy {
	p := decisiontest.TISSSubmission()
	switch {
	case a.Words["job-queue"]:
		p = jobQueue()
	case a.Words["office"]:
		p = office(d.t)
	case a.Words["whatsapp-message"]:
		p = other()
	}
	p.Stretch, p.PresumedRetries = a.Words["stretches"], a.Number("presumed")
	p.EmptyError = decision.EmptyError(cmp.Or(a.Named["empty"], string(p.EmptyError)))
	p.UnknownError = decision.UnknownError(a.Named["unknown"])
	if text := a.Named["limit"]; text != "" {
		p.TotalLimit = d.duration(text)
	}
	if text := a.Named["waits"]; text != "" { // so that a limit can be met to the second
		wait := d.duration(text)
		p.Backoff = decision.BackoffRule{Base: wait, Min: wait, Max: wait, Factor: 1, Rounding: time.Millisecond}
	}
	if a.Named["retries"] != "" {
		p.MaxRetries = a.Number("retries")
	}
	if a.Words["presumes"] {
		p.Rules = decisiontest.Rules(classify.Rule{Name: "patient", Class: decision.Permanent, Rank: classify.Refusal,
			Reason: "INVALID_PATIENT_DATA", Team: "cadastro", Phrases: []string{"cpf invalido"}})
	}
	if a.Words["statuses"] {
		p.Rules = decisiontest.Rules(serverError, classify.Rule{Name: "404", Class: decision.Permanent,
			Reason: "NOT_FOUND", Team: "ti", Statuses: []string{"404"}})
	}
	return p
}

func (d *decider) duration(text string) time.Duration {
	length, err := time.ParseDuration(text)
	testkit.Must(d.t, err)
	return length
}

// instant returns one that a line names, or the default.
func (d *decider) instant(a *golden.Arguments, name string, otherwise time.Time) time.Time {
	text := a.Named[name]
	if text == "" {
		return otherwise
	}
	at, err := time.Parse(time.RFC3339, text)
	testkit.Must(d.t, err)
	return at
}

// decide decides on a failure, or has the last decision be given again, later.
func (d *decider) decide(a *golden.Arguments) string {
	now, f := d.instant(a, "now", analysed), &d.failure
	if rule := a.Named["event"]; rule != "" {
		e := d.last.Event(decision.BusinessRule(rule), "redacted")
		if e == nil {
			return "none"
		}
		fields, err := json.Marshal(e.Fields)
		testkit.Must(d.t, err)
		return e.Type + " " + e.LogName + " " + string(fields)
	}
	if !a.Words["again"] {
		text := "TIMEOUT"
		if given, is := a.Named["error"]; is {
			text = given
		}
		value := func(name string) decision.Value { return decision.Value(a.Named[name]) }
		v := decision.Variables{ID: cmp.Or(value("id"), `"CLM-1-1"`), Error: decision.Text(text), RetryCount: value("count"),
			HTTPStatus: value("status"), MaxAttempts: value("attempts"), Delay: value("delay"),
			NonRetryable: value("final"), LastSubmissionTime: value("submitted"),
			Destination: decision.Text(cmp.Or(a.Named["portal"], "unimed-sp")), RetryAfter: decision.Text(a.Named["retryAfter"])}
		if deadline := a.Named["deadline"]; deadline != "" {
			v.Deadline = decision.Text(deadline)
		}
		if given, is := a.Named["json"]; is { // an error as it comes
			v.Error = decision.Value(given)
		}
		read, rejection := d.policy.Read(v)
		if rejection != nil {
			d.last = decision.Decision{Outcome: decision.Rejected, Policy: d.policy.Name, Rejection: rejection}
			return d.tell()
		}
		*f = read
	}
	f.Expected = d.instant(a, "expected", time.Time{})
	if a.Words["again"] {
		f.Deadline = d.instant(a, "deadline", time.Time{})
		d.last = d.last.Rebase(d.policy, f, now)
		return d.tell()
	}
	past := decision.Past{Retries: a.Number("retries"), FirstFailure: d.instant(a, "first", time.Time{}), PossiblyAccepted: a.Words["perhaps-taken"]}
	if age := a.Named["age"]; age != "" {
		past.FirstFailure = now.Add(-d.duration(age))
	}
	if presumed := a.Named["presumed"]; presumed != "" {
		past.Presumed, past.Remembers = a.Number("presumed"), true
	}
	d.last = decision.Decide(f, d.policy, past, now)
	return d.tell()
}

// tell says what was decided, and by which policy where it is not that of claims.
func (d *decider) tell() string {
	l, by := &d.last, d.last.Policy+": "
	if l.Policy == decision.DefaultPolicy {
		by = ""
	}
	if l.Rejection != nil {
		if l.SubjectID == "" {
			return by + l.Rejection.Error()
		}
		return by + l.Rejection.Error() + ", of " + l.SubjectID + " at " + decision.Instant(l.AnalysedAt)
	}
	said := by + fmt.Sprintf("%s %s %s", l.Outcome, l.ErrorClassification, l.Reason)
	if l.MatchedRule != "" {
		said += " by " + l.MatchedRule + " at " + strconv.Quote(l.MatchedText)
	}
	said += fmt.Sprintf(", %d/%d", l.RetryCount, l.MaxRetries)
	if l.ShouldRetry() || l.Backoff != (decision.Backoff{}) || !l.NextRetryTime.IsZero() {
		at := l.NextRetryTime.Format(time.RFC3339Nano)
		said += fmt.Sprintf(", waits %s, drawn %s, at %s", l.Wait(), l.Backoff.Delay, at)
	}
	if l.Backoff.AtMaximum {
		said += ", at the maximum"
	}
	if l.Presumes() {
		said += ", presumes"
	}
	if l.PossiblyAccepted {
		said += ", perhaps taken"
	}
	if l.Team != "" {
		said += ", for " + string(l.Team)
	}
	return said + ": " + l.RetryReason
}

var serverError = classify.Rule{Name: "5xx", Class: decision.Transient, Reason: "503", Statuses: []string{"5xx"}}

// jobQueue is UC-004's policy (R15): no retries but those a job brings itself.
func jobQueue() *decision.Policy {
	return &decision.Policy{
		Name: "job-queue", IDVariable: "jobId", ErrorVariable: "jobError", HTTPStatusVariable: "httpStatus",
		Own:       &decision.OwnVariables{MaxAttempts: "maxAttempts", Delay: "delayBetweenAttempts", NonRetryable: "nonRetryable"},
		IDPattern: regexp.MustCompile(`^.+$`), InvalidID: decision.InvalidID,
		Backoff:    decision.BackoffRule{Base: time.Second, Min: time.Second, Max: 30 * time.Second, Factor: 5, Rounding: time.Millisecond},
		Rules:      decisiontest.Rules(decisiontest.Permanent("BAD_INPUT", "ti"), decisiontest.Transient("TIMEOUT"), serverError),
		EmptyError: decision.AssumeTransient, LimitTeam: "ti",
	}
}

// office returns tiss-submission for a destination that is open on working days from 08:00 to 18:00 in São Paulo.
func office(t testing.TB) *decision.Policy {
	t.Helper()
	zone, err := time.LoadLocation("America/Sao_Paulo")
	testkit.Must(t, err)
	c, err := calendar.New(zone, []calendar.Window{{Weekdays: "mon-fri", Hours: "08:00-18:00"}}, calendar.Holidays("BR-SP"))
	testkit.Must(t, err)
	p := *decisiontest.TISSSubmission()
	p.Destination = &decision.DestinationVariable{Variable: "operadora", Default: "tiss"}
	p.Destinations.Named = map[string]destination.Settings{"unimed-sp": {Calendar: c, Pace: destination.Defaults().Pace}}
	return &p
}
