package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"retry-worker/internal/api"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/golden"
)

// TestDeadLetterSessions plays the sessions in testdata/deadletters as an operator, like TestSessions: what ends
// in PERMANENT and EXHAUSTED stands for the ids of two dead letters, one below the limit and one at it.
func TestDeadLetterSessions(t *testing.T) {
	files, err := filepath.Glob("testdata/deadletters/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sessions (%v)", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			w, names := open(t), []string{}
			switch {
			case strings.HasPrefix(filepath.Base(file), "bulk"):
				w = openCauses(t)
			case strings.HasPrefix(filepath.Base(file), "destinations"):
				p := testkit.NewPortal("unimed-sp", w.Journal, w.Now())
				w.Advance(90 * time.Minute)
				p.Fails(t, w.Now())
				p.Hold(t, "CLM-003-1234567890", 3000, time.Time{})
				p.Hold(t, "CLM-004-1234567890", 4000, w.Now().Add(8*time.Hour))
				w.Advance(20 * time.Minute)
			case strings.HasPrefix(filepath.Base(file), "causes"):
				w.letter("CLM-001-1234567890", "guia retida em auditoria no setor 12 da operadora", 5)
				w.letter("CLM-002-1234567890", "HTTP 503 Service Unavailable", 5)
				w.letter("CLM-003-1234567890", "E1234", 5)
			default:
				names = []string{
					"00000000-0000-0000-0000-000PERMANENT", w.letter("CLM-001-1234567890", "glosa: DUPLICATE_CLAIM, protocolo já recebido", 2),
					"00000000-0000-0000-0000-000EXHAUSTED", w.letter("CLM-002-1234567890", "HTTP 503 Service Unavailable", 5),
				}
				w.Advance(90 * time.Minute)
			}
			if strings.HasSuffix(file, "admin.txt") {
				w.as("ada")
			}
			script, err := os.ReadFile(file)
			testkit.Must(t, err)
			golden.Check(t, file, play(t, string(script), func() []string { return append(w.names(), names...) }))
		})
	}
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

func TestDeadLetterPages(t *testing.T) {
	w := open(t)
	for n := range 7 {
		w.letter(fmt.Sprintf("CLM-%03d-1", n), "DUPLICATE_CLAIM", 0)
	}
	r := retryWorker("dead-letters", "list", "--limit", "3")
	if lines := strings.Count(r.stdout, "CLM-"); lines != 3 || !strings.Contains(r.stdout, "More follow: --all lists them all, --cursor ") {
		t.Errorf("one page has %d and says\n%s", lines, r.stdout)
	}
	r = retryWorker("dead-letters", "list", "--limit", "3", "--all")
	if lines := strings.Count(r.stdout, "CLM-"); lines != 7 || strings.Count(r.stdout, "SUBJECT") != 1 || strings.Contains(r.stdout, "More") {
		t.Errorf("all pages have %d:\n%s", lines, r.stdout)
	}
	r = retryWorker("dead-letters", "list", "--limit", "3", "--all", "-o", "json")
	items := 0
	var last api.Page[api.DeadLetter]
	for line := range strings.Lines(r.stdout) {
		last = api.Page[api.DeadLetter]{}
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		items += len(last.Items)
	}
	if items != 7 || last.Next != nil || strings.Count(r.stdout, "\n") != 3 {
		t.Errorf("as JSON: %d items in\n%s", items, r.stdout)
	}
	first := retryWorker("dead-letters", "list", "--limit", "3", "-o", "json").object(t)
	r = retryWorker("dead-letters", "list", "--limit", "200", "--cursor", first["next"].(string))
	if lines := strings.Count(r.stdout, "CLM-"); lines != 4 {
		t.Errorf("behind the first page there are %d:\n%s", lines, r.stdout)
	}
}

// -o json prints the API's body.
func TestDeadLettersAsJSON(t *testing.T) {
	w := open(t)
	id := w.letter("CLM-001-1", "DUPLICATE_CLAIM", 2)
	for _, args := range [][]string{{"show", id}, {"list"}, {"retry", id, "--reason", "x"}} {
		o := retryWorker(append([]string{"dead-letters", "-o", "json"}, args...)...).object(t)
		if items, is := o["items"].([]any); is {
			o = items[0].(map[string]any)
		}
		if o["id"] != id || o["subject"].(map[string]any)["id"] != "CLM-001-1" || len(o) != 26 {
			t.Errorf("%v prints %d fields: %v", args, len(o), o)
		}
	}
}

const someID = "3fa85f64-5717-5562-b3fc-2c963f66afa6"

// Exit 2 for wrong use, before anybody is asked.
func TestDeadLettersWrongUse(t *testing.T) {
	environment(t, map[string]string{"RETRY_WORKER_HTTP_ADDR": gateway.Nowhere(t)})
	noID := "retry-worker: 0 ids given, expected one as `retry-worker dead-letters list` prints them; `retry-worker dead-letters show --help` says more\n"
	for command, want := range map[string]string{
		"":                "retry-worker: expected a command behind dead-letters: list, groups, show, retry, discard or runs; `retry-worker dead-letters --help` says more\n",
		"purge":           "retry-worker: unknown command \"purge\"; `retry-worker dead-letters --help` lists the commands\n",
		"show":            noID,
		"show a b":        "retry-worker: 2 ids given, expected one as `retry-worker dead-letters list` prints them; `retry-worker dead-letters show --help` says more\n",
		"show ../../x":    "retry-worker: \"../../x\" is no dead letter's id, expected one as `retry-worker dead-letters list` prints them, such as " + someID + "\n",
		"retry " + someID: "retry-worker: --reason is missing, expected why, in a few words: it is kept in the audit\n",
		"retry " + someID + " --reason ' ' --when later --fresh": "retry-worker: --reason is missing, expected why, in a few words: it is kept in the audit\n" +
			"retry-worker: --when is \"later\", expected backoff or now\n" +
			"retry-worker: --fresh begins the whole ladder again, expected --force with it\n",
		"retry " + someID + " --reason " + strings.Repeat("x", 501): "retry-worker: --reason has 501 characters, expected at most 500\n",
		"retry " + someID + " --token x":                            "retry-worker: unknown flag: --token; `retry-worker dead-letters retry --help` lists the flags\n",
		"discard " + someID:                                         "retry-worker: --reason is missing, expected why, in a few words: it is kept in the audit\n",
		"list --state closed --limit 0 --reason LUCK": "retry-worker: --state is \"closed\", expected one of open, reprocessing, discarded, recovered, all\n" +
			"retry-worker: --reason is \"LUCK\", expected a reason such as DUPLICATE_CLAIM or MAX_RETRIES\n" +
			"retry-worker: --limit is 0, expected 1 to 200\n",
		"list --limit ten":           "retry-worker: --limit is \"ten\", expected a value of type int; `retry-worker dead-letters list --help` lists the flags\n",
		"list --server ftp://x":      "retry-worker: --server is no address of a console (not shown), expected host:port such as 127.0.0.1:8095, or https://…\n",
		"list --server http://a:b@c": "retry-worker: --server is no address of a console (not shown), expected host:port such as 127.0.0.1:8095, or https://…\n",
		"list --token-file /nowhere": "retry-worker: --token-file /nowhere cannot be read: no such file or directory; name a readable file with a token in it\n",
		"list --token-file /":        "retry-worker: --token-file / cannot be read: is a directory; name a readable file with a token in it\n",
		"list more":                  "retry-worker: unexpected argument \"more\"; `retry-worker dead-letters list --help` lists the flags\n",
	} {
		r := retryWorker(words(t, "dead-letters "+command)...)
		if r.code != exitUsage || r.stdout != "" || r.stderr != want {
			t.Errorf("%s: exit %d, %q\n%swant\n%s", command, r.code, r.stdout, r.stderr, want)
		}
	}
}

// Exit 1 for what the API refuses, and where none answers, in one line that says what to do.
func TestDeadLettersRefused(t *testing.T) {
	w := open(t)
	gone, exhausted := w.letter("CLM-001-1", "DUPLICATE_CLAIM", 2), w.letter("CLM-002-1", "TIMEOUT", 5)
	if r := retryWorker("dead-letters", "discard", gone, "--reason", "x"); r.code != exitDone {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	for _, tt := range []struct{ who, command, want string }{
		{"vera", "show " + someID, "job_not_found: there is no dead letter of this id"},
		{"otto", "retry " + exhausted + " --reason x", "max_retries_exceeded: "},
		{"otto", "retry " + gone + " --reason x", "invalid_retry_state: "},
		{"otto", "retry " + exhausted + " --reason x --force --fresh", "forbidden_role: otto is operator and may not begin the whole ladder again, which takes the role admin"},
		{"vera", "discard " + exhausted + " --reason x", "forbidden_role: vera is viewer and may not retry or discard, which takes the role operator"},
		{"vera", "list --cursor nonsense", "invalid_cursor: "},
		{"", "list", "login_required: "},
		{"nobody", "list", "token_unknown: "},
		{"otto", "list --server " + gateway.Nowhere(t), "no console answers at http://127.0.0.1:"},
	} {
		secret := w.Tokens.Secret(tt.who)
		if tt.who == "nobody" {
			secret = "rwt_of-nobody"
		}
		t.Setenv(tokenVariable, secret)
		for _, format := range []string{"text", "json"} {
			r := retryWorker(words(t, "dead-letters -o "+format+" "+tt.command)...)
			if r.code != exitFailed || r.stdout != "" || !strings.HasPrefix(r.stderr, "retry-worker: "+tt.want) || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("%s as %s: exit %d, %q\n%swant %s…", tt.command, tt.who, r.code, r.stdout, r.stderr, tt.want)
			}
			if secret != "" && strings.Contains(r.stderr, secret) {
				t.Errorf("%s as %s: the token is printed", tt.command, tt.who)
			}
		}
	}
}

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
	environment(t, map[string]string{tokenVariable: secret, "HTTP_PROXY": elsewhere.URL, "http_proxy": elsewhere.URL})
	file := write(t, "token", []byte(other+"\n"))
	exposed := write(t, "exposed", []byte(other))
	testkit.Must(t, os.Chmod(exposed, 0o644))
	for _, tt := range []struct {
		args  string
		code  int
		shown string
	}{
		{"", exitFailed, "Bearer " + secret},
		{" --token-file " + file, exitFailed, "Bearer " + other},
		{" --token-file " + exposed, exitUsage, ""},
		{" --token-file " + write(t, "empty", []byte("\n")), exitUsage, ""},
		{" --token-file " + write(t, "two", []byte(other+"\n"+secret)), exitUsage, ""},
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

// What is no API is said so, in one line.
func TestDeadLettersOfSomethingElse(t *testing.T) {
	for name, answer := range map[string]struct {
		status int
		text   string
	}{
		"a proxy's page": {502, "<html>\x1b[2Jbad gateway</html>"}, "nothing": {200, ""}, "half": {200, `{"items":[`}, "a list": {200, `[]`}, "null": {200, "null"},
		"another's error": {404, `{"detail":"x"}`}, "another's answer": {200, `{"items":"x"}`}, "a redirect": {302, `{}`},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(answer.status)
			_, _ = w.Write([]byte(answer.text))
		}))
		environment(t, map[string]string{"RETRY_WORKER_HTTP_ADDR": strings.TrimPrefix(server.URL, "http://")})
		r := retryWorker("dead-letters", "list")
		if r.code != exitFailed || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, "is not that of a retry-worker's API") || active(r.stderr) {
			t.Errorf("%s: exit %d, %q, %q", name, r.code, r.stdout, r.stderr)
		}
		server.Close()
	}
}

// active reports whether printing a text does something else than showing it.
func active(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Cf, r) || r == 0x2028 || r == utf8.RuneError
	})
}

// Whatever a server answers with, nothing of it acts on the terminal.
func TestHostileTextOnTheTerminal(t *testing.T) {
	const nasty = "<script>alert(1)</script>\x1b]0;owned\a\x1b[2J\u009b31m\u202egnp.exe\u2066\ufeff\u2028\r\nretry-worker: done\x7f"
	d := api.DeadLetter{ID: nasty, State: nasty, Outcome: nasty, Reason: nasty, ResponsibleTeam: nasty, Error: nasty + strings.Repeat("x", 1<<20), CreatedAt: nasty,
		Subject: api.SubjectName{Tenant: nasty, Policy: nasty, ID: nasty}, Process: nasty, Delivery: nasty}
	text := nasty
	d.MatchedRule, d.ErrorClassification = &text, &text
	d.Review = &api.Review{Decision: nasty, Reason: nasty, By: nasty, At: nasty, NextRetryTime: &text}
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		var body any = d
		switch {
		case status != http.StatusOK:
			body = map[string]string{"error": nasty, "message": nasty + strings.Repeat("x", 1<<20)}
		case strings.HasSuffix(r.URL.Path, "/dead-letters"):
			body = api.Page[api.DeadLetter]{Items: []api.DeadLetter{d}, Next: (*api.Cursor)(&text)}
		}
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		_ = e.Encode(body)
	}))
	defer server.Close()
	environment(t, map[string]string{"RETRY_WORKER_HTTP_ADDR": strings.TrimPrefix(server.URL, "http://"), "COLUMNS": "200"})
	for _, status = range []int{http.StatusOK, http.StatusConflict} {
		for _, command := range []string{"list", "show " + someID, "retry " + someID + " --reason x", "list -o json", "show " + someID + " -o json"} {
			r := retryWorker(words(t, "dead-letters "+command)...)
			if active(r.stdout) || active(r.stderr) {
				t.Errorf("%s: something acts: %.300q %.300q", command, r.stdout, r.stderr)
			}
			if (r.code == exitDone) != (status == http.StatusOK) || strings.Count(r.stderr, "\n") > 1 || strings.Contains(r.stdout, "\nretry-worker: done") {
				t.Errorf("%s: exit %d, %.300q", command, r.code, r.stderr)
			}
			if !strings.Contains(command, "json") && len(r.stdout)+len(r.stderr) > 20_000 {
				t.Errorf("%s prints %d bytes", command, len(r.stdout)+len(r.stderr))
			}
		}
	}
}
