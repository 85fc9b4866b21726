package postgres

import (
	"context"
	"testing"
	"time"

	realserver "retry-worker/e2e/harness/postgres"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// TestAnUpgradeHoldsNobodyUp: while a backup reads the attempts the change cannot be made; it is given up at once, and
// the workers that wait behind it go on.
func TestAnUpgradeHoldsNobodyUp(t *testing.T) {
	address := realserver.Database(t)
	if err := migrateTo(t, address, firstMigration(t)); err != nil {
		t.Fatal(err)
	}
	backup, worker := connect(t, address), connect(t, address)
	do(t, backup, "BEGIN")
	do(t, backup, "LOCK TABLE attempts IN ACCESS SHARE MODE")
	ctx, opened := wait.Context(t), make(chan error, 1)
	go func() {
		db, err := Open(ctx, address)
		if err == nil {
			_ = db.Close()
		}
		opened <- err
	}()
	for refused := false; !refused; {
		do(t, worker, "INSERT INTO attempts SELECT * FROM attempts WHERE false")
		select {
		case err := <-opened:
			wantKind(t, err, journal.Unavailable, "lock timeout")
			refused = true
		default:
		}
	}
	if n := one[int64](t, worker, "SELECT max(version_id) FROM schema_migrations"); n != 1 {
		t.Errorf("the tables are of version %d, want 1 still", n)
	}
	do(t, backup, "COMMIT")
	open(t, address)
}

// TestTheOwnerAloneBringsTablesUpToDate: who may only write them is told what to do.
func TestTheOwnerAloneBringsTablesUpToDate(t *testing.T) {
	address := realserver.Database(t)
	if err := migrateTo(t, address, firstMigration(t)); err != nil {
		t.Fatal(err)
	}
	admin := connect(t, address)
	do(t, admin, "DROP ROLE IF EXISTS writer")
	do(t, admin, "CREATE ROLE writer LOGIN PASSWORD '"+password+"'")
	t.Cleanup(func() {
		_, _ = admin.Exec(context.Background(), "DROP OWNED BY writer")
		if _, err := admin.Exec(context.Background(), "DROP ROLE writer"); err != nil {
			t.Error(err)
		}
	})
	do(t, admin, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO writer")
	limited := with(t, address, "writer")
	_, err := Open(wait.Context(t), limited)
	wantKind(t, err, journal.Invalid, "as the tables' owner")
	open(t, address)
	writer := open(t, limited)
	if _, err := record(wait.Context(t), writer, ask("CLM-WRITER-1", "job")); err != nil {
		t.Errorf("once they are up to date: %v", err)
	}
	bury(t, writer, "CLM-WRITER-2")
	counts, err := writer.DeadLetterCounts(wait.Context(t))
	if err != nil || len(counts) != 1 || counts[0].N != 1 || counts[0].Policy != "tiss-submission" {
		t.Errorf("the dead letters of who may only write are counted as %+v (%v)", counts, err)
	}
	if head, err := writer.Head(wait.Context(t)); err != nil || head.Record == 0 {
		t.Errorf("the head is %+v (%v)", head, err)
	} else if n, err := writer.Purge(wait.Context(t), head.Record, 10); err != nil || n != int(head.Record) {
		t.Errorf("%d records are purged (%v)", n, err)
	}
	if counts, err = writer.DeadLetterCounts(wait.Context(t)); err != nil || len(counts) != 0 {
		t.Errorf("after a purge they are counted as %+v (%v)", counts, err)
	}
}

// bury has the journal give up a claim.
func bury(t *testing.T, db *DB, id string) {
	t.Helper()
	p := decisiontest.TISSSubmission()
	f, rejection := p.Read(decision.Variables{ID: decision.Text(id), Error: decision.Text("DUPLICATE_CLAIM")})
	if rejection != nil {
		t.Fatal(rejection)
	}
	a := &journal.Analysis{Subject: subject(id), JobKey: 1, ElementInstanceKey: 2, ProcessInstanceKey: 3, Rule: decision.RNBIL005, Policy: p, Failure: &f,
		Error: "DUPLICATE_CLAIM", ReceivedAt: time.Now()}
	a.Identity = journal.IdentityOf(a)
	if _, err := testkit.StartJournal(t, db, time.Now).Analyze(wait.Context(t), a); err != nil {
		t.Fatal(err)
	}
}
