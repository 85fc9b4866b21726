package journal_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

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
	f := testkit.New(t)
	f.Fail("tiss-submission", "CLM-1-1", "TIMEOUT", -1)
	f.Advance(23 * time.Hour)
	f.Fail("tiss-submission", "CLM-2-1", "TIMEOUT", -1)
	n, err := f.Journal.Purge(t.Context(), edited{f.Memory}, 22*time.Hour, false)
	if n != 0 || err == nil || !strings.Contains(err.Error(), "link 2 is not what was signed") {
		t.Errorf("%d are purged (%v)", n, err)
	}
}

// What was to be told of an erased subject is told no more; that it was erased is, and not whose it was.
func TestErasureIsPublished(t *testing.T) {
	f := testkit.New(t)
	var told []journal.Happening
	f.Journal = journal.New(f.Memory, f.Now, func(h *journal.Happening) []journal.Message {
		told = append(told, *h)
		return []journal.Message{{ID: "1", Queue: "events", Key: h.Subject.ID}}
	}, journal.NoHooks())
	testkit.RunJournal(t, f.Journal)
	f.Fail("tiss-submission", "CLM-1-1", "TIMEOUT", -1)
	f.Succeed("tiss-submission", "CLM-1-1")
	e := journal.Erasure{Subject: testkit.Subject("tiss-submission", "CLM-1-1"), Reason: "pedido do titular", By: "ana"}
	done, err := f.Journal.Erase(t.Context(), f.Memory, e)
	if err != nil || len(told) != 3 || told[2].Entry.Kind != journal.ErasureEntry || told[2].Entry.Record != done.Record {
		t.Errorf("told is %+v of %+v (%v)", told, done, err)
	}
	if waiting := f.Memory.Outbox(); len(waiting) != 1 || waiting[0].Key != "" {
		t.Errorf("%+v waits", waiting)
	}
}
