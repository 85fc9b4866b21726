package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"retry-worker/internal/access"
	views "retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/testkit/wait"
)

// review is what the people do with a claim's dead letters: they send it again at once, unless something else is said.
type review struct {
	Discard bool `json:"discard"`
	// Accept closes it as what the portal has already (claim.Taken).
	Accept bool `json:"accept"`
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

type deadLetter = views.DeadLetter

// request is the body of a retry or a discard.
type request struct {
	Reason             string `json:"reason"`
	ForceRetry         bool   `json:"forceRetry,omitempty"`
	Fresh              bool   `json:"fresh,omitempty"`
	When               string `json:"when,omitempty"`
	SubmissionDeadline string `json:"submissionDeadline,omitempty"`
	ProtocolNumber     string `json:"protocolNumber,omitempty"`
	JobID              string `json:"jobId,omitempty"` // of POST /jobs/retry
}

// ask sends a request, to be answered into answer; body nil asks by GET. The error is a *access.Refusal where the API says no.
func (d api) ask(ctx context.Context, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, wait.Limit)
	defer cancel()
	client := views.Client{Base: "http://" + d.worker.API, Token: d.token, Client: d.worker.client}
	text, err := client.Ask(ctx, path, body)
	if err == nil {
		err = json.Unmarshal(text, answer)
	}
	return err
}

// deadLetter asks for a dead letter, or sends a decision on it where how is "retry" or "discard".
func (d api) deadLetter(ctx context.Context, id, how string, body any) (l deadLetter, err error) {
	err = d.ask(ctx, strings.TrimSuffix("/dead-letters/"+id+"/"+how, "/"), body, &l)
	return l, err
}

// each open dead letter born since an instant, the newest first. Within the list others may decide meanwhile.
func (d api) each(ctx context.Context, since time.Time, look func(*deadLetter)) error {
	for cursor := ""; ; {
		var page views.Page[deadLetter]
		if err := d.ask(ctx, "/dead-letters?sort=newest&limit=200"+cursor, nil, &page); err != nil {
			return err
		}
		for i := range page.Items {
			if born, _ := decision.ParseInstant(page.Items[i].CreatedAt); born.Before(since) {
				return nil
			}
			look(&page.Items[i])
		}
		if page.Next == nil {
			return nil
		}
		cursor = "&cursor=" + url.QueryEscape(*page.Next)
	}
}

// decides what the people do with a dead letter.
func (c claim) decides(l *deadLetter) (how string, d request) {
	switch r := c.Review; {
	case r.Accept:
		return "accept", request{Reason: "looked up", ProtocolNumber: c.Taken}
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
func (h *portal) decide(ctx context.Context, since time.Time) {
	ticker := time.NewTicker(decideEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		d := api{worker: h.by.Load()}
		if d.worker == nil {
			continue
		}
		_ = d.each(ctx, since, func(l *deadLetter) { // a worker that is away is asked again
			c, known := h.claim(l)
			if !known || l.Process != "waiting" || c.Review.Left {
				return
			}
			how, body := c.decides(l)
			_, err := d.deadLetter(ctx, l.ID, how, body)
			if no, is := errors.AsType[*access.Refusal](err); is && no.Status != http.StatusConflict && no.Status != http.StatusServiceUnavailable {
				h.mu.Lock()
				h.wrong = append(h.wrong, fmt.Errorf("%s %s of %s: %d %w", how, l.ID, l.Subject.ID, no.Status, err))
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
