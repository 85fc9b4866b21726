package worker

import (
	"cmp"
	"encoding/json"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
	"retry-worker/internal/text"
)

// Outputs holds the contract's outputs of a decision.
type Outputs struct {
	ShouldRetry         bool                         `json:"shouldRetry"`
	RetryCount          int64                        `json:"retryCount"`
	MaxRetries          int64                        `json:"maxRetries"`
	RetryReason         string                       `json:"retryReason"`
	ErrorClassification decision.ErrorClassification `json:"errorClassification"`
	OriginalError       json.RawMessage              `json:"originalError" type:"string,null" doc:"The error as it was sent."`
	RetryPolicy         string                       `json:"retryPolicy"`
	PossiblyAccepted    bool                         `json:"possiblyAccepted"`
	SuccessProbability  float64                      `json:"successProbability,omitempty" above:"0" below:"1"`
	BackoffMinutes      int64                        `json:"backoffMinutes,omitempty" doc:"Only where a retry follows."`
	BackoffDuration     string                       `json:"backoffDuration,omitempty" pattern:"^PT"`
	NextRetryTime       string                       `json:"nextRetryTime,omitempty" format:"date-time"`
	ResponsibleTeam     decision.Team                `json:"responsibleTeam,omitempty" doc:"Only where no retry follows."`
}

// outputsOf returns the outputs of a decision on a failure.
func outputsOf(d *decision.Decision, f *decision.Failure) Outputs {
	o := Outputs{
		ShouldRetry: d.ShouldRetry(), RetryCount: d.RetryCount, MaxRetries: d.MaxRetries, RetryReason: d.RetryReason,
		ErrorClassification: d.ErrorClassification, OriginalError: json.RawMessage(cmp.Or(f.OriginalError, "null")),
		RetryPolicy: d.Policy, PossiblyAccepted: d.PossiblyAccepted,
	}
	if !d.ShouldRetry() {
		o.ResponsibleTeam = d.Team
		return o
	}
	o.SuccessProbability, o.BackoffMinutes = d.SuccessProbability, decision.Minutes(d.Wait())
	o.BackoffDuration, o.NextRetryTime = text.ISODuration(d.Wait()), decision.Instant(d.NextRetryTime)
	return o
}

// thrown returns the BPMN error that tells the process of a decision.
func thrown(d *decision.Decision, f *decision.Failure, deadLetter string) BPMNError {
	variables := text.JSON(struct {
		Outputs
		DeadLetterID string `json:"deadLetterId"`
	}{outputsOf(d, f), deadLetter})
	return BPMNError{Code: string(d.Outcome), Message: d.RetryReason, Variables: string(variables)}
}

// Decision is what a dry run answers.
type Decision struct {
	Outcome decision.Outcome `json:"outcome"`
	Outputs
	MatchedRule *string         `json:"matchedRule"`
	Reason      decision.Reason `json:"reason"`
	MatchedText *string         `json:"matchedText"`
	Hint        *string         `json:"hint"`
	Catalogue   string          `json:"catalogue"`
	// Evidence lists the evidence, the deciding one first.
	Evidence []Evidence `json:"evidence,omitempty" doc:"What was found; the first decided."`
}

// DryRun decides without engine and journal, unless the input is rejected. get returns a variable of the process by name.
// foresee, unless nil, may change the failure; it gets the redacted error.
func DryRun(
	policies decision.Policies, policy string, get func(name string) decision.Value, now time.Time,
	foresee func(p *decision.Policy, f *decision.Failure, redacted string),
) (Decision, *decision.Rejection) {
	p, rejection := policies.Find(policy)
	if rejection != nil {
		return Decision{}, rejection
	}
	f, rejection := p.Read(p.Variables(get))
	if rejection != nil {
		return Decision{}, rejection
	}
	line := redact.Line(f.Error, maxErrorBytes)
	if foresee != nil {
		foresee(p, &f, line)
	}
	d := decision.Decide(&f, p, decision.Past{}, now)
	if d.Rejection != nil {
		return Decision{}, d.Rejection
	}
	shown := Decision{d.Outcome, outputsOf(&d, &f), journal.OrNull(d.MatchedRule), d.Reason,
		journal.OrNull(shownText(&f, f.Match.Text, line)), journal.OrNull(d.Hint(f.Match.Hint)), d.Catalogue, nil}
	for _, e := range p.Evidence(&f) {
		shown.Evidence = append(shown.Evidence, Evidence{int(e.Rank), e.Name, shownText(&f, e.Text, line), e.Lost})
	}
	return shown, nil
}
