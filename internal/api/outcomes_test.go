package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

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
			c := open(t)
			c.Fail(decision.DefaultPolicy, claim, "TIMEOUT", -1)
			c.Advance(tt.after)
			a := c.post("otto", "/outcomes", tt.body)
			if a.status != http.StatusOK || a.body["state"] != tt.state || a.body["status"] != tt.status || a.body["changed"] != tt.changed ||
				a.body["policy"] != "tiss-submission" || a.body["id"] != claim || a.body["tenant"] != "<default>" || a.body["retryCount"] != 1.0 {
				t.Errorf("got %d %v", a.status, a.body)
			}
			if dead, _ := a.body["deadLetterId"].(string); (tt.state == "dead") != (len(dead) == 36) {
				t.Errorf("deadLetterId is %v", a.body["deadLetterId"])
			}
			if got := c.get("vera", "/subjects/tiss-submission/"+claim); got.body["state"] != tt.state || got.body["deadLetterId"] != a.body["deadLetterId"] {
				t.Errorf("the subject is then %v", got.body)
			}
			if told := c.lines.FilterField(zap.String("event", "retry_outcome_recorded")).Len(); (told == 1) != tt.changed {
				t.Errorf("%d lines in the log", told)
			}
			if again := c.post("otto", "/outcomes", tt.body); again.status != http.StatusOK || again.body["changed"] != false || again.body["state"] != tt.state {
				t.Errorf("told twice: got %d %v", again.status, again.body)
			}
		})
	}
}

// Whoever may not decide on a claim's dead letter may not end its case by telling how it ended either, whether it is
// open or was sent again; and whoever ended it is named by the record and by the log.
func TestOutcomeOfAnotherTeam(t *testing.T) {
	for _, outcome := range []string{"success", "failure"} {
		for _, again := range []bool{false, true} {
			c := open(t)
			c.Tokens.Teams = map[string]access.Teams{"own": "ti,faturamento", "other": "ti,cadastro"}
			c.Tokens.Publish(map[string]access.Role{"own": access.Operator, "other": access.Operator, "vera": access.Viewer}, time.Time{})
			state, id := "dead", c.permanent("CLM-001-1")
			if again {
				_, err := c.DeadLetters.Retry(t.Context(), deadletter.Command{ID: id, Reason: "x", By: "ana", When: deadletter.Now})
				testkit.Must(t, err)
				state = "reprocessing"
			}
			c.Advance(time.Minute)
			tell := `{"id":"CLM-001-1","outcome":"` + outcome + `"}`
			if outcome == "success" || again { // otherwise it is dead already
				c.refuses("other", "/outcomes", tell, http.StatusForbidden, "forbidden_team")
			}
			if got := c.get("vera", "/subjects/tiss-submission/CLM-001-1"); got.body["state"] != state {
				t.Errorf("%s, sent again %t: refused, and the subject is %v", outcome, again, got.body["state"])
			}
			a := c.post("own", "/outcomes", tell)
			if changed := outcome == "success" || again; a.status != http.StatusOK || a.body["changed"] != changed {
				t.Fatalf("%s, sent again %t: its own team is answered %d %s", outcome, again, a.status, a.text)
			} else if !changed {
				continue
			}
			if got := c.get("vera", "/subjects/tiss-submission/CLM-001-1/audit"); !strings.Contains(got.text, `"by":"own"`) {
				t.Errorf("%s, sent again %t: no record says who told it: %s", outcome, again, got.text)
			}
			if c.lines.FilterField(zap.String("event", "retry_outcome_recorded")).FilterField(zap.String("by", "own")).Len() != 1 {
				t.Errorf("%s, sent again %t: the log does not say who told it", outcome, again)
			}
		}
	}
}

// A failure that is told of a claim in time makes a dead letter of the policy's own team, as a process's report does.
func TestToldFailureHasATeam(t *testing.T) {
	c := open(t)
	c.Fail(decision.DefaultPolicy, "CLM-001-1", "TIMEOUT", -1)
	c.Advance(time.Hour)
	id, _ := c.post("otto", "/outcomes", `{"id":"CLM-001-1","outcome":"failure"}`).body["deadLetterId"].(string)
	want := c.Policies()[decision.DefaultPolicy].LimitTeam
	if got := c.get("vera", "/dead-letters/"+id); want == "" || got.body["responsibleTeam"] != string(want) {
		t.Errorf("the dead letter is %s's, want %q's", got.body["responsibleTeam"], want)
	}
}

func short(s string) string { return s[:min(len(s), 80)] }

// A person's CPF in a wrong field is not told back.
func TestRefusalsAreRedacted(t *testing.T) {
	c := open(t)
	for _, path := range []string{"/outcomes", "/decisions"} {
		a := c.post("otto", path, `{"id":"CPF 529.982.247-25"}`)
		if message, _ := a.body["message"].(string); a.status != 422 || message == "" || strings.Contains(message, "529.982.247-25") {
			t.Errorf("%s: got %d %v", path, a.status, a.body)
		}
	}
	for _, l := range c.lines.All() {
		t.Errorf("the log says %v", l)
	}
}

// invalidOutcomes is a journal that cannot hold any outcome.
type invalidOutcomes struct{ guard.Recorder }

func (invalidOutcomes) Conclude(context.Context, *journal.Outcome) (journal.Concluded, error) {
	return journal.Concluded{}, journal.ErrInvalid
}

func TestUnrecordable(t *testing.T) {
	c := open(t, func(_ *api.Options, to *guard.Services) { to.Journal = invalidOutcomes{} })
	c.refuses("otto", "/outcomes", `{"id":"CLM-001-1"}`, http.StatusUnprocessableEntity, "unrecordable")
}
