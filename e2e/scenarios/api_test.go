package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"retry-worker/internal/testkit/wait"
)

// review is what the people do with a claim's dead letters: they send it again at once, unless something else is said.
type review struct {
	Discard bool `json:"discard"`
	// Backoff sends it again after the policy's delay.
	Backoff bool `json:"backoff"`
	// Left leaves it to the test.
	Left bool `json:"left"`
}

// api is where people decide on dead letters: a worker's API.
type api struct {
	worker *process
	token  string // shown, where there is one
}

// deadLetter is one as the API shows it.
type deadLetter struct {
	ID, State           string
	Subject             struct{ Policy, ID string }
	Outcome, Reason     string
	Fingerprint         string
	ResponsibleTeam     string
	ErrorClassification *string
	Error               string
	RetryCount          int
	MaxRetries          int
	ForceNeeded         bool
	Episode             int
	CreatedAt           time.Time
	ProcessInstanceKey  string
	Process, Delivery   string
	Review              *struct {
		Decision, Reason, By string
		ForceRetry, Fresh    bool
		NextRetryTime        *time.Time
	}
}

// verdict is what the API says to a request: a dead letter, or why not.
type verdict struct {
	status         int // 0: nobody answered
	deadLetter     deadLetter
	Error, Message string // of a refusal
}

// request is the body of a retry or a discard.
type request struct {
	Reason     string `json:"reason"`
	ForceRetry bool   `json:"forceRetry,omitempty"`
	Fresh      bool   `json:"fresh,omitempty"`
	When       string `json:"when,omitempty"`
	JobID      string `json:"jobId,omitempty"` // of POST /jobs/retry
}

// ask sends a request, to be answered into answer; body nil asks by GET. The status is 0 where nobody answers.
func (d api) ask(ctx context.Context, path string, body, answer any) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, wait.Limit)
	defer cancel()
	method, content := http.MethodGet, ""
	if body != nil {
		method, content = http.MethodPost, jsonOf(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+d.worker.API+"/api/v1"+path, bytes.NewBufferString(content))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	if d.token != "" {
		r.Header.Set("Authorization", "Bearer "+d.token)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return 0, fmt.Errorf("%s %s: %s, %w", method, path, response.Status, err)
	}
	return response.StatusCode, nil
}

// deadLetter asks for a dead letter, or sends a decision on it where how is "retry" or "discard".
func (d api) deadLetter(ctx context.Context, id, how string, body any) (a verdict, err error) {
	path := "/dead-letters/" + id
	if how != "" {
		path += "/" + how
	}
	return d.answers(ctx, path, body)
}

// answers is what the API says about a dead letter.
func (d api) answers(ctx context.Context, path string, body any) (a verdict, err error) {
	var raw json.RawMessage
	if a.status, err = d.ask(ctx, path, body, &raw); err != nil {
		return a, err
	}
	if a.status != http.StatusOK {
		return a, json.Unmarshal(raw, &a)
	}
	return a, json.Unmarshal(raw, &a.deadLetter)
}

// each open dead letter born since an instant, the newest first. Within the list others may decide meanwhile.
func (d api) each(ctx context.Context, since time.Time, look func(*deadLetter)) error {
	for cursor := ""; ; {
		var page struct {
			Items []deadLetter
			Next  string
		}
		status, err := d.ask(ctx, "/dead-letters?limit=200"+cursor, nil, &page)
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("list the dead letters: %d, %w", status, err)
		}
		for i := range page.Items {
			if page.Items[i].CreatedAt.Before(since) {
				return nil
			}
			look(&page.Items[i])
		}
		if page.Next == "" {
			return nil
		}
		cursor = "&cursor=" + url.QueryEscape(page.Next)
	}
}

// decides what the people do with a dead letter.
func (r review) decides(l *deadLetter) (how string, d request) {
	switch {
	case r.Discard:
		return "discard", request{Reason: "not worth it"}
	case r.Backoff:
		return "retry", request{Reason: "data corrected", ForceRetry: l.ForceNeeded, When: "backoff"}
	default:
		return "retry", request{Reason: "data corrected", ForceRetry: l.ForceNeeded, When: "now"}
	}
}

// decide on the dead letters of the claims that the portal knows, until ctx ends. Nobody is asked twice what was decided;
// what could not be recorded, or whose process has not come yet, is decided at the next look.
func (h *portal) decide(ctx context.Context, d api, since time.Time) {
	ticker := time.NewTicker(decideEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		_ = d.each(ctx, since, func(l *deadLetter) { // a worker that is away is asked again
			c, known := h.claim(l)
			if !known || l.Process != "waiting" || c.Review.Left {
				return
			}
			how, body := c.Review.decides(l)
			a, err := d.deadLetter(ctx, l.ID, how, body)
			if err == nil && a.status != http.StatusOK && a.status != http.StatusConflict && a.status != http.StatusServiceUnavailable {
				h.mu.Lock()
				h.wrong = append(h.wrong, fmt.Errorf("%s %s of %s: %d %s: %s", how, l.ID, l.Subject.ID, a.status, a.Error, a.Message))
				h.mu.Unlock()
			}
		})
	}
}

// claim is what will be said to the subject of a dead letter, as far as one of its jobs has come.
func (h *portal) claim(l *deadLetter) (claim, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c, known := h.claims[l.Subject.ID]
	return c, known
}
