package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/api"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// recording is an API with a journal of which one retry of that claim is remembered; what it logs is told.
func recording(t *testing.T, id string, after time.Duration) (url string, store *testkit.Memory, lines *observer.ObservedLogs) {
	t.Helper()
	store = remembering(t, id, "TIMEOUT")
	core, lines := observer.New(zapcore.InfoLevel)
	at := now.Add(after)
	j := testkit.StartJournal(t, store, func() time.Time { return at })
	return serveRecording(t, store, j, at, zap.New(core)) + "/api/v1", store, lines
}

func TestOutcomes(t *testing.T) {
	const claim = "CLM-001-1"
	for _, tt := range []struct {
		name, body    string
		after         time.Duration
		state, status string
		changed       bool
	}{
		{"success", `{"policy":"tiss-submission","id":"CLM-001-1","outcome":"success"}`, time.Hour, "recovered", "entregue", true},
		{"success by the defaults", `{"id":"CLM-001-1"}`, time.Hour, "recovered", "entregue", true},
		{"success with nulls", `{"policy":null,"id":"CLM-001-1","outcome":null,"at":null,"tenant":null}`, time.Hour, "recovered", "entregue", true},
		{"success of an instant with a zone", `{"id":"CLM-001-1","at":"2026-03-02T07:30:00-03:00"}`, time.Hour, "recovered", "entregue", true},
		{"a clock that is a bit ahead", `{"id":"CLM-001-1","at":"2026-03-02T11:01:00Z"}`, time.Hour, "recovered", "entregue", true},
		{"success of an earlier try", `{"id":"CLM-001-1","at":"2026-03-02T09:59:00Z"}`, time.Hour, "due", "reenviando", false},
		{"failure after the retry's time", `{"id":"CLM-001-1","outcome":"failure"}`, time.Hour, "dead", "falha", true},
		{"failure while the retry lies ahead", `{"id":"CLM-001-1","outcome":"failure"}`, time.Second, "scheduled", "pendente", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, _, lines := recording(t, claim, tt.after)
			a := post(t, url+"/outcomes", tt.body)
			if a.status != http.StatusOK || a.body["state"] != tt.state || a.body["status"] != tt.status || a.body["changed"] != tt.changed ||
				a.body["policy"] != "tiss-submission" || a.body["id"] != claim || a.body["tenant"] != "<default>" || a.body["retryCount"] != 1.0 {
				t.Errorf("got %d %v", a.status, a.body)
			}
			if dead, _ := a.body["deadLetterId"].(string); (tt.state == "dead") != (len(dead) == 36) {
				t.Errorf("deadLetterId is %v", a.body["deadLetterId"])
			}
			if got := get(t, url+"/subjects/tiss-submission/"+claim); got.body["state"] != tt.state || got.body["deadLetterId"] != a.body["deadLetterId"] {
				t.Errorf("the subject is then %v", got.body)
			}
			if told := lines.FilterField(zap.String("event", "retry_outcome_recorded")).Len(); (told == 1) != tt.changed {
				t.Errorf("%d lines in the log", told)
			}
			if again := post(t, url+"/outcomes", tt.body); again.status != http.StatusOK || again.body["changed"] != false || again.body["state"] != tt.state {
				t.Errorf("told twice: got %d %v", again.status, again.body)
			}
		})
	}
}

func TestOutcomesOfNobody(t *testing.T) {
	url, store, _ := recording(t, "CLM-001-1", time.Hour)
	records := len(store.Entries())
	for _, body := range []string{`{"id":"CLM-001-2"}`, `{"id":"CLM-001-1","tenant":"other"}`, `{"id":"CLM-001-2","outcome":"failure"}`} {
		a := post(t, url+"/outcomes", body)
		a.refused(t, body, http.StatusNotFound, "subject_not_found")
	}
	if got := len(store.Entries()); got != records {
		t.Errorf("%d entries were recorded", got-records)
	}
}

func TestOutcomesRefused(t *testing.T) {
	url, store, _ := recording(t, "CLM-001-1", time.Hour)
	for body, want := range map[string]struct {
		status int
		code   string
	}{
		``:                                       {400, "invalid_json"},
		`{`:                                      {400, "invalid_json"},
		`null`:                                   {400, "invalid_json"},
		`[]`:                                     {400, "invalid_json"},
		`"CLM-001-1"`:                            {400, "invalid_json"},
		`{"id":"CLM-001-1"} x`:                   {400, "invalid_json"},
		`{}`:                                     {422, "invalid_claim_id"},
		`{"id":null}`:                            {422, "invalid_claim_id"},
		`{"id":5}`:                               {422, "invalid_claim_id"},
		`{"id":"CLM-001"}`:                       {422, "invalid_claim_id"},
		`{"id":"CLM-\n-1"}`:                      {422, "invalid_claim_id"},
		`{"id":"CLM-001-1","policy":"none"}`:     {422, "unknown_policy"},
		`{"id":"CLM-001-1","policy":1}`:          {422, "invalid_policy"},
		`{"id":"CLM-001-1","outcome":"SUCCESS"}`: {422, "invalid_retry_outcome"},
		`{"id":"CLM-001-1","outcome":true}`:      {422, "invalid_retry_outcome"},
		`{"id":"CLM-001-1","outcome":""}`:        {422, "invalid_retry_outcome"},
		`{"id":"CLM-001-1","at":"2026-03-02"}`:   {422, "invalid_at"},
		`{"id":"CLM-001-1","at":""}`:             {422, "invalid_at"},
		`{"id":"CLM-001-1","at":1772445600}`:     {422, "invalid_at"},
		`{"id":"CLM-001-1","at":"2026-03-02T11:01:01Z"}`:                 {422, "invalid_at"},
		`{"id":"CLM-001-1","at":"9999-12-31T23:59:59Z"}`:                 {422, "invalid_at"},
		`{"id":"CLM-001-1","tenant":7}`:                                  {422, "invalid_tenant"},
		`{"id":"CLM-001-1","tenant":"a\u0000b"}`:                         {422, "invalid_tenant"},
		`{"id":"CLM-001-1","retryOutcome":"success"}`:                    {422, "unknown_field"},
		`{"id":"CLM-001-1","Outcome":"success"}`:                         {422, "unknown_field"},
		`{"id":"` + strings.Repeat("9", 70_000) + `"}`:                   {413, "body_too_large"},
		`{"id":"CLM-` + strings.Repeat("9", 600) + `-1"}`:                {422, "invalid_claim_id"},
		`{"id":"CLM-001-1","tenant":"` + strings.Repeat("a", 300) + `"}`: {422, "invalid_tenant"},
	} {
		a := post(t, url+"/outcomes", body)
		a.refused(t, short(body), want.status, want.code)
	}
	if n := len(store.Entries()); n != 0 {
		t.Errorf("%d outcomes were recorded", n)
	}
}

func short(s string) string { return s[:min(len(s), 80)] }

// A person's CPF in a wrong field is not told back.
func TestRefusalsAreRedacted(t *testing.T) {
	url, _, lines := recording(t, "CLM-001-1", time.Hour)
	for _, path := range []string{"/outcomes", "/decisions"} {
		a := post(t, url+path, `{"id":"CPF 529.982.247-25"}`)
		if message, _ := a.body["message"].(string); a.status != 422 || message == "" || strings.Contains(message, "529.982.247-25") {
			t.Errorf("%s: got %d %v", path, a.status, a.body)
		}
	}
	for _, l := range lines.All() {
		t.Errorf("the log says %v", l)
	}
}

func TestBodiesMustBeJSON(t *testing.T) {
	url, _, _ := recording(t, "CLM-001-1", time.Hour)
	for kind, want := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON;charset=UTF-8": 200,
		"": 415, "text/plain": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415, "application/jsonp": 415,
		"application/json; charset=latin1": 415, ";": 415,
	} {
		for path, body := range map[string]string{"/outcomes": `{"id":"CLM-001-1"}`, "/decisions": `{"id":"CLM-001-1","error":"TIMEOUT"}`} {
			a := post(t, url+path, body, func(r *http.Request) { r.Header.Set("Content-Type", kind) })
			if a.status != want {
				t.Errorf("%s with %q: got %d %v, want %d", path, kind, a.status, a.body, want)
			}
			if want == 415 {
				a.refused(t, kind, want, "unsupported_media_type")
			}
		}
	}
}

// invalidOutcomes is a journal that cannot hold any outcome.
type invalidOutcomes struct{ api.Recorder }

func (invalidOutcomes) Conclude(context.Context, *journal.Outcome) (journal.Concluded, error) {
	return journal.Concluded{}, journal.ErrInvalid
}

func TestUnrecordable(t *testing.T) {
	url := serveRecording(t, testkit.NewMemory(), invalidOutcomes{}, now, zap.NewNop())
	a := post(t, url+"/api/v1/outcomes", `{"id":"CLM-001-1"}`)
	a.refused(t, "an outcome", http.StatusUnprocessableEntity, "unrecordable")
}

var _ api.Recorder = (*journal.Journal)(nil)
