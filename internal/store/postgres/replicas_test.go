package postgres

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	realserver "retry-worker/e2e/harness/postgres"
	"retry-worker/internal/journal"
	"retry-worker/internal/store/storetest"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// replica decides on the same jobs as others do, in an order of its own, until all are decided. It tries again
// what the store could not do, as the journal does, and counts in own what it decided itself.
func replica(ctx context.Context, db journal.Store, seed uint64, subjects, jobs int, own *atomic.Int64) error {
	random := rand.New(rand.NewPCG(seed, 1))
	for job := range jobs {
		all := make([]journal.Lookup, subjects)
		for i, n := range random.Perm(subjects) {
			all[i] = ask("CLM-TWICE-"+strconv.Itoa(n), strconv.Itoa(job))
		}
		for len(all) > 0 {
			size := min(1+random.IntN(20), len(all))
			n, err := insist(ctx, db, all[:size])
			if err != nil {
				return err
			}
			own.Add(n)
			all = all[size:]
		}
	}
	return nil
}

// insist records until it is done or ctx ends, and counts what was decided in the try that was.
func insist(ctx context.Context, db journal.Store, lookups []journal.Lookup) (n int64, err error) {
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, 2500*time.Millisecond)
		fresh, err := record(try, db, lookups...)
		cancel()
		if err == nil {
			for _, f := range fresh {
				if f {
					n++
				}
			}
			return n, nil
		}
		if e, ok := errors.AsType[*journal.StoreError](err); !ok || e.Kind == journal.Invalid {
			return 0, err
		}
		pause(ctx, 20*time.Millisecond)
	}
	return 0, ctx.Err()
}

// pause between two tries, as the journal makes it.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// verify checks what must hold after everything: each job of each subject was decided once, attempts are
// numbered without a gap, and so are records and links, whose hashes follow one another.
func verify(t *testing.T, url string, subjects, jobs int) {
	t.Helper()
	c := connect(t, url)
	total := int64(subjects * jobs)
	if n := one[int64](t, c, "SELECT count(*) FROM records"); n != total {
		t.Errorf("%d attempts, expected %d", n, total)
	}
	if n := one[int64](t, c, "SELECT count(DISTINCT body->>'id') FROM records"); n != total {
		t.Errorf("%d jobs were decided, expected %d", n, total)
	}
	if n := one[int64](t, c, "SELECT count(*) FROM (SELECT 1 FROM records GROUP BY subject HAVING count(*) <> $1 OR max((body->>'n')::int) <> $1 OR count(DISTINCT body->>'n') <> $1) AS wrong", jobs); n != 0 {
		t.Errorf("%d subjects have attempts that are missing or numbered twice", n)
	}
	if first, last := one[int64](t, c, "SELECT min(record) FROM records"), one[int64](t, c, "SELECT max(record) FROM records"); first != 1 || last != total {
		t.Errorf("the records are %d to %d, expected 1 to %d", first, last, total)
	}
	verifyChain(t, url)
}

// verifyChain holds the ledger against its own hashes and against every record.
func verifyChain(t *testing.T, url string) {
	t.Helper()
	r, err := OpenReader(wait.Context(t), url)
	testkit.Must(t, err)
	defer r.Close()
	storetest.Verify(t, r)
}

// run runs replicas side by side on the same jobs and counts in own what each decided itself.
func run(ctx context.Context, t *testing.T, subjects, jobs int, own *atomic.Int64, dbs ...journal.Store) {
	t.Helper()
	var all sync.WaitGroup
	for i, db := range dbs {
		all.Go(func() {
			if err := replica(ctx, db, uint64(i), subjects, jobs, own); err != nil {
				t.Errorf("replica %d: %v", i, err)
			}
		})
	}
	all.Wait()
}

func TestReplicasWithTheSameJobsDecideEachOnce(t *testing.T) {
	const subjects, jobs = 40, 10
	url := realserver.Database(t)
	ctx := wait.Context(t)
	var own atomic.Int64
	run(ctx, t, subjects, jobs, &own, open(t, url), open(t, url), open(t, url))
	if own.Load() != subjects*jobs {
		t.Errorf("%d decisions were made, expected %d", own.Load(), subjects*jobs)
	}
	verify(t, url, subjects, jobs)
}

// TestAWaitingReplicaSeesWhatItWaitedFor holds the head until the other replica is known to wait for it, so
// that a snapshot taken before would show; what the database is set to does not matter.
func TestAWaitingReplicaSeesWhatItWaitedFor(t *testing.T) {
	url := realserver.Database(t)
	watch := connect(t, url)
	do(t, watch, "ALTER DATABASE "+one[string](t, watch, "SELECT current_database()")+" SET default_transaction_isolation = serializable")
	first, second := open(t, url), open(t, url)
	ctx, job := wait.Context(t), ask("CLM-WAIT-1", "job")
	fresh := make(chan bool, 1)
	err := first.Transact(ctx, []journal.Lookup{job}, func(head journal.Head, histories []journal.History) *journal.Changes {
		go func() {
			f, err := record(ctx, second, job)
			if err != nil {
				t.Error(err)
			}
			fresh <- err != nil || f[0]
		}()
		wait.Until(t, "the second replica waits for the head", func() bool {
			return one[int64](t, watch, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 1
		})
		c, _ := decide(head, []journal.Lookup{job}, histories)
		return c
	})
	testkit.Must(t, err)
	if <-fresh {
		t.Error("the second replica did not see the decision that it had waited for")
	}
	verify(t, url, 1, 1)
}

// TestALateAskerLeavesTheLeaseToItsHolder: a replica's question waits, after it has read the clock, until another has
// taken the lease.
func TestALateAskerLeavesTheLeaseToItsHolder(t *testing.T) {
	url := realserver.Database(t)
	c, db := connect(t, url), open(t, url)
	do(t, c, `CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN IF NEW.holder = ''late'' THEN PERFORM pg_advisory_xact_lock(1); END IF; RETURN NEW; END';
		CREATE TRIGGER wait BEFORE INSERT ON leases FOR EACH ROW EXECUTE FUNCTION wait(); SELECT pg_advisory_lock(1)`)
	late := make(chan bool)
	go func() {
		held, err := db.Lease(wait.Context(t), "relay", "late", time.Minute)
		late <- held || err != nil
	}()
	wait.Until(t, "the late one has read the clock", func() bool {
		return one[int64](t, c, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == 1
	})
	asked := time.Now()
	wait.Until(t, "the clock goes on", func() bool { return time.Since(asked) > 2*time.Millisecond })
	held, err := db.Lease(wait.Context(t), "relay", "holder", time.Minute)
	testkit.Must(t, err)
	do(t, c, "SELECT pg_advisory_unlock(1)")
	if !held || <-late {
		t.Errorf("the first replica has the lease: %t; or the late one took it", held)
	}
}

// TestCommitBesideARebuild: a commit that waits for the head while a rebuild makes it anew finds the new one.
func TestCommitBesideARebuild(t *testing.T) {
	url := realserver.Database(t)
	db, c := open(t, url), connect(t, url)
	ended := make(chan error, 1)
	rebuild := func(to journal.Rebuilding) (*journal.Changes, error) {
		go func() {
			_, err := record(wait.Context(t), db, ask("CLM-1", "1"))
			ended <- err
		}()
		wait.Until(t, "a commit that waits", func() bool {
			return one[int64](t, c, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") > 0
		})
		head, err := to.Head()
		return journal.RebuildStep(head, time.Now(), false, nil), err
	}
	testkit.Must(t, db.Rebuild(wait.Context(t), rebuild))
	testkit.Must(t, <-ended)
	verifyChain(t, url)
}
