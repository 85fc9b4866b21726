package journal_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestPurge: bodies older than that go, the audit knows up to where, and what is newer stays; a second purge with
// nothing to do leaves no trace.
func TestPurge(t *testing.T) {
	c := openClinic(t)
	if deleted, err := c.j.Purge(t.Context(), c.store, 0, false); err != nil || deleted != 0 || len(c.store.Ledger()) != 0 {
		t.Errorf("of nothing %d are deleted (%v), %d links", deleted, err, len(c.store.Ledger()))
	}
	c.fails("CLM-old-1", "TIMEOUT", 0)
	c.fails("CLM-old-2", "DUPLICATE_CLAIM", 0)
	c.now = c.now.Add(23 * time.Hour)
	c.fails("CLM-new-1", "TIMEOUT", 0)
	deleted, err := c.j.Purge(t.Context(), c.store, time.Hour, false)
	if err != nil || deleted != 2 {
		t.Fatalf("deleted %d (%v), want 2", deleted, err)
	}
	if _, found, err := c.store.Story(t.Context(), c.subject("CLM-old-1")); err != nil || found {
		t.Errorf("an old claim is known yet (%v)", err)
	}
	if s, found, err := c.store.Story(t.Context(), c.subject("CLM-new-1")); err != nil || !found || len(s.Attempts) != 1 {
		t.Errorf("the new claim: %+v (%v)", s, err)
	}
	records, err := c.store.Records(t.Context(), journal.RecordFilter{}, 0, 10)
	if err != nil || len(records) != 2 || records[1].Entry == nil || records[1].Entry.Kind != journal.PurgeEntry ||
		!strings.Contains(records[1].Entry.Body, `"through":2`) {
		t.Errorf("the records are %+v (%v), want the new attempt and the word on the purge", records, err)
	}
	if deleted, err := c.j.Purge(t.Context(), c.store, time.Hour, false); err != nil || deleted != 0 {
		t.Errorf("again: deleted %d (%v)", deleted, err)
	}
	if records, _ := c.store.Records(t.Context(), journal.RecordFilter{}, 0, 10); len(records) != 2 {
		t.Errorf("a purge with nothing to do left a trace: %+v", records)
	}
	if len(c.store.Ledger()) != 4 {
		t.Errorf("%d links, want all 4", len(c.store.Ledger()))
	}
}

// TestPurgeByAWrongClock: nothing goes while the clock stands far past the last commit, until a person says that it is right.
func TestPurgeByAWrongClock(t *testing.T) {
	for _, far := range []struct {
		ahead, retention time.Duration
		refused          bool
	}{{25 * time.Hour, 20 * time.Hour, true}, {23 * time.Hour, 20 * time.Hour, false}, {25 * time.Hour, 24 * time.Hour * 20, false}, {5 * 365 * 24 * time.Hour, 24 * time.Hour * 1000, true}} {
		c := openClinic(t)
		c.fails("CLM-1-1", "TIMEOUT", 0)
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
	c.fails("CLM-old-1", "TIMEOUT", 0)
	c.now = c.now.Add(23 * time.Hour)
	c.fails("CLM-old-2", "TIMEOUT", 0)
	n, err := c.j.Purge(t.Context(), edited{c.store}, 22*time.Hour, false)
	if n != 0 || err == nil || !strings.Contains(err.Error(), "link 2 is not what was signed") {
		t.Errorf("%d are purged (%v)", n, err)
	}
}

// interrupted is a store whose purge is cut off after the first batch.
type interrupted struct {
	*testkit.Memory
	cancel context.CancelFunc
}

func (i *interrupted) Purge(ctx context.Context, through int64, _ int, step func(journal.Head, *journal.Purging) (*journal.Changes, error)) (int, error) {
	i.cancel()
	n, err := i.Memory.Purge(context.WithoutCancel(ctx), through, 1, step)
	if n > 0 {
		return 500, err // as if a whole batch were done and more to do
	}
	return n, err
}

// TestPurgeInterrupted: a purge that was ended goes on when it is called again, and the audit says where it was.
func TestPurgeInterrupted(t *testing.T) {
	c := openClinic(t)
	for _, id := range []string{"CLM-old-1", "CLM-old-2", "CLM-old-3"} {
		c.fails(id, "TIMEOUT", 0)
	}
	c.now = c.now.Add(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := c.j.Purge(ctx, &interrupted{c.store, cancel}, 0, false); err == nil {
		t.Error("no error from a purge that was ended")
	}
	left, err := c.store.Records(t.Context(), journal.RecordFilter{}, 0, 10)
	if err != nil || len(left) != 3 { // two old ones and the word on the purge
		t.Fatalf("%d records are left (%v)", len(left), err)
	}
	if deleted, err := c.j.Purge(t.Context(), c.store, 0, false); err != nil || deleted != 2 {
		t.Errorf("then deleted %d (%v), want 2", deleted, err)
	}
}
