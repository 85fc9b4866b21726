package journal_test

import (
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestStaleDeliveries: a job that the engine gave out again while its holder stood still is another's. Until is when the
// engine gives a delivery to another, by its own clock; seconds here.
func TestStaleDeliveries(t *testing.T) {
	type delivery struct {
		until    int64
		answered bool
		count    int // that it brings
		want     journal.How
	}
	for name, deliveries := range map[string][]delivery{
		"answered by who came later":              {{20, true, 0, journal.Fresh}, {10, false, 0, journal.Stale}},
		"answered, and heard again":               {{20, true, 0, journal.Fresh}, {20, false, 0, journal.Stale}},
		"not answered yet":                        {{20, false, 0, journal.Fresh}, {10, false, 0, journal.Replayed}, {30, true, 0, journal.Replayed}},
		"recorded by one, answered by two":        {{10, false, 0, journal.Fresh}, {30, true, 0, journal.Replayed}, {20, false, 0, journal.Stale}, {31, false, 0, journal.Fresh}},
		"answered by who recorded late":           {{30, false, 0, journal.Fresh}, {20, true, 0, journal.Replayed}, {25, false, 0, journal.Stale}},
		"keys that start over":                    {{20, true, 0, journal.Fresh}, {21, false, 0, journal.Fresh}},
		"other inputs since":                      {{20, false, 1, journal.Fresh}, {10, false, 0, journal.Stale}, {30, false, 2, journal.Fresh}},
		"other inputs since, answered":            {{20, true, 1, journal.Fresh}, {10, false, 0, journal.Stale}},
		"an engine that does not say":             {{0, true, 0, journal.Fresh}, {0, true, 0, journal.Fresh}},
		"recorded by an engine that does not say": {{0, true, 0, journal.Fresh}, {10, false, 0, journal.Fresh}},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Bubble(t, func(t *testing.T, f *testkit.Fixture) {
				for n, d := range deliveries {
					a := f.Analysis("tiss-submission", "CLM-1-1", "TIMEOUT", d.count)
					a.JobKey, a.ElementInstanceKey, a.ProcessInstanceKey, a.LockedUntil = 7, 8, 9, d.until*1000
					records := f.Memory.End().Record
					r, err := f.Journal.Analyze(t.Context(), a)
					testkit.Must(t, err)
					if r.How != d.want {
						t.Errorf("delivery %d is %s, want %s", n+1, r.How, d.want)
					}
					if more := f.Memory.End().Record - records; (more > 0) != (d.want == journal.Fresh) {
						t.Errorf("delivery %d, which is %s, left %d records", n+1, d.want, more)
					}
					if d.answered {
						f.Journal.Answered(&r)
						time.Sleep(2 * time.Second) // until it is written
						synctest.Wait()
					}
				}
			})
		})
	}
}

// TestStaleOutcome: an outcome whose job was given to another, which reported it, ends no later episode.
func TestStaleOutcome(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T, f *testkit.Fixture) {
		f.Fail("tiss-submission", "CLM-1-1", "TIMEOUT", -1)
		report := func(until int64, want bool) {
			t.Helper()
			o := &journal.Outcome{Subject: testkit.Subject("tiss-submission", "CLM-1-1"), Success: true, JobKey: 7, LockedUntil: until}
			if c, err := f.Journal.Conclude(t.Context(), o); err != nil || c.Changed != want {
				t.Errorf("until %d: changed %t (%v), want %t", until, c.Changed, err, want)
			}
		}
		report(20, true)
		f.Fail("tiss-submission", "CLM-1-1", "TIMEOUT", -1)
		report(10, false)
		report(20, false)
		report(21, true)
	})
}
