package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	realserver "retry-worker/e2e/harness/postgres"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// ownServer is one that the test may stop.
func ownServer(t *testing.T) (*realserver.Server, string) {
	t.Helper()
	s := realserver.New(t, realserver.Options{})
	url, err := s.CreateDatabase(wait.Context(t))
	testkit.Must(t, err)
	return s, url
}

func TestAServerThatIsStoppedAndStartedUnderLoadLosesNothing(t *testing.T) {
	for _, end := range []struct {
		name string
		how  func(*realserver.Server, context.Context) error
	}{
		{"in order", (*realserver.Server).Stop},
		{"killed", func(s *realserver.Server, _ context.Context) error { s.Kill(); return nil }},
	} {
		t.Run(end.name, func(t *testing.T) {
			const subjects, jobs = 20, 40
			s, url := ownServer(t)
			a, b, ctx := open(t, url), open(t, url), wait.Context(t)
			var own atomic.Int64
			done := make(chan struct{})
			go func() {
				defer close(done)
				run(ctx, t, subjects, jobs, &own, a, b)
			}()
			for n := range int64(3) {
				wait.Until(t, "another quarter of the jobs is decided", func() bool { return own.Load() >= (n+1)*subjects*jobs/4 })
				testkit.Must(t, errors.Join(end.how(s, ctx), s.Restart(ctx)))
			}
			<-done
			verify(t, url, subjects, jobs)
		})
	}
}

func TestAConnectionThatIsEndedInMidTransactionChangesNothing(t *testing.T) {
	url := realserver.Database(t)
	db, watch := open(t, url), connect(t, url)
	job := ask("CLM-KILL-1", "job")
	err := db.Transact(wait.Context(t), []journal.Lookup{job}, func(head journal.Head, histories []journal.History) *journal.Changes {
		n := one[int64](t, watch, `SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle in transaction'`)
		if n != 1 {
			t.Errorf("%d connections were in a transaction, expected 1", n)
		}
		c, _ := decide(head, []journal.Lookup{job}, histories)
		return c
	})
	if e, ok := errors.AsType[*journal.StoreError](err); !ok || e.Kind == journal.Invalid {
		t.Fatalf("got %v, expected an error that is tried again", err)
	}
	if n := one[int64](t, watch, "SELECT count(*) FROM records"); n != 0 {
		t.Errorf("%d attempts of a transaction that was ended", n)
	}
	if fresh, err := record(wait.Context(t), db, job); err != nil || !fresh[0] {
		t.Errorf("the next try: fresh %v, error %v", fresh, err)
	}
	verify(t, url, 1, 1)
}

func TestWritersWaitForAHeldHeadNoLongerThanTheirTime(t *testing.T) {
	url := realserver.Database(t)
	db, holder := open(t, url), connect(t, url)
	_, err := record(wait.Context(t), db, ask("CLM-OLD-1", "job"))
	testkit.Must(t, err)
	do(t, holder, "BEGIN")
	do(t, holder, "SELECT FROM ledger_head WHERE one = 1 FOR UPDATE")
	for _, write := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"a decision", func(ctx context.Context) error { _, err := record(ctx, db, ask("CLM-HELD-1", "job")); return err }},
		{"a probe", db.Probe},
		{"a question", func(ctx context.Context) error { _, err := db.Holds(ctx, &journal.Link{}); return err }},
		{"a purge", func(ctx context.Context) error {
			_, _, err := testkit.PurgeAt(ctx, db, time.Now(), 0, 1, 4)
			return err
		}},
	} {
		t.Run(write.name, func(t *testing.T) { wantKind(t, write.do(wait.Context(t)), journal.Unavailable, "lock") })
	}
	do(t, holder, "ROLLBACK")
	if _, err := record(wait.Context(t), db, ask("CLM-HELD-1", "job")); err != nil {
		t.Errorf("after the head was let go: %v", err)
	}
}

// TestAReplicaThatHangsLosesTheHead has one that stops in mid-transaction; the server ends it while another
// still waits.
func TestAReplicaThatHangsLosesTheHead(t *testing.T) {
	url := realserver.Database(t)
	hangs, goesOn := open(t, url), open(t, url)
	job, held, release := ask("CLM-HANG-1", "job"), make(chan struct{}), make(chan struct{})
	end := make(chan error, 1)
	go func() {
		end <- hangs.Transact(wait.Context(t), []journal.Lookup{job}, func(head journal.Head, histories []journal.History) *journal.Changes {
			close(held)
			<-release
			c, _ := decide(head, []journal.Lookup{job}, histories)
			return c
		})
	}()
	<-held
	if _, err := record(wait.Context(t), goesOn, job); err != nil {
		t.Errorf("beside a replica that hangs: %v", err)
	}
	close(release)
	if err := <-end; err == nil {
		t.Error("the replica that had lost the head saved its decision")
	}
	verify(t, url, 1, 1)
}

// TestAServerThatDoesNotAnswer is found out within the caller's time, and is used again when it goes on.
func TestAServerThatDoesNotAnswer(t *testing.T) {
	s, url := ownServer(t)
	db := open(t, url)
	testkit.Must(t, s.Pause())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := record(ctx, db, ask("CLM-PAUSE-1", "job"))
	wantKind(t, err, journal.Unavailable, "record decisions")
	testkit.Must(t, s.Resume())
	if _, err := insist(wait.Context(t), db, []journal.Lookup{ask("CLM-PAUSE-1", "job")}); err != nil {
		t.Error(err)
	}
	verify(t, url, 1, 1)
}

func TestWhatCannotBeKeptIsInvalidAndLeavesTheRest(t *testing.T) {
	url := realserver.Database(t)
	db := open(t, url)
	const secret = "Maria"
	for _, wrong := range []struct {
		name   string
		lookup journal.Lookup
		spoil  func(*journal.Changes)
	}{
		{"NUL in an id", ask("CLM-"+secret+"\x00-1", "job"), nil},
		{"no UTF-8 in an id", ask("CLM-"+secret+"\xff-1", "job"), nil},
		{"NUL in an error", ask("CLM-NUL-2", "job"), func(c *journal.Changes) { c.Records[0].Body = `{"error":"` + secret + "\x00" + `"}` }},
		{"a record that is there", ask("CLM-TWICE-3", "job"), func(c *journal.Changes) { c.Records[0].Record = 1 }},
		{"an id too long for the index", ask(long(secret), "job"), nil},
	} {
		t.Run(wrong.name, func(t *testing.T) {
			good := ask("CLM-GOOD-"+wrong.name, "job")
			_, err := record(wait.Context(t), db, good)
			testkit.Must(t, err)
			err = db.Transact(wait.Context(t), []journal.Lookup{wrong.lookup}, func(head journal.Head, histories []journal.History) *journal.Changes {
				c, _ := decide(head, []journal.Lookup{wrong.lookup}, histories)
				if wrong.spoil != nil {
					wrong.spoil(c)
				}
				return c
			})
			wantKind(t, err, journal.Invalid, "record decisions")
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error %q names what was to be kept", err)
			}
			if fresh, err := record(wait.Context(t), db, good); err != nil || fresh[0] {
				t.Errorf("what was kept before: fresh %v, error %v", fresh, err)
			}
		})
	}
	verifyChain(t, url)
}

// long is an id that does not fit an index's page, however it is packed.
func long(prefix string) string {
	var b strings.Builder
	b.WriteString(prefix)
	for b.Len() < 9000 {
		b.WriteString(rand.Text())
	}
	return b.String()
}

func TestAReaderSeesWhatIsCommittedAlone(t *testing.T) {
	url := realserver.Database(t)
	db := open(t, url)
	reader, err := OpenReader(wait.Context(t), url)
	testkit.Must(t, err)
	defer reader.Close()
	job := ask("CLM-READ-1", "job")
	watch := connect(t, url)
	do(t, watch, "CREATE TABLE seen (n int)")
	do(t, watch, `CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END $$`)
	do(t, watch, "CREATE TRIGGER slow AFTER INSERT ON records FOR EACH ROW EXECUTE FUNCTION slow()")
	do(t, watch, "SELECT pg_advisory_lock(1)") // the attempt is inserted, and its transaction waits
	done := make(chan error, 1)
	go func() { _, err := record(wait.Context(t), db, job); done <- err }()
	wait.Until(t, "the transaction waits in its midst", func() bool {
		return one[int64](t, watch, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == 1
	})
	if _, found, err := reader.Story(wait.Context(t), job.Subject); found || err != nil {
		t.Errorf("before the commit: found %v, error %v", found, err)
	}
	do(t, watch, "SELECT pg_advisory_unlock(1)")
	testkit.Must(t, <-done)
	if story, found, err := reader.Story(wait.Context(t), job.Subject); !found || err != nil || len(story.Attempts) != 1 {
		t.Errorf("after the commit: %d attempts, error %v", len(story.Attempts), err)
	}
}

// TestAPurgeWhoseConnectionIsEndedPurgesNothing, and the next goes on.
func TestAPurgeWhoseConnectionIsEndedPurgesNothing(t *testing.T) {
	url := realserver.Database(t)
	db, holder := open(t, url), connect(t, url)
	entries := slices.Repeat([]journal.Entry{{Kind: journal.RejectionEntry, Body: `{"n":1}`}}, 10)
	testkit.Must(t, db.Transact(wait.Context(t), nil, func(head journal.Head, _ []journal.History) *journal.Changes {
		c, err := journal.Append(head, time.Now(), nil, nil, entries...)
		testkit.Must(t, err)
		return c
	}))
	do(t, holder, "BEGIN")
	do(t, holder, "SELECT FROM ledger_head WHERE one = 1 FOR UPDATE")
	end := make(chan error, 1)
	go func() {
		_, _, err := testkit.PurgeAt(wait.Context(t), db, time.Now(), 0, 10, 4)
		end <- err
	}()
	wait.Until(t, "the purge waits for the head and is ended", func() bool {
		return one[int64](t, holder, `SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND wait_event_type = 'Lock'`) == 1
	})
	if e, ok := errors.AsType[*journal.StoreError](<-end); !ok || e.Kind == journal.Invalid {
		t.Errorf("got %v, expected an error that is tried again", e)
	}
	do(t, holder, "ROLLBACK")
	if left := one[int64](t, holder, "SELECT count(*) FROM records"); left != 10 {
		t.Errorf("%d of 10 attempts are left", left)
	}
	if n, _, err := testkit.PurgeAt(wait.Context(t), db, time.Now(), 0, 10, 100); err != nil || n != 10 {
		t.Errorf("%d were purged (%v), want 10", n, err)
	}
}
