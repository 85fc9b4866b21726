package decision

import (
	"slices"

	"retry-worker/internal/classify"
)

// The reasons for which the specification has no code.
const (
	ReasonMaxRetries Reason = "MAX_RETRIES"
	// ReasonTimeLimit is the policy's total limit reached (R20).
	ReasonTimeLimit Reason = "TIME_LIMIT"
	// ReasonDeadline is the claim's own deadline, which cannot be met any more (R29).
	ReasonDeadline   Reason = "DEADLINE"
	ReasonUnknown    Reason = "UNKNOWN"
	ReasonEmptyError Reason = "EMPTY_ERROR"
	// ReasonReported says that the process itself reported that it gave up (record-retry-outcome).
	ReasonReported Reason = "REPORTED_FAILURE"
	// ReasonNonRetryable says that the job itself called its error final (UC-004, FA-004.2).
	ReasonNonRetryable Reason = "NON_RETRYABLE"
	// ReasonProbablyAccepted is a duplicate of a claim whose first sending was not answered (R33).
	ReasonProbablyAccepted Reason = "PROBABLY_ACCEPTED"
)

// HintProbablyAccepted tells people what to do about ReasonProbablyAccepted.
const HintProbablyAccepted = "Procure o protocolo desta guia na operadora: ela provavelmente já foi aceita no envio que ficou sem resposta."

// ruleReasons are the reasons that a rule may give: the codes of RN-BIL-005 and RN-BIL-004, then those without a code
// there.
var ruleReasons = []Reason{
	"INVALID_PATIENT_DATA", "INSURANCE_EXPIRED", "AUTHORIZATION_DENIED", "DUPLICATE_CLAIM", "INVALID_PROCEDURE_CODE",
	"TIMEOUT", "CONNECTION_ERROR", "SERVICE_UNAVAILABLE", "NETWORK_ERROR", "TEMPORARY_ERROR", "RATE_LIMIT", "SERVER_ERROR",
	"503", "504",

	"POSSIBLY_ACCEPTED",   // the other side may have it already: ask, do not resend
	"DEFERRED",            // waits for a date or a person
	"INVALID_CREDENTIALS", // one cause for many
	"INVALID_CERTIFICATE",
	"ACCESS_DENIED",
	"INVALID_MESSAGE",   // outside the schema, wrong hash, wrong version
	"INVALID_RECIPIENT", // sent to, or by, whom the other side does not know
	"CLAIM_DENIED",      // a business denial that has no code of its own
	"DEADLINE_PASSED",
	"INVALID_REQUEST",
	"NOT_FOUND",
}

// RuleReasons lists the reasons that a rule may give.
func RuleReasons() []Reason { return slices.Clone(ruleReasons) }

// Reasons lists every reason.
func Reasons() []Reason {
	return append([]Reason{ReasonMaxRetries, ReasonTimeLimit, ReasonDeadline, ReasonUnknown, ReasonEmptyError,
		ReasonReported, ReasonNonRetryable, ReasonProbablyAccepted}, ruleReasons...)
}

// Types of package classify under the names that the business rules use.
type (
	// ErrorClassification is the value object of RN-BIL-005 §12.2.
	ErrorClassification = classify.Class
	// Reason is the cause of a decision, from a closed set.
	Reason = classify.Reason
	// Team is the team that must act on a dead letter (R21).
	Team = classify.Team
)

// The classifications (R4).
const (
	Transient = classify.Transient
	Permanent = classify.Permanent
	Unknown   = classify.Unknown
)

// Hint returns what people should do about d; it may be empty. rule is the hint of the rule that matched, if any.
func (d *Decision) Hint(rule string) string {
	if d.Reason == ReasonProbablyAccepted {
		return HintProbablyAccepted
	}
	return rule
}

// ProbablyAcceptedTeam acts on claims that the portal already has (R33).
const ProbablyAcceptedTeam Team = "faturamento"

// AlreadyThere reports whether an error of that class and reason says that the portal already has the claim.
func AlreadyThere(class ErrorClassification, reason Reason) bool {
	return class == Permanent && (reason == "DUPLICATE_CLAIM" || reason == "POSSIBLY_ACCEPTED")
}
