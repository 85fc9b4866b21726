package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/store/sqlite"
	"retry-worker/internal/testkit"
)

// A copy that is made while decisions are recorded without a pause is whole, holds all that was recorded before, can be
// gone on with, and is never written over anything.
func TestJournalBackup(t *testing.T) {
	audited(t)
	folder := t.TempDir()
	path, copied := strings.TrimPrefix(os.Getenv("RETRY_WORKER_DATABASE_URL"), "sqlite:"), filepath.Join(folder, "copy.db")
	head, _ := retryWorker("audit", "verify", "-o", "json").object(t)["head"].(string)

	db, err := sqlite.Open(t.Context(), path)
	testkit.Must(t, err)
	j := journal.New(db, time.Now, nil, journal.NoHooks())
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	recorded := make(chan struct{}, 1)
	writing.Go(func() { j.Run(ctx, ctx) })
	writing.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			of := journal.Subject{Tenant: journal.DefaultTenant, Policy: decision.DefaultPolicy, ID: fmt.Sprintf("CLM-9-%d", n)}
			_ = j.Reject(ctx, &journal.RejectedJob{Subject: of, Rule: decision.RNBIL005, JobKey: int64(n),
				Rejection: &decision.Rejection{Code: decision.InvalidRetryCount, Variable: "retryCount", Found: "2.5", Expected: "a whole number"}})
			select {
			case recorded <- struct{}{}:
			default:
			}
		}
	})
	<-recorded
	r := retryWorker("journal", "backup", copied)
	stop()
	writing.Wait()
	testkit.Must(t, db.Close())
	if r.code != exitDone || r.stderr != "" || !strings.HasPrefix(r.stdout, "ok        true\n") {
		t.Fatalf("exit %d, %q %q", r.code, r.stdout, r.stderr)
	}
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v, want that only its owner reads it", info.Mode(), err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("beside the copy there is %v, %v", left, err)
	}

	before, err := os.ReadFile(copied)
	testkit.Must(t, err)
	retryWorker("journal", "backup", copied).fails(t, exitUsage, copied+" exists already; name another, or remove it")
	if after, err := os.ReadFile(copied); err != nil || string(after) != string(before) {
		t.Errorf("the copy was written over: %v", err)
	}
	retryWorker("journal", "backup", filepath.Join(folder, "no", "copy.db")).fails(t, exitFailed,
		"write "+filepath.Join(folder, "no", "copy.db")+": no such file or directory; name a file in a folder that can be written")

	t.Setenv("RETRY_WORKER_DATABASE_URL", "sqlite:"+copied)
	retryWorker("audit", "verify", "--head", head).done(t)
	for verb, says := range map[string]string{"rebuild": `{"rebuilt":true}`, "purge": `{"purged":0}`} {
		if r := retryWorker("journal", verb, "-o", "json"); r.code != exitDone || strings.TrimSpace(r.stdout) != says {
			t.Errorf("%s: exit %d, %q, want %s", verb, r.code, r.stdout, says)
		}
	}
	retryWorker("audit", "verify", "--head", head).done(t)
	missing := filepath.Join(folder, "missing.db")
	t.Setenv("RETRY_WORKER_DATABASE_URL", "sqlite:"+missing)
	retryWorker("journal", "rebuild").fails(t, exitFailed,
		"database "+missing+": does not exist: name the file that the worker writes (RETRY_WORKER_DATABASE_URL)")
	t.Setenv("RETRY_WORKER_DATABASE_URL", "sqlite:"+copied)

	// Of a journal that does not hold no copy is left that could be taken for a good one.
	alter(t, copied, "UPDATE records SET body = body || ' ' WHERE record = 2")
	again := filepath.Join(folder, "again.db")
	if r := retryWorker("journal", "backup", again); r.code != exitFailed || !strings.Contains(r.stderr, "the copy is not sound: ") {
		t.Errorf("of a journal that does not hold: exit %d, %q", r.code, r.stderr)
	}
	if _, err := os.Stat(again); err == nil {
		t.Error("and the copy is there")
	}
}
