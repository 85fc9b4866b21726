package journal_test

import (
	"errors"
	"testing"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// An erasure is told of under the pseudonym, and what was to be told of the subject no more.
func TestErasureIsPublished(t *testing.T) {
	f := testkit.New(t)
	var told []journal.Happening
	j := journal.New(f.Memory, f.Now, func(h *journal.Happening) []journal.Message {
		told = append(told, *h)
		return []journal.Message{{ID: "1", Queue: "events", Key: h.Subject.ID}}
	}, journal.NoHooks())
	f.Fail("tiss-submission", "CLM-1-1", "TIMEOUT", -1)
	f.Succeed("tiss-submission", "CLM-1-1")
	e := journal.Erasure{Subject: testkit.Subject("tiss-submission", "CLM-1-1"), By: "ana"}
	if _, err := j.Erase(t.Context(), f.Memory, e); !errors.Is(err, journal.ErrReasonRequired) {
		t.Errorf("without a reason: %v", err)
	}
	e.Reason = "pedido do titular"
	done, err := j.Erase(t.Context(), f.Memory, e)
	if err != nil || len(told) != 1 ||
		told[0].Entry.Kind != journal.ErasureEntry || told[0].Subject != done.Pseudonym || told[0].Entry.Record != done.Record {
		t.Errorf("told is %+v of %+v (%v)", told, done, err)
	}
	if waiting := f.Memory.Outbox(); len(waiting) != 1 || waiting[0].Key != done.Pseudonym.ID {
		t.Errorf("%+v waits", waiting)
	}
}
