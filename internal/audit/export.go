package audit

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"

	"retry-worker/internal/journal"
)

// Format is the format of an export. The set is closed.
type Format string

// The formats: one JSON object per line, or RFC 4180 with a header.
const (
	JSONLines Format = "jsonl"
	CSV       Format = "csv"
)

// Formats lists every format.
func Formats() []Format { return []Format{JSONLines, CSV} }

// Selection chooses what is exported. Its zero value is everything.
type Selection struct {
	journal.RecordFilter
	// Policy and Tenant are those of the records; empty for all. They are for selections without a Subject.
	Policy, Tenant string
}

// takes reports whether the record has the wanted policy and tenant.
func (s *Selection) takes(r *journal.Record) bool {
	return (s.Policy == "" || r.Subject.Policy == s.Policy) && (s.Tenant == "" || r.Subject.Tenant == s.Tenant)
}

// Progress is called after every page, from one goroutine at a time: at is the last record's number so far, of the
// journal's last, counted the number of records written or verified.
type Progress func(at, of, counted int64)

func (p Progress) tell(at, of, counted int64) {
	if p != nil {
		p(at, of, counted)
	}
}

// pageSize is how many records, links (of up to 24 KB) or rows are in memory at a time.
const pageSize = 500

// Export writes the selected records to w in order, up to the ledger's head at the beginning, and returns how many it
// wrote. It holds one page of them in memory. progress may be nil. Its errors are those of a, of w and of ctx; records
// written before stay written.
func Export(
	ctx context.Context, a journal.Archive, w io.Writer, s Selection, f Format, progress Progress,
) (written int64, err error) {
	buffer := bufio.NewWriterSize(w, 64<<10)
	var write func(*Record) error
	switch f {
	case JSONLines:
		e := json.NewEncoder(buffer)
		e.SetEscapeHTML(false)
		write = func(r *Record) error { return e.Encode(r) }
	case CSV:
		write = newTable(buffer)
	default:
		return 0, fmt.Errorf("the format is %q, expected one of %q", f, Formats())
	}
	for r, err := range archived(ctx, a, s.RecordFilter, progress, &written) {
		switch {
		case err != nil:
			return written, err
		case !s.takes(r):
			continue
		}
		if err := write(new(Of(r))); err != nil {
			return written, err
		}
		written++
	}
	return written, buffer.Flush()
}

// archived returns the records that the filter lets through, up to the ledger's head at the beginning. After each page
// it calls progress with the caller's count.
func archived(
	ctx context.Context, a journal.Archive, f journal.RecordFilter, progress Progress, counted *int64,
) iter.Seq2[*journal.Record, error] {
	return func(yield func(*journal.Record, error) bool) {
		head, err := a.Head(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		read := func(after int64, limit int) ([]journal.Record, error) {
			page, err := a.Records(ctx, f, after, limit)
			return slices.DeleteFunc(page, func(r journal.Record) bool { return r.Number() > head.Record }), err
		}
		told := func(at int64) { progress.tell(at, head.Record, *counted) }
		each(ctx, 0, pageSize, read, (*journal.Record).Number, told)(yield)
	}
}

// each returns the items after a number, in order, which read returns in pages. After each page it calls told, which
// may be nil, with the last item's number.
func each[T any](
	ctx context.Context, after int64, size int, read func(after int64, limit int) ([]T, error), number func(*T) int64,
	told func(last int64),
) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for {
			page, err := read(after, size)
			if err = cmp.Or(err, ctx.Err()); err != nil {
				yield(nil, err)
				return
			}
			for i := range page {
				after = number(&page[i])
				if !yield(&page[i], nil) {
					return
				}
			}
			if len(page) == 0 {
				return
			}
			if told != nil {
				told(after)
			}
		}
	}
}
