package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/store/sqlstore"
	"retry-worker/internal/store/storetest"
	"retry-worker/internal/testkit"
)

// TestDiskFull lets the database grow no further, which is what SQLite says of a full disk, and then again.
func TestDiskFull(t *testing.T) {
	db := opened(t, filepath.Join(t.TempDir(), "journal.db"))
	next := 0
	testkit.Must(t, fail(t.Context(), db, 50, &next))
	onWriter(t, db, "PRAGMA max_page_count = 40")
	var err error
	head := headOf(t, db)
	for deadline := time.Now().Add(20 * time.Second); err == nil && time.Now().Before(deadline); {
		head = headOf(t, db)
		err = fail(t.Context(), db, 50, &next)
	}
	var e *journal.StoreError
	if !errors.As(err, &e) || e.Kind != journal.Unavailable || !strings.Contains(err.Error(), "no room is left") {
		t.Fatalf("a full disk is told as %v (%s)", err, kindName(err))
	}
	if now := headOf(t, db); now != head {
		t.Errorf("the head moved to %+v from %+v", now, head)
	}
	onWriter(t, db, "PRAGMA max_page_count = 1000000")
	if err := fail(t.Context(), db, 50, &next); err != nil {
		t.Errorf("with room again: %v", err)
	}
	storetest.Verify(t, db)
}

// TestWriteFails has the system refuse every write beyond a file's size, in a process of its own.
func TestWriteFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	c := start(t, "limit", path, nil)
	for _, want := range []string{"met:", "probe:", "probe with room: done", "decided with room: done"} {
		line := c.line()
		t.Log(line)
		if !strings.HasPrefix(line, want) {
			t.Errorf("it said %q, want %q", line, want)
		}
		if want == "met:" && !strings.HasPrefix(line, "met: unavailable") && !strings.HasPrefix(line, "met: ambiguous") {
			t.Errorf("a write that fails is told as %q", line)
		}
	}
	if err := c.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	storetest.Verify(t, opened(t, path))
}

// failing is a connection whose statement fails that brings left to 0.
type failing struct {
	sqlstore.Conn
	left *int
}

func (f failing) fails() error {
	if *f.left--; *f.left == 0 {
		return errors.New("it fails")
	}
	return nil
}

func (f failing) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.Conn.QueryContext(ctx, query, args...)
}

func (f failing) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.Conn.ExecContext(ctx, query, args...)
}

// TestEachStatementFails in turn: nothing is decided on what was not read, and nothing is saved.
func TestEachStatementFails(t *testing.T) {
	db, next, left := opened(t, filepath.Join(t.TempDir(), "journal.db")), 0, 0
	testkit.Must(t, fail(t.Context(), db, 20, &next))
	acquire := db.Acquire
	db.Acquire = func(ctx context.Context) (sqlstore.Conn, func(bool), error) {
		conn, release, err := acquire(ctx)
		return failing{conn, &left}, release, err
	}
	decide := func(journal.Head, []journal.History) *journal.Changes {
		if left <= 0 {
			t.Error("it is decided after a statement has failed")
		}
		return nil
	}
	expunge := func(head journal.Head, _ *journal.Expunging) (*journal.Changes, error) { return decide(head, nil), nil }
	for what, do := range map[string]func() error{
		"a decision": func() error { return db.Transact(t.Context(), []journal.Lookup{{Run: "x", Item: 1}}, decide) },
		"a purge":    func() error { return db.Expunge(t.Context(), journal.Scope{Through: 9, Limit: 9}, expunge) },
		"an erasure": func() error {
			return db.Expunge(t.Context(), journal.Scope{Subject: journal.Subject{ID: "x"}}, expunge)
		},
		"a rebuild": func() error { return audit.Rebuild(t.Context(), db, time.Now(), false, nil, nil) },
	} {
		head, err := db.Head(t.Context())
		testkit.Must(t, err)
		for n, failed := 1, true; failed; n++ {
			left = n
			err = do()
			if failed = left <= 0; !failed {
				testkit.Must(t, err)
			} else if now, _ := db.Head(t.Context()); !errors.As(err, new(*journal.StoreError)) || now != head {
				t.Errorf("%s, statement %d fails: %v, and the head is %s, was %s", what, n, err, now, head)
			}
		}
	}
	storetest.Verify(t, db)
}

// TestKilledWhileCommitting kills the process that writes, at random moments: what it had said to be committed
// is there, and the chain holds.
func TestKilledWhileCommitting(t *testing.T) {
	path, random := filepath.Join(t.TempDir(), "journal.db"), rand.New(rand.NewPCG(1, 1))
	for n := range 8 {
		c := start(t, "commit", path, nil)
		acknowledged := int64(0)
		timer := time.AfterFunc(time.Duration(20+random.IntN(150))*time.Millisecond, func() { _ = c.Process.Kill() })
		for line := c.line(); line != ""; line = c.line() {
			record, err := strconv.ParseInt(line, 10, 64)
			if err != nil {
				t.Fatalf("it said %q", line)
			}
			acknowledged = record
		}
		timer.Stop()
		_ = c.Wait()
		db, err := Open(t.Context(), path)
		if err != nil {
			t.Fatalf("after kill %d: %v", n+1, err)
		}
		if head := headOf(t, db); head.Record < acknowledged {
			t.Fatalf("after kill %d the journal ends at record %d; %d was acknowledged", n+1, head.Record, acknowledged)
		}
		storetest.Verify(t, db)
		testkit.Must(t, db.Close())
	}
}

// TestKilledWhileMade kills the process that makes a new database, at random moments: the next one opens it.
func TestKilledWhileMade(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		path := filepath.Join(t.TempDir(), "journal.db")
		c := start(t, "hold", path, nil)
		deadline := time.Now().Add(10 * time.Second)
		for _, err := os.Stat(path); err != nil && time.Now().Before(deadline); _, err = os.Stat(path) {
			runtime.Gosched()
		}
		<-time.After(time.Duration(random.IntN(20_000)) * time.Microsecond)
		c.kill()
		db, next := opened(t, path), 0
		testkit.Must(t, fail(t.Context(), db, 10, &next))
		storetest.Verify(t, db)
	}
}

// TestAnotherProgramHoldsIt is a backup, or a person, that keeps a transaction open.
func TestAnotherProgramHoldsIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.db")
	db := opened(t, path)
	other, err := db.file.pool(forWriting, 1)
	testkit.Must(t, err)
	defer other.Close()
	tx, err := other.BeginTx(t.Context(), nil)
	testkit.Must(t, err)
	next := 0
	err = fail(t.Context(), db, 10, &next)
	if kindName(err) != "unavailable" || !strings.Contains(err.Error(), "another program holds the database") {
		t.Errorf("it is told as %v", err)
	}
	testkit.Must(t, tx.Rollback())
	if err := fail(t.Context(), db, 10, &next); err != nil {
		t.Errorf("once it is free: %v", err)
	}
}

// TestTakenAwayWhileOpen: who moves the file, puts another in its place or removes its log loses nothing, as nothing more is
// decided, and what was is copied into the file at the end.
func TestTakenAwayWhileOpen(t *testing.T) {
	for what, take := range map[string]func(path string) error{
		"": func(path string) error { return os.Rename(path, path+".old") },
		"-wal": func(path string) error {
			return errors.Join(os.Remove(path+"-wal"), os.Symlink(path, path+".old"))
		},
	} {
		path, next := filepath.Join(t.TempDir(), "journal.db"), 0
		db := opened(t, path)
		if n := db.pool.Stats().OpenConnections; n != 2 {
			t.Errorf("%d connections are open; one that is opened later copies the log into another file", n)
		}
		testkit.Must(t, fail(t.Context(), db, 10, &next))
		head := headOf(t, db)
		testkit.Must(t, take(path))
		if read, err := db.Head(t.Context()); err != nil || read != head {
			t.Errorf("without %q what was written is read as %s (%v), want %s", path+what, read, err, head)
		}
		err := fail(t.Context(), db, 10, &next)
		if kindName(err) != "unavailable" || !strings.Contains(err.Error(), "restart the worker") {
			t.Errorf("without %q it is told as %v", path+what, err)
		}
		testkit.Must(t, db.Close())
		if old := opened(t, path+".old"); headOf(t, old) != head {
			t.Errorf("without %q the file ends at %s, want %s", path+what, headOf(t, old), head)
		}
	}
}

// TestCommitsAreDurable looks at the settings, because no kill of a process shows what a power failure does.
func TestCommitsAreDurable(t *testing.T) {
	db := opened(t, filepath.Join(t.TempDir(), "journal.db"))
	for pragma, want := range map[string]any{"synchronous": int64(2), "journal_mode": "wal"} {
		var got any
		if err := db.writer.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", pragma, got, err, want)
		}
	}
}

// TestLogStartsOver: once the write-ahead log is long it is copied, and starts over long before commits have to copy it.
func TestLogStartsOver(t *testing.T) {
	db, next := opened(t, filepath.Join(t.TempDir(), "journal.db")), 0
	for longest := 0; ; {
		testkit.Must(t, fail(t.Context(), db, 50, &next))
		var busy, pages, copied int
		testkit.Must(t, db.pool.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &pages, &copied))
		if pages < longest {
			break
		}
		if longest = pages; pages >= mostPages {
			t.Fatalf("the log has %d pages, %d of them copied", pages, copied)
		}
	}
	storetest.Verify(t, db)
}

// TestPurgesKeepFewStatements: the connection that writes keeps its statements, and each purge is of other claims.
func TestPurgesKeepFewStatements(t *testing.T) {
	db, next, kept := opened(t, filepath.Join(t.TempDir(), "journal.db")), 0, 0
	testkit.Must(t, fail(t.Context(), db, 200, &next))
	for n := range int64(15) {
		if _, _, err := testkit.PurgeAt(t.Context(), db, time.Now(), n*10, n*10+10, 10); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			kept = len(db.writer.prepared)
		}
	}
	if now := len(db.writer.prepared); now > kept {
		t.Errorf("%d statements are kept after 15 purges, %d after two", now, kept)
	}
	if headOf(t, db); db.writer.prepared["ROLLBACK"] == nil {
		t.Error("a transaction that changed nothing was committed")
	}
}

// TestDecideThatPanics leaves the store as it was, for whoever recovers.
func TestDecideThatPanics(t *testing.T) {
	db := opened(t, filepath.Join(t.TempDir(), "journal.db"))
	func() {
		defer func() { _ = recover() }()
		_ = db.Transact(t.Context(), nil, func(journal.Head, []journal.History) *journal.Changes { panic("a defect") })
	}()
	next := 0
	testkit.Must(t, fail(t.Context(), db, 10, &next))
}

func headOf(t *testing.T, db *DB) (head journal.Head) {
	t.Helper()
	err := db.Transact(context.Background(), nil, func(h journal.Head, _ []journal.History) *journal.Changes {
		head = h
		return nil
	})
	testkit.Must(t, err)
	return head
}

// onWriter runs a statement on the connection that writes.
func onWriter(t *testing.T, db *DB, statement string) {
	t.Helper()
	rows, err := db.writer.QueryContext(t.Context(), statement)
	if err == nil {
		for rows.Next() {
		}
		err = errors.Join(rows.Err(), rows.Close())
	}
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
