package decision

import (
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"retry-worker/internal/classify"
	"retry-worker/internal/text"
)

// Variables holds the variables that a failure is read from, as JSON. Those that the policy does not read are absent.
type Variables struct {
	ID, Error, RetryCount, LastSubmissionTime    Value
	HTTPStatus, MaxAttempts, Delay, NonRetryable Value
	// Destination is where a claim goes, RetryAfter how long the destination asked to wait, Deadline when the claim is
	// due.
	Destination, RetryAfter, Deadline Value
	// Context holds the policy's context fields, in order.
	Context []Value
}

// Variables returns the variables that p reads; get returns a variable of the process by name.
func (p *Policy) Variables(get func(name string) Value) Variables {
	read := func(name string) Value {
		if name == "" {
			return ""
		}
		return get(name)
	}
	v := Variables{
		ID: get(p.IDVariable), Error: get(p.ErrorVariable), RetryCount: get(RetryCountVariable),
		LastSubmissionTime: get(LastSubmissionVariable), HTTPStatus: read(p.HTTPStatusVariable),
	}
	if p.Own != nil {
		v.MaxAttempts, v.Delay, v.NonRetryable = read(p.Own.MaxAttempts), read(p.Own.Delay), read(p.Own.NonRetryable)
	}
	if p.Destination != nil {
		v.Destination, v.RetryAfter, v.Deadline = get(p.Destination.Variable), get(RetryAfterVariable), get(DeadlineVariable)
	}
	v.Context = p.ContextValues(get)
	return v
}

// ContextValues returns the variables of p's Context, in order; get returns a variable of the process by name.
func (p *Policy) ContextValues(get func(name string) Value) (values []Value) {
	for i := range p.Context {
		values = append(values, get(p.Context[i].Variable))
	}
	return values
}

// Failure is one failed attempt: read, checked and classified. The error text alone is not checked, since R1 ignores it
// at the limit.
type Failure struct {
	// ID of the subject; it matches the policy's pattern.
	ID string
	// Error is the text; empty if it has nothing but white space and characters of no width (R11).
	Error string
	// OriginalError is the unread error; the process gets it back unchanged.
	OriginalError Value
	// RetryCount is the number of retries already made, at least 0; meaningful if HasRetryCount (R9).
	RetryCount    int64
	HasRetryCount bool
	// LastSubmission is zero where the process gave none (R23).
	LastSubmission time.Time
	// Own retry policy that the job brought (R15).
	Own OwnPolicy
	// Destination is where the claim goes, empty if the policy has no destinations. RetryAfter is the variable of that
	// name. Deadline is the claim's own (R29), zero if it has none.
	Destination, RetryAfter string
	Deadline                time.Time
	// Context is shown to people with the failure.
	Context Context
	// Expected is when the Destination, which is down, is expected back; zero if it is not down or that is unknown.
	Expected time.Time
	// Said is what else the error tells.
	Said classify.Said
	// Match is what the policy's rules say of the error, whatever the count.
	Match classify.Match
	// SuccessProbability is the chance that a retry succeeds, between 0 and 1, learnt from claims with the same cause;
	// 0 if too little is known (R26).
	SuccessProbability float64
	// Taught is the number of the record in which a person taught the Match; 0 if nobody did (R26).
	Taught int64
	// status is the HTTP status beside the error; 0 if there is none.
	status int
	inputs Variables
}

// Teachable reports whether a person's teaching may change the class. Evidence of rank 1 to 3 is stronger (R25).
func (f *Failure) Teachable() bool { return f.Match.Rank >= classify.Signature }

// Teach sets the class and team that a person taught for the cause, in the record of that number (R26). The matched
// rule and its reason stay.
func (f *Failure) Teach(class ErrorClassification, team Team, record int64) {
	f.Match.Class, f.Match.Rank, f.Match.Team, f.Taught = class, classify.Signature, team, record
}

// Inputs returns the variables as they came: first the four that every policy reads, in the contract's order, then the
// optional ones that are given, each after its name.
func (f *Failure) Inputs() []Value { return f.InputsWith(f.inputs.RetryCount) }

// InputsWith returns the Inputs with another retryCount.
func (f *Failure) InputsWith(retryCount Value) []Value {
	v := &f.inputs
	inputs := append(make([]Value, 0, 12), v.ID, retryCount, v.LastSubmissionTime, v.Error)
	for _, other := range [...]struct{ what, value Value }{{"httpStatus", v.HTTPStatus}, {"maxAttempts", v.MaxAttempts},
		{"delay", v.Delay}, {"nonRetryable", v.NonRetryable}} {
		if other.value.given() {
			inputs = append(inputs, other.what, other.value)
		}
	}
	return inputs
}

// The variables that have the same name in every policy.
const (
	RetryCountVariable     = "retryCount"
	LastSubmissionVariable = "lastSubmissionTime"
	RetryAfterVariable     = "retryAfter"
	DeadlineVariable       = "submissionDeadline"
)

const maxIDBytes = 512

// Read checks the variables in the contract's order (id, count, time, then the optional ones) and classifies the error.
// An absent error is left to Decide. Read returns the failure, or the first problem (R1.1, R9, R15, R23). It is safe
// for concurrent use.
func (p *Policy) Read(v Variables) (Failure, *Rejection) {
	f := Failure{OriginalError: v.Error, inputs: v}
	var ok bool
	if f.ID, ok = v.ID.text(); !ok || !isKey(f.ID) || p.IDPattern.FindString(f.ID) != f.ID {
		return f, &Rejection{p.InvalidID, p.IDVariable, v.ID.describe(),
			"text that matches " + p.IDPattern.String() + ", printable, at most " + strconv.Itoa(maxIDBytes) + " bytes"}
	}
	var refused *Rejection
	f.HasRetryCount = v.RetryCount.given()
	f.RetryCount = optional(&refused, v.RetryCount, Value.whole, InvalidRetryCount, RetryCountVariable,
		"a whole number from 0 to 9223372036854775807, or none")
	f.LastSubmission = optional(&refused, v.LastSubmissionTime, Value.instant, InvalidLastSubmissionTime,
		LastSubmissionVariable, "an instant such as 2025-01-12T10:40:00Z (without a zone: UTC), or none")
	f.Deadline = optional(&refused, v.Deadline, Value.instant, InvalidVariables, DeadlineVariable,
		"an instant such as 2026-03-05T18:00:00-03:00 (without a zone: UTC), or none")
	f.status = optional(&refused, v.HTTPStatus, Value.status, InvalidHTTPStatus, p.HTTPStatusVariable,
		"a whole number from 100 to 599, or none")
	if refused == nil {
		f.Own, refused = p.ReadOwn(&v)
	}
	if refused != nil {
		return f, refused
	}
	f.Destination, f.RetryAfter, f.Context = p.destination(v.Destination), v.RetryAfter.name(), p.context(v.Context)
	if message, ok := v.Error.text(); ok && strings.TrimFunc(message, isBlank) != "" {
		f.Error = message
	}
	f.Match, f.Said = p.Rules.Read(f.Error, f.status)
	if f.Own.NonRetryable && (f.Match.Class != Permanent || f.Match.Presumed()) {
		f.Match = classify.Match{Class: Permanent, Rank: classify.SpecifiedPermanent, Name: NonRetryableRule,
			Reason: ReasonNonRetryable, Team: p.LimitTeam}
	}
	return f, nil
}

// optional reads a variable that may be absent. refused gets the first variable that cannot be read.
func optional[T any](refused **Rejection, v Value, read func(Value) (T, bool), code RejectionCode,
	variable, expected string) (got T) {
	if !v.given() || *refused != nil {
		return got
	}
	got, ok := read(v)
	if !ok {
		*refused = &Rejection{code, variable, v.describe(), expected}
	}
	return got
}

const maxDestinationBytes = 64

// destination returns the name that v holds, or the policy's default if v holds no valid one.
func (p *Policy) destination(v Value) string {
	if p.Destination == nil {
		return ""
	}
	if name := v.name(); name != "" && len(name) <= maxDestinationBytes && isKey(name) {
		return name
	}
	return p.Destination.Default
}

// isBlank reports whether r is white space or of no width, such as U+200B and U+FEFF.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }

// status returns the HTTP status that v holds. Clients that got no answer say 0.
func (v Value) status() (int, bool) {
	n, ok := v.whole()
	return int(n), ok && (n == 0 || n >= 100 && n <= 599)
}

// Evidence returns all that the rules found in a failure, the deciding evidence first.
func (p *Policy) Evidence(f *Failure) []classify.Found {
	return p.Rules.Explain(f.Error, f.status)
}

// isKey reports whether an id can be a database key and stand in a log line.
func isKey(id string) bool {
	return id != "" && len(id) <= maxIDBytes && !strings.ContainsFunc(id, text.Hidden)
}

// SaysNothing reports whether text is what scripts print for no error.
func SaysNothing(text string) bool {
	says := strings.ToLower(strings.TrimSpace(text))
	return says == "null" || says == "undefined" || says == "[object object]"
}

// Result is how retried work ended (variable retryOutcome). The set is closed.
type Result string

// The results.
const (
	Success Result = "success"
	Failed  Result = "failure"
	// Accepted means that nothing was sent again, because the other side already had it (R33).
	Accepted Result = "accepted"
)

// ReadResult reads the variable retryOutcome; an absent one means Success.
func ReadResult(v Value) (Result, *Rejection) {
	text, ok := v.text()
	switch r := Result(text); {
	case !v.given():
		return Success, nil
	case ok && (r == Success || r == Failed || r == Accepted):
		return r, nil
	}
	return "", &Rejection{InvalidOutcome, "retryOutcome", v.describe(), "success, failure, accepted, or none"}
}

// protocolForm matches the number that the other side gives to what it accepts.
var protocolForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z./-]{0,39}$`)

// IsProtocol reports whether s can be a protocol number: 1 to 40 ASCII letters, digits, dots, slashes and hyphens,
// beginning with a letter or digit.
func IsProtocol(s string) bool { return protocolForm.MatchString(s) }

// RejectionCode names what is wrong with the input. The set is closed.
type RejectionCode string

// The rejections of the contract in the order of the checks, then the worker's own for jobs without a readable failure.
const (
	UnknownPolicy             RejectionCode = "UNKNOWN_POLICY"
	InvalidClaimID            RejectionCode = "INVALID_CLAIM_ID"
	InvalidID                 RejectionCode = "INVALID_ID"
	InvalidRetryCount         RejectionCode = "INVALID_RETRY_COUNT"
	InvalidLastSubmissionTime RejectionCode = "INVALID_LAST_SUBMISSION_TIME"
	InvalidHTTPStatus         RejectionCode = "INVALID_HTTP_STATUS"
	InvalidRetryPolicy        RejectionCode = "INVALID_RETRY_POLICY" // a job's own (R15)
	InvalidErrorMessage       RejectionCode = "INVALID_ERROR_MESSAGE"
	InvalidOutcome            RejectionCode = "INVALID_RETRY_OUTCOME"
	InvalidVariables          RejectionCode = "INVALID_VARIABLES"
)

// Rejection says which input was refused, what was found and what was expected (R11). Found may hold personal data:
// redact it before writing it anywhere.
type Rejection struct {
	Code                      RejectionCode
	Variable, Found, Expected string
}

// Error returns one line that begins with the code.
func (r *Rejection) Error() string {
	return string(r.Code) + ": " + r.Variable + " is " + r.Found + ", expected " + r.Expected
}
