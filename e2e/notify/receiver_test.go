package notify

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
)

// receiver takes webhooks, as a team's own system would.
type receiver struct {
	harness.Board
	*httptest.Server
	status int // what it answers; 0: 204
	calls  []call
}

// call is one webhook that came.
type call struct {
	id     string
	body   []byte
	event  event
	err    error // what is wrong with its signature
	status int   // that it was answered with
}

// event is what a webhook says, as far as every event has it.
type event struct {
	Type string
	Data struct {
		Team, Day, URL string
		New            *struct{ Count, Causes int }
		Open           struct{ Count int }
		KPIs           []json.RawMessage
	}
}

func openReceiver(t *testing.T, secret string) *receiver {
	t.Helper()
	key, err := standardwebhooks.NewWebhook(secret)
	testkit.Must(t, err)
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err == nil {
			err = key.Verify(body, request.Header)
		}
		c := call{id: request.Header.Get(standardwebhooks.HeaderWebhookID), body: body, err: err, status: http.StatusNoContent}
		if errJSON := json.NewDecoder(bytes.NewReader(body)).Decode(&c.event); errJSON != nil && c.err == nil {
			c.err = errJSON
		}
		r.Change(func() {
			if r.status != 0 {
				c.status = r.status
			}
			r.calls = append(r.calls, c)
		})
		w.WriteHeader(c.status)
	}))
	t.Cleanup(r.Close)
	return r
}

// answer with a status from now on.
func (r *receiver) answer(status int) { r.Change(func() { r.status = status }) }

// taken are the calls that it answered well, but for those of new causes; r is held.
func (r *receiver) taken() (all []call) {
	for _, c := range r.calls {
		if c.status/100 == 2 && c.event.Type != "causes.new" {
			all = append(all, c)
		}
	}
	return all
}

// awaitTaken waits until it has answered n calls well, and returns them.
func (r *receiver) awaitTaken(t *testing.T, n int) (all []call) {
	t.Helper()
	r.Await(t, "webhooks", func() bool {
		all = r.taken()
		return len(all) >= n
	})
	return all
}
