package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"retry-worker/internal/access"
	"retry-worker/internal/text"
)

// maxAnswerBytes limits an answer. A page of the longest errors has less.
const maxAnswerBytes = 64 << 20

// Client asks a worker's API. Each of its errors is one line that says what to do.
type Client struct {
	// Base is the worker's URL, Flag the flag that sets it.
	Base, Flag string
	// Token is sent with each request; TokenFrom says where people set it.
	Token, TokenFrom string
	http.Client
}

// Ask sends a GET if body is nil, and otherwise body as JSON by POST.
func (c *Client) Ask(ctx context.Context, path string, body any) ([]byte, error) {
	if body == nil {
		return c.Send(ctx, http.MethodGet, path, nil)
	}
	return c.Send(ctx, http.MethodPost, path, text.JSON(body))
}

// Send sends a request to a path below /api/v1 and returns the answer: a JSON object on one line, without characters
// that act on a terminal. The error is an *access.Refusal if the API refuses.
func (c *Client) Send(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.Base+Root+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", c.Base, err)
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	response, err := c.Do(request)
	if err != nil {
		return nil, c.unanswered(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w; ask again", c.Base, err)
	}
	return c.answer(response.StatusCode, answer)
}

// unanswered returns the error of a request without an answer.
func (c *Client) unanswered(err error) error {
	if failed, is := errors.AsType[*url.Error](err); is {
		err = failed.Err // without method and URL
	}
	if wrong, is := errors.AsType[*tls.CertificateVerificationError](err); is {
		return fmt.Errorf("the certificate of %s is not to be trusted: %w; name its authority by --ca-file, "+
			"or give --%s the name that it is for", c.Base, wrong.Err, c.Flag)
	}
	return fmt.Errorf("no console answers at %s: %w; start `retry-worker serve`, or set --%s to where it listens",
		c.Base, err, c.Flag)
}

// Foreign returns the error for an answer that is not a retry-worker's.
func (c *Client) Foreign(why error) error {
	return fmt.Errorf("the answer of %s is not that of a retry-worker's API: %w; check --%s", c.Base, why, c.Flag)
}

// answer returns the body of an answer, or its refusal as an error.
func (c *Client) answer(status int, body []byte) ([]byte, error) {
	var line bytes.Buffer
	if len(body) > maxAnswerBytes || json.Compact(&line, body) != nil || line.Len() == 0 || line.Bytes()[0] != '{' {
		return nil, c.Foreign(fmt.Errorf("HTTP %d", status))
	}
	if status == http.StatusOK {
		return text.InertJSON(line.Bytes()), nil
	}
	refused := &access.Refusal{Status: status, Body: text.InertJSON(line.Bytes())}
	if json.Unmarshal(body, refused) != nil || refused.Message == "" {
		return nil, c.Foreign(fmt.Errorf("HTTP %d", status))
	}
	if status == http.StatusUnauthorized {
		refused.Message += " (the token comes from " + c.TokenFrom + ")"
	}
	return nil, refused
}
