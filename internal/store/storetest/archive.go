package storetest

import (
	"testing"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// pages reads records page by page, and fails where a page is too long or a record out of order.
func pages(t *testing.T, s journal.Archive, limit int) []journal.Record {
	t.Helper()
	var all []journal.Record
	for after := int64(0); ; {
		page, err := s.Records(t.Context(), journal.RecordFilter{}, after, limit)
		if err != nil {
			t.Fatalf("records behind %d could not be read: %v", after, err)
		}
		if len(page) > limit {
			t.Fatalf("%d records came, %d were asked for", len(page), limit)
		}
		for i := range page {
			if n := page[i].Number(); n <= after {
				t.Fatalf("record %d comes after %d", n, after)
			} else {
				after = n
			}
		}
		if all = append(all, page...); len(page) < limit {
			return all
		}
	}
}

func numbersOf(records []journal.Record) (all []int64) {
	for i := range records {
		all = append(all, records[i].Number())
	}
	return all
}

// testRebuildOfNothing rebuilds an empty journal.
func testRebuildOfNothing(t *testing.T, s Store) {
	if r, is := s.(audit.Rebuilder); is { // the oracle is none
		testkit.Must(t, audit.Rebuild(t.Context(), r, at(9), false, nil, nil))
		Verify(t, s)
	}
}
