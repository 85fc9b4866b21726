package main

import (
	"path/filepath"
	"strings"
	"testing"

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

// TestAWorkerSaysWhatItsJournalSays: by --server as without it.
func TestAWorkerSaysWhatItsJournalSays(t *testing.T) {
	url, p := remembered(t,
		`{"claimId":"CLM-001-1","submissionError":"TIMEOUT <CPF 529.982.247-25>"}`,
		`{"claimId":"CLM-001-1","submissionError":"DUPLICATE_CLAIM","retryCount":1}`)
	testkit.Environment(t, map[string]string{"RETRY_WORKER_DATABASE_URL": url})
	server := "--server=" + p.api
	for _, command := range []string{
		"decide --id CLM-001-1 --error TIMEOUT --retry-count 1 --now 2026-01-05T10:00:00Z",
		"decide --id CLM-001-1 --error HTTP-404 --explain -o json", "decide --policy job-queue --id JOB-1 --error full --var maxAttempts=3 --explain -o json --now 2026-01-05T10:00:00Z",
		"decide --id CLM-001-1 --error TIMEOUT<é>,\"evidence\": --now 2026-01-05T10:00:00Z -o json", "decide --id CLM-001-1 --error x --retry-count 2.5 -o json",
	} {
		args := strings.Fields(command)
		here, there := retryWorker(args...), retryWorker(append(args, server)...)
		there.stdout = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(there.stdout) // as the API writes them
		if here != there {
			t.Errorf("%s: without a worker\n%+v\nthe worker\n%+v", command, here, there)
		}
	}
	retryWorker("decide", "--id", "x", server).fails(t, exitUsage, `INVALID_CLAIM_ID: claimId is "x" (text), expected text that matches ^CLM-.*-\d+$, printable, at most 512 bytes`)
}
