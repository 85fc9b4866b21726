package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
	"retry-worker/internal/kpi"
	"retry-worker/internal/worker"
)

// Decision is what a dry run answers.
type Decision struct {
	Outcome             decision.Outcome             `json:"outcome"`
	ShouldRetry         bool                         `json:"shouldRetry"`
	RetryCount          int64                        `json:"retryCount"`
	MaxRetries          int64                        `json:"maxRetries"`
	RetryReason         string                       `json:"retryReason"`
	ErrorClassification decision.ErrorClassification `json:"errorClassification"`
	OriginalError       string                       `json:"originalError" doc:"The error as it was sent."`
	RetryPolicy         string                       `json:"retryPolicy"`
	PossiblyAccepted    bool                         `json:"possiblyAccepted" doc:"The portal may have taken the claim (R33)."`
	SuccessProbability  float64                      `json:"successProbability,omitempty" above:"0" below:"1"`
	BackoffMinutes      int64                        `json:"backoffMinutes,omitempty" doc:"Of a retry, as the next two."`
	BackoffDuration     string                       `json:"backoffDuration,omitempty" pattern:"^PT"`
	NextRetryTime       string                       `json:"nextRetryTime,omitempty" format:"date-time"`
	ResponsibleTeam     decision.Team                `json:"responsibleTeam,omitempty" doc:"Where no retry follows."`
	MatchedRule         *string                      `json:"matchedRule"`
	Reason              decision.Reason              `json:"reason"`
	MatchedText         *string                      `json:"matchedText"`
	Hint                *string                      `json:"hint"`
	Catalogue           string                       `json:"catalogue"`
	Evidence            []worker.Evidence            `json:"evidence,omitempty" doc:"What was found, what decided first."`
}

// Rejection is what a dry run answers to input for which a process would have an incident.
type Rejection struct {
	Outcome     string  `json:"outcome" enum:"REJECTED"`
	RetryPolicy string  `json:"retryPolicy"`
	MatchedRule *string `json:"matchedRule"`
	Rejection   string  `json:"rejection"`
	Message     string  `json:"message"`
}

// decide answers POST /api/v1/decisions with what `decide -o json` prints: with what was taught,
// where the journal is open. It remembers nothing.
func (c *call) decide(in *struct {
	Policy     string                     `json:"policy" default:"tiss-submission"`
	ID         decision.Value             `json:"id" type:"string"`
	Error      decision.Value             `json:"error" type:"string"`
	RetryCount decision.Value             `json:"retryCount" type:"integer" min:"0"`
	HTTPStatus decision.Value             `json:"httpStatus" type:"integer" max:"599" doc:"Of a policy that reads one."`
	Variables  map[string]json.RawMessage `json:"variables" doc:"What only some policies read, by the process's names."`
	Now        time.Time                  `json:"now" doc:"The instant of the failure; left out, now."`
}) (json.RawMessage, error) {
	policies, now := c.policies(), in.Now
	v := decision.Variables{ID: in.ID, Error: in.Error, RetryCount: in.RetryCount, HTTPStatus: in.HTTPStatus}
	if err := readOwn(policies, in.Policy, in.Variables, &v); err != nil {
		return nil, err
	}
	if now.IsZero() {
		now = c.now()
	}
	var unread error
	d, flat := worker.DryRun(policies, in.Policy, v, now, func(p *decision.Policy, f *decision.Failure, redacted string) {
		if c.Journal != nil {
			unread = c.Foresee(c.Context(), p, f, redacted)
		}
	})
	if unread != nil {
		return nil, unread
	}
	if d.Outcome == decision.Rejected {
		c.status = http.StatusUnprocessableEntity
		return flat, nil
	}
	return worker.WithEvidence(flat, worker.Explain(policies, in.Policy, v)), nil
}

// readOwn reads what only the policy of that name reads, by the names that the process has for it.
func readOwn(policies decision.Policies, name string, own map[string]json.RawMessage, v *decision.Variables) error {
	p, _ := policies.Find(name)
	if p == nil { // which the decision says
		return nil
	}
	var known []string
	if p.Own != nil {
		known = []string{p.Own.MaxAttempts, p.Own.Delay, p.Own.NonRetryable}
		v.MaxAttempts, v.Delay = decision.Value(own[known[0]]), decision.Value(own[known[1]])
		v.NonRetryable = decision.Value(own[known[2]])
	}
	known = slices.DeleteFunc(known, func(name string) bool { return name == "" })
	for name := range own { // a slip in a name would go unseen
		if !slices.Contains(known, name) {
			return invalid("unknown_variable", "variables has %.60q, which the policy %s does not read, expected %s",
				name, p.Name, listed("one of ", known, "none"))
		}
	}
	return nil
}

// KPIs is what the API, and `kpi -o json`, answer with.
type KPIs struct {
	KPIs []kpi.KPI `json:"kpis"`
}

// kpis answers GET /api/v1/kpis.
func (c *call) kpis(in *struct {
	Policy string `query:"policy" doc:"One policy; left out, all."`
}) (KPIs, error) {
	all, err := audit.KPIs(c.Context(), c, c.policies().Names(), in.Policy, c.now())
	if unknown, is := errors.AsType[*audit.UnknownPolicyError](err); is {
		err = invalid("unknown_policy", "%s", unknown)
	}
	return KPIs{all}, err
}
