package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/store/storetest"
)

// BenchmarkTransact prints the CPU time that one decision costs in the store, of subjects that are new and of
// subjects that are known, at several sizes of a batch.
func BenchmarkTransact(b *testing.B) {
	for _, known := range []bool{false, true} {
		for _, size := range []int{1, 25, 50, 100, 200} {
			b.Run(fmt.Sprintf("known=%t/batch=%d", known, size), func(b *testing.B) { benchmarkTransact(b, known, size) })
		}
	}
}

func benchmarkTransact(b *testing.B, known bool, size int) {
	db, err := Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	const subjects = 20_000
	next := 0
	if known {
		for next < subjects {
			if err := decideBatch(b.Context(), db, 200, &next, 0); err != nil {
				b.Fatal(err)
			}
		}
	}
	wrap := 0
	if known {
		wrap = subjects
	}
	before := cpu(b)
	b.ResetTimer()
	decisions := 0
	for b.Loop() {
		if err := decideBatch(b.Context(), db, size, &next, wrap); err != nil {
			b.Fatal(err)
		}
		decisions += size
	}
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(decisions), "cpu-µs/decision")
	b.ReportMetric(float64(decisions)/b.Elapsed().Seconds(), "decisions/s")
	info, err := os.Stat(db.file.path)
	if err == nil && !known {
		b.ReportMetric(float64(info.Size())/float64(next), "bytes/decision")
	}
}

// decideBatch records one decision each of size subjects, from the next one on, as the journal does.
func decideBatch(ctx context.Context, db *DB, size int, next *int, wrap int) error {
	lookups := make([]journal.Lookup, size)
	for i := range lookups {
		n := *next
		if wrap > 0 {
			n %= wrap
		}
		*next++
		id := journal.Identity{byte(*next), byte(*next >> 8), byte(*next >> 16), byte(*next >> 24)}
		lookups[i] = journal.Lookup{Subject: benchSubject(n), Identity: id}
	}
	return db.Transact(ctx, lookups, func(head journal.Head, histories []journal.History) *journal.Changes {
		return decideAll(head, lookups, histories)
	})
}

func benchSubject(n int) journal.Subject {
	return journal.Subject{Tenant: "<default>", Policy: "tiss-submission", ID: fmt.Sprintf("CLM-BENCH-%d", n)}
}

func decideAll(head journal.Head, lookups []journal.Lookup, histories []journal.History) *journal.Changes {
	c := &journal.Changes{}
	now := time.Now().UTC().Truncate(time.Millisecond)
	for i := range lookups {
		h, s := &histories[i], lookups[i].Subject
		if h.Key == 0 {
			h.Key = head.Subject + int64(len(c.Subjects)) + 1
			c.Subjects = append(c.Subjects, journal.KeyedSubject{Key: h.Key, Subject: s})
			h.Episode = journal.Episode{Number: 1, OpenedAt: now, FirstFailure: now}
		}
		e := h.Episode
		e.State, e.NextRetryTime, e.Retries, e.ProcessInstanceKey = journal.Scheduled, now.Add(5*time.Minute), e.Retries+1, 2251799813685249
		a := &journal.Attempt{
			Record: head.Record + int64(i) + 1, Number: h.Attempts + 1, Episode: 1, Identity: lookups[i].Identity,
			JobKey: 2251799813685250, ElementInstanceKey: 2251799813685251, ProcessInstanceKey: 2251799813685249,
			Rule: decision.RNBIL005, Error: "SocketTimeoutException: connect timed out after 30000 ms at gateway", GivenCount: -1,
			ReceivedAt: now, Took: time.Millisecond,
			Decision: decision.Decision{
				Outcome: decision.Retry, Policy: s.Policy, SubjectID: s.ID, ErrorClassification: decision.Transient,
				Reason: "TIMEOUT", MatchedRule: "TIMEOUT", MatchedText: "SocketTimeout", Catalogue: "3f9a1c77d0e2", RetryCount: e.Retries, MaxRetries: 5,
				Backoff:       decision.Backoff{Delay: 5 * time.Minute, Raw: 5 * time.Minute, JitterRatio: 0.0123},
				NextRetryTime: e.NextRetryTime, RetryReason: "Transient error, retry 1 of 5", AnalysedAt: now, FirstFailure: now,
			},
		}
		c.Attempts = append(c.Attempts, journal.KeyedAttempt{Key: h.Key, Attempt: a})
		c.Episodes = append(c.Episodes, journal.KeyedEpisode{Key: h.Key, Episode: e})
		c.Link.Digests = append(c.Link.Digests, journal.DigestAttempt(s, a))
	}
	addSums(c, now, int64(len(lookups)))
	c.Link.At = now.Truncate(time.Millisecond)
	c.Link = c.Link.After(head)
	return c
}

// addSums adds what figures and fingerprints grow by, as the journal does: some twenty rows a commit.
func addSums(c *journal.Changes, now time.Time, n int64) {
	slot := journal.SlotOf(now)
	for _, name := range []journal.FigureName{journal.FigureDecisions, journal.FigureScheduled, journal.FigureBackoff, journal.FigureClosed, journal.FigureRecoveredRetried} {
		c.Figures = append(c.Figures, journal.Figure{Policy: "tiss-submission", Slot: slot, Name: name, Value: n})
	}
	for bucket := range min(n, 8) {
		c.Figures = append(c.Figures,
			journal.Figure{Policy: "tiss-submission", Slot: slot, Name: journal.FigureJitter, Bucket: bucket, Value: 1},
			journal.Figure{Policy: "tiss-submission", Slot: slot, Name: journal.FigureTook, Bucket: 100 << bucket, Value: 1})
	}
	for i := range min(n, 3) {
		a := *c.Attempts[i].Attempt
		a.Error = fmt.Sprint("cause ", "abc"[i:i+1])
		f := journal.FingerprintOf("tiss-submission", &a)
		f.FirstSeen, f.LastSeen, f.Failures, f.Retried = now, now, n/3, n/3
		c.Fingerprints = append(c.Fingerprints, f)
	}
}

// cpu is what this process used of the processors so far.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkArchive prints what reading and purging costs in a journal of 200,000 attempts.
func BenchmarkArchive(b *testing.B) { benchmarkArchive(b, 200_000) }

// BenchmarkArchiveLarge prints the same of 2,000,000, which takes minutes to fill; -short leaves it out.
func BenchmarkArchiveLarge(b *testing.B) {
	if testing.Short() {
		b.Skip("-short: fills a database for minutes")
	}
	benchmarkArchive(b, 2_000_000)
}

func benchmarkArchive(b *testing.B, attempts int) {
	db, err := Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	storetest.Bench(b, db, attempts)
}

// BenchmarkLetters prints what lists of 100,000 dead letters cost.
func BenchmarkLetters(b *testing.B) { benchmarkLetters(b, 100_000) }

// BenchmarkLettersLarge prints the same of 1,000,000, which takes minutes to fill; -short leaves it out.
func BenchmarkLettersLarge(b *testing.B) {
	if testing.Short() {
		b.Skip("-short: fills a database for minutes")
	}
	benchmarkLetters(b, 1_000_000)
}

func benchmarkLetters(b *testing.B, letters int) {
	db, err := Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	storetest.BenchLetters(b, db, letters)
	if info, err := os.Stat(db.file.path); err == nil {
		b.Logf("%d bytes a dead letter", info.Size()/int64(letters))
	}
}
