package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"retry-worker/internal/journal"
)

// Transact implements journal.Store, in two round trips: one takes the head and loads, one saves and commits.
// ctx bounds it all; the server gives up by itself after writerTimes.
func (d *DB) Transact(ctx context.Context, lookups []journal.Lookup, decide func(journal.Head, []journal.History) *journal.Changes) error {
	return d.onWriter(ctx, "record decisions", func(t *transaction) error {
		head, histories, err := t.load(lookups)
		if err != nil {
			return err
		}
		changes := decide(head, histories)
		if changes == nil {
			return nil // it is rolled back
		}
		return t.save(head, changes)
	})
}

// Probe implements journal.Store.
func (d *DB) Probe(ctx context.Context) error {
	return d.onWriter(ctx, "write a probe", func(t *transaction) error {
		t.send(probeHead, scalar(time.Now().UnixMilli()))
		return t.await(func() error { return t.done() })
	})
}

// onWriter runs f on a connection of the writer's; what f leaves open is rolled back.
func (d *DB) onWriter(ctx context.Context, doing string, f func(*transaction) error) error {
	c, err := d.writer.Acquire(ctx)
	if err != nil {
		return storeError(doing, err, false)
	}
	defer c.Release() // a connection that is broken, or in a transaction still, is not used again
	t := &transaction{
		ctx: ctx, conn: c.Conn().PgConn(), prepared: prepared(c.Conn().PgConn()), arrays: spare.Get().(*arrays),
	}
	defer spare.Put(t.arrays)
	t.pipeline = t.conn.StartPipeline(ctx)
	err = f(t)
	closed := t.pipeline.Close()
	switch {
	case t.committed:
		err = nil // whatever became of the connection since
	case err == nil:
		err = closed
	}
	t.leave(err)
	if err != nil {
		return storeError(doing, err, t.committing)
	}
	return nil
}

// spare are arrays whose memory is used again.
var spare = sync.Pool{New: func() any { return new(arrays) }}

// transaction on one connection. Requests are sent one after the other; await has them answered.
type transaction struct {
	ctx      context.Context
	conn     *pgconn.PgConn
	prepared []*pgconn.StatementDescription
	pipeline *pgconn.Pipeline
	arrays   *arrays
	// sent are how many requests wait for their answer.
	sent int
	// committing is true from when COMMIT may have been sent until the server said what became of it.
	committing, committed bool
}

var binaryFormat = []int16{1}

// send puts a request into the pipeline; arguments may be changed once it returns.
func (t *transaction) send(s statement, arguments ...[]byte) {
	t.pipeline.SendQueryStatement(t.prepared[s], arguments, formats(arguments), binaryFormat)
	t.sent++
}

// formats say that the arguments are binary, where there are any.
func formats(arguments [][]byte) []int16 {
	if len(arguments) == 0 {
		return nil
	}
	return binaryFormat
}

// await sends what is in the pipeline and has read take the answers.
func (t *transaction) await(read func() error) error {
	if err := t.pipeline.Sync(); err != nil {
		return err
	}
	if err := read(); err != nil {
		return err
	}
	_, err := t.pipeline.GetResults()
	return err
}

// result is the next answer.
func (t *transaction) result() (*pgconn.ResultReader, error) {
	t.sent--
	result, err := t.pipeline.GetResults()
	if err != nil {
		return nil, err
	}
	r, ok := result.(*pgconn.ResultReader)
	if !ok {
		return nil, fmt.Errorf("%T is not the answer to a statement", result)
	}
	return r, nil
}

// done reads one answer without rows.
func (t *transaction) done() error {
	_, err := t.tag()
	return err
}

func (t *transaction) tag() (string, error) {
	r, err := t.result()
	if err != nil {
		return "", err
	}
	tag, err := r.Close()
	return tag.String(), err
}

// rows reads one answer, row by row; a row is good until the next.
func (t *transaction) rows(each func(*values)) error {
	r, err := t.result()
	if err != nil {
		return err
	}
	for r.NextRow() {
		v := values{raw: r.Values()}
		if each(&v); v.err != nil {
			_, _ = r.Close()
			return v.err
		}
	}
	_, err = r.Close()
	return err
}

// leave brings the connection back to where it can be used again, or closes it.
func (t *transaction) leave(err error) {
	if t.conn.IsClosed() {
		return
	}
	if t.conn.TxStatus() != 'I' && (err == nil || usableAfter(err)) {
		_, _ = t.conn.Exec(t.ctx, "ROLLBACK").ReadAll() // it is closed where this fails
	}
	if err != nil && !usableAfter(err) {
		_ = t.conn.Close(t.ctx) // the statements may be out of date, or the server not the one to write to
	}
}

// load takes the head and loads the histories.
func (t *transaction) load(lookups []journal.Lookup) (head journal.Head, histories []journal.History, err error) {
	t.send(beginIt)
	t.send(takeHead)
	if len(lookups) > 0 {
		t.send(loadHistories, rowsOf(t.arrays, lookupsTable, lookups)...)
	}
	runs := runsOf(lookups)
	if len(runs) > 0 {
		t.send(loadRuns, texts(t.arrays, runs))
	}
	histories = make([]journal.History, len(lookups))
	err = t.await(func() error {
		if err := t.done(); err != nil {
			return err
		}
		found := false
		if err := t.rows(func(v *values) { head, found = readHead(v), true }); err != nil {
			return err
		}
		if !found {
			return errNoHead
		}
		if len(lookups) == 0 {
			return nil
		}
		if err := t.rows(func(v *values) { readHistory(v, lookups, histories) }); err != nil || len(runs) == 0 {
			return err
		}
		return t.rows(func(v *values) { giveRun(v, lookups, histories) })
	})
	return head, histories, err
}

// errNoHead is what a damaged database is met with.
var errNoHead = errors.New("the table ledger_head has no row; restore the database from a backup")

// save sends all changes and commits them.
func (t *transaction) save(head journal.Head, c *journal.Changes) error {
	if err := errors.Join(t.ctx.Err(), fit(head, c)); err != nil {
		return err // before anything is put into the pipeline: closing it sends what is in it
	}
	t.link(head, c) // before dead letters, whose triggers ask what time it is
	save(t, insertSubjects, subjectsTable, c.Subjects)
	save(t, replaceEpisodes, episodesTable, last(c.Episodes, episodeKey))
	save(t, insertAttempts, attemptsTable, c.Attempts)
	save(t, replaceDeadLetters, deadLettersTable, last(c.DeadLetters, deadLetterKey))
	save(t, replaceRuns, bulkRunsTable, begun(head, c))
	save(t, insertEntries, entriesTable, c.Entries)
	save(t, insertOutbox, outboxTable, c.Outbox)
	save(t, insertAnswered, answeredTable, c.Answered)
	save(t, mergeFigures, figuresTable, c.Figures)
	save(t, mergeFingerprints, fingerprintTable, c.Fingerprints)
	if len(c.Published) > 0 {
		t.send(letGo, numbers(t.arrays, c.Published))
	}
	t.send(commitIt)
	t.committing = true
	return t.await(t.settle)
}

// fit tells whether the link continues the ledger and vouches for all of the changes' records.
func fit(head journal.Head, c *journal.Changes) error {
	l, records := &c.Link, len(c.Attempts)+len(c.Entries)
	switch {
	case len(l.Digests) != records:
		return unfit(fmt.Sprintf("a link with %d digests does not vouch for %d records", len(l.Digests), records))
	case records == 0:
		return nil
	case l.Number != head.Link+1 || l.First != head.Record+1 || l.Hash != l.HashAfter(head.Hash):
		return unfit(fmt.Sprintf("link %d from record %d on does not continue link %d, record %d", l.Number, l.First, head.Link, head.Record))
	default:
		return nil
	}
}

// link appends to the ledger and moves its head.
func (t *transaction) link(head journal.Head, c *journal.Changes) {
	l := &c.Link
	if len(l.Digests) == 0 {
		return
	}
	digests := make([]byte, 0, len(l.Digests)*len(journal.Digest{}))
	for i := range l.Digests {
		digests = append(digests, l.Digests[i][:]...)
	}
	number, at := scalar(l.Number), scalar(journal.Milli(l.At))
	record, subject := scalar(head.Record+int64(len(l.Digests))), scalar(head.Subject+int64(len(c.Subjects)))
	earliest, latest := c.Instants()
	t.send(insertLink, number, at, scalar(l.First), digests, l.Hash[:], scalar(earliest), scalar(latest))
	t.send(moveHead, number, record, subject, at, l.Hash[:])
}

// settle reads the answers to what was saved, the last of which is to COMMIT.
func (t *transaction) settle() error {
	for t.sent > 1 {
		if err := t.done(); err != nil {
			return t.refused(err)
		}
	}
	tag, err := t.tag()
	if err != nil {
		return t.refused(err)
	}
	t.committing = false
	if tag != "COMMIT" {
		return fmt.Errorf("the server answered COMMIT with %s", tag)
	}
	t.committed = true
	return nil
}

// refused notes that the transaction is not committed, where the server says so itself.
func (t *transaction) refused(err error) error {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.SeverityUnlocalized == "ERROR" {
		t.committing = false
	}
	return err
}

// save sends the rows of a table, where there are any.
func save[T any](t *transaction, s statement, of *table[T], rows []T) {
	if len(rows) > 0 {
		t.send(s, rowsOf(t.arrays, of, rows)...)
	}
}

// rowsOf are rows as arguments; good until the arrays are used again.
func rowsOf[T any](a *arrays, of *table[T], rows []T) [][]byte {
	a.begin(of.kinds)
	for i := range rows {
		a.row()
		of.visit(a, &rows[i])
	}
	return a.arguments()
}

type episode struct{ subject, number int64 }

func episodeKey(e *journal.KeyedEpisode) episode      { return episode{e.Key, e.Episode.Number} }
func deadLetterKey(d *journal.KeyedDeadLetter) string { return d.DeadLetter.ID }

// last are the rows without those that another with the same key follows: one statement saves a row once.
func last[T any, K comparable](rows []T, key func(*T) K) []T {
	at := make(map[K]int, len(rows))
	for i := range rows {
		at[key(&rows[i])] = i
	}
	if len(at) == len(rows) {
		return rows
	}
	kept := make([]T, 0, len(at))
	for i := range rows {
		if at[key(&rows[i])] == i {
			kept = append(kept, rows[i])
		}
	}
	return slices.Clip(kept)
}
