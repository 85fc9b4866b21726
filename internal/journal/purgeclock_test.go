package journal_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/journal"
)

// TestPurgeByAClockThatLeapt: while the clock is ahead nothing goes, whatever is decided by it, until it comes back or a person confirms
// it; that is a record even where nothing goes.
func TestPurgeByAClockThatLeapt(t *testing.T) {
	c := openClinic(t)
	began := c.now
	const day = 24 * time.Hour
	for _, step := range []struct {
		when               string
		at                 time.Duration
		dies               string
		confirmed, refused bool
		want               int
	}{
		{when: "a day later", at: day, dies: "CLM-1-1"},
		{when: "five years ahead", at: 1800 * day, refused: true},
		{when: "jobs are decided meanwhile", at: 1801 * day, dies: "CLM-2-1", refused: true},
		{when: "and more", at: 1850 * day, dies: "CLM-3-1", refused: true},
		{when: "the clock comes back", at: 2 * day, dies: "CLM-4-1"},
		{when: "ahead again", at: 1850 * day, refused: true},
		{when: "a person confirms that", at: 1850 * day, confirmed: true, want: 1},
		{when: "it goes on from there", at: 1949 * day, dies: "CLM-5-1"},
		{when: "and on", at: 2048 * day, dies: "CLM-6-1"},
		{when: "what came by the wrong clock is old", at: 2147 * day, dies: "CLM-7-1"},
		{when: "in time", at: 2246 * day, dies: "CLM-8-1"},
		{when: "nothing is left to purge, however far it leaps", at: 2500 * day},
		{when: "confirmed where nothing goes", at: 2500 * day, confirmed: true},
		{when: "the second is as old as must be", at: 2599 * day, dies: "CLM-9-1"},
		{when: "and", at: 2698 * day, dies: "CLM-10-1"},
		{when: "goes", at: 2797 * day, dies: "CLM-11-1"},
		{when: "and what was decided once the clock was back", at: 2860 * day, want: 4},
	} {
		c.now = began.Add(step.at)
		if step.dies != "" {
			c.fails(step.dies, "DUPLICATE_CLAIM", 0)
		}
		n, err := c.j.Purge(t.Context(), c.store, 1000*day, step.confirmed)
		if n != step.want || errors.Is(err, journal.ErrClockAhead) != step.refused || !step.refused && err != nil {
			t.Errorf("%s: %d are purged (%v), want %d", step.when, n, err, step.want)
		}
	}
	confirmed := 0
	for _, e := range c.store.Entries() {
		if strings.Contains(e.Body, `"confirmed":true`) {
			confirmed++
		}
	}
	if confirmed != 1 {
		t.Errorf("%d records tell of a confirmation, want that of the second: the first is old enough to go", confirmed)
	}
}
