package sqlite

import (
	"errors"
	"fmt"
	"slices"

	"retry-worker/internal/journal"
)

// save writes everything that one transaction changes.
func (c *connection) save(head journal.Head, ch *journal.Changes) error {
	if err := c.saveLink(head, ch); err != nil {
		return err
	}
	for _, r := range ch.Answered {
		if err := c.exec(saveRun, r.First, r.Last); err != nil {
			return failed("save what was answered", err)
		}
	}
	return firstError(
		func() error { return insert(c, subjects, ch.Subjects) },
		func() error { return insert(c, episodes, ch.Episodes) },
		func() error { return insert(c, attempts, ch.Attempts) },
		func() error { return insert(c, deadLetters, ch.DeadLetters) },
		func() error { return insert(c, bulkRuns, begun(head, ch)) },
		func() error { return insert(c, entries, ch.Entries) },
		func() error { return insert(c, outbox, ch.Outbox) },
		func() error { return insert(c, figures, ch.Figures) },
		func() error { return insert(c, fingerprints, ch.Fingerprints) },
		func() error { return c.letGo(ch.Published) })
}

// begun are the bulk runs of a commit as rows.
func begun(head journal.Head, ch *journal.Changes) []bulkRow {
	rows := make([]bulkRow, 0, len(ch.Runs))
	for i := range ch.Runs {
		rows = append(rows, bulkRow{ch.Runs[i], head.Record + int64(len(ch.Link.Digests))})
	}
	return rows
}

// letGo deletes messages of the outbox; one that is gone already is no error.
func (c *connection) letGo(sequences []int64) error {
	for _, sequence := range sequences {
		if err := c.exec(letGo, sequence); err != nil {
			return failed("let go of what was published", err)
		}
	}
	return nil
}

func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// errLink is the caller's mistake, and would be the chain's end if it got in.
var errLink = errors.New("it does not follow the ledger's head, or has not one digest for each record")

// saveLink appends the link to the ledger; a transaction that only marks what was answered has none.
func (c *connection) saveLink(head journal.Head, ch *journal.Changes) error {
	l := &ch.Link
	switch {
	case len(l.Digests) != len(ch.Attempts)+len(ch.Entries):
		return storeError(journal.Invalid, "save the link", errLink)
	case len(l.Digests) == 0:
		return nil
	case l.Number != head.Link+1 || l.First != head.Record+1 || l.Hash != l.HashAfter(head.Hash):
		return storeError(journal.Invalid, "save the link", errLink)
	}
	digests := make([]byte, 0, len(l.Digests)*len(journal.Digest{}))
	for i := range l.Digests {
		digests = append(digests, l.Digests[i][:]...)
	}
	at := journal.Milli(l.At)
	earliest, latest := ch.Instants()
	err := c.exec(saveLink, l.Number, at, l.First, digests, l.Hash[:], earliest, latest)
	if err == nil {
		record, subject := head.Record+int64(len(l.Digests)), head.Subject+int64(len(ch.Subjects))
		err = c.exec(saveHead, l.Number, record, subject, l.Hash[:], at)
	}
	if err != nil {
		return failed("save the link", err)
	}
	return nil
}

// together is how many rows one statement saves: what a statement costs beside its rows is shared.
const together = 8

// insert saves rows in their order.
func insert[T any](c *connection, t *table[T], rows []T) error {
	for chunk := range slices.Chunk(rows, together) {
		size := 1
		if len(chunk) == together {
			size = together
		}
		for some := range slices.Chunk(chunk, size) {
			if err := insertChunk(c, t, some); err != nil {
				return failed(fmt.Sprintf("save %d rows of %s", len(rows), t.name), err)
			}
		}
	}
	return nil
}

func insertChunk[T any](c *connection, t *table[T], rows []T) error {
	query := t.one
	if len(rows) > 1 {
		query = t.many
	}
	s, err := c.prepared(query)
	if err != nil {
		return err
	}
	s.with()
	for i := range rows {
		for j := range t.columns {
			s.add(t.columns[j].get(&rows[i]))
		}
	}
	return s.exec()
}
