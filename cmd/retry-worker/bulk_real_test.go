package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/store"
	"retry-worker/internal/testkit"
)

// openRunning is an admin's API over a SQLite store, whose bulk runs are carried out.
func openRunning(t *testing.T) *fixture {
	t.Helper()
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "journal.db"))
	testkit.Must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	w := open(t, testkit.Over(db), testkit.By(decisiontest.Policies()), testkit.At(time.Time{}))
	w.as("ada")
	w.RunBulk()
	return w
}

// deadLettersJSON runs a command of them that must succeed, and reads what it prints as JSON, a value a line.
func deadLettersJSON[T any](t *testing.T, command string) (all []T) {
	t.Helper()
	r := retryWorker(words(t, "dead-letters -o json "+command)...)
	if r.code != exitDone {
		t.Fatalf("%s: exit %d, %s", command, r.code, r.stderr)
	}
	for line := range strings.Lines(r.stdout) {
		var v T
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, v)
	}
	return all
}

// Claims that died of one credential are one group; they are planned, sent again at a pace, and each ends in the run as it
// ends in truth. Others are left alone.
func TestBulkFromEndToEnd(t *testing.T) {
	w := openRunning(t)
	const one, atLimit, others = 20, 3, 4
	for n := range one {
		w.letter(fmt.Sprintf("CLM-%03d-1", n), fmt.Sprintf("DUPLICATE_CLAIM: guia %d de 2026-03-%02d", 5000+n, n+1), 1)
	}
	for n := range atLimit {
		w.letter(fmt.Sprintf("CLM-1%02d-1", n), "DUPLICATE_CLAIM: guia 7 de 2026-03-01", 5)
	}
	for n := range others {
		w.letter(fmt.Sprintf("CLM-2%02d-1", n), "INVALID_PATIENT_DATA: sem nome", 0)
	}
	groups := deadLettersJSON[api.Page[api.DeadLetterGroup]](t, "groups")[0].Items
	if len(groups) != 2 || groups[0].Count != one+atLimit || groups[1].Count != others || groups[0].Fingerprint == nil {
		t.Fatalf("the groups are %+v", groups)
	}
	filter := " --filter fingerprint=" + *groups[0].Fingerprint
	if listed := deadLettersJSON[api.Page[api.DeadLetter]](t, "list --all --fingerprint "+*groups[0].Fingerprint)[0].Items; len(listed) != one+atLimit {
		t.Errorf("the list of the group has %d", len(listed))
	}
	plan := deadLettersJSON[api.BulkPlan](t, "retry --plan --per-minute 6000"+filter)[0]
	if plan.Total != one+atLimit || plan.Ready != one || len(plan.Refused) != 1 || plan.Refused[0].Code != "max_retries_exceeded" || plan.Refused[0].Count != atLimit {
		t.Fatalf("the plan is %+v", plan)
	}
	if open := deadLettersJSON[api.Page[api.DeadLetter]](t, "list --limit 200")[0].Items; len(open) != one+atLimit+others {
		t.Fatalf("after a plan %d are open", len(open))
	}
	r := retryWorker(words(t, "dead-letters retry --yes --per-minute 6000 --reason 'credencial trocada'"+filter)...)
	if r.code != exitDone || !strings.Contains(r.stdout, fmt.Sprintf("%d      refused", atLimit)) || !strings.Contains(r.stdout, fmt.Sprintf("%d  max_retries_exceeded: ", atLimit)) {
		t.Fatalf("exit %d, %s\n%s", r.code, r.stderr, r.stdout)
	}
	run := deadLettersJSON[api.Page[api.BulkRun]](t, "runs list")[0].Items[0]
	if run.State != journal.BulkDone || run.By != "ada" || run.Total != one+atLimit || run.Counts[journal.BulkDecided]+run.Counts[journal.BulkTaken] != one {
		t.Fatalf("the run is %+v", run)
	}
	shown := deadLettersJSON[api.DeadLetter](t, "show "+deadLettersJSON[api.Page[api.BulkItem]](t, "runs items "+run.ID+" --outcome decided")[0].Items[0].DeadLetter)[0]
	if value(shown.BulkRun) != run.ID || shown.Review.By != "ada" || shown.State != journal.DeadLetterReprocessing {
		t.Errorf("one of them is %+v", shown)
	}

	w.Succeed(decision.DefaultPolicy, "CLM-000-1")
	w.Succeed(decision.DefaultPolicy, "CLM-001-1")
	w.letter("CLM-002-1", "DUPLICATE_CLAIM: guia 5002 de 2026-03-03", 2)
	run = deadLettersJSON[api.BulkRun](t, "runs show "+run.ID)[0]
	if run.Counts[journal.BulkRecovered] != 2 || run.Counts[journal.BulkDeadAgain] != 1 {
		t.Errorf("two recovered and one died again, the run says %v", run.Counts)
	}
	if text := retryWorker("dead-letters", "runs", "items", run.ID, "--outcome", "dead_again").stdout; strings.Count(text, "CLM-") != 1 || !strings.Contains(text, "CLM-002-1") {
		t.Errorf("dead again are\n%s", text)
	}
	if left := deadLettersJSON[api.Page[api.DeadLetter]](t, "list --limit 200")[0].Items; len(left) != atLimit+others+1 {
		t.Errorf("%d are left open", len(left))
	}
}
