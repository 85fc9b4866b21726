package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit/gateway"
)

// What was said is what is started.
func TestBulkAsksFor(t *testing.T) {
	w := openCauses(t)
	before := time.Now()
	r := retryWorker("dead-letters", "retry", "--filter", "team=ti", "--filter", "older-than=2h", "--filter", "q=senha expirada", "--force", "--fresh", "--when", "now", "--per-minute", "6000",
		"--reason", "senha corrigida", "--yes", "--detach")
	if r.code != exitDone || len(w.runs()) != 2 {
		t.Fatalf("exit %d, %d runs: %s", r.code, len(w.runs()), r.stderr)
	}
	got := w.runs()[0]
	if until := got.Filter.Until; until.Before(before.Add(-2*time.Hour-time.Second)) || until.After(time.Now().Add(-2*time.Hour)) {
		t.Errorf("older than two hours is before %s", until)
	}
	want := journal.BulkRun{ID: got.ID, Action: journal.BulkRetry, Filter: journal.DeadLetterFilter{Team: "ti", Query: "senha expirada", Until: got.Filter.Until}, Through: got.Through,
		Reason: "senha corrigida", By: "ada", Force: true, Fresh: true, Now: true, PerMinute: 6000, State: journal.BulkPreparing, CreatedAt: got.CreatedAt, Begun: got.Begun, Counts: got.Counts}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("asked for\n%+v, want\n%+v", got, want)
	}
}

// It starts only where somebody agrees: to a discard, with the number of those that are let go.
func TestBulkAsks(t *testing.T) {
	for _, tt := range []struct {
		action, answer string
		starts         bool
	}{
		{"retry", "y\n", true}, {"retry", "YES\r\n", true}, {"retry", "n\n", false}, {"retry", "\n", false}, {"retry", "", false}, {"retry", "y", false}, {"retry", "11\n", false},
		{"discard", "13\n", true}, {"discard", "y\n", false}, {"discard", "11\n", false}, {"discard", "", false},
	} {
		w := openCauses(t)
		var out, errOut bytes.Buffer
		checked := &checkedWriter{w: &out}
		c := &cli{in: strings.NewReader(tt.answer), out: checked, errOut: &errOut, asks: true}
		code := c.run([]string{"dead-letters", tt.action, "--filter", "all", "--reason", "x", "--detach"}, checked)
		if (len(w.runs()) == 2) != tt.starts || (code == exitDone) != tt.starts || code == exitUsage {
			t.Errorf("%s, %q: %d runs, exit %d", tt.action, tt.answer, len(w.runs()), code)
		}
		question, chosen := "\nSend 11 dead letters again? [y/N] ", "11 of 13"
		if tt.action == "discard" {
			question, chosen = "\nLet 13 dead letters go for good? Type 13 to do it: ", "let go: 13\n"
		}
		refusal := "retry-worker: nothing was started\n"
		if tt.starts {
			refusal = ""
		}
		if errOut.String() != question+refusal || !strings.Contains(out.String(), chosen) {
			t.Errorf("%s, %q: it says %q behind\n%s", tt.action, tt.answer, errOut.String(), out.String())
		}
	}
}

// Exit 2 for wrong use, all of it at once, before anybody is asked.
func TestBulkWrongUse(t *testing.T) {
	environment(t, map[string]string{"RETRY_WORKER_HTTP_ADDR": gateway.Nowhere(t)})
	nothing := "nothing is chosen, expected the id of one dead letter, or --filter key=value for many (--filter all for every open one); `retry-worker dead-letters "
	for command, want := range map[string][]string{
		"retry":                    {nothing + "retry --help` says more"},
		"retry --plan":             {nothing + "retry --help` says more"},
		"discard --yes --reason x": {nothing + "discard --help` says more"},
		"retry " + someID + " --filter all --reason x": {"an id and --filter are given, expected one of them; `retry-worker dead-letters retry --help` says more"},
		"retry " + someID + " --reason x --plan":       {"--plan is for many at once, expected it with --filter only; `retry-worker dead-letters retry --help` says more"},
		"discard " + someID + " --reason x --per-minute 60": {
			"--per-minute is for many at once, expected it with --filter only; `retry-worker dead-letters discard --help` says more"},
		"retry --filter all --reason x":               {"--yes is missing: there is no terminal to ask on; --plan shows what would be done"},
		"retry --filter all --reason x -o json":       {"--yes is missing: there is no terminal to ask on; --plan shows what would be done"},
		"retry --filter all --plan --yes":             {"--plan does nothing, expected neither --yes nor --detach with it"},
		"retry --filter all --yes":                    {"--reason is missing, expected why, in a few words: it is kept in the audit"},
		"retry --filter all --plan --per-minute 0":    {"--per-minute is 0, expected 1 to 6000"},
		"retry --filter all --plan --per-minute 6001": {"--per-minute is 6001, expected 1 to 6000"},
		"retry --filter all --plan --per-minute NaN":  {"--per-minute is \"NaN\", expected a value of type int64; `retry-worker dead-letters retry --help` lists the flags"},
		"retry --filter all --plan --per-minute 99999999999999999999": {
			"--per-minute is \"99999999999999999999\", expected a value of type int64; `retry-worker dead-letters retry --help` lists the flags"},
		"discard --filter all --force": {"unknown flag: --force; `retry-worker dead-letters discard --help` lists the flags"},
		"retry --filter tem=ti --filter team= --fresh --when later --yes": {
			`--filter has "tem", expected all, or key=value with a key of policy, team, reason, fingerprint, ids, context, q, older-than, younger-than, since, until; did you mean team?`,
			"--filter team has no value, expected --filter team=…", `--when is "later", expected backoff or now`,
			"--fresh begins the whole ladder again, expected --force with it", "--reason is missing, expected why, in a few words: it is kept in the audit"},
		"runs":                  {"expected a command behind runs: list, show, items, watch, pause, resume or cancel; `retry-worker dead-letters runs --help` says more"},
		"runs stop " + someID:   {"unknown command \"stop\"; `retry-worker dead-letters runs --help` lists the commands"},
		"runs show":             {"0 ids given, expected one as `retry-worker dead-letters runs list` prints them; `retry-worker dead-letters runs show --help` says more"},
		"runs cancel ../../x":   {"\"../../x\" is no bulk run's id, expected one as `retry-worker dead-letters runs list` prints them, such as 0198a0c0-5717-7562-b3fc-2c963f66afa6"},
		"runs list --limit 201": {"--limit is 201, expected 1 to 200"},
		"runs items " + someID + " --outcome lost": {`--outcome is "lost", expected one of planned, refused, decided, taken, nobody, recovered, dead_again, superseded, discarded`},
		"groups --state closed":                    {`--state is "closed", expected one of open, reprocessing, discarded, recovered, all`},
		"list --older-than 2h --since 2026-01-01":  nil,
		"list --older-than 2h --until 2026-01-01":  {"--older-than and --until bound the same, expected one of them"},
		"list --younger-than 2h --cursor x": {
			"--cursor goes on with the very same list, and an age means another one each moment, expected --since and --until with it, or --all without it"},
	} {
		r := retryWorker(words(t, "dead-letters "+command)...)
		if want == nil {
			if r.code != exitFailed {
				t.Errorf("%s: exit %d, want that nobody answers: %s", command, r.code, r.stderr)
			}
			continue
		}
		var lines strings.Builder
		for _, line := range want {
			lines.WriteString("retry-worker: " + line + "\n")
		}
		if r.code != exitUsage || r.stdout != "" || r.stderr != lines.String() {
			t.Errorf("%s: exit %d, %q\n%swant\n%s", command, r.code, r.stdout, r.stderr, lines.String())
		}
	}
}

// Exit 1 for what the API refuses, in one line; a viewer and an operator may plan, and start nothing.
func TestBulkRefused(t *testing.T) {
	w := openCauses(t)
	ended := w.runs()[0].ID
	w.as("otto")
	if r := retryWorker("dead-letters", "retry", "--filter", "all", "--plan"); r.code != exitDone {
		t.Errorf("an operator's plan: exit %d, %s", r.code, r.stderr)
	}
	const start = "retry --filter team=ti --reason x --yes"
	for _, tt := range []struct{ who, command, want string }{
		{"vera", start, "forbidden_role: vera is viewer and may not retry or discard many at once, which takes the role operator"},
		{"otto", start, "forbidden_role: otto is operator of no team and may not retry or discard many at once, which takes the role admin, or a token that names its teams"},
		{"otto", "discard --filter team=ti --reason x --yes", "forbidden_role: otto is operator"},
		{"otto", "runs cancel " + ended, "forbidden_role: otto is operator"},
		{"ada", "runs cancel " + ended, "invalid_run_state: the run is done"},
		{"ada", "runs show " + someID, "run_not_found: "},
		{"ada", "runs watch " + someID, "run_not_found: there is no bulk run of this id; the list has their ids\n"},
		{"ada", "retry --filter team=nobody --reason x --yes", "nothing was started: no open dead letter fits the filter\n"},
		{"ada", "retry --filter reason=MAX_RETRIES --reason x --yes", "nothing was started: all of them would be refused, for what the plan says\n"},
		{"", "groups", "login_required: "},
	} {
		w.as(tt.who)
		for _, format := range []string{"text", "json"} {
			r := retryWorker(words(t, "dead-letters -o "+format+" "+tt.command)...)
			if r.code != exitFailed || !strings.HasPrefix(r.stderr, "retry-worker: "+tt.want) || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("%s as %s: exit %d\n%swant %s…", tt.command, tt.who, r.code, r.stderr, tt.want)
			}
		}
	}
	w.as("ada")
	w.beforeStart = func() {
		items, _, err := w.DeadLetters.List(t.Context(), journal.DeadLetterFilter{Team: "ti"}, "", 1)
		if err == nil {
			_, err = w.DeadLetters.Discard(t.Context(), deadletter.Command{ID: items[0].ID, Reason: "x", By: "bia"})
		}
		if err != nil {
			t.Error(err)
		}
	}
	r := retryWorker(words(t, "dead-letters "+start)...)
	if want := "retry-worker: plan_outdated: 10 dead letters were planned, 9 of those are open now, and 0 came since; plan again\n"; r.code != exitFailed || r.stderr != want {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
	if n := len(w.runs()); n != 1 {
		t.Errorf("%d were started", n-1)
	}
}
