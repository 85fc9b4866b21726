package demo

import (
	"encoding/json"
	"fmt"
)

// Kind is what a sample claim is there to show.
type Kind string

// The kinds, in the order they are started.
const (
	Accepted  Kind = "accepted"  // at the first submission
	Transient Kind = "transient" // the portal stumbles and recovers
	Unknown   Kind = "unknown"   // nobody knows the error, it is retried to be safe
	Permanent Kind = "permanent" // a person must act
	Exhausted Kind = "exhausted" // the portal stays down through the whole ladder
	Rejected  Kind = "rejected"  // the process holds something that is no failure: an incident
)

// Claim is one sample claim and what the portal says to it.
type Claim struct {
	ID   string
	Kind Kind
	// Variables the instance starts with, beside claimId.
	Variables map[string]any
	// Errors of the portal, one a submission; then it accepts.
	Errors []string
	// Discard is what the person in the review does; else the claim is sent again.
	Discard bool
}

// start is the JSON the instance starts with.
func (c *Claim) start() (string, error) {
	all := map[string]any{"claimId": c.ID}
	for name, v := range c.Variables {
		all[name] = v
	}
	b, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("variables of %s: %w", c.ID, err)
	}
	return string(b), nil
}

// SampleClaims are the thirty of the demo. run makes their ids differ from those of an earlier run.
func SampleClaims(run int64) []Claim {
	const portalDown = "Portal TISS não respondeu em 30s: TIMEOUT"
	always := []string{portalDown, portalDown, portalDown, portalDown, portalDown, portalDown}
	all := []Claim{
		{Kind: Accepted},
		{Kind: Accepted},
		{Kind: Accepted},
		{Kind: Transient, Errors: []string{"TIMEOUT - Connection timeout after 30s"}},
		{Kind: Transient, Errors: []string{"HTTP 503 Service Unavailable", "HTTP 504 Gateway Timeout"}},
		{Kind: Transient, Errors: []string{"java.net.SocketTimeoutException: Read timed out"}},
		{Kind: Transient, Errors: []string{"CONNECTION_ERROR: connection reset by peer", "NETWORK_ERROR: no route to host", "HTTP 503"}},
		{Kind: Transient, Errors: []string{"429 Too Many Requests: rate limit of the operator reached"}},
		{Kind: Transient, Errors: []string{"500 Internal Server Error"}},
		{Kind: Unknown, Errors: []string{"Resposta inesperada da operadora"}},
		{Kind: Unknown, Errors: []string{"unexpected end of XML document at line 4", "unexpected end of XML document at line 4"}},
		{Kind: Unknown, Errors: []string{"Falha ao processar lote"}},
		{Kind: Unknown, Errors: []string{"ORA-12541"}},
		{Kind: Unknown, Errors: []string{"lote recusado sem motivo informado"}},
		{Kind: Permanent, Errors: []string{"INVALID_PATIENT_DATA - data de nascimento ausente"}},
		{Kind: Permanent, Errors: []string{"INSURANCE_EXPIRED: plano encerrado"}, Discard: true},
		{Kind: Permanent, Errors: []string{"Authorization denied by the operator"}},
		{Kind: Permanent, Errors: []string{"DUPLICATE_CLAIM (answered after a TIMEOUT)"}, Discard: true},
		{Kind: Permanent, Errors: []string{"INVALID_PROCEDURE_CODE 99999999"}},
		{Kind: Permanent, Errors: []string{"HTTP 503", "INVALID_PATIENT_DATA - sexo não informado"}},
		{Kind: Exhausted, Errors: always},
		{Kind: Exhausted, Errors: always},
		{Kind: Exhausted, Errors: always, Discard: true},
		{Kind: Exhausted, Errors: always},
		{Kind: Exhausted, Errors: always, Discard: true},
		{Kind: Rejected, ID: "GUIA-%d", Errors: []string{portalDown}},
		{Kind: Rejected, Variables: map[string]any{"retryCount": "2"}, Errors: []string{portalDown}},
		{Kind: Rejected, Variables: map[string]any{"retryCount": 2.5}, Errors: []string{portalDown}},
		{Kind: Rejected, Variables: map[string]any{"lastSubmissionTime": "ontem"}, Errors: []string{portalDown}},
		{Kind: Rejected, Errors: []string{"   "}},
	}
	for i := range all {
		number := run*100 + int64(i) + 1
		if all[i].ID == "" {
			all[i].ID = "CLM-DEMO-%d"
		}
		all[i].ID = fmt.Sprintf(all[i].ID, number)
	}
	return all
}
