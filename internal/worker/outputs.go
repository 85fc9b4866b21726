package worker

import (
	"encoding/json"
	"strconv"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
	"retry-worker/internal/text"
)

// object is a JSON object in the making, built once and not escaped twice.
type object []byte

func (o object) raw(name, value string) object {
	separator := byte(',')
	if len(o) == 0 {
		separator = '{'
	}
	o = append(o, separator, '"')
	o = append(o, name...)
	o = append(o, '"', ':')
	return append(o, value...)
}

func (o object) text(name, value string) object {
	return o.raw(name, string(decision.Text(value)))
}

// optional adds what text does, or null where there is none.
func (o object) optional(name, value string) object {
	if value == "" {
		return o.raw(name, "null")
	}
	return o.text(name, value)
}

func (o object) number(name string, n int64) object {
	return o.raw(name, strconv.FormatInt(n, 10))
}

func (o object) boolean(name string, b bool) object {
	return o.raw(name, strconv.FormatBool(b))
}

func (o object) end() []byte { return append(o, '}') }

// outputs returns the contract's outputs of d but for deadLetterId, which needs the job.
func outputs(d *decision.Decision, f *decision.Failure) object {
	return appendOutputs(make(object, 0, 512), d, f)
}

func appendOutputs(o object, d *decision.Decision, f *decision.Failure) object {
	original := string(f.OriginalError)
	if original == "" {
		original = "null"
	}
	o = o.boolean("shouldRetry", d.ShouldRetry()).
		number("retryCount", d.RetryCount).
		number("maxRetries", d.MaxRetries).
		text("retryReason", d.RetryReason).
		text("errorClassification", string(d.ErrorClassification)).
		raw("originalError", original).
		text("retryPolicy", d.Policy).
		boolean("possiblyAccepted", d.PossiblyAccepted)
	if !d.ShouldRetry() {
		return o.text("responsibleTeam", string(d.Team))
	}
	if d.SuccessProbability > 0 {
		o = o.raw("successProbability", strconv.FormatFloat(d.SuccessProbability, 'g', -1, 64))
	}
	return o.number("backoffMinutes", decision.Minutes(d.Wait())).
		text("backoffDuration", text.ISODuration(d.Wait())).
		text("nextRetryTime", decision.Instant(d.NextRetryTime))
}

// DryRun decides without engine and memory and returns the flat object that `decide` prints. Of v, what the policy does
// not read is left out, as a job would leave it. foresee may change the failure, and gets its error redacted; nil
// changes nothing.
func DryRun(
	policies decision.Policies, policy string, v decision.Variables, now time.Time,
	foresee func(p *decision.Policy, f *decision.Failure, redacted string),
) (decision.Decision, json.RawMessage) {
	p, f, rejection := readDry(policies, policy, v)
	d, line := decision.RejectedBy(policy, rejection), redact.Line(f.Error, maxErrorBytes)
	if rejection == nil {
		if foresee != nil {
			foresee(p, &f, line)
		}
		d = decision.Decide(&f, p, decision.Past{}, now)
	}
	o := object{}.text("outcome", string(d.Outcome))
	if d.Rejection != nil {
		o = o.text("retryPolicy", d.Policy).raw("matchedRule", "null").
			text("rejection", string(d.Rejection.Code)).text("message", journal.RejectionMessage(d.Rejection))
		return d, json.RawMessage(o.end())
	}
	d.MatchedText = shownText(&f, f.Match.Text, line)
	o = appendOutputs(o, &d, &f).
		optional("matchedRule", d.MatchedRule).
		text("reason", string(d.Reason)).
		optional("matchedText", d.MatchedText).
		optional("hint", d.Hint(f.Match.Hint)).
		text("catalogue", d.Catalogue)
	return d, json.RawMessage(o.end())
}

// readDry reads the failure of a dry run, without what its policy does not read.
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

// maxVariableBytes of one job; what is above it is no error text.
const maxVariableBytes = 1 << 20

// PolicyHeader is the task header that names the policy.
const PolicyHeader = "retryPolicy"

// taskHeaders names them all in a rejection.
const taskHeaders = "the task's headers"

// values are a job's variables, each as the text it came as.
type values map[string]json.RawMessage

// get returns the value of name; empty where there is none.
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
		return nil, &decision.Rejection{Code: decision.InvalidVariables, Variable: "the job's variables",
			Found: "no JSON object", Expected: "one"}
	}
	return vs, nil
}

// policyHeader returns the policy that the task names; empty where it names none.
func policyHeader(j *Job) (string, *decision.Rejection) {
	if j.Headers == "" || j.Headers == "{}" {
		return "", nil
	}
	var headers map[string]string
	if err := json.Unmarshal([]byte(j.Headers), &headers); err != nil {
		return "", &decision.Rejection{Code: decision.InvalidVariables, Variable: taskHeaders,
			Found: "no JSON object of texts", Expected: "one"}
	}
	return headers[PolicyHeader], nil
}
