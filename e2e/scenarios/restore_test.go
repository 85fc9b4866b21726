package scenarios

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/postgres"
	"retry-worker/internal/access"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// backups are how a journal is saved while it is written to, and restored elsewhere: by the commands that
// docs/operations.md has for its kind, the one that saves before the one that restores.
var backups = []struct {
	name     string
	database func(*testing.T) string
}{
	{"SQLite", func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "retry-worker.db") }},
	{"PostgreSQL", func(t *testing.T) string { return postgres.Database(t) }},
}

// documented are the commands of a kind of store in the page's steps of back up and restore.
func documented(t *testing.T, store string) (save, restore string) {
	t.Helper()
	_, steps, _ := strings.Cut(testkit.Read(t, "../../docs/operations.md"), "(`TestRestoredFromABackup`), step by step:")
	steps, _, _ = strings.Cut(steps, "\n```\n")
	var commands []string
	for line := range strings.Lines(steps) {
		if command, of, _ := strings.Cut(line, "# "); strings.HasPrefix(of, store) {
			commands = append(commands, command)
		}
	}
	if len(commands) != 2 {
		t.Fatalf("docs/operations.md has the commands %q of %s, expected one that saves and one that restores", commands, store)
	}
	return commands[0], commands[1]
}

var ledgerHead = regexp.MustCompile(`\b\d+:[0-9a-f]{64}\b`)

// play runs a command of the page on a journal, with backup for /backup.
func play(t *testing.T, command, database, backup string) {
	t.Helper()
	path := filepath.Dir(harness.Binary(t)) + ":" + os.Getenv("PATH")
	tool, _, _ := strings.Cut(command, " ")
	if _, err := exec.LookPath(tool); err != nil && tool != "retry-worker" {
		t.Fatalf("%v; install it with: apt-get install -y postgresql-client", err)
	}
	shell := exec.Command("sh", "-c", strings.ReplaceAll(command, "/backup/", backup+"/"))
	shell.Env = append(os.Environ(), "LC_ALL=C", "PATH="+path, "RETRY_WORKER_DATABASE_URL="+database)
	if file, is := strings.CutPrefix(database, "sqlite:"); is {
		shell.Dir = filepath.Dir(file)
	}
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// TestRestoredFromABackup: the journal is saved while the worker runs, its machine is lost later, and another one goes
// on from the backup, and in the end from nothing: what the engine's processes and the people then find is what
// docs/operations.md says.
func TestRestoredFromABackup(t *testing.T) {
	t.Parallel()
	for _, b := range backups {
		t.Run(b.name, func(t *testing.T) {
			s := onProcesses(t, byREST)
			s.deploy()
			s.jobTimeout = 10 * time.Second
			first, second := b.database(t), b.database(t)
			w := s.serve("first", "RETRY_WORKER_DATABASE_URL="+first)
			s.startPortal(nil, submitClaim)
			d := api{worker: w}
			known, ids := s.dead(d, 0, 3)
			retried := []int64{s.submit(s.claimID(10), failing("TIMEOUT", "TIMEOUT"), nil)}
			s.awaitTimers(retried, 1)
			head := ledgerHead.FindString(s.command(first, "audit", "verify"))
			save, restore := documented(t, b.name)
			folder := t.TempDir()
			play(t, save, first, folder)

			after, lost := s.dead(d, 3, 2)
			retried = append(retried, s.submit(s.claimID(11), failing("TIMEOUT", "TIMEOUT"), nil))
			s.awaitTimers(retried, 1)
			s.orders(d, ids[0], "retry", request{Reason: corrected, When: "now"})
			s.awaitEnded(known[0])
			s.expectSettled(d, ids[0], "recovered")
			w.kill()

			play(t, restore, second, folder)
			s.command(second, "audit", "verify", "--head", head)
			w = s.serve("second", "RETRY_WORKER_DATABASE_URL="+second)
			d = api{worker: w}
			// What was decided after the backup is open again, and whoever decides again is told that nobody waited.
			s.orders(d, ids[0], "retry", request{Reason: corrected, When: "now"})
			s.awaitDeadLetter(d, ids[0], "that nobody waits for", func(l *deadLetter) bool { return l.Delivery == "nobody" })
			s.orders(d, ids[1], "retry", request{Reason: corrected, When: "now"})
			s.orders(d, ids[2], "discard", request{Reason: "sem conserto"})
			s.awaitEnded(known...)
			s.expectSettled(d, ids[1], "recovered")
			s.expectSettled(d, ids[2], "discarded")
			s.expectAnsweredOnce(known)
			// A dead letter of that time is unknown. Within the day its task can be completed by hand.
			for _, id := range lost {
				_, err := d.deadLetter(t.Context(), id, "", nil)
				if no, is := errors.AsType[*access.Refusal](err); !is || no.Status != 404 {
					t.Errorf("the dead letter %s, younger than the backup: %v; expected 404", id, err)
				}
			}
			byHand := s.review(after[0])
			_, err := s.CompleteJob(t.Context(), &pb.CompleteJobRequest{JobKey: byHand, Variables: jsonOf(map[string]any{
				"reviewDecision": "reprocess", "shouldRetry": true, "retryCount": 1,
				"nextRetryTime": s.clock.Now(), "backoffMinutes": 0, "backoffDuration": "PT0S",
			})})
			testkit.Must(t, err)
			s.awaitEnded(after[0])
			// Retries go on where their processes stand.
			s.fire(retried...)
			s.awaitTimers(retried, 2)
			for _, key := range retried {
				s.expectVariables(s.instance(key), map[string]string{"retryCount": "2"})
			}
			s.fire(retried...)
			s.awaitEnded(retried...)
			// Afterwards it is an incident, which the engine does not let be completed.
			s.advanceTo(s.clock.Now().Add(25 * time.Hour))
			s.awaitAll(after[1:], "the incident", func(i *instance) bool { return len(i.incidents) > 0 })
			if said := s.instance(after[1]).incidents[0].message; !strings.Contains(said, lost[1]) {
				t.Errorf("the incident says %q, expected it to name %s", said, lost[1])
			}
			if _, err = s.CompleteJob(t.Context(), &pb.CompleteJobRequest{JobKey: s.review(after[1])}); err == nil {
				t.Error("the engine completed a job with an incident; docs/operations.md says that it does not")
			}
			_, err = s.CancelProcessInstance(t.Context(), &pb.CancelProcessInstanceRequest{ProcessInstanceKey: after[1]})
			testkit.Must(t, err)
			s.awaitEnded(s.submit(s.claimID(4), failing(), nil))
			verified := strings.Split(s.command(second, "audit", "verify"), "\n")[0]

			// The journal is lost whole: the process's own count holds the limit.
			last := failing("TIMEOUT", "TIMEOUT")
			last.Retried = 4
			exhausted := s.submit(s.claimID(12), left(last), map[string]any{"retryCount": 4})
			s.awaitTimers([]int64{exhausted}, 1)
			w.kill()
			d = api{worker: s.serve("third", "RETRY_WORKER_DATABASE_URL="+b.database(t))}
			s.fire(exhausted)
			id := s.deadLetterOf(d, exhausted, 0)
			s.expectVariables(s.instance(exhausted), map[string]string{"retryCount": "5", "shouldRetry": "false"})
			s.orders(d, id, "discard", request{Reason: "sem conserto"})
			s.awaitEnded(exhausted)
			s.done("restored from a backup, "+b.name, "9 instances, %s", verified)
		})
	}
}

func (s *scenario) awaitTimers(keys []int64, n int) {
	s.t.Helper()
	s.awaitAll(keys, "the timers of the retries", func(i *instance) bool { return len(i.timers) >= n })
}

// review is the key of the job by which an instance waits for a person.
func (s *scenario) review(key int64) int64 {
	s.t.Helper()
	i := s.instance(key)
	jobs := i.of(worker.RetryReview)
	if len(jobs) == 0 {
		s.t.Fatalf("no review: %s", i.describe())
	}
	return jobs[len(jobs)-1].key
}
