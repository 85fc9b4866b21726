package decision

import (
	"regexp"
	"time"
)

// Policy says how the failures of one kind of work are retried. It is a value: build it once, share
// it, never change it afterwards. RN-BIL-005 and RN-BIL-004 share the one that TISSSubmission returns.
type Policy struct {
	// Name by which tasks ask for it (header retryPolicy).
	Name string
	// IDVariable and ErrorVariable are the names under which the process holds the subject's id and
	// the error text.
	IDVariable, ErrorVariable string
	// IDPattern the whole id must match; its text stands in the rejection.
	IDPattern *regexp.Regexp
	// InvalidID is the code an id that does not match is rejected with.
	InvalidID RejectionCode
	// MaxRetries after the first submission, at least 0 (R12, BIL-005-V1).
	MaxRetries int64
	// Backoff between two tries.
	Backoff BackoffRule
	// TotalLimit from the first failure on (R20). An episode of which nothing was heard for that long after
	// its retry was due is abandoned. 0 is no limit.
	TotalLimit time.Duration
	// Salt makes this policy's jitter differ from that of one with the same name elsewhere (R6).
	Salt string
	// Permanent and Transient rules in the order they are tried; permanent ones first (R2).
	Permanent, Transient []Rule
	// EmptyError says what an error without text does (R11).
	EmptyError EmptyError
	// LimitTeam acts when the retries are used up (R21).
	LimitTeam Team
}

// EmptyError is the policy setting emptyError (R11).
type EmptyError string

// The two ways to treat an error without text.
const (
	RejectEmptyError EmptyError = "reject"
	AssumeTransient  EmptyError = "assume-transient"
)

// Rule classifies the errors that hold its code (R3).
type Rule struct {
	// Code is upper-case letters, digits and single underscores; one of digits only matches whole
	// numbers of the message as it came, any other its normalised text.
	Code   string
	Reason Reason
	Team   Team
}

// Team is who must act on a dead letter (R21). The set is closed.
type Team string

// The teams of RN-BIL-005 §9 and R21.
const (
	TeamRegistration Team = "cadastro"
	TeamBilling      Team = "faturamento"
	TeamIT           Team = "ti"
)

// Reason is the cause of a decision. The set is closed, so it may label a metric.
type Reason string

// The reasons that are no code of a rule.
const (
	ReasonMaxRetries Reason = "MAX_RETRIES"
	ReasonUnknown    Reason = "UNKNOWN"
	ReasonEmptyError Reason = "EMPTY_ERROR"
	// ReasonReported is a process's own word that it gave up (record-retry-outcome).
	ReasonReported Reason = "REPORTED_FAILURE"
)

// TISSSubmission is the policy of RN-BIL-005 and RN-BIL-004; its codes are the union of both (R3),
// its backoff that of R5.
func TISSSubmission() *Policy {
	return &Policy{
		Name:          DefaultPolicy,
		IDVariable:    "claimId",
		ErrorVariable: "submissionError",
		IDPattern:     regexp.MustCompile(`^CLM-.*-\d+$`),
		InvalidID:     InvalidClaimID,
		MaxRetries:    5,
		Backoff: BackoffRule{
			Base: 5 * time.Minute, Factor: 2, Min: 5 * time.Minute, Max: 240 * time.Minute,
			Jitter: 0.20, Rounding: time.Minute,
		},
		TotalLimit: 48 * time.Hour, // ANS IN 41/2018
		Permanent: []Rule{
			coded("INVALID_PATIENT_DATA", TeamRegistration),
			coded("INSURANCE_EXPIRED", TeamRegistration),
			coded("AUTHORIZATION_DENIED", TeamBilling),
			coded("DUPLICATE_CLAIM", TeamBilling),
			coded("INVALID_PROCEDURE_CODE", TeamBilling),
		},
		Transient: []Rule{
			coded("TIMEOUT", ""), coded("CONNECTION_ERROR", ""), coded("SERVICE_UNAVAILABLE", ""),
			coded("NETWORK_ERROR", ""), coded("TEMPORARY_ERROR", ""), coded("RATE_LIMIT", ""),
			coded("SERVER_ERROR", ""), coded("503", ""), coded("504", ""),
		},
		EmptyError: RejectEmptyError,
		LimitTeam:  TeamBilling,
	}
}

// coded is a rule whose reason is its code.
func coded(code string, team Team) Rule {
	return Rule{Code: code, Reason: Reason(code), Team: team}
}
