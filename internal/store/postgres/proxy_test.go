package postgres

import (
	"testing"

	realserver "retry-worker/e2e/harness/postgres"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit/wait"
)

func TestACommitWhoseAnswerIsLostIsAmbiguous(t *testing.T) {
	for _, lost := range []struct {
		name  string
		at    realserver.Cut
		saved bool
	}{
		{"before it was done", realserver.BeforeCommit, false},
		{"after it was done", realserver.AfterCommit, true},
		{"after it was answered", realserver.AfterAnswer, true},
	} {
		t.Run(lost.name, func(t *testing.T) {
			address := realserver.Database(t)
			w, through := realserver.NewProxy(t, address)
			db, job := open(t, through), ask("CLM-LOST-1", "job")
			w.Cut(lost.at)
			var link journal.Link
			err := db.Transact(wait.Context(t), []journal.Lookup{job}, func(head journal.Head, histories []journal.History) *journal.Changes {
				c, _ := decide(head, []journal.Lookup{job}, histories)
				link = c.Link
				return c
			})
			wantKind(t, err, journal.Ambiguous, "record decisions")
			w.Cut(realserver.Whole)
			if saved, err := db.Holds(wait.Context(t), &link); err != nil || saved != lost.saved {
				t.Errorf("the ledger has the link: %t, want %t (%v)", saved, lost.saved, err)
			}
			fresh, err := record(wait.Context(t), db, job)
			if err != nil || fresh[0] == lost.saved {
				t.Errorf("the next try: fresh %v, error %v", fresh, err)
			}
			verify(t, address, 1, 1)
		})
	}
}

func TestAConnectionThatBreaksWhileItLoadsIsUnavailable(t *testing.T) {
	address := realserver.Database(t)
	w, through := realserver.NewProxy(t, address)
	db := open(t, through)
	w.Server = "127.0.0.1:1" // nobody
	do(t, connect(t, address), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'retry-worker'")
	_, err := record(wait.Context(t), db, ask("CLM-BREAK-1", "job"))
	wantKind(t, err, journal.Unavailable, "record decisions")
}
