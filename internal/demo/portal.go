package demo

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"retry-worker/internal/worker"
)

// SubmitClaim is the job type of the hospital's own worker, which the demo plays.
const SubmitClaim = "submit-claim"

// strangerBackoff keeps a claim that is not the demo's own for whoever it belongs to.
const strangerBackoff = 30 * time.Second

// portal plays the insurers' portal and the people of the review. Safe for concurrent use.
type portal struct {
	story *story

	mu     sync.Mutex
	claims map[string]*progress
	done   map[int64]worker.Reply // by job key: a job delivered twice gets the same answer
}

type progress struct {
	*Claim
	submissions int
	reviews     int
}

func newPortal(claims []Claim, s *story) *portal {
	p := &portal{story: s, claims: make(map[string]*progress), done: make(map[int64]worker.Reply)}
	for i := range claims {
		p.claims[claims[i].ID] = &progress{Claim: &claims[i]}
	}
	return p
}

type jobVariables struct {
	ClaimID         string `json:"claimId"`
	RetryCount      any    `json:"retryCount"`
	RetryReason     string `json:"retryReason"`
	ResponsibleTeam string `json:"responsibleTeam"`
	DeadLetterID    string `json:"deadLetterId"`
}

// submit answers one submission: the claim's next error, or acceptance.
func (p *portal) submit(_ context.Context, j *worker.Job) worker.Reply {
	return p.once(j, func(c *progress, _ jobVariables) worker.Reply {
		c.submissions++
		if c.submissions > len(c.Errors) {
			p.story.accepted(c.Claim, c.submissions)
			return worker.Reply{Action: worker.Completed, Variables: "{}"}
		}
		text := c.Errors[c.submissions-1]
		p.story.failed(c.Claim, c.submissions, text)
		return worker.Reply{Action: worker.Thrown, Error: worker.BPMNError{
			Code: "SUBMISSION_FAILED", Message: "the portal did not accept the claim",
			Variables: jsonObject(map[string]any{"submissionError": text}),
		}}
	})
}

// reviewTime is what a person takes to decide; the fastest there ever was.
const reviewTime = 300 * time.Millisecond

// review does what a person would: sends the claim again at once, or discards it.
func (p *portal) review(ctx context.Context, j *worker.Job) worker.Reply {
	select {
	case <-time.After(reviewTime):
	case <-ctx.Done():
	}
	return p.once(j, func(c *progress, v jobVariables) worker.Reply {
		c.reviews++
		p.story.reviewed(c.Claim, v)
		if c.Discard {
			p.story.discarded(c.Claim)
			return worker.Reply{Action: worker.Completed, Variables: jsonObject(map[string]any{
				"reviewDecision": "discard", "reviewReason": "demonstration: not worth another try", "reviewedBy": "demo",
			})}
		}
		c.Errors = c.Errors[:min(len(c.Errors), c.submissions)] // corrected: the portal takes it now
		count, _ := v.RetryCount.(float64)
		return worker.Reply{Action: worker.Completed, Variables: jsonObject(map[string]any{
			"reviewDecision": "reprocess", "reviewReason": "demonstration: data corrected", "reviewedBy": "demo",
			"shouldRetry": true, "retryCount": int64(count) + 1, "backoffMinutes": 0, "backoffDuration": "PT0S",
			"nextRetryTime": time.Now().UTC().Format(time.RFC3339),
		})}
	})
}

func (p *portal) once(j *worker.Job, answer func(*progress, jobVariables) worker.Reply) worker.Reply {
	var v jobVariables
	_ = json.Unmarshal([]byte(j.Variables), &v) // a rejected sample holds wrong types on purpose
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ours := p.claims[v.ClaimID]
	if !ours {
		return worker.Reply{Action: worker.Failed, Failure: worker.Failure{
			Retries: j.Retries, Backoff: strangerBackoff, Message: "not one of the demo's claims",
		}}
	}
	if reply, again := p.done[j.Key]; again {
		return reply
	}
	reply := answer(c, v)
	p.done[j.Key] = reply
	return reply
}

func jsonObject(m map[string]any) string {
	b, err := json.Marshal(m)
	if err != nil { // cannot be: the maps above hold texts and numbers
		return "{}"
	}
	return string(b)
}
