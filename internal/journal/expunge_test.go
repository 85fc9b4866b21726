package journal_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// refuses records a job that names nobody.
func (c *clinic) refuses() {
	c.t.Helper()
	testkit.Must(c.t, c.j.Reject(c.t.Context(), &journal.RejectedJob{Rejection: &decision.Rejection{Code: decision.InvalidClaimID}}))
}

// TestPurgeByAWrongClock: nothing goes while the clock stands far past the last commit, until a person says that it is right.
func TestPurgeByAWrongClock(t *testing.T) {
	for _, far := range []struct {
		ahead, retention time.Duration
		refused          bool
	}{{25 * time.Hour, 20 * time.Hour, true}, {23 * time.Hour, 20 * time.Hour, false}, {25 * time.Hour, 24 * time.Hour * 20, false}, {5 * 365 * 24 * time.Hour, 24 * time.Hour * 1000, true}} {
		c := openClinic(t)
		if n, err := c.j.Purge(t.Context(), c.store, 0, false); err != nil || n != 0 || len(c.store.Ledger()) != 0 {
			t.Errorf("of nothing %d are purged (%v), in %d links", n, err, len(c.store.Ledger()))
		}
		c.refuses()
		c.now = c.now.Add(far.ahead)
		if _, err := c.j.Purge(t.Context(), c.store, far.retention, false); errors.Is(err, journal.ErrClockAhead) != far.refused {
			t.Errorf("%s past the last commit a purge of what is older than %s ends with %v", far.ahead, far.retention, err)
		}
		want := 0
		if far.ahead > far.retention {
			want = 1
		}
		if n, err := c.j.Purge(t.Context(), c.store, far.retention, true); err != nil || far.refused && n != want {
			t.Errorf("%s past the last commit, confirmed: %d purged (%v), want %d", far.ahead, n, err, want)
		}
	}
}

// edited is a store whose second link somebody edited: its instant is that of the first.
type edited struct{ *testkit.Memory }

type editedMoment struct{ journal.Moment }

func (e edited) Moment(ctx context.Context, do func(journal.Moment) error) error {
	return e.Memory.Moment(ctx, func(m journal.Moment) error { return do(editedMoment{m}) })
}

func (m editedMoment) Links(after int64, limit int) ([]journal.Link, error) {
	links, err := m.Moment.Links(after, limit)
	if after == 0 {
		links[1].At = links[0].At
	}
	return links, err
}

// TestPurgeByInstantsThatWereNotSigned: nothing goes by a link that was edited.
func TestPurgeByInstantsThatWereNotSigned(t *testing.T) {
	c := openClinic(t)
	c.refuses()
	c.now = c.now.Add(23 * time.Hour)
	c.refuses()
	n, err := c.j.Purge(t.Context(), edited{c.store}, 22*time.Hour, false)
	if n != 0 || err == nil || !strings.Contains(err.Error(), "link 2 is not what was signed") {
		t.Errorf("%d are purged (%v)", n, err)
	}
}

// TestPurgeByAClockThatLeapt: while the clock is ahead nothing goes, whatever is decided by it, until it comes back or a person confirms
// it; that is a record even where nothing goes.
func TestPurgeByAClockThatLeapt(t *testing.T) {
	c := openClinic(t)
	began := c.now
	const day = 24 * time.Hour
	for _, step := range []struct {
		when                        string
		at                          time.Duration
		comes, confirmed, isRefused bool
		want                        int
	}{
		{when: "a day later", at: day, comes: true},
		{when: "five years ahead", at: 1800 * day, isRefused: true},
		{when: "jobs come meanwhile", at: 1801 * day, comes: true, isRefused: true},
		{when: "and more", at: 1850 * day, comes: true, isRefused: true},
		{when: "the clock comes back", at: 2 * day, comes: true},
		{when: "ahead again", at: 1850 * day, isRefused: true},
		{when: "a person confirms that", at: 1850 * day, confirmed: true, want: 1},
		{when: "it goes on from there", at: 1949 * day, comes: true},
		{when: "and on", at: 2048 * day, comes: true},
		{when: "what came by the wrong clock is old", at: 2147 * day, comes: true},
		{when: "in time", at: 2246 * day, comes: true},
		{when: "nothing is left to purge, however far it leaps", at: 2500 * day},
		{when: "confirmed where nothing goes", at: 2500 * day, confirmed: true},
		{when: "the second is as old as must be", at: 2599 * day, comes: true},
		{when: "and", at: 2698 * day, comes: true},
		{when: "goes", at: 2797 * day, comes: true},
		{when: "and what came once the clock was back", at: 2860 * day, want: 3},
	} {
		c.now = began.Add(step.at)
		if step.comes {
			c.refuses()
		}
		n, err := c.j.Purge(t.Context(), c.store, 1000*day, step.confirmed)
		if n != step.want || errors.Is(err, journal.ErrClockAhead) != step.isRefused || !step.isRefused && err != nil {
			t.Errorf("%s: %d are purged (%v), want %d", step.when, n, err, step.want)
		}
	}
	confirmed := 0
	for _, e := range c.store.Entries() {
		if strings.Contains(e.Body, `"confirmed":true`) {
			confirmed++
		}
	}
	if confirmed != 2 {
		t.Errorf("%d records tell of a confirmation, want both", confirmed)
	}
}

// What was to be told of an erased subject is told no more; that it was erased is, and not whose it was.
func TestErasureIsPublished(t *testing.T) {
	f := testkit.New(t)
	var told []journal.Happening
	j := journal.New(f.Memory, f.Now, func(h *journal.Happening) []journal.Message {
		told = append(told, *h)
		return []journal.Message{{ID: "1", Queue: "events", Key: h.Subject.ID}}
	}, journal.NoHooks())
	f.Fail("tiss-submission", "CLM-1-1", "TIMEOUT", -1)
	f.Succeed("tiss-submission", "CLM-1-1")
	e := journal.Erasure{Subject: testkit.Subject("tiss-submission", "CLM-1-1"), Reason: "pedido do titular", By: "ana"}
	done, err := j.Erase(t.Context(), f.Memory, e)
	if err != nil || len(told) != 1 || told[0].Entry.Kind != journal.ErasureEntry || told[0].Entry.Record != done.Record {
		t.Errorf("told is %+v of %+v (%v)", told, done, err)
	}
	if waiting := f.Memory.Outbox(); len(waiting) != 1 || waiting[0].Key != "" {
		t.Errorf("%+v waits", waiting)
	}
}
