package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"retry-worker/internal/api"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
)

const anID = "3fa85f64-5717-5562-b3fc-2c963f66afa6"

// shows is one dead letter with that error, whatever wrote it.
type shows struct {
	guard.DeadLetters
	item deadletter.Item
}

func (s shows) Show(context.Context, string) (deadletter.Item, error) { return s.item, nil }
func (s shows) List(context.Context, journal.DeadLetterFilter, string, int) ([]deadletter.Item, string, error) {
	return []deadletter.Item{s.item}, "", nil
}

// hostile texts do something where they are printed as they are.
var hostile = "<script>alert(1)</script>\x1b]0;owned\a\x1b[2J\u009b31m\u202egnp.exe\u2066\ufeff\u2028\x00\r\n\x7f&amp;\xff"

// Error text is inert in JSON, and still the same text.
func TestHostileTextIsInert(t *testing.T) {
	item := deadletter.Item{Process: deadletter.Nobody}
	item.ID, item.State, item.Episode, item.Outcome, item.Reason = anID, journal.DeadLetterDiscarded, 1, decision.PermanentError, decision.ReasonUnknown
	item.Error, item.MatchedRule, item.Fingerprint = hostile+strings.Repeat("x", 1<<20), hostile, "f"
	item.Subject = journal.Subject{Tenant: "<default>", Policy: "p", ID: hostile}
	item.Review = journal.ReviewNote{Discard: true, Reason: hostile, By: hostile, At: now}
	c := open(t, func(_ *api.Options, to *guard.Services) { to.DeadLetters = shows{item: item} })
	for _, a := range []answer{c.get("vera", "/dead-letters/"+anID), c.get("vera", "/dead-letters")} {
		if a.status != http.StatusOK || a.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
			t.Fatalf("got %d %v", a.status, a.header)
		}
		for _, r := range a.text {
			if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || strings.ContainsRune("<>&\u202e\u2066\ufeff\u2028", r) {
				t.Errorf("the answer has %U in it", r)
			}
		}
		body := a.body
		if items, is := body["items"].([]any); is {
			body = items[0].(map[string]any)
		}
		if want := strings.ToValidUTF8(item.Error, "\ufffd"); body["error"] != want {
			t.Errorf("the text is another: %.200q", body["error"])
		}
	}
}
