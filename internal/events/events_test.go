package events_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/events"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit/golden"
)

var (
	claim   = journal.Subject{Tenant: journal.DefaultTenant, Policy: "tiss-submission", ID: "CLM-001-1234567890"}
	noon    = time.Date(2025, 1, 12, 12, 0, 0, 0, time.UTC)
	publish = events.Publisher(func(string) string { return "other" })
)

// attempt is a decision as the journal records it.
func attempt(rule decision.BusinessRule, outcome decision.Outcome) *journal.Attempt {
	a := &journal.Attempt{
		Record: 17, Number: 2, Episode: 1, Identity: journal.Identity{1}, JobKey: 2251799813685301, ElementInstanceKey: 2251799813685302,
		ProcessInstanceKey: 9007199254740993, Rule: rule, Error: `TIMEOUT "portal" <TISS> após 30s`, AnalysedCount: 1, GivenCount: 1,
		ReceivedAt: noon.Add(-2500 * time.Microsecond).Truncate(time.Millisecond), Took: 2500 * time.Microsecond,
		Decision: decision.Decision{
			Outcome: outcome, Policy: claim.Policy, SubjectID: claim.ID, ErrorClassification: decision.Transient, Reason: "TIMEOUT", MatchedRule: "TIMEOUT",
			MatchedText: "TIMEOUT", Catalogue: "3f9a1c77d0e2", RetryCount: 2, MaxRetries: 5, Backoff: decision.Backoff{Delay: 12 * time.Minute, Raw: 10 * time.Minute, JitterRatio: 0.2},
			NextRetryTime: noon.Add(12 * time.Minute), RetryReason: "Transient error, retry 2 of 5", AnalysedAt: noon, FirstFailure: noon.Add(-6*time.Minute - 250*time.Millisecond),
		},
	}
	if d := &a.Decision; outcome != decision.Retry {
		d.Backoff, d.NextRetryTime, d.Team, a.DeadLetter = decision.Backoff{}, time.Time{}, "faturamento", "2b6f0cc9-3a77-5d52-a6a5-1c9f6d2a7d10"
		d.RetryCount, a.AnalysedCount, d.RetryReason = 5, 5, "Maximum of 5 retries reached"
		d.Reason = decision.ReasonMaxRetries
	}
	if outcome == decision.PermanentError {
		d := &a.Decision
		d.ErrorClassification, d.Reason, d.MatchedRule, d.RetryReason = decision.Permanent, "DUPLICATE_CLAIM", "DUPLICATE_CLAIM", "Permanent error, not retried"
		d.MatchedText = "Duplicate claim"
	}
	return a
}

func ofAttempt(s journal.Subject, a *journal.Attempt) *journal.Happening {
	h := &journal.Happening{Entry: journal.EntryOf(s, a)}
	h.Attempt = a
	return h
}

func ofEntry(s journal.Subject, kind journal.EntryKind, body string) *journal.Happening {
	return &journal.Happening{Entry: journal.Entry{Record: 18, Kind: kind, Subject: s, At: noon.Add(5 * time.Millisecond), Body: body}}
}

func recovered() *journal.Happening {
	h := ofEntry(claim, journal.OutcomeEntry, `{"outcome":"success","episode":1,"state":"recovered","at":"2025-01-12T12:00:00Z","processInstanceKey":9007199254740993}`)
	h.Episode = journal.Episode{Number: 1, State: journal.Recovered, Retries: 2, FirstFailure: noon.Add(-155*time.Minute - 1500*time.Millisecond), ClosedAt: noon}
	return h
}

func failed() *journal.Happening {
	h := recovered()
	h.Episode.State = journal.Dead
	return h
}

func reviewed(discard bool) *journal.Happening {
	h := ofEntry(claim, journal.ReviewEntry, `{"decision":"reprocessing","deadLetterId":"2b6f0cc9-3a77-5d52-a6a5-1c9f6d2a7d10","reason":"CPF 529.982.247-25 corrigido","by":"ana","submissionDeadline":"2025-01-13T12:00:00Z","episode":1,"retryCount":6}`)
	h.Episode = journal.Episode{Number: 1, State: journal.Reprocessing, Retries: 6, NextRetryTime: noon.Add(time.Hour)}
	if discard {
		h.Body = strings.NewReplacer("reprocessing", "discarded", `"submissionDeadline":"2025-01-13T12:00:00Z",`, "").Replace(h.Body)
		h.Episode.State, h.Episode.NextRetryTime, h.Episode.Retries = journal.Discarded, time.Time{}, 5
	}
	return h
}

// portal is a record of a destination that left a phase for another.
func portal(went, phase destination.Phase) *journal.Happening {
	body, _ := json.Marshal(journal.DestinationBody{Version: 7, Went: went, State: &destination.State{
		Phase: phase, Since: noon, Outage: destination.Outage{
			Since: noon.Add(-time.Hour), Until: noon.Add(-time.Minute), Cause: destination.CauseFailures,
			Failed: 11, Admitted: 12, Tests: 9, Held: 210,
		},
	}})
	return ofEntry(journal.DestinationSubject("unimed-sp"), journal.DestinationEntry, string(body))
}

// givenUp is a record of a claim that is given up at a gate after a retry.
func givenUp() *journal.Happening {
	h := ofEntry(claim, journal.GateEntry, `{"action":"given_up","jobKey":"7","since":"2025-01-12T09:00:00Z","deadline":"2025-01-12T13:00:00Z","retryCount":1,"giveUp":"DEADLINE","possiblyAccepted":true}`)
	h.Episode = journal.Episode{Number: 1, FirstFailure: noon.Add(-3 * time.Hour)}
	return h
}

func revision() *journal.Happening {
	a := attempt(decision.RNBIL005, decision.Retry)
	a.Revision = 1
	return ofAttempt(claim, a)
}

// ended is a revision that gives up, because the retry can no longer be made in time (R20); follows says that the
// episode was waiting for it.
func ended(rule decision.BusinessRule, follows bool) *journal.Happening {
	a := attempt(rule, decision.MaxRetriesExceeded)
	a.Revision, a.AnalysedCount, a.Decision.RetryCount = 1, 1, 1
	a.Decision.Reason, a.Decision.RetryReason = decision.ReasonTimeLimit, "Time limit of 48h reached"
	h := ofAttempt(claim, a)
	h.Episode = journal.Episode{Number: 1, State: journal.Recovered}
	if follows {
		h.Episode.State, h.Episode.DeadLetter = journal.Dead, a.DeadLetter
	}
	return h
}

// happenings by the name of their file in testdata.
var happenings = map[string]struct {
	h     *journal.Happening
	types []string
}{
	"rnbil005-retry":     {ofAttempt(claim, attempt(decision.RNBIL005, decision.Retry)), []string{"RetryScheduled", "AuditRecorded"}},
	"rnbil005-limit":     {ofAttempt(claim, attempt(decision.RNBIL005, decision.MaxRetriesExceeded)), []string{"MaxRetriesExceeded", "AuditRecorded"}},
	"rnbil005-rejected":  {ofAttempt(claim, attempt(decision.RNBIL005, decision.Rejected)), []string{"AuditRecorded"}},
	"rnbil005-permanent": {ofAttempt(claim, attempt(decision.RNBIL005, decision.PermanentError)), []string{"PermanentErrorDetected", "AuditRecorded"}},
	"rnbil004-retry":     {ofAttempt(claim, attempt(decision.RNBIL004, decision.Retry)), []string{"SubmissionRetryScheduled", "AuditRecorded"}},
	"rnbil004-limit":     {ofAttempt(claim, attempt(decision.RNBIL004, decision.MaxRetriesExceeded)), []string{"SubmissionRetryExhausted", "AuditRecorded"}},
	"rebased":            {revision(), []string{"AuditRecorded"}},
	"rebased-limit":      {ended(decision.RNBIL005, true), []string{"MaxRetriesExceeded", "AuditRecorded"}},
	"rebased-limit-004":  {ended(decision.RNBIL004, true), []string{"SubmissionRetryExhausted", "AuditRecorded"}},
	"rebased-too-late":   {ended(decision.RNBIL005, false), []string{"AuditRecorded"}},
	"recovered":          {recovered(), []string{"RetryRecovered", "AuditRecorded"}},
	"reported-failure":   {failed(), []string{"AuditRecorded"}},
	"reviewed-reprocess": {reviewed(false), []string{"DeadLetterReviewed", "AuditRecorded"}},
	"reviewed-discard":   {reviewed(true), []string{"DeadLetterReviewed", "AuditRecorded"}},
	"delivered":          {ofEntry(claim, journal.DeliveryEntry, `{"delivery":"taken","deadLetterId":"2b6f0cc9-3a77-5d52-a6a5-1c9f6d2a7d10","decision":"reprocess","state":"reprocessing","episode":1,"jobKey":"9007199254740993"}`), []string{"AuditRecorded"}},
	"rejected":           {ofEntry(claim, journal.RejectionEntry, `{"rejection":"INVALID_RETRY_COUNT","message":"INVALID_RETRY_COUNT: retryCount is 2.5","jobKey":9007199254740993,"processInstanceKey":2}`), []string{"AuditRecorded"}},
	"rejected-who":       {ofEntry(journal.Subject{}, journal.RejectionEntry, `{"rejection":"INVALID_CLAIM_ID","message":"INVALID_CLAIM_ID: claimId is missing","jobKey":3,"processInstanceKey":2}`), []string{"AuditRecorded"}},
	"purged":             {ofEntry(journal.Subject{}, "purge", `{"through":1000,"link":7,"confirmed":true,"gone":[{"first":1,"last":2}],"sums":[{"name":"closed","n":1}]}`), []string{"AuditRecorded"}},
	"gathered":           {ofEntry(journal.Subject{}, "bulk", `{"bulkRun":"r","verb":"gather","by":"","items":[{"number":1,"letter":7}],"gathered":9}`), []string{"AuditRecorded"}},
	"given-up":           {givenUp(), []string{"MaxRetriesExceeded", "AuditRecorded"}},
	"released":           {ofEntry(claim, journal.GateEntry, `{"action":"released","jobKey":"7","since":"2025-01-12T09:00:00Z"}`), []string{"AuditRecorded"}},
	"destination-down":   {portal(destination.Up, destination.Down), []string{"DestinationDown", "AuditRecorded"}},
	"destination-up":     {portal(destination.Ramping, destination.Up), []string{"DestinationUp", "AuditRecorded"}},
	"destination-tests":  {portal(destination.Testing, destination.Ramping), []string{"AuditRecorded"}},
	"destination-same":   {portal("", destination.Up), []string{"AuditRecorded"}},
	"destination-held": {ofEntry(journal.DestinationSubject("unimed-sp"), journal.DestinationEntry,
		`{"command":{"verb":"hold","until":"2025-01-12T18:00:00Z","reason":"em manutenção, CPF 529.982.247-25","by":"ana"}}`), []string{"AuditRecorded"}},
	"assigned": {ofEntry(claim, journal.NoteEntry,
		`{"note":"assign","deadLetterId":"2b6f0cc9-3a77-5d52-a6a5-1c9f6d2a7d10","by":"ana@exemplo.com","assignee":"rui@exemplo.com"}`), []string{"AuditRecorded"}},
	"erased": {ofEntry(journal.Subject{}, journal.ErasureEntry,
		`{"reason":"protocolo 4711","by":"ana","gone":[{"first":1,"last":2}],"sums":[{"name":"closed","n":1}]}`), []string{"AuditRecorded"}},
}

func TestEventsAsTheyAreSent(t *testing.T) {
	for name, test := range happenings {
		t.Run(name, func(t *testing.T) {
			var text strings.Builder
			var types []string
			for _, m := range publish(test.h) {
				checkEnvelope(t, &m, test.h)
				types = append(types, m.Type)
				fmt.Fprintf(&text, "%s\n%s\n", events.Subject(m.Type), indented(m.Body))
			}
			if fmt.Sprint(types) != fmt.Sprint(test.types) {
				t.Errorf("the events are %s, want %s", types, test.types)
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), text.String())
		})
	}
}

func indented(body string) string {
	b, _ := json.MarshalIndent(json.RawMessage(body), "", " ")
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(b))
}

// attributeName of CloudEvents: lower-case letters and digits.
var attributeName = regexp.MustCompile(`^[a-z0-9]{1,20}$`)

// checkEnvelope holds a message against the JSON format of CloudEvents 1.0, and against what it is about.
func checkEnvelope(t *testing.T, m *journal.Message, h *journal.Happening) {
	t.Helper()
	var e map[string]json.RawMessage
	if err := json.Unmarshal([]byte(m.Body), &e); err != nil {
		t.Fatalf("no JSON object: %s", err)
	}
	text := func(name string) string {
		var s string
		if e[name] != nil && (json.Unmarshal(e[name], &s) != nil || s == "") {
			t.Errorf("%s is %s, expected a text that is not empty", name, e[name])
		}
		return s
	}
	for name := range e {
		if !attributeName.MatchString(name) {
			t.Errorf("%q is no name of an attribute", name)
		}
	}
	for _, name := range []string{"specversion", "id", "source", "type"} { // REQUIRED
		if text(name) == "" {
			t.Errorf("%s is missing", name)
		}
	}
	if text("specversion") != "1.0" || text("source") != "/retry-worker" || text("datacontenttype") != "application/json" {
		t.Errorf("the envelope is %s", m.Body)
	}
	about := h.Subject.ID
	if strings.HasPrefix(m.Type, "Destination") { // it is not configured
		about = "other"
	}
	if text("id") != m.ID || text("type") != m.Type || text("subject") != about || text("tenant") != h.Subject.Tenant || text("policy") != h.Subject.Policy {
		t.Errorf("the envelope is not about what happened: %s", m.Body)
	}
	if at, err := time.Parse(time.RFC3339, text("time")); err != nil || !at.Equal(m.At) {
		t.Errorf("time is %s, want %s", text("time"), m.At)
	}
	if m.Queue != events.Queue || m.Key != h.Subject.Tenant+"/"+h.Subject.Policy+"/"+h.Subject.ID {
		t.Errorf("queue %s, key %s", m.Queue, m.Key)
	}
	if strings.Contains(m.Body, "529.982.247-25") || strings.Contains(m.Body, "@") {
		t.Errorf("a person's CPF or e-mail is in %s", m.Body)
	}
}

// TestIDsThatHoldPersonalData: an id in which redaction finds something goes out redacted; the order goes by the whole one.
func TestIDsThatHoldPersonalData(t *testing.T) {
	s := journal.Subject{Tenant: journal.DefaultTenant, Policy: "tiss-submission", ID: "CLM-ana@exemplo.com-1"}
	a := attempt(decision.RNBIL005, decision.PermanentError)
	a.Decision.SubjectID = s.ID
	decided := ofAttempt(s, a)
	entered := ofEntry(s, journal.GateEntry, `{"action":"held"}`)
	for _, m := range append(publish(decided), publish(entered)...) {
		if strings.Contains(m.Body, "ana@") || strings.Count(m.Body, "[E-MAIL]") != 2 || !strings.HasSuffix(m.Key, s.ID) {
			t.Errorf("%s by %q says %s", m.Type, m.Key, m.Body)
		}
	}
	if a.Decision.SubjectID != s.ID || entered.Subject != s {
		t.Errorf("the record's own id became %q, %v", a.Decision.SubjectID, entered.Subject)
	}
}

func TestBodyThatIsNoObject(t *testing.T) {
	for _, body := range []string{"", "[1]", "{", `"x"`} {
		m := publish(ofEntry(claim, journal.ReviewEntry, body))
		if len(m) != 1 || !json.Valid([]byte(m[0].Body)) || strings.Contains(m[0].Body, `"body"`) {
			t.Errorf("%q is told as %v", body, m)
		}
	}
}
