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

func TestHistoryOfAClaimThatIsHeld(t *testing.T) {
	w := open(t)
	testkit.NewPortal("unimed-sp", w.Journal, w.Now()).Hold(t, "CLM-003-1", 3000, time.Time{})
	r := retryWorker("history", "CLM-003-1", "--server", w.addr)
	if want := "CLM-003-1 (tiss-submission): no failure, 0 retries, held since 2026-03-02T10:00:00Z\n"; r.stdout != want {
		t.Errorf("got %q %q, want %q", r.stdout, r.stderr, want)
	}
}

func TestHistory(t *testing.T) {
	url, p := remembered(t,
		`{"claimId":"CLM-001-1","submissionError":"TIMEOUT CPF 529.982.247-25"}`,
		`{"claimId":"CLM-001-1","submissionError":"DUPLICATE_CLAIM","retryCount":1}`,
		`{"claimId":"CLM-001-2","submissionError":"TIMEOUT"}`)
	for _, when := range []string{"beside the worker", "after it"} {
		environment(t, map[string]string{"RETRY_WORKER_DATABASE_URL": url})
		r := retryWorker("history", "CLM-001-1", "-o", "json")
		o := r.object(t)
		if r.code != exitDone || o["subject"] != "CLM-001-1" || o["policy"] != "tiss-submission" || o["state"] != "dead" || o["status"] != "falha" {
			t.Errorf("%s: got %+v", when, r)
		}
		attempts := o["attempts"].([]any)
		if len(attempts) != 2 || len(o["episodes"].([]any)) != 1 { // another process, at the next count
			t.Fatalf("%s: got %v", when, o)
		}
		last := attempts[1].(map[string]any)
		if last["attemptNumber"] != 2.0 || last["outcome"] != "PERMANENT_ERROR" || last["responsibleTeam"] != "faturamento" || last["deadLetterId"] != o["deadLetterId"] {
			t.Errorf("%s: the last attempt is %v", when, last)
		}
		text := retryWorker("history", "CLM-001-1")
		for _, want := range []string{
			"CLM-001-1 (tiss-submission): dead, 1 retries, dead letter ", "episode 1: dead, first failure ",
			"Transient error, retry 1 of 5", "Permanent error, not retried", "to faturamento", "DUPLICATE_CLAIM",
		} {
			if !strings.Contains(text.stdout, want) {
				t.Errorf("%s: %q is not in\n%s", when, want, text.stdout)
			}
		}
		if strings.Contains(text.stdout+r.stdout, "529.982.247-25") {
			t.Errorf("%s: the CPF is shown:\n%s%s", when, text.stdout, r.stdout)
		}
		if when == "beside the worker" {
			p.signal(t, syscall.SIGTERM)
			p.ends(t, 10*time.Second)
		}
	}
}

// TestAWorkerSaysWhatItsJournalSays: by --server as without it.
func TestAWorkerSaysWhatItsJournalSays(t *testing.T) {
	url, p := remembered(t,
		`{"claimId":"CLM-001-1","submissionError":"TIMEOUT <CPF 529.982.247-25>"}`,
		`{"claimId":"CLM-001-1","submissionError":"DUPLICATE_CLAIM","retryCount":1}`)
	environment(t, map[string]string{"RETRY_WORKER_DATABASE_URL": url})
	server := "--server=" + p.apiAddr(t)
	for _, command := range []string{
		"history CLM-001-1", "history CLM-001-1 -o json", "kpi", "kpi -o json", "kpi --policy tiss-submission", "audit export --subject CLM-001-1",
		"audit export --subject CLM-001-1 --format csv", "audit export --subject CLM-001-1 --since 2126-01-01", "audit export --subject CLM-001-1 --until 2126-01-01",
	} {
		args := strings.Fields(command)
		if here, there := retryWorker(args...), retryWorker(append(args, server)...); here != there {
			t.Errorf("%s: the journal says\n%+v\nthe worker\n%+v", command, here, there)
		}
	}
	retryWorker("history", "CLM-001-2", server).fails(t, exitFailed,
		"subject_not_found: the journal knows no failure of this subject; policy, id and tenant must be written as the process has them")
	retryWorker("kpi", "--policies-file", "x.yaml", server).fails(t, exitUsage,
		"--policies-file is given, but a worker has its own policies; leave it or --server out")
	retryWorker("audit", "export", server).fails(t, exitUsage, "--server exports the records of one claim, expected --subject with it")
}

func TestHistoryOfNobody(t *testing.T) {
	url, _ := remembered(t, `{"claimId":"CLM-001-1","submissionError":"TIMEOUT"}`)
	environment(t, map[string]string{"RETRY_WORKER_DATABASE_URL": url})
	const advice = "; check the spelling, --policy and --tenant"
	retryWorker("history", "CLM-001-2").fails(t, exitFailed,
		`the journal knows no failure of "CLM-001-2" under policy tiss-submission, tenant <default>`+advice)
	retryWorker("history", "CLM-001-1", "--policy", "other").fails(t, exitFailed,
		`the journal knows no failure of "CLM-001-1" under policy other, tenant <default>`+advice)
	retryWorker("history", "CLM-001-1", "--tenant", "b").fails(t, exitFailed,
		`the journal knows no failure of "CLM-001-1" under policy tiss-submission, tenant b`+advice)
}

func TestHistoryWrongUse(t *testing.T) {
	environment(t, map[string]string{"RETRY_WORKER_DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "none.db")})
	retryWorker("history").fails(t, exitUsage,
		"0 subjects given, expected one, such as CLM-001-1234567890; `retry-worker history --help` says more")
	if r := retryWorker("history", "CLM-1-1"); r.code != exitFailed || !strings.Contains(r.stderr, "none.db") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("no file: got %+v", r)
	}
	environment(t, map[string]string{"RETRY_WORKER_DATABASE_URL": "mysql://user:canary@db/x"})
	if r := retryWorker("history", "CLM-1-1"); r.code != exitUsage || strings.Contains(r.stderr, "canary") {
		t.Errorf("a wrong URL: got %+v", r)
	}
}
