package audit_test

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/kpi"
	"retry-worker/internal/store/sqlite"
)

// benchRecords and benchBatch: a journal under load shares a commit among some 50 decisions.
const (
	benchRecords = 200_000
	benchBatch   = 50
)

func TestMain(m *testing.M) { harness.Main(m) }

// grown is a SQLite file of that many decisions, made once.
var grown = sync.OnceValues(func() (string, error) {
	folder, err := harness.NewFolder("audit")
	if err != nil {
		return "", err
	}
	harness.AtEnd(folder.Remove)
	path := folder.Join("journal.db")
	db, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return "", err
	}
	for n := 0; n < benchRecords && err == nil; n += benchBatch {
		err = db.Transact(context.Background(), nil, func(head journal.Head, _ []journal.History) *journal.Changes {
			return decisions(head, benchBatch)
		})
	}
	if err != nil {
		return "", err
	}
	return path, db.Close()
})

// decisions are some retries of claims that were not known before.
func decisions(head journal.Head, n int) *journal.Changes {
	now := begin.Add(time.Duration(head.Record) * time.Second)
	var lookups []journal.Lookup
	var entries []journal.Entry
	for i := range int64(n) {
		s := subject(fmt.Sprintf("CLM-BENCH-%d", head.Record+i+1))
		lookups = append(lookups, journal.Lookup{Subject: s})
		entries = append(entries, journal.EntryOf(s, &journal.Attempt{
			Number: 1, Episode: 1, Identity: journal.Identity{byte(i), byte(head.Record), byte(head.Record >> 8), byte(head.Record >> 16)},
			JobKey: 2251799813685250 + i, ElementInstanceKey: 2251799813685251, ProcessInstanceKey: 2251799813685249, Fingerprint: "0123456789abcdef",
			Rule: decision.RNBIL005, Error: "SocketTimeoutException: connect timed out after 30000 ms at gateway 4 of the operator", GivenCount: -1,
			ReceivedAt: now, Took: time.Millisecond,
			Decision: decision.Decision{
				Outcome: decision.Retry, ErrorClassification: decision.Transient, Reason: "TIMEOUT", MatchedRule: "TIMEOUT", RetryCount: 1,
				MaxRetries: 5, Backoff: decision.Backoff{Delay: 5 * time.Minute, Raw: 5 * time.Minute, JitterRatio: 0.0123},
				NextRetryTime: now.Add(5 * time.Minute), RetryReason: "Transient error, retry 1 of 5", AnalysedAt: now, FirstFailure: now,
			},
		}))
	}
	c, err := journal.Append(head, now, lookups, make([]journal.History, n), entries...)
	if err != nil {
		panic(err)
	}
	return c
}

func benchArchive(b *testing.B) *sqlite.Reader {
	b.Helper()
	path, err := grown()
	if err != nil {
		b.Fatal(err)
	}
	reader, err := sqlite.OpenReader(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = reader.Close() })
	return reader
}

// BenchmarkVerify prints how many records are verified in a second, and how much the heap held at most.
func BenchmarkVerify(b *testing.B) {
	a := benchArchive(b)
	h := heap{}
	for b.Loop() {
		r, err := audit.Verify(b.Context(), a, audit.VerifyOptions{}, h.look)
		if err != nil || r.Records != benchRecords {
			b.Fatal(r, err)
		}
	}
	h.report(b, benchRecords)
}

// BenchmarkExport prints how many records are written in a second, and that the heap does not grow with their number.
func BenchmarkExport(b *testing.B) {
	for _, f := range audit.Formats() {
		for _, records := range []int64{benchRecords / 10, benchRecords} {
			b.Run(fmt.Sprintf("%s/records=%d", f, records), func(b *testing.B) { benchmarkExport(b, f, records) })
		}
	}
}

func benchmarkExport(b *testing.B, f audit.Format, records int64) {
	a := benchArchive(b)
	s := audit.Selection{RecordFilter: journal.RecordFilter{Until: begin.Add(time.Duration(records) * time.Second)}}
	h := heap{}
	for b.Loop() {
		n, err := audit.Export(b.Context(), a, io.Discard, s, f, h.look)
		if err != nil || n != records {
			b.Fatal(n, err)
		}
	}
	h.report(b, records)
}

// heap watches what is in use.
type heap struct{ most uint64 }

func (h *heap) look(int64, int64, int64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h.most = max(h.most, m.HeapAlloc)
}

func (h *heap) report(b *testing.B, records int64) {
	b.ReportMetric(float64(b.N)*float64(records)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(h.most)/(1<<20), "heap-MB")
}

// BenchmarkKPIs prints what a week costs in which something of every kind happened in every slot, whatever number of
// attempts that was: the sums do not grow with it.
func BenchmarkKPIs(b *testing.B) {
	for _, policies := range [][]string{{decision.DefaultPolicy}, {decision.DefaultPolicy, "whatsapp-message", "failed-job", "job-queue", "no-retry"}} {
		b.Run(fmt.Sprintf("policies=%d", len(policies)), func(b *testing.B) { benchmarkKPIs(b, policies) })
	}
}

func benchmarkKPIs(b *testing.B, policies []string) {
	db, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "journal.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	now, rows := begin, 0
	for at := now.Add(-kpi.Weekly); at.Before(now); at = at.Add(journal.Slot) {
		err := db.Transact(b.Context(), nil, func(head journal.Head, _ []journal.History) *journal.Changes {
			c := decisions(head, 1) // figures come with records
			c.Figures = busySlot(policies, journal.SlotOf(at))
			rows += len(c.Figures)
			return c
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		all, err := audit.KPIs(b.Context(), db, policies, "", now)
		if err != nil || all[0].Value == nil {
			b.Fatal(all, err)
		}
	}
	b.ReportMetric(float64(rows), "sums")
}

// busySlot are the sums of ten minutes in which some 2,000 decisions of each policy were made.
func busySlot(policies []string, slot int64) []journal.Figure {
	var all []journal.Figure
	for _, policy := range policies {
		for _, name := range []journal.FigureName{
			journal.FigureDecisions, journal.FigurePermanent, journal.FigureScheduled, journal.FigureBackoff, journal.FigureClosed,
			journal.FigureExhausted, journal.FigureExhaustedRetried, journal.FigureRecoveredRetried, journal.FigureRecoveryTime, journal.FigureRecoveryRetries,
		} {
			all = append(all, journal.Figure{Policy: policy, Slot: slot, Name: name, Value: 2000})
		}
		for bucket := range int64(8) {
			all = append(all, journal.Figure{Policy: policy, Slot: slot, Name: journal.FigureJitter, Bucket: bucket, Value: 200},
				journal.Figure{Policy: policy, Slot: slot, Name: journal.FigureTook, Bucket: bucket * 100, Value: 200})
		}
		for minute := range int64(30) {
			all = append(all, journal.Figure{Policy: policy, Slot: slot, Name: journal.FigureRecoveryTimeBucket, Bucket: (minute + 5) * 60, Value: 5})
		}
	}
	return all
}
