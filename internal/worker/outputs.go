package worker

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/redact"
	"retry-worker/internal/text"
)

// Outputs holds the contract's outputs of a decision.
type Outputs struct {
	ShouldRetry         bool                         `json:"shouldRetry"`
	RetryCount          int64                        `json:"retryCount"`
	MaxRetries          int64                        `json:"maxRetries"`
	RetryReason         string                       `json:"retryReason"`
	ErrorClassification decision.ErrorClassification `json:"errorClassification"`
	OriginalError       json.RawMessage              `json:"originalError" type:"string,null" doc:"The error as it was sent."`
	RetryPolicy         string                       `json:"retryPolicy"`
	PossiblyAccepted    bool                         `json:"possiblyAccepted"`
	SuccessProbability  float64                      `json:"successProbability,omitempty" above:"0" below:"1"`
	BackoffMinutes      int64                        `json:"backoffMinutes,omitempty" doc:"Only where a retry follows."`
	BackoffDuration     string                       `json:"backoffDuration,omitempty" pattern:"^PT"`
	NextRetryTime       string                       `json:"nextRetryTime,omitempty" format:"date-time"`
	ResponsibleTeam     decision.Team                `json:"responsibleTeam,omitempty" doc:"Only where no retry follows."`
}

// outputsOf returns the outputs of a decision on a failure.
func outputsOf(d *decision.Decision, f *decision.Failure) Outputs {
	o := Outputs{
		ShouldRetry: d.ShouldRetry(), RetryCount: d.RetryCount, MaxRetries: d.MaxRetries, RetryReason: d.RetryReason,
		ErrorClassification: d.ErrorClassification, OriginalError: json.RawMessage(cmp.Or(f.OriginalError, "null")),
		RetryPolicy: d.Policy, PossiblyAccepted: d.PossiblyAccepted,
	}
	if !d.ShouldRetry() {
		o.ResponsibleTeam = d.Team
		return o
	}
	o.SuccessProbability, o.BackoffMinutes = d.SuccessProbability, decision.Minutes(d.Wait())
	o.BackoffDuration, o.NextRetryTime = text.ISODuration(d.Wait()), decision.Instant(d.NextRetryTime)
	return o
}

// thrown returns the BPMN error that tells the process of a decision.
func thrown(d *decision.Decision, f *decision.Failure, deadLetter string) BPMNError {
	variables := text.JSON(struct {
		Outputs
		DeadLetterID string `json:"deadLetterId"`
	}{outputsOf(d, f), deadLetter})
	return BPMNError{Code: string(d.Outcome), Message: d.RetryReason, Variables: string(variables)}
}

// Trial is the result of a dry run. A rejected one has only a Decision.
type Trial struct {
	decision.Decision
	Outputs Outputs
	Hint    string
	// Evidence lists the evidence, the deciding one first.
	Evidence []Evidence
}

// DryRun decides without engine and journal. It ignores those of v that the policy does not read. foresee, unless nil,
// may change the failure; it gets the redacted error.
func DryRun(
	policies decision.Policies, policy string, v decision.Variables, now time.Time,
	foresee func(p *decision.Policy, f *decision.Failure, redacted string),
) (t Trial) {
	p, f, rejection := readDry(policies, policy, v)
	if rejection != nil {
		return Trial{Decision: decision.RejectedBy(policy, rejection)}
	}
	line := redact.Line(f.Error, maxErrorBytes)
	if foresee != nil {
		foresee(p, &f, line)
	}
	t.Decision = decision.Decide(&f, p, decision.Past{}, now)
	if t.Rejection != nil {
		return t
	}
	t.MatchedText = shownText(&f, f.Match.Text, line)
	t.Outputs, t.Hint = outputsOf(&t.Decision, &f), t.Decision.Hint(f.Match.Hint)
	for _, e := range p.Evidence(&f) {
		t.Evidence = append(t.Evidence, Evidence{int(e.Rank), e.Name, shownText(&f, e.Text, line), e.Lost})
	}
	return t
}

// readDry reads the failure of a dry run without the values that its policy does not read.
func readDry(
	policies decision.Policies, policy string, v decision.Variables,
) (p *decision.Policy, f decision.Failure, r *decision.Rejection) {
	if p, r = policies.Find(policy); r != nil {
		return nil, f, r
	}
	var own decision.OwnVariables
	if p.Own != nil {
		own = *p.Own
	}
	for _, value := range []struct {
		variable string
		value    *decision.Value
	}{{p.HTTPStatusVariable, &v.HTTPStatus}, {own.MaxAttempts, &v.MaxAttempts}, {own.Delay, &v.Delay},
		{own.NonRetryable, &v.NonRetryable}} {
		if value.variable == "" {
			*value.value = ""
		}
	}
	f, r = p.Read(v)
	return p, f, r
}

// maxVariableBytes bounds a job's variables; more cannot be an error text.
const maxVariableBytes = 1 << 20

// PolicyHeader is the task header that names the policy.
const PolicyHeader = "retryPolicy"

// taskHeaders names all headers together in a rejection.
const taskHeaders = "the JSON of the task's headers"

// values holds a job's variables as raw JSON.
type values map[string]json.RawMessage

// get returns the value of name; empty if it is absent.
func (vs values) get(name string) decision.Value { return decision.Value(vs[name]) }

// readVariables reads the job's variables.
func (u *useCase) readVariables(j *Job) (values, *decision.Rejection) {
	if len(j.Variables) > maxVariableBytes {
		u.hooks.Oversized(j.Type)
		return nil, &decision.Rejection{Code: decision.InvalidVariables, Variable: "the size of the job's variables",
			Found: strconv.Itoa(len(j.Variables)) + " bytes", Expected: "at most " + strconv.Itoa(maxVariableBytes) + " bytes"}
	}
	var vs values
	if err := json.Unmarshal([]byte(j.Variables), &vs); err != nil || vs == nil {
		return nil, &decision.Rejection{Code: decision.InvalidVariables, Variable: "the JSON of the job's variables",
			Found: "no object", Expected: "one"}
	}
	return vs, nil
}

// header returns a header of the job's task; empty if it is absent.
func header(j *Job, name string) (string, *decision.Rejection) {
	if j.Headers == "" || j.Headers == "{}" {
		return "", nil
	}
	var headers map[string]string
	if err := json.Unmarshal([]byte(j.Headers), &headers); err != nil {
		return "", &decision.Rejection{Code: decision.InvalidVariables, Variable: taskHeaders,
			Found: "no object of texts", Expected: "one"}
	}
	return headers[name], nil
}
