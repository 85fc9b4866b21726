package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// What was said is what is started.
func TestBulkAsksFor(t *testing.T) {
	w := openCauses(t)
	before := time.Now()
	r := retryWorker("dead-letters", "retry", "--filter", "team=ti", "--filter", "until=2h", "--filter", "q=senha expirada", "--force", "--fresh", "--when", "now", "--per-minute", "6000",
		"--reason", "senha corrigida", "--yes", "--detach")
	if r.code != exitDone || len(w.runs()) != 2 {
		t.Fatalf("exit %d, %d runs: %s", r.code, len(w.runs()), r.stderr)
	}
	got := w.runs()[0]
	if until := got.Filter.Until; until.Before(before.Add(-2*time.Hour-time.Second)) || until.After(time.Now().Add(-2*time.Hour)) {
		t.Errorf("older than two hours is before %s", until)
	}
	want := journal.BulkRun{ID: got.ID, Action: journal.BulkRetry, Filter: journal.DeadLetterFilter{Team: "ti", Query: "#", Until: got.Filter.Until}, Through: got.Through,
		Reason: "senha corrigida", By: "ada", Force: true, Fresh: true, Now: true, PerMinute: 6000, State: journal.BulkRunning, CreatedAt: got.CreatedAt, Begun: got.Begun, Total: got.Total, Counts: got.Counts}
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
		c := &cli{in: strings.NewReader(tt.answer), out: &checkedWriter{w: &out}, errOut: &errOut, asks: true}
		code := c.run([]string{"dead-letters", tt.action, "--filter", "all", "--reason", "x", "--detach"})
		if (len(w.runs()) == 2) != tt.starts || (code == exitDone) != tt.starts || code == exitUsage {
			t.Errorf("%s, %q: %d runs, exit %d", tt.action, tt.answer, len(w.runs()), code)
		}
		question := "\nSend 11 dead letters again? [y/N] "
		if tt.action == "discard" {
			question = "\nLet 13 dead letters go for good? Type 13 to do it: "
		}
		refusal := "retry-worker: nothing was started\n"
		if tt.starts {
			refusal = ""
		}
		if errOut.String() != question+refusal {
			t.Errorf("%s, %q: it says %q behind\n%s", tt.action, tt.answer, errOut.String(), out.String())
		}
	}
}

// A plan that no longer holds when it is started starts nothing.
func TestBulkOutdated(t *testing.T) {
	w := openCauses(t)
	w.beforeStart = func() {
		items, _, err := w.DeadLetters.List(t.Context(), journal.DeadLetterFilter{Team: "ti"}, "", 1)
		if err == nil {
			_, err = w.DeadLetters.Discard(t.Context(), deadletter.Command{ID: items[0].ID, Reason: "x", By: "bia"})
		}
		if err != nil {
			t.Error(err)
		}
	}
	r := retryWorker("dead-letters", "retry", "--filter", "team=ti", "--reason", "x", "--yes")
	r.says(t, "plan_outdated: 10 dead letters were planned, 9 of those are open now; plan again")
	if n := len(w.runs()); n != 1 || r.code != exitFailed {
		t.Errorf("exit %d, %d were started", r.code, n-1)
	}
}

// What --filter chooses, as the API takes it.
func TestFilters(t *testing.T) {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for given, want := range map[string]string{
		"all":                         "map[]",
		"team=ti q=a=b":               "map[q:a=b team:ti]",
		"until=90m since=1w":          "map[since:2026-02-23T12:00:00Z until:2026-03-02T10:30:00Z]",
		"since=2026-03-01 until=3d":   "map[since:2026-03-01T00:00:00Z until:2026-02-27T12:00:00Z]",
		"since=2026-03-01T00:00-03:0": `--filter since is "2026-03-01T00:00-03:0", expected an instant such as 2026-03-01T08:00:00-03:00, or a date such as 2026-03-01 (midnight UTC), or an age such as 90m, 2h, 3d or 1w`,
		"ti":                          `--filter is "ti", expected key=value, or all alone`,
		"all team=ti":                 `--filter is "all", expected key=value, or all alone`,
		"team=":                       `--filter is "team=", expected key=value, or all alone`,
		"team=a team=b":               "--filter team is given twice, expected once: all filters must fit",
	} {
		got, err := parseFilter(strings.Fields(given), noon)
		if err == nil && fmt.Sprint(got) != want || err != nil && err.Error() != want {
			t.Errorf("%s: got\n%v, %v\nwant\n%s", given, got, err, want)
		}
	}
	for _, age := range []string{"3", "-3d", "3D", "1d1d", "99999d", "3 d", "３d"} {
		if at, err := instantOrAge("--since", age, noon); err == nil {
			t.Errorf("%s is %s", age, at)
		}
	}
}
