package decision

import (
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Variables are the ones a failure is read from, each as the JSON it came as.
type Variables struct {
	ID, Error, RetryCount, LastSubmissionTime Value
}

// Failure is one failed attempt, read and found sound but for its error text, which R1 lets pass at
// the limit.
type Failure struct {
	// ID of the subject: matches the policy's pattern.
	ID string
	// Error text; empty where there is none or nothing but white space (R11).
	Error string
	// OriginalError is the error as it came; the process gets it back so.
	OriginalError Value
	// RetryCount is the number of retries already made, at least 0; meaningful if HasRetryCount (R9).
	RetryCount    int64
	HasRetryCount bool
	// LastSubmission is zero where the process gave none (R23).
	LastSubmission time.Time
	inputs         Variables
}

// Inputs are the four variables as they came, in the contract's order.
func (f *Failure) Inputs() [4]Value {
	v := f.inputs
	return [4]Value{v.ID, v.RetryCount, v.LastSubmissionTime, v.Error}
}

// The variables that every policy reads by the same name.
const (
	RetryCountVariable     = "retryCount"
	LastSubmissionVariable = "lastSubmissionTime"
)

// maxIDBytes of an id.
const maxIDBytes = 512

// Read checks the variables in the contract's order (id, count, time) and keeps the error for Decide.
// It returns the failure, or the first thing that is wrong (R1.1, R9, R23). Safe for concurrent use.
func (p *Policy) Read(v Variables) (Failure, *Rejection) {
	f := Failure{OriginalError: v.Error, inputs: v}
	var ok bool
	if f.ID, ok = v.ID.text(); !ok || !isKey(f.ID) || !p.IDPattern.MatchString(f.ID) {
		return f, &Rejection{p.InvalidID, p.IDVariable, v.ID.describe(),
			"text that matches " + p.IDPattern.String() + ", printable, at most " + strconv.Itoa(maxIDBytes) + " bytes"}
	}
	if !v.RetryCount.absent() {
		f.HasRetryCount = true
		if f.RetryCount, ok = v.RetryCount.whole(); !ok {
			return f, &Rejection{InvalidRetryCount, RetryCountVariable, v.RetryCount.describe(),
				"a whole number from 0 to 9223372036854775807, or none"}
		}
	}
	if !v.LastSubmissionTime.absent() {
		if f.LastSubmission, ok = v.LastSubmissionTime.instant(); !ok {
			return f, &Rejection{InvalidLastSubmissionTime, LastSubmissionVariable, v.LastSubmissionTime.describe(),
				"an instant such as 2025-01-12T10:40:00Z (without a zone: UTC), or none"}
		}
	}
	if text, ok := v.Error.text(); ok && strings.TrimSpace(text) != "" {
		f.Error = text
	}
	return f, nil
}

// isKey tells whether an id can be a database key and stand in a log line.
func isKey(id string) bool {
	return len(id) <= maxIDBytes && strings.IndexFunc(id, unicode.IsControl) < 0
}

func (f *Failure) errorRejection(p *Policy) *Rejection {
	return &Rejection{InvalidErrorMessage, p.ErrorVariable, f.OriginalError.describe(),
		"text that says what failed"}
}

// ReadOutcome reads the variable retryOutcome: success, failure, or none, which means success.
func ReadOutcome(v Value) (success bool, r *Rejection) {
	text, ok := v.text()
	if v.absent() || ok && (text == "success" || text == "failure") {
		return text != "failure", nil
	}
	return false, &Rejection{InvalidOutcome, "retryOutcome", v.describe(), "success, failure, or none"}
}

// RejectionCode names what is wrong with the input. The set is closed.
type RejectionCode string

// The rejections of the contract, in the order they are looked for; then the worker's own, for jobs
// that hold no readable failure at all.
const (
	UnknownPolicy             RejectionCode = "UNKNOWN_POLICY"
	InvalidClaimID            RejectionCode = "INVALID_CLAIM_ID"
	InvalidID                 RejectionCode = "INVALID_ID"
	InvalidRetryCount         RejectionCode = "INVALID_RETRY_COUNT"
	InvalidLastSubmissionTime RejectionCode = "INVALID_LAST_SUBMISSION_TIME"
	InvalidErrorMessage       RejectionCode = "INVALID_ERROR_MESSAGE"
	InvalidOutcome            RejectionCode = "INVALID_RETRY_OUTCOME"
	InvalidVariables          RejectionCode = "INVALID_VARIABLES"
)

// RejectionCodes lists every code, for metrics that start at 0.
func RejectionCodes() []RejectionCode {
	return []RejectionCode{UnknownPolicy, InvalidClaimID, InvalidID, InvalidRetryCount,
		InvalidLastSubmissionTime, InvalidErrorMessage, InvalidOutcome, InvalidVariables}
}

// Rejection says which input was refused, what was found and what was expected (R11). Found may hold
// personal data: redact it before it reaches a sink.
type Rejection struct {
	Code                      RejectionCode
	Variable, Found, Expected string
}

// Error is one line that begins with the code.
func (r *Rejection) Error() string {
	return string(r.Code) + ": " + r.Variable + " is " + r.Found + ", expected " + r.Expected
}
