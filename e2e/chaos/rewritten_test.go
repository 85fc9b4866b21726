package chaos_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// Somebody edits a person's answer in the database while it waits for the engine: `audit verify` names it, its process is
// not told so, others are told what was decided, and once the journal is rebuilt it is, too.
func TestRewrittenAnswers(t *testing.T) {
	t.Parallel()
	for _, name := range stores {
		for _, running := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, running %t", name, running), func(t *testing.T) {
				t.Parallel()
				playRewritten(t, newURL[name](t), running)
			})
		}
	}
}

func playRewritten(t *testing.T, url string, running bool) {
	s := newStub(t, "REWRITTEN")
	away := s.Inject(gateway.Fault{Code: codes.Unavailable, Match: func(c gateway.Call) bool {
		job, _ := s.Job(c.JobKey)
		return job.Type == worker.RetryReview && c.Method == gateway.CompleteJob
	}})
	begin := func() *program { return serve(t, settings{name: "worker", gateway: s.Addr(), url: url}) }
	p := begin()
	var ids []string
	var reviews []int64
	for i := range 2 {
		claim := fmt.Sprintf("CLM-REWRITTEN-%d", i)
		analysis := s.AddJobs(gateway.Job{Type: worker.AnalyzeRetry,
			Variables: fmt.Sprintf(`{"claimId":%q,"submissionError":%q}`, claim, permanent)})
		s.answered(i + 1)
		record, _ := s.Job(analysis[0])
		id := outputsOf(t, record.Answers[len(record.Answers)-1].Variables).DeadLetterID
		review := s.AddJobs(gateway.Job{Type: worker.RetryReview, Variables: fmt.Sprintf(`{"deadLetterId":%q}`, id)})
		ids, reviews = append(ids, id), append(reviews, review[0])
		p.letter(claim, "open", "waiting")
		p.decide(id, "discard")
	}
	if !running {
		p.stop()
	}
	rewrite(t, url, "UPDATE outbox SET body = replace(body, 'discard', 'reprocess') WHERE queue = 'reviews' AND id LIKE '"+ids[0]+"%'")
	if !running {
		p = begin()
	}
	away.Remove()
	s.told(reviews[1])
	if out, code := once(t, url, "audit", "verify"); code != 1 || !strings.Contains(out, "message") {
		t.Errorf("audit verify says %d, %s", code, out)
	}
	if record, _ := s.Job(reviews[0]); record.State.Settled() {
		t.Errorf("the process whose answer was edited is told %q", said(record, gateway.CompleteJob))
	}
	p.stop()
	if out, code := once(t, url, "journal", "rebuild"); code != 0 {
		t.Fatalf("journal rebuild says %d, %s", code, out)
	}
	p = begin()
	s.told(reviews[0])
	p.stop()
	look(t, url)
	for _, key := range reviews {
		record, _ := s.Job(key)
		if all := said(record, gateway.CompleteJob); len(all) != 1 || !strings.Contains(all[0], `"reviewDecision":"discard"`) {
			t.Errorf("the job %d is answered by %q", key, all)
		}
	}
}

// told waits until a job is settled.
func (s *stub) told(key int64) {
	s.t.Helper()
	testkit.Must(s.t, s.WaitFor(wait.Context(s.t), func(gateway.Counts) bool {
		record, _ := s.Job(key)
		return record.State.Settled()
	}))
}

// rewrite changes one row, as somebody who may write to the database does.
func rewrite(t *testing.T, url, statement string) {
	t.Helper()
	db := opened(t, url, "_pragma=busy_timeout(10000)")
	defer db.Close()
	done, err := db.ExecContext(t.Context(), statement)
	testkit.Must(t, err)
	if n, err := done.RowsAffected(); err != nil || n != 1 {
		t.Fatalf("%d rows are edited (%v), want one", n, err)
	}
}
