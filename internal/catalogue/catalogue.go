// Package catalogue makes policies of a YAML file: the embedded default, or one that overrides it.
package catalogue

import (
	"regexp"
	"time"

	"retry-worker/internal/decision"
)

// Catalogue is a set of policies and the teams that they name. It is a value: never changed once it is made.
type Catalogue struct {
	// Version is the first 12 hex digits of the content's SHA-256; every decision records it.
	Version string
	// Source is the file it was read from; "default" for the embedded one.
	Source string
	// Policies of the catalogue, each with its Version.
	Policies decision.Policies
	// Teams by their names.
	Teams map[decision.Team]Team
}

// Team is one of the catalogue's teams.
type Team struct {
	Description string
}

// Default is the embedded catalogue.
func Default() *Catalogue {
	p := &decision.Policy{
		Name: decision.DefaultPolicy, IDVariable: "claimId", ErrorVariable: "submissionError", IDPattern: regexp.MustCompile(`^CLM-.*-\d+$`),
		InvalidID: decision.InvalidClaimID, MaxRetries: 5, Backoff: decision.BackoffRule{
			Base: 5 * time.Minute, Factor: 2, Min: 5 * time.Minute, Max: 240 * time.Minute, Jitter: 0.20, Rounding: time.Minute},
		TotalLimit: 48 * time.Hour, EmptyError: decision.RejectEmptyError, LimitTeam: "faturamento",
	}
	return &Catalogue{Version: "000000000000", Source: "default", Policies: decision.Policies{p.Name: p}}
}
