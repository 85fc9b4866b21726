package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"

	"retry-worker/internal/journal"
)

// Format of an export. The set is closed.
type Format string

// The formats: one JSON object a line; RFC 4180 with a header.
const (
	JSONLines Format = "jsonl"
	CSV       Format = "csv"
)

// Formats lists them all.
func Formats() []Format { return []Format{JSONLines, CSV} }

// Selection chooses what is exported. Its zero value is everything.
type Selection struct {
	journal.RecordFilter
	// Policy and Tenant of the records; empty: all. They are for selections that name no Subject.
	Policy, Tenant string
}

// takes reports whether a record that the filter let through is wanted.
func (s *Selection) takes(r *journal.Record) bool {
	return (s.Policy == "" || r.Subject.Policy == s.Policy) && (s.Tenant == "" || r.Subject.Tenant == s.Tenant)
}

// Progress is told how far a walk has come: the number of the last record it went past, of how many there are, and
// how many it wrote or verified. It is called from one goroutine at a time, after every page.
type Progress func(at, of, counted int64)

// exportPage is how many records are in memory at a time.
const exportPage = 1000

// encoding writes records in one of the formats.
type encoding interface {
	// write one record.
	write(r *Record) error
	// flush what was written, which may be nothing.
	flush() error
}

// Export writes the selected records to w, in the order of their numbers, up to the ledger's head as it is at the
// beginning, and returns how many it wrote. It holds one page of them in memory. progress may be nil. Its errors
// are those of a, of w and of ctx; what was written by then stays written.
func Export(
	ctx context.Context, a journal.Archive, w io.Writer, s Selection, f Format, progress Progress,
) (int64, error) {
	head, err := a.Head(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the ledger's head: %w", err)
	}
	buffer := bufio.NewWriterSize(w, 64<<10)
	to, err := newEncoding(f, buffer)
	if err != nil {
		return 0, err
	}
	written := int64(0)
	for page, err := range Pages(ctx, a, s.RecordFilter, head.Record) {
		if err != nil {
			return written, err
		}
		for i := range page {
			if !s.takes(&page[i]) {
				continue
			}
			r := Of(&page[i])
			if err := to.write(&r); err != nil {
				return written, err
			}
			written++
		}
		if progress != nil && len(page) > 0 {
			progress(page[len(page)-1].Number(), head.Record, written)
		}
	}
	if err := to.flush(); err != nil {
		return written, err
	}
	return written, buffer.Flush()
}

// Write writes records to w as Export does.
func Write(w io.Writer, f Format, records []Record) error {
	to, err := newEncoding(f, w)
	if err != nil {
		return err
	}
	for i := range records {
		if err := to.write(&records[i]); err != nil {
			return err
		}
	}
	return to.flush()
}

// Pages returns the records that the filter lets through, up to the last one, some at a time.
func Pages(
	ctx context.Context, a journal.Archive, f journal.RecordFilter, last int64,
) iter.Seq2[[]journal.Record, error] {
	return func(yield func([]journal.Record, error) bool) {
		for after, more := int64(0), true; more; {
			page, err := a.Records(ctx, f, after, exportPage)
			if err != nil {
				yield(nil, fmt.Errorf("read the records after %d: %w", after, err))
				return
			}
			if more = len(page) == exportPage; len(page) > 0 {
				after = page[len(page)-1].Number()
			}
			if after > last {
				more = false
				page = slices.DeleteFunc(page, func(r journal.Record) bool { return r.Number() > last })
			}
			if !yield(page, nil) {
				return
			}
		}
	}
}

func newEncoding(f Format, w io.Writer) (encoding, error) {
	switch f {
	case JSONLines:
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return jsonLines{e}, nil
	case CSV:
		return newTable(w), nil
	}
	return nil, fmt.Errorf("the format is %q, expected one of %q", f, Formats())
}

// jsonLines is one object a line.
type jsonLines struct{ *json.Encoder }

func (j jsonLines) write(r *Record) error { return j.Encode(r) }
func (jsonLines) flush() error            { return nil }
