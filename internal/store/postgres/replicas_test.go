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

	"github.com/jackc/pgx/v5"

	realserver "retry-worker/e2e/harness/postgres"
	"retry-worker/internal/journal"
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
	if n := one[int64](t, c, "SELECT count(*) FROM attempts"); n != total {
		t.Errorf("%d attempts, expected %d", n, total)
	}
	if n := one[int64](t, c, "SELECT count(DISTINCT identity) FROM attempts"); n != total {
		t.Errorf("%d jobs were decided, expected %d", n, total)
	}
	if n := one[int64](t, c, "SELECT count(*) FROM (SELECT 1 FROM attempts GROUP BY subject HAVING count(*) <> $1 OR max(number) <> $1 OR count(DISTINCT number) <> $1) AS wrong", jobs); n != 0 {
		t.Errorf("%d subjects have attempts that are missing or numbered twice", n)
	}
	if first, last := one[int64](t, c, "SELECT min(record) FROM attempts"), one[int64](t, c, "SELECT max(record) FROM attempts"); first != 1 || last != total {
		t.Errorf("the records are %d to %d, expected 1 to %d", first, last, total)
	}
	verifyChain(t, c)
}

// verifyChain walks the ledger from its first link to its head, and holds the digests against the attempts.
func verifyChain(t *testing.T, c *pgx.Conn) {
	t.Helper()
	rows, err := c.Query(within(t), "SELECT number, at, first, digests, hash FROM ledger ORDER BY number")
	if err != nil {
		t.Fatal(err)
	}
	head := journal.Head{}
	var digests []journal.Digest
	var at int64
	var packed, hash []byte
	l := journal.Link{}
	_, err = pgx.ForEachRow(rows, []any{&l.Number, &at, &l.First, &packed, &hash}, func() error {
		l.At, l.Digests = journal.FromMilli(at), nil
		for ; len(packed) >= 32; packed = packed[32:] {
			l.Digests = append(l.Digests, journal.Digest(packed[:32]))
		}
		if l.Number != head.Link+1 || l.First != head.Record+1 || l.HashAfter(head.Hash) != journal.Digest(hash) {
			t.Errorf("link %d does not follow the one before it", l.Number)
		}
		head = journal.Head{Link: l.Number, Record: head.Record + int64(len(l.Digests)), Hash: journal.Digest(hash)}
		digests = append(digests, l.Digests...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if kept := one[int64](t, c, "SELECT record FROM ledger_head WHERE link = $1 AND hash = $2", head.Link, head.Hash[:]); kept != head.Record {
		t.Errorf("the head is at record %d, the ledger ends at %d", kept, head.Record)
	}
	verifyDigests(t, c, digests)
}

func verifyDigests(t *testing.T, c *pgx.Conn, digests []journal.Digest) {
	t.Helper()
	subjects := map[int64]journal.Subject{}
	err := each(within(t), c, subjectsTable, func(s *journal.KeyedSubject) { subjects[s.Key] = s.Subject }, "")
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	err = each(within(t), c, attemptsTable, func(a *journal.KeyedAttempt) {
		r := a.Attempt.Record
		if r > int64(len(digests)) || journal.DigestAttempt(subjects[a.Key], a.Attempt) != digests[r-1] {
			wrong++
		}
	}, "")
	if err != nil || wrong > 0 {
		t.Errorf("%d attempts are not what their digests say (%v)", wrong, err)
	}
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
	const subjects, jobs = 60, 20
	url := realserver.Database(t)
	ctx := within(t)
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
	ctx, job := within(t), ask("CLM-WAIT-1", "job")
	fresh := make(chan bool, 1)
	err := first.Transact(ctx, []journal.Lookup{job}, func(head journal.Head, histories []journal.History) *journal.Changes {
		go func() {
			f, err := record(ctx, second, job)
			if err != nil {
				t.Error(err)
			}
			fresh <- err != nil || f[0]
		}()
		eventually(t, "the second replica waits for the head", func() bool {
			return one[int64](t, watch, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 1
		})
		c, _ := decide(head, []journal.Lookup{job}, histories)
		return c
	})
	if err != nil {
		t.Fatal(err)
	}
	if <-fresh {
		t.Error("the second replica did not see the decision that it had waited for")
	}
	verify(t, url, 1, 1)
}

// eventually polls until something is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(enough); !so(); pause(t.Context(), 5*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}
