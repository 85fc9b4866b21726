// Package decisiontest provides policies for tests, without a catalogue.
package decisiontest

import (
	"regexp"
	"time"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
)

// TISSSubmission returns the policy of RN-BIL-005 and RN-BIL-004 and nothing else: the codes of both (R3), with R5's
// backoff. The tests of the shipped catalogue, which holds more, compare it with this policy.
func TISSSubmission() *decision.Policy {
	return &decision.Policy{
		Name:          decision.DefaultPolicy,
		Destination:   &decision.DestinationVariable{Variable: "operadora", Default: "tiss"},
		IDVariable:    "claimId",
		ErrorVariable: "submissionError",
		IDPattern:     regexp.MustCompile(`^CLM-.*-\d+$`),
		InvalidID:     decision.InvalidClaimID,
		MaxRetries:    5,
		Backoff: decision.BackoffRule{
			Base: 5 * time.Minute, Factor: 2, Min: 5 * time.Minute, Max: 240 * time.Minute,
			Jitter: 0.20, Rounding: time.Minute,
		},
		TotalLimit:      48 * time.Hour, // ANS IN 41/2018
		Rules:           Rules(tissRules()...),
		EmptyError:      decision.RejectEmptyError,
		LimitTeam:       "faturamento",
		PresumedRetries: 1,
	}
}

// Policies returns TISSSubmission alone.
func Policies() decision.Policies {
	p := TISSSubmission()
	return decision.Policies{p.Name: p}
}

func tissRules() []classify.Rule {
	return []classify.Rule{
		{Class: decision.Permanent, Rank: classify.SpecifiedPermanent, Team: "cadastro",
			Codes: []string{"INVALID_PATIENT_DATA", "INSURANCE_EXPIRED"}},
		{Class: decision.Permanent, Rank: classify.SpecifiedPermanent, Team: "faturamento",
			Codes: []string{"AUTHORIZATION_DENIED", "DUPLICATE_CLAIM", "INVALID_PROCEDURE_CODE"}},
		{Class: decision.Transient, Rank: classify.SpecifiedTransient, Codes: []string{"TIMEOUT", "CONNECTION_ERROR",
			"SERVICE_UNAVAILABLE", "NETWORK_ERROR", "TEMPORARY_ERROR", "RATE_LIMIT", "SERVER_ERROR", "503", "504"}},
	}
}

// Permanent returns a rule for one code, which is also its reason.
func Permanent(code string, team decision.Team) classify.Rule {
	return classify.Rule{Name: code, Class: decision.Permanent, Rank: classify.SpecifiedPermanent, Reason: decision.Reason(code), Team: team,
		Codes: []string{code}}
}

// Transient returns a rule for one code, which is also its reason.
func Transient(code string) classify.Rule {
	return classify.Rule{Name: code, Class: decision.Transient, Rank: classify.SpecifiedTransient, Reason: decision.Reason(code), Codes: []string{code}}
}

// Rules compiles valid rules.
func Rules(rules ...classify.Rule) *classify.Classifier {
	return classify.New(rules, classify.Vocabulary{})
}
