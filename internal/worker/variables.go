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

// readVariables splits the job's variables.
func readVariables(j *Job, hooks Hooks) (values, *decision.Rejection) {
	if len(j.Variables) > maxVariableBytes {
		hooks.Oversized(j.Type)
		return nil, &decision.Rejection{Code: decision.InvalidVariables, Variable: "the size of the job's variables",
			Found: strconv.Itoa(len(j.Variables)) + " bytes", Expected: "at most " + strconv.Itoa(maxVariableBytes) + " bytes"}
	}
	vs, ok := splitObject(j.Variables)
	if !ok {
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
