package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
)

// remembered is a journal in which the worker recorded what each of these jobs was answered, and the worker,
// which still runs.
func remembered(t *testing.T, variables ...string) (url string, p *process) {
	t.Helper()
	url = "sqlite:" + filepath.Join(t.TempDir(), "journal.db")
	g := gateway.New(t, gateway.Options{})
	p = serve(t, map[string]string{"ZEEBE_ADDRESS": g.Addr(), "RETRY_WORKER_DATABASE_URL": url}, "serve")
	for _, v := range variables {
		key := g.AddJob(analyze(v))
		wait.Until(t, "an answer", func() bool {
			j, ok := g.Job(key)
			return ok && len(j.Answers) > 0
		})
	}
	return url, p
}

// Commands read the journal beside the worker that writes, and after it; what a process said of a person is in none of what they
// print. A decision is the same by a worker as without one.
func TestBesideTheWorker(t *testing.T) {
	url, p := remembered(t,
		`{"claimId":"CLM-001-1","submissionError":"TIMEOUT CPF 529.982.247-25"}`,
		`{"claimId":"CLM-529.982.247-25","submissionError":"DUPLICATE_CLAIM","retryCount":"529.982.247-25"}`)
	testkit.Environment(t, map[string]string{"RETRY_WORKER_DATABASE_URL": url})
	for _, command := range []string{
		"decide --id CLM-001-1 --error TIMEOUT --retry-count 1 --now 2026-01-05T10:00:00Z",
		"decide --id CLM-001-1 --error HTTP-404 --explain -o json", "decide --policy job-queue --id JOB-1 --error full --var maxAttempts=3 --explain -o json --now 2026-01-05T10:00:00Z",
		"decide --id CLM-001-1 --error TIMEOUT<é>,\"evidence\": --now 2026-01-05T10:00:00Z -o json", "decide --id CLM-001-1 --error x --retry-count 2.5 -o json",
	} {
		args := strings.Fields(command)
		here, there := retryWorker(args...), retryWorker(append(args, "--server="+p.api)...)
		there.stdout = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(there.stdout) // as the API writes them
		if here != there {
			t.Errorf("%s: without a worker\n%+v\nthe worker\n%+v", command, here, there)
		}
	}
	retryWorker("decide", "--id", "x", "--server="+p.api).fails(t, exitUsage, `INVALID_CLAIM_ID: claimId is "x" (text), expected text that matches ^CLM-.*-\d+$, printable, at most 512 bytes`)
	for _, when := range []string{"beside the worker", "after it"} {
		testkit.Environment(t, map[string]string{"RETRY_WORKER_DATABASE_URL": url})
		if got := retryWorker("audit", "verify").done(t).stdout; !strings.HasPrefix(got, "ok        true\nlinks     2\nrecords   2\n") {
			t.Errorf("%s: got %q", when, got)
		}
		for _, format := range []string{"jsonl", "csv"} {
			got := retryWorker("audit", "export", "--format", format).done(t).stdout
			if !strings.Contains(got, "TIMEOUT") || !strings.Contains(got, "INVALID_RETRY_COUNT") || strings.Contains(got, "529.982.247-25") {
				t.Errorf("%s: got %s", when, got)
			}
		}
		if got := retryWorker("history", "CLM-001-1").done(t).stdout; !strings.Contains(got, "TIMEOUT") || strings.Contains(got, "529.982.247-25") {
			t.Errorf("%s: got\n%s", when, got)
		}
		if got := retryWorker("kpi").done(t).stdout; !strings.Contains(got, "permanent_rate          0 ") {
			t.Errorf("%s: got\n%s", when, got)
		}
		if when == "beside the worker" {
			testkit.Must(t, p.Signal(syscall.SIGTERM))
			p.ends(t, 10*time.Second)
		}
	}
}
