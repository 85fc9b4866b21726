package console

import (
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
)

var verb = regexp.MustCompile(`%(?:\.0)?[sd]|\{[a-z]+\}`)

func TestEveryTextSaysSomethingInBothLanguages(t *testing.T) {
	for key, text := range texts() {
		for _, l := range Langs() {
			if text[l] == "" && key != "state.word." {
				t.Errorf("%s says nothing in %s", key, l)
			}
		}
		if len(text) != 2 && (len(text) != 3 || !slices.Contains(tones, text["tone"]) && !slices.Contains(marks, text["mark"])) {
			t.Errorf("%s has more than two languages and a tone or mark: %v", key, text)
		}
		if a, b := verb.FindAllString(text[Portuguese], -1), verb.FindAllString(text[English], -1); !slices.Equal(a, b) {
			t.Errorf("%s takes %v in Portuguese and %v in English", key, a, b)
		}
		if base, ok := strings.CutSuffix(key, ".one"); ok && texts()[base+".other"] == nil {
			t.Errorf("%s has no form for many", base)
		}
	}
}

// tones that badges have.
var tones = []string{"ok", "bad", "warn", "wait", "off"}

// sources are the package's own code and templates.
func sources(t *testing.T) (code, markup string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, _ := os.ReadFile(path)
		switch {
		case strings.HasSuffix(path, ".go"):
			code += string(content)
		case strings.HasSuffix(path, ".html"):
			markup += string(content)
		}
		return nil
	})
	testkit.Must(t, err)
	return code, markup
}

var literalKey = regexp.MustCompile(`\b(?:t|T|Count|count|key:) "([a-z0-9_.]+)"|\.(?:T|Count)\("([a-z0-9_.]+)"[,)]|key: "([a-z0-9_.]+)"`)

func TestEveryTextThatIsAskedForExists(t *testing.T) {
	code, markup := sources(t)
	found := 0
	for _, m := range literalKey.FindAllStringSubmatch(code+markup, -1) {
		key := m[1] + m[2] + m[3]
		found++
		_, plain := texts()[key]
		_, many := texts()[key+".other"]
		_, problem := texts()["problem."+key+".title"]
		if !plain && !many && !problem {
			t.Errorf("there is no text %q", key)
		}
	}
	if found < 150 {
		t.Errorf("found %d keys only: the test does not see them", found)
	}
}

// named are the keys of the texts that name the members of a closed set: * stands for each of them.
func named[T any](set []T, keys ...string) (all []string) {
	for _, member := range set {
		for _, key := range keys {
			all = append(all, strings.Replace(key, "*", fmt.Sprint(member), 1))
		}
	}
	return all
}

// figureNames are those of the figures that a digest has.
func figureNames() (names []string) {
	for _, k := range statistics.All(nil, []string{"p"}, time.Now()) {
		names = append(names, k.Name)
	}
	return names
}

// marks that a story's steps have.
var marks = []string{markHeld, "released", markRetry, markFinal, markReview, "discard", "accepted", "recovered", markNext,
	markDeadline}

// entriesWithMarks are the texts of what ends an episode, or begins its wait.
func entriesWithMarks() []string {
	return slices.Concat(named([]journal.GateAction{journal.GateHeld, journal.GateReleased, journal.GateGivenUp, journal.GateAnswered}, "event.gate.*"),
		named([]string{"success", "accepted", "failure", "expired"}, "event.outcome.*"),
		named([]journal.DeadLetterState{journal.DeadLetterReprocessing, journal.DeadLetterDiscarded, journal.DeadLetterAccepted}, "event.review.*"))
}

// namesOfSets are the keys that are put together, by the sets that they name.
func namesOfSets() []string {
	claims := []journal.State{journal.Scheduled, journal.Due, journal.Dead, journal.Reprocessing, journal.Recovered, journal.Discarded, journal.Accepted, journal.Superseded, journal.Abandoned, journal.Expired}
	var statuses []string
	for _, s := range claims {
		statuses = append(statuses, string(s.Status()))
	}
	decided := slices.DeleteFunc(journal.DeadLetterStates(), func(s journal.DeadLetterState) bool { return s == journal.DeadLetterOpen })
	return slices.Concat(
		named(decision.Reasons(), "reason.*"),
		named(journal.DeadLetterStates(), "state.word.*"),
		named(decided, "decision.none.*"),
		named(claims, "state.*", "state.word.*"),
		named(statuses, "status.*"),
		named(append([]string{"urgent"}, deadletter.Sorts()...), "list.sort.*"),
		named(states, "list.state.*", "list.empty.*", "letters.*.one", "letters.*.other"),
		named([]deadletter.Process{deadletter.Waiting, deadletter.Expected, deadletter.Nobody, deadletter.Answered}, "process.*", "process.*.text"),
		named([]journal.Delivery{journal.DeliveryPending, journal.DeliveryTaken, journal.DeliveryNobody}, "delivery.*", "delivery.*.text", "event.delivery.*"),
		named([]decision.ErrorClassification{decision.Permanent, decision.Transient, decision.Unknown}, "class.*"),
		named([]access.Role{access.Viewer, access.Operator, access.Admin}, "role.*"),
		named([]journal.EntryKind{journal.RejectionEntry, journal.OutcomeEntry, journal.ReviewEntry, journal.DeliveryEntry, journal.PurgeEntry, journal.BulkEntry,
			journal.ErasureEntry, journal.RebuildEntry, journal.GateEntry, journal.DestinationEntry, journal.TeachingEntry, journal.NoteEntry}, "event.kind.*"),
		named(slices.Collect(maps.Keys(catalogue.Default().Teams)), "team.*"),
		named([]string{"forbidden_host", "forbidden_origin", "forbidden_role", "forbidden_team", "sessions_unavailable",
			"provider_unavailable", "form_expired", "invalid_form", "login_required", "body_too_large", "too_many_attempts", "too_many_changes"},
			"problem.refused.*.title", "problem.refused.*.text"),
		named([]string{"token_expired", "token_unknown", "too_many_attempts", "login_refused", "login_stale", "provider_unavailable"}, "login.*"),
		named([]journal.Code{journal.MaxRetriesExceeded, journal.InvalidRetryState, deadletter.ReasonRequired, deadletter.ReasonTooLong, deadletter.PolicyNotFound,
			journal.DeadlineMissed, deadletter.InvalidTeam, deadletter.InvalidProtocol, deadletter.InvalidAssignee}, "form.wrong.*"),
		named([]string{"when", "deadline"}, "form.wrong.*"),
		named([]string{"retry", "discard", "accepted"}, "review.did.*", "review.done.*", "form.did.*"),
		named([]string{"teach", "forget"}, "cause.done.*"),
		named([]destination.Phase{destination.Up, destination.Down, destination.Testing, destination.Ramping}, "portal.*"),
		named([]destination.Verb{destination.HoldClaims, destination.SendCanary, destination.ReleaseAt, destination.TreatAsUp},
			"portal.order.*", "portal.order.*.text", "portal.order.*.go", "portal.done.*", "event.order.*"),
		// Bulk runs, their outcomes and their refusals.
		named(journal.BulkOutcomes(), "outcome.*", "item.*", "outcome.*.text"),
		named([]journal.BulkState{journal.BulkRunning, journal.BulkPaused, journal.BulkCancelled, journal.BulkDone}, "run.state.*", "run.means.*"),
		named([]journal.BulkState{journal.BulkPaused, journal.BulkCancelled}, "run.changed.*"),
		named([]journal.BulkAction{journal.BulkRetry, journal.BulkDiscard, journal.BulkAccept}, "run.what.*", "run.what.*.one", "run.what.*.other", "plan.go.*.one", "plan.go.*.other", "plan.ready.*"),
		named([]journal.Code{journal.MaxRetriesExceeded, journal.InvalidRetryState, deadletter.PolicyNotFound, journal.JobNotFound, deadletter.NotRecordable,
			journal.DeadlineMissed}, "refused.*"),
		named([]journal.Code{deadletter.InvalidPace, deadletter.InvalidPlan, deadletter.NothingToDo, deadletter.InvalidFilter}, "plan.wrong.*"),
		named([]journal.BulkVerb{journal.BulkStart, journal.BulkPause, journal.BulkResume, journal.BulkCancel}, "event.bulk.*"),
		named([]string{string(journal.BulkFinish), "refuse"}, "event.bulk.*"),
		entriesWithMarks(),
		[]string{"event.teaching.PERMANENT", "event.teaching.TRANSIENT", "event.teaching.forgotten", "event.rejection.text", "filter.wrong.ids", "event.outcome.failure.text", "event.review.reprocessing.text", "event.gate.held.text"},
		named(catalogue.Default().Policies.Names(), "policy.*"),
		named(marks, "mark.*"),
		named([]string{"PERMANENT", "UNKNOWN", "TIME_LIMIT", "DEADLINE", "limit"}, "event.final.*"),
		named([]journal.NoteVerb{journal.Comment, journal.Assign, journal.RetryLater, journal.DiscardLater, journal.Undo}, "event.note.*"),
		named([]decision.UnknownError{decision.RetryUnknown, decision.GiveUpUnknown}, "limits.unknown.*"),
		named([]decision.EmptyError{decision.RejectEmptyError, decision.AssumeTransient}, "limits.empty.*"),
		[]string{"assignee.nobody", "audit.wrong.id", "audit.wrong.since", "audit.wrong.until"},
		named(figureNames(), "kpi.*"),
		named([]string{"unknown", "up", "down"}, "health.*"),
		named([]string{"engine", "journal"}, "health.*", "health.*.down", "health.*.unknown"),
		named([]journal.NoteVerb{journal.RetryLater, journal.DiscardLater}, "note.later.*", "review.later.*"),
		named([]string{journal.ReviewQueue, journal.GateQueue, journal.LaterQueue, "events", deadletter.NoticeQueue}, "health.queue.*"),
		named([]string{"email", "webhook"}, "health.way.*"),
		named([]string{"invalid_until", "invalid_pace"}, "portal.wrong.*"),
		named([]string{"America/Sao_Paulo", "America/Manaus", "America/Rio_Branco", "America/Noronha"}, "zone.*"),
		[]string{"event.delivery.waiting", "run.wrong." + string(journal.InvalidRunState)},
	)
}

// TestTextsAreThoseThatAreAskedFor: each name of a closed set has its text, and each text is such a name or stands in the
// code or a template.
func TestTextsAreThoseThatAreAskedFor(t *testing.T) {
	names := namesOfSets()
	for _, key := range names {
		if _, ok := texts()[key]; !ok {
			t.Errorf("there is no text %q", key)
		}
	}
	for _, key := range entriesWithMarks() {
		if texts()[key]["mark"] == "" {
			t.Errorf("%s has no mark", key)
		}
	}
	for _, key := range slices.Concat(named(journal.DeadLetterStates(), "state.word.*"), named(journal.BulkOutcomes(), "item.*"),
		named([]destination.Phase{destination.Up, destination.Down, destination.Testing, destination.Ramping}, "portal.*")) {
		if texts()[key]["tone"] == "" {
			t.Errorf("the badge %s has no tone", key)
		}
	}
	code, markup := sources(t)
	all := code + markup
	for key := range texts() {
		base := strings.TrimSuffix(strings.TrimSuffix(key, ".one"), ".other")
		problem, isProblem := strings.CutPrefix(strings.TrimSuffix(strings.TrimSuffix(key, ".title"), ".text"), "problem.")
		if !slices.Contains(names, key) && !strings.Contains(all, `"`+base+`"`) && !(isProblem && strings.Contains(all, `"`+problem+`"`)) {
			t.Errorf("nobody asks for the text %q", key)
		}
	}
}

// TestPortugueseIsThatOfBillingStaff holds the texts against the list of words.
func TestPortugueseIsThatOfBillingStaff(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^[^#|]+\|.*\| ([^|]+)$`).FindAllStringSubmatch(testkit.Read(t, "testdata/words.txt"), -1)
	if len(rows) < 30 {
		t.Fatalf("testdata/words.txt lists %d words only", len(rows))
	}
	for _, row := range rows {
		notSaid := regexp.MustCompile(`(?i)\b(` + strings.ReplaceAll(row[1], ", ", "|") + `)s?\b`)
		for key, text := range texts() {
			if found := notSaid.FindString(text[Portuguese]); found != "" {
				t.Errorf("%s says %q, which testdata/words.txt has another word for: %s", key, found, text)
			}
		}
	}
	for _, c := range []struct{ got, want string }{
		{Portuguese.retry(2, 5), "2 de 5"}, {Portuguese.retry(6, 5), "extra, além das 5"}, {Portuguese.retry(2, 1), "extra, além da prevista"},
		{Portuguese.retry(1, 0), "extra"}, {Portuguese.retries(5, 5), "5 de 5"}, {Portuguese.retries(6, 5), "5 de 5 + 1 extra"},
		{Portuguese.policy("tiss-submission"), "Envio TISS"}, {Portuguese.policy("of-its-own"), "of-its-own"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestNumbersAndSpansAreThoseOfTheLanguage(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Portuguese.Number(1234567), "1.234.567"}, {English.Number(1234567), "1,234,567"}, {English.Number(-12), "-12"}, {Portuguese.Number(999), "999"},
		{Portuguese.percent(0.8333), "83,3 %"}, {English.percent(1), "100 %"},
		{Portuguese.Count("letters.open", 1), "1 pendência aberta"}, {Portuguese.Count("letters.open", 1200), "1.200 pendências abertas"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestTheBrowsersLanguageIsSpoken(t *testing.T) {
	for header, want := range map[string]Lang{
		"": Portuguese, "de": Portuguese, "en": English, "en-GB,pt;q=0.5": English, "pt-BR,pt;q=0.9,en;q=0.8": Portuguese,
		"de, en;q=0.3": English, "en;q=0.2, pt-PT;q=0.7": Portuguese, "en;q=x": Portuguese, "EN-us": English,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Language", header)
		if got, _ := langOf(r); got != want {
			t.Errorf("Accept-Language %q: %s, want %s", header, got, want)
		}
	}
}
