package notify

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"retry-worker/internal/catalogue"
)

const (
	// postTime bounds one webhook, as Standard Webhooks recommend.
	postTime = 20 * time.Second
	// maxAnswer is the bytes that are read of an answer.
	maxAnswer = 4 << 10
	// A secret is so long, without its base64.
	leastSecret, mostSecret = 24, 64
	secretPrefix            = "whsec_"
	// mostSecrets of one file: the old and the new one, while they change.
	mostSecrets = 4
)

// Poster sends notices as webhooks. Safe for concurrent use.
type Poster struct{ client *http.Client }

// NewPoster prepares a Poster that sends by client.
func NewPoster(client *http.Client) *Poster { return &Poster{client} }

// Send posts a body, signed with the receiver's secret, which is read now, and returns the receiver's answer. now is the
// instant of the signature.
func (p *Poster) Send(ctx context.Context, to *catalogue.Webhook, id, body string, now time.Time) (string, error) {
	keys, err := secrets(to.SecretFile)
	if err != nil {
		return "", refused("sign the webhook: " + err.Error())
	}
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, strings.NewReader(body))
	if err != nil {
		return "", refused("the webhook's address cannot be used")
	}
	if err := sign(request.Header, keys, id, body, now); err != nil {
		return "", refused("sign the webhook: " + err.Error())
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	answer, err := p.client.Do(request)
	if err != nil {
		return "", failed("post the webhook", withoutURL(ctx, err))
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) // the status tells all
	return answer.Status, judge(answer, now)
}

// withoutURL returns the client's error, which names the whole address.
func withoutURL(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %s", postTime)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// judge what a receiver answered.
func judge(a *http.Response, now time.Time) error {
	said := "the receiver answered " + strconv.Itoa(a.StatusCode)
	if text := http.StatusText(a.StatusCode); text != "" {
		said += " " + text
	}
	switch code := a.StatusCode; {
	case code/100 == 2:
		return nil
	case code/100 == 3:
		return refused(said + ": redirects are not followed; correct the team's webhook url")
	case code == http.StatusGone:
		return refused(said + ": it takes no webhooks any more; take the team's webhook out, or correct it")
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code/100 != 4:
		f := failure(false, said)
		f.After = retryAfter(a.Header.Get("Retry-After"), now)
		return f
	default:
		return refused(said)
	}
}

// retryAfter returns what the header asks for; 0 where it says nothing that can be understood.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 20); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(header)
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}

// sign sets the headers of Standard Webhooks, with a signature by each secret.
func sign(h http.Header, keys [][]byte, id, body string, now time.Time) error {
	signatures := make([]string, len(keys))
	for i, key := range keys {
		w, err := standardwebhooks.NewWebhookRaw(key)
		if err == nil {
			signatures[i], err = w.Sign(id, now, []byte(body))
		}
		if err != nil {
			return err
		}
	}
	h.Set(standardwebhooks.HeaderWebhookID, id)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	h.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return nil
}

// secrets of a file: one a line, so that a receiver may change it while both hold.
func secrets(path string) ([][]byte, error) {
	text, err := secret(path)
	if err != nil {
		return nil, err
	}
	var keys [][]byte
	for _, word := range strings.Fields(text) {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(word, secretPrefix))
		if err != nil || !strings.HasPrefix(word, secretPrefix) || len(key) < leastSecret || len(key) > mostSecret ||
			len(keys) == mostSecrets {
			return nil, fmt.Errorf("the secret's file holds no secret, expected %s and base64 of %d to %d bytes, on at most "+
				"%d lines",
				secretPrefix, leastSecret, mostSecret, mostSecrets)
		}
		keys = append(keys, key)
	}
	return keys, nil
}
