package notify

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"retry-worker/internal/catalogue"
)

const (
	// postTime bounds one webhook call, as Standard Webhooks recommend.
	postTime = 20 * time.Second
	// maxAnswer bounds the bytes that are read of an answer.
	maxAnswer = 4 << 10
	// A secret is the prefix and base64 of 24 to 64 bytes; the lengths include the prefix.
	secretPrefix            = "whsec_"
	leastSecret, mostSecret = len(secretPrefix) + 32, len(secretPrefix) + 88
)

// Poster sends notices as webhooks. Safe for concurrent use.
type Poster struct{ client *http.Client }

// NewPoster returns a Poster that sends by client.
func NewPoster(client *http.Client) *Poster { return &Poster{client} }

// Send posts a body that is signed, as of now, with the receiver's secret. The secret's file is read for each call.
func (p *Poster) Send(ctx context.Context, to *catalogue.Webhook, id, body string, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, strings.NewReader(body))
	if err != nil {
		return refused("the webhook's address cannot be used")
	}
	if err := sign(request.Header, to.SecretFile, id, body, now); err != nil {
		return refused("sign the webhook: " + err.Error())
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	answer, err := p.client.Do(request)
	if err != nil {
		return failure(false, "post the webhook: "+plainly(err))
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) // only the status counts
	return judge(answer)
}

// judge returns a *Failure unless the receiver took the notice.
func judge(a *http.Response) error {
	said := strings.TrimSpace("the receiver answered " + strconv.Itoa(a.StatusCode) + " " + http.StatusText(a.StatusCode))
	switch code := a.StatusCode; {
	case code/100 == 2:
		return nil
	case code/100 == 3:
		return refused(said + ": redirects are not followed; correct the team's webhook url")
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code/100 != 4:
		f := failure(false, said)
		seconds, _ := strconv.ParseUint(a.Header.Get("Retry-After"), 10, 20)
		f.After = time.Duration(seconds) * time.Second
		return f
	default:
		return refused(said)
	}
}

// sign sets the headers of Standard Webhooks, with one signature for each secret in the file.
func sign(h http.Header, secretFile, id, body string, now time.Time) error {
	signers, err := signersOf(secretFile)
	if err != nil {
		return err
	}
	signatures := make([]string, len(signers))
	for i, s := range signers {
		if signatures[i], err = s.Sign(id, now, []byte(body)); err != nil {
			return err
		}
	}
	h.Set(standardwebhooks.HeaderWebhookID, id)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	h.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return nil
}

// signersOf returns a signer for each secret in a file, one a line: a receiver may change its secret while both hold.
func signersOf(file string) (all []*standardwebhooks.Webhook, err error) {
	text, err := secret(file)
	if err != nil {
		return nil, err
	}
	for word := range strings.FieldsSeq(text) {
		s, err := standardwebhooks.NewWebhook(word)
		if err != nil || !strings.HasPrefix(word, secretPrefix) || len(word) < leastSecret || len(word) > mostSecret {
			return nil, fmt.Errorf("the secret's file holds something else, expected on each line %s and base64 of 24 to 64 "+
				"bytes", secretPrefix)
		}
		all = append(all, s)
	}
	return all, nil
}
