package journal

import (
	"retry-worker/internal/decision"
	"retry-worker/internal/redact"
)

// Refusal is a job whose input was rejected (R11): the audit knows it, the attempts do not.
type Refusal struct {
	// Subject is the zero value, or lacks what the job did not say.
	Subject                    Subject
	Rule                       decision.BusinessRule
	JobKey, ProcessInstanceKey int64
	Rejection                  *decision.Rejection
}

// refusal is a Refusal as the audit keeps it.
type refusal struct {
	Code               decision.RejectionCode `json:"rejection"`
	Message            string                 `json:"message"`
	Rule               decision.BusinessRule  `json:"rule,omitempty"`
	JobKey             int64                  `json:"jobKey,string"`
	ProcessInstanceKey int64                  `json:"processInstanceKey,string"`
}

func (b *batch) reject(r *Refusal, h *History) {
	body := refusal{r.Rejection.Code, storable(RejectionMessage(r.Rejection)), r.Rule, r.JobKey, r.ProcessInstanceKey}
	b.entry(h, r.Subject, RejectionEntry, body, Happening{}, 0)
}

// maxFoundBytes of a refused value in a message: what was expected is to be read behind it.
const maxFoundBytes = 300

// RejectionMessage is one line that says what was refused, with nothing personal in it.
func RejectionMessage(r *decision.Rejection) string {
	clean := *r
	clean.Found = redact.Line(r.Found, maxFoundBytes) // nothing else of it comes from the process
	return clean.Error()
}
