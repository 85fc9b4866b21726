package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// openForSession is an API for a session in testdata/deadletters, by an operator or, where its name ends so, an admin. What
// ends in PERMANENT and EXHAUSTED stands for the ids of dead letters: below the limit, and at it.
func openForSession(s *session) (names func() []string) {
	t, session := s.t, s.name
	w := open(t)
	var letters []string
	switch kind, _, _ := strings.Cut(session, "-"); kind {
	case "bulk":
		w = openCauses(t)
		if strings.HasPrefix(session, "bulk-slow") {
			w.afterPlan = func() { w.Advance(time.Second) }
		}
		if strings.HasPrefix(session, "bulk-outdated") {
			w.afterPlan = func() {
				w.afterPlan = nil
				items, _, err := w.DeadLetters.List(t.Context(), journal.DeadLetterFilter{Team: "ti"}, "", 1)
				testkit.Must(t, err)
				_, err = w.DeadLetters.Decide(t.Context(), deadletter.Command{Action: journal.BulkDiscard, ID: items[0].ID, Reason: "x", By: "bia"})
				testkit.Must(t, err)
			}
		}
	case "erase":
		w.Fail(decision.DefaultPolicy, "CLM-001-1", "TIMEOUT", -1)
		w.Fail("failed-job", "..", "TIMEOUT", -1)
	case "pages":
		for n := range 7 {
			letters = append(letters, fmt.Sprintf("00000000-0000-0000-0000-%012d", n), w.letter(fmt.Sprintf("CLM-%03d-1", n), "DUPLICATE_CLAIM", 0))
		}
	case "destinations":
		p := testkit.NewPortal("unimed-sp", w.Journal, w.Now())
		w.Advance(90 * time.Minute)
		p.Fails(t, w.Now())
		p.Hold(t, "CLM-003-1234567890", 3000, time.Time{})
		p.Hold(t, "CLM-004-1234567890", 4000, w.Now().Add(8*time.Hour))
		w.Advance(20 * time.Minute)
	case "causes":
		w.letter("CLM-001-1234567890", "guia retida em auditoria no setor 12 da operadora", 5)
		w.letter("CLM-002-1234567890", "HTTP 503 Service Unavailable", 5)
		w.letter("CLM-003-1234567890", "E1234", 5)
	default:
		letters = []string{
			"00000000-0000-0000-0000-000PERMANENT", w.letter("CLM-001-1234567890", "glosa: DUPLICATE_CLAIM, protocolo já recebido", 2),
			"00000000-0000-0000-0000-000EXHAUSTED", w.letter("CLM-002-1234567890", "HTTP 503 Service Unavailable", 5),
		}
		w.Advance(90 * time.Minute)
	}
	w.as("otto")
	if strings.HasSuffix(session, "-admin") || session == "admin" {
		w.as("ada")
	}
	for _, who := range []string{"vera", "otto", "ada"} {
		letters = append(letters, "TOKEN-"+who, w.Tokens.Secret(who))
	}
	return func() []string { return append(w.names(), letters...) }
}

// A table fits the terminal, and ids are always whole: they are what the other commands take.
func TestDeadLetterTableFits(t *testing.T) {
	w := open(t)
	ids := []string{w.letter("CLM-001-"+strings.Repeat("9", 60), "DUPLICATE_CLAIM "+strings.Repeat("palavras ", 60), 2), w.letter("CLM-002-1", "INVALID_PROCEDURE_CODE", 0)}
	wide := 0
	for _, columns := range []int{1, 36, 40, 79, 80, 100, 120, 140, 150, 160, 170, 180, 200, 1000} {
		t.Setenv("COLUMNS", fmt.Sprint(columns))
		r := retryWorker("dead-letters", "list")
		lines := strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n")
		if r.code != exitDone || len(lines) != 3 {
			t.Fatalf("at %d: exit %d, %d lines, %s", columns, r.code, len(lines), r.stderr)
		}
		longest := 0
		for _, line := range lines {
			longest = max(longest, utf8.RuneCountInString(line))
		}
		if longest > max(columns, 36) {
			t.Errorf("at %d a line has %d characters:\n%s", columns, longest, r.stdout)
		}
		for _, id := range ids {
			if !strings.Contains(r.stdout, id) {
				t.Errorf("at %d it does not show %s:\n%s", columns, id, r.stdout)
			}
		}
		if columns >= 80 && !strings.Contains(lines[0], "SUBJECT") || columns >= 120 && !strings.Contains(lines[0], "REASON") {
			t.Errorf("at %d there is room for more than\n%s", columns, r.stdout)
		}
		if n := len(strings.Fields(lines[0])); n < wide {
			t.Errorf("at %d there are fewer columns than in a narrower terminal", columns)
		} else {
			wide = n
		}
	}
}

const someID = "3fa85f64-5717-5562-b3fc-2c963f66afa6"

// The token comes from the environment or a file, and goes to the server alone.
func TestTokenIsShownToTheServerOnly(t *testing.T) {
	const secret, other = "rwt_ofthevariable", "rwt_ofthefile"
	var shown []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server was asked, with %q", r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.Header.Get("Authorization"))
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	testkit.Environment(t, map[string]string{tokenVariable: secret, "HTTP_PROXY": elsewhere.URL, "http_proxy": elsewhere.URL})
	file := testkit.File(t, "token", []byte(other+"\n"))
	exposed := testkit.File(t, "exposed", []byte(other))
	testkit.Must(t, os.Chmod(exposed, 0o644))
	for _, tt := range []struct {
		args  string
		code  int
		shown string
	}{
		{"", exitFailed, "Bearer " + secret},
		{" --token-file " + file, exitFailed, "Bearer " + other},
		{" --token-file " + exposed, exitUsage, ""},
		{" --token-file " + testkit.File(t, "empty", []byte("\n")), exitUsage, ""},
		{" --token-file " + testkit.File(t, "two", []byte(other+"\n"+secret)), exitUsage, ""},
	} {
		shown = nil
		for _, command := range []string{"list", "show " + someID, "retry " + someID + " --reason x", "discard " + someID + " --reason x"} {
			r := retryWorker(words(t, "dead-letters "+command+" --server "+server.URL+tt.args)...)
			if r.code != tt.code || strings.Contains(r.stdout+r.stderr, secret) || strings.Contains(r.stdout+r.stderr, other) {
				t.Errorf("%s%s: exit %d, %q %q", command, tt.args, r.code, r.stdout, r.stderr)
			}
		}
		for _, got := range shown {
			if got != tt.shown {
				t.Errorf("%s: the server was shown %q", tt.args, got)
			}
		}
		if (len(shown) == 4) != (tt.shown != "") {
			t.Errorf("%s: the server was asked %d times", tt.args, len(shown))
		}
	}
	t.Setenv(tokenVariable, "rwt_a\r\nX: y")
	retryWorker("dead-letters", "list", "--server", server.URL).fails(t, exitUsage, "RETRY_WORKER_TOKEN holds no token (not shown), expected one as `retry-worker token new` prints it")
}
