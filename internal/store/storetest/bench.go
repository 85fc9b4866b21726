package storetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Bench measures what reads and purges a store of so many attempts, made over seven days: of figures, which KPIs
// are made of, the milliseconds; of records and links, how many come in a second; of purges, how long one of
// 500 records takes, and a commit beside it waits at most.
func Bench(b *testing.B, s Store, attempts int) {
	h := &history{store: s, random: rand.New(rand.NewPCG(1, 2)), attempts: attempts}
	for h.made < attempts {
		h.commit(b, min(250, attempts-h.made))
	}
	b.Run("figures", func(b *testing.B) {
		rows := 0
		for b.Loop() {
			all, err := s.Figures(b.Context(), 1)
			if err != nil {
				b.Fatal(err)
			}
			rows = len(all)
		}
		b.ReportMetric(float64(rows), "rows")
	})
	b.Run("records", func(b *testing.B) { benchRecords(b, s, journal.RecordFilter{}) })
	b.Run("records of the last day", func(b *testing.B) {
		benchRecords(b, s, journal.RecordFilter{Since: at(0).Add(6 * 24 * time.Hour), Until: at(0).Add(7 * 24 * time.Hour)})
	})
	b.Run("records of nobody", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Records(b.Context(), journal.RecordFilter{Since: at(0).Add(-time.Hour), Until: at(0)}, 0, 1000); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("links", func(b *testing.B) { benchLinks(b, s) })
	b.Run("purge", func(b *testing.B) { h.benchPurge(b) })
}

func benchRecords(b *testing.B, s Store, f journal.RecordFilter) {
	after, records := int64(0), 0
	for b.Loop() {
		page, err := s.Records(b.Context(), f, after, 2000)
		if err != nil {
			b.Fatal(err)
		}
		if records += len(page); len(page) < 2000 {
			after = 0
			continue
		}
		after = recordOf(&page[len(page)-1])
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
}

func benchLinks(b *testing.B, s Store) {
	after, records := int64(0), 0
	for b.Loop() {
		page, err := s.Links(b.Context(), after, 200)
		if err != nil {
			b.Fatal(err)
		}
		for i := range page {
			records += len(page[i].Digests)
		}
		if after = 0; len(page) == 200 {
			after = page[len(page)-1].Number
		}
	}
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
}

// history is made of commits.
type history struct {
	store    Store
	random   *rand.Rand
	attempts int
	made     int
}

// commit records size failures, each subject's four in a row, and what figures grow by when the half of them
// recover, minutes to hours later.
func (h *history) commit(b *testing.B, size int) {
	now := at(0).Add(time.Duration(float64(h.made) / float64(h.attempts) * float64(7*24*time.Hour)))
	lookups := make([]journal.Lookup, size)
	for i := range lookups {
		lookups[i] = journal.Lookup{Subject: subject(fmt.Sprintf("CLM-BENCH-%d", (h.made+i)/1000*250+(h.made+i)%250)), Identity: identity()}
	}
	_, err := transact(b.Context(), h.store, lookups, func(x *transaction) {
		for i := range lookups {
			h.fail(x, i, lookups[i].Subject, now)
		}
		x.Figures = h.figures(journal.SlotOf(now), int64(size))
		x.Fingerprints = []journal.Fingerprint{cause(fmt.Sprint(h.made%40), "p", 0, 0, int64(size))}
		x.Link.At = now
		x.Link, x.sealed = x.Link.After(x.head), true
	})
	if err != nil {
		b.Fatal(err)
	}
	h.made += size
}

func (h *history) fail(x *transaction, i int, of journal.Subject, now time.Time) {
	a := x.fail(i, of, identity())
	a.Error, a.ReceivedAt = "SocketTimeoutException: connect timed out after 30000 ms at gateway", now
	a.Decision = decision.Decision{
		Outcome: decision.Retry, Policy: of.Policy, SubjectID: of.ID, ErrorClassification: decision.Transient, Reason: "TIMEOUT", MatchedRule: "TIMEOUT",
		MatchedText: "SocketTimeout", Catalogue: "3f9a1c77d0e2", RetryCount: a.Number, MaxRetries: 5, Backoff: decision.Backoff{Delay: 5 * time.Minute, Raw: 5 * time.Minute, JitterRatio: 0.0123},
		NextRetryTime: now.Add(5 * time.Minute), RetryReason: "Transient error, retry 1 of 5", AnalysedAt: now, FirstFailure: now,
	}
	x.Link.Digests[len(x.Link.Digests)-1] = journal.DigestAttempt(of, a)
}

// figures of one commit, as the journal adds them up.
func (h *history) figures(slot, size int64) []journal.Figure {
	var all []journal.Figure
	for _, name := range []journal.FigureName{journal.FigureDecisions, journal.FigurePermanent, journal.FigureScheduled, journal.FigureAtMaximum,
		journal.FigureBackoff, journal.FigureClosed, journal.FigureExhausted, journal.FigureRecoveredRetried, journal.FigureRecoveryTime, journal.FigureRecoveryRetries} {
		all = append(all, figure("p", slot, name, 0, size))
	}
	for bucket := range int64(8) {
		all = append(all, figure("p", slot, journal.FigureJitter, bucket, size/8), figure("p", slot, journal.FigureTook, 100<<bucket, size/8))
	}
	recovered := map[int64]int64{}
	for range size / 2 {
		seconds := int64(math.Exp(h.random.NormFloat64()+7.2) + 120) // a quarter of an hour in the middle
		if seconds > 600 {
			seconds -= seconds % 60
		}
		recovered[seconds]++
	}
	for bucket, n := range recovered {
		all = append(all, figure("p", slot, journal.FigureRecoveryTimeBucket, bucket, n))
	}
	return all
}

// benchPurge purges 500 records at a time while decisions are recorded, one after the other.
func (h *history) benchPurge(b *testing.B) {
	stop, waits := make(chan struct{}), make(chan []time.Duration)
	go func() {
		var all []time.Duration
		for n := 0; ; n++ {
			began := time.Now()
			of := subject(fmt.Sprintf("CLM-BESIDE-%d", n))
			_, err := transact(b.Context(), h.store, []journal.Lookup{{Subject: of}}, func(x *transaction) { x.fail(0, of, identity()) })
			all = append(all, time.Since(began))
			if err != nil {
				b.Error(err)
			}
			select {
			case <-stop:
				waits <- all
				return
			default:
			}
		}
	}()
	purged, longest := 0, time.Duration(0)
	for b.Loop() {
		began := time.Now()
		n, err := h.store.Purge(b.Context(), int64(h.attempts), 500)
		if err != nil || n == 0 {
			b.Fatalf("%d records were purged (%v)", n, err)
		}
		purged, longest = purged+n, max(longest, time.Since(began))
	}
	close(stop)
	all := <-waits
	slices.Sort(all)
	b.ReportMetric(float64(purged)/b.Elapsed().Seconds(), "purged/s")
	b.ReportMetric(longest.Seconds()*1000, "ms-longest")
	b.ReportMetric(all[len(all)*99/100].Seconds()*1000, "ms-commit-p99")
	b.ReportMetric(all[len(all)-1].Seconds()*1000, "ms-commit-longest")
}
