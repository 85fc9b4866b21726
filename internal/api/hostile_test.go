package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

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

// Every character there is stays itself, none that acts stands as it is, and what is no character becomes one.
func TestInertCharacters(t *testing.T) {
	if got := string(api.Inert([]byte("[\"a\xff\"]"))); got != "[\"a\ufffd\"]" {
		t.Errorf("no UTF-8 becomes %q", got)
	}
	const step = 512
	for first := rune(0); first <= unicode.MaxRune; first += step {
		var all []rune
		for r := first; r < first+step && r <= unicode.MaxRune; r++ {
			if utf8.ValidRune(r) && r >= ' ' && r != '"' && r != '\\' { // the others are escaped in every JSON
				all = append(all, r)
			}
		}
		inert := api.Inert([]byte(`"` + string(all) + `"`))
		var back string
		if err := json.Unmarshal(inert, &back); err != nil || back != string(all) {
			t.Errorf("from %U on: another text, %v", first, err)
		}
		acts := func(r rune) bool {
			return unicode.IsControl(r) || strings.ContainsRune("<>&", r) ||
				r <= 0xffff && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
		}
		if at := strings.IndexFunc(string(inert), acts); at >= 0 {
			t.Errorf("from %U on: something acts at %d", first, at)
		}
	}
}
