package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// What was said is what is started, by the hour that was planned.
func TestBulkAsksFor(t *testing.T) {
	w := openCauses(t)
	planned := w.Now()
	w.afterPlan = func() { w.Advance(time.Second) }
	r := retryWorker("dead-letters", "retry", "--filter", "team=ti", "--filter", "until=1h", "--filter", "q=senha expirada", "--force", "--fresh", "--when", "now", "--per-minute", "6000",
		"--reason", "senha corrigida", "--yes")
	if r.code != exitDone || len(w.runs()) != 2 {
		t.Fatalf("exit %d, %d runs: %s", r.code, len(w.runs()), r.stderr)
	}
	got := w.runs()[0]
	if until := got.Filter.Until; !until.Equal(planned.Add(-time.Hour)) {
		t.Errorf("older than an hour is before %s", until)
	}
	want := journal.BulkRun{ID: got.ID, Through: got.Through, BulkCommand: journal.BulkCommand{Action: journal.BulkRetry, Filter: journal.DeadLetterFilter{Team: "ti", Query: "#", Until: got.Filter.Until},
		Reason: "senha corrigida", By: "ada", Force: true, Fresh: true, When: deadletter.Now, PerMinute: 6000}, State: journal.BulkRunning, CreatedAt: got.CreatedAt, Begun: got.Begun, Total: got.Total, Counts: got.Counts}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("asked for\n%+v, want\n%+v", got, want)
	}
}

// Without --yes nothing is started.
func TestBulkPlansOnly(t *testing.T) {
	w := openCauses(t)
	for _, action := range []string{"retry", "discard"} {
		r := retryWorker("dead-letters", action, "--filter", "all", "--reason", "x")
		if r.code != exitDone || len(w.runs()) != 1 || !strings.HasSuffix(r.stdout, "\nThis is a plan: --yes with a --reason carries it out.\n") {
			t.Errorf("%s: exit %d, %d runs, %s", action, r.code, len(w.runs()), r.stdout)
		}
	}
}

// A plan that no longer holds when it is started starts nothing.
func TestBulkOutdated(t *testing.T) {
	w := openCauses(t)
	w.afterPlan = func() {
		items, _, err := w.DeadLetters.List(t.Context(), journal.DeadLetterFilter{Team: "ti"}, "", 1)
		if err == nil {
			_, err = w.DeadLetters.Decide(t.Context(), deadletter.Command{Action: journal.BulkDiscard, ID: items[0].ID, Reason: "x", By: "bia"})
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
	for given, want := range map[string]string{
		"all":           "map[]",
		"team=ti q=a=b": "map[q:a=b team:ti]",
		"ti":            `--filter is "ti", expected key=value, or all alone`,
		"all team=ti":   `--filter is "all", expected key=value, or all alone`,
		"team=":         `--filter is "team=", expected key=value, or all alone`,
		"team=a team=b": "--filter team is given twice, expected once: all filters must fit",
	} {
		got, err := parseFilter(strings.Fields(given))
		if err == nil && fmt.Sprint(got) != want || err != nil && err.Error() != want {
			t.Errorf("%s: got\n%v, %v\nwant\n%s", given, got, err, want)
		}
	}
}
