package api

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
	"retry-worker/internal/worker"
)

// Decision is what a dry run answers.
type Decision struct {
	Outcome decision.Outcome `json:"outcome"`
	worker.Outputs
	MatchedRule *string           `json:"matchedRule"`
	Reason      decision.Reason   `json:"reason"`
	MatchedText *string           `json:"matchedText"`
	Hint        *string           `json:"hint"`
	Catalogue   string            `json:"catalogue"`
	Evidence    []worker.Evidence `json:"evidence,omitempty" doc:"What was found; the first decided."`
}

// Rejection is what a dry run answers to input that would give a process an incident.
type Rejection struct {
	Outcome     string  `json:"outcome" enum:"REJECTED" doc:"Nothing was decided."`
	RetryPolicy string  `json:"retryPolicy"`
	MatchedRule *string `json:"matchedRule"`
	Rejection   string  `json:"rejection"`
	Message     string  `json:"message"`
}

// failureInput is a failure to decide on.
type failureInput struct {
	Policy     string                     `json:"policy" default:"tiss-submission"`
	ID         decision.Value             `json:"id" type:"string" doc:"The id of the claim, message or job."`
	Error      decision.Value             `json:"error" type:"string" doc:"The error's text, as the process has it."`
	RetryCount decision.Value             `json:"retryCount" type:"integer" min:"0" doc:"Retries already made."`
	Submitted  decision.Value             `json:"lastSubmissionTime" type:"string" doc:"When it was submitted last."`
	HTTPStatus decision.Value             `json:"httpStatus" type:"integer" max:"599" doc:"Where the policy reads one."`
	Variables  map[string]json.RawMessage `json:"variables" doc:"Others that the policy reads, by the process's names."`
	Now        time.Time                  `json:"now" doc:"When it failed; now, if left out."`
	Explain    bool                       `json:"explain" doc:"Also what else was found in the error, and why it lost."`
}

// decide answers POST /api/v1/decisions with what `decide -o json` prints. If the journal is open, it heeds what people
// taught. It records nothing.
func (c *call) decide(in *failureInput) (Decision, error) {
	policies := c.Policies()
	v, err := in.variables(policies)
	if err != nil {
		return Decision{}, err
	}
	if in.Now.IsZero() {
		in.Now = c.now()
	}
	var unread error
	t := worker.DryRun(policies, in.Policy, v, in.Now, func(p *decision.Policy, f *decision.Failure, line string) {
		if c.Journal != nil {
			unread = c.Foresee(c.Context(), p, f, line)
		}
	})
	if r := t.Rejection; r != nil {
		why := Failure{Message: journal.RejectionMessage(r)}
		return Decision{}, &Refused{http.StatusUnprocessableEntity, why, text.JSON(
			Rejection{string(t.Outcome), t.Policy, nil, string(r.Code), why.Message})}
	}
	d := Decision{t.Outcome, t.Outputs, journal.OrNull(t.MatchedRule), t.Reason, journal.OrNull(t.MatchedText),
		journal.OrNull(t.Hint), t.Catalogue, nil}
	if in.Explain {
		d.Evidence = t.Evidence
	}
	return d, unread
}

// variables returns the process variables that a request gives. It refuses one that the policy does not read, since a
// misspelt name would go unnoticed.
func (in *failureInput) variables(policies decision.Policies) (v decision.Variables, err error) {
	p, _ := policies.Find(in.Policy)
	if p == nil { // the decision says so
		return v, nil
	}
	values := map[string]decision.Value{p.IDVariable: in.ID, p.ErrorVariable: in.Error, p.HTTPStatusVariable: in.HTTPStatus,
		decision.RetryCountVariable: in.RetryCount, decision.LastSubmissionVariable: in.Submitted}
	own := slices.DeleteFunc(decision.Policies{p.Name: p}.Variables(), func(name string) bool {
		_, hasField := values[name]
		return hasField
	})
	for name, value := range in.Variables {
		if !slices.Contains(own, name) {
			return v, refused("unknown_variable", "variables has %.60q, which the policy %s does not read, expected %s",
				name, p.Name, listed("one of ", own, "none"))
		}
		values[name] = decision.Value(value)
	}
	return p.Variables(func(name string) decision.Value { return values[name] }), nil
}

// Decide answers POST /decisions as a worker with these policies and no open journal does.
func Decide(policies decision.Policies, now time.Time, body []byte) ([]byte, error) {
	c := &call{API: &API{Options: Options{Policies: func() decision.Policies { return policies },
		Gate: access.Options{Now: func() time.Time { return now }}}}}
	in, given := failureInput{}, map[string]json.RawMessage{}
	fields := requestFields(reflect.TypeFor[failureInput](), http.MethodPost)
	err := readBody(body, names(fields, inBody), given)
	if err == nil {
		err = set(reflect.ValueOf(&in).Elem(), fields, given)
	}
	if err != nil {
		return nil, err
	}
	d, err := c.decide(&in)
	return text.JSON(d), err
}
