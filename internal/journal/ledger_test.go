package journal_test

import (
	"context"
	"fmt"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// verifyLedger holds every link against the one before it and every digest against its record.
func verifyLedger(m *testkit.Memory) error {
	digests, err := recordDigests(m)
	if err != nil {
		return err
	}
	var prev journal.Digest
	record, links := int64(0), m.Ledger()
	for i, l := range links {
		if l.Number != int64(i)+1 || l.First != record+1 || l.Hash != l.HashAfter(prev) {
			return fmt.Errorf("link %d does not follow the one before it", i+1)
		}
		for _, d := range l.Digests {
			if record++; digests[record] != d {
				return fmt.Errorf("record %d is not what link %d vouches for", record, l.Number)
			}
		}
		prev = l.Hash
	}
	if h := m.End(); h.Record != record || h.Link != int64(len(links)) || h.Hash != prev || int64(len(digests)) != record {
		return fmt.Errorf("the head is %d links and %d records, the ledger %d and %d, there are %d records", h.Link, h.Record, len(links), record, len(digests))
	}
	return nil
}

// recordDigests of everything that is kept, by record.
func recordDigests(m *testkit.Memory) (map[int64]journal.Digest, error) {
	digests := map[int64]journal.Digest{}
	for _, e := range m.Entries() {
		digests[e.Record] = journal.DigestEntry(e)
	}
	for _, s := range m.Subjects() {
		story, _, err := m.Story(context.Background(), s)
		if err != nil {
			return nil, err
		}
		for i := range story.Attempts {
			digests[story.Attempts[i].Record] = journal.DigestEntry(journal.EntryOf(s, &story.Attempts[i]))
		}
	}
	return digests, nil
}
