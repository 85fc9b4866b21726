package worker

import (
	"encoding/json"
	"strconv"

	"retry-worker/internal/decision"
)

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

// policyHeader is the policy the task names; empty where it names none.
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
