package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sort"

	"retry-worker/internal/journal"
)

const (
	// recordPage and linkPage are how many are read at a time; a link has up to 8 KB.
	recordPage = 5000
	linkPage   = 500
	// ahead is how many pages are read before they are needed.
	ahead = 3
)

// page is what was read of a piece, up to the one that could not be.
type page[T any] struct {
	items []T
	last  int64 // of the piece
	err   error
}

// digested is a record as the ledger sees it.
type digested struct {
	record int64
	digest journal.Digest
	// through is the last record that a purge allows to be missing; 0 where it is none.
	through int64
}

// digest of a record.
func digest(r *journal.Record) digested {
	if r.Attempt != nil {
		return digested{record: r.Attempt.Record, digest: journal.DigestAttempt(r.Subject, r.Attempt)}
	}
	return digested{record: r.Entry.Record, digest: journal.DigestEntry(r.Entry), through: purged(r.Entry)}
}

// purged is up to which record the entry says that records were purged. One that names itself or later ones says
// nothing.
func purged(e *journal.Entry) int64 {
	var body struct {
		Through int64 `json:"through"`
	}
	if e.Kind != journal.PurgeEntry || json.Unmarshal([]byte(e.Body), &body) != nil || body.Through >= e.Record {
		return 0
	}
	return body.Through
}

// laterPurges is up to which record records were purged, whatever may be broken: it looks behind the break too.
func (v *verifier) laterPurges(ctx context.Context) (int64, error) {
	through, after := v.through, v.record
	for {
		records, err := v.archive.Records(ctx, journal.RecordFilter{}, after, recordPage)
		if err != nil || len(records) == 0 {
			return through, err
		}
		for i := range records {
			if after = number(&records[i]); records[i].Entry != nil {
				through = max(through, purged(records[i].Entry))
			}
		}
	}
}

func (v *verifier) fetchLinks(ctx context.Context, s span) (page[journal.Link], error) {
	items, err := readable(ctx, v, "link", s.first, int(s.last-s.first+1), func(limit int) ([]journal.Link, error) {
		return v.archive.Links(ctx, s.first-1, limit)
	}, func(l *journal.Link) int64 { return l.Number })
	for len(items) > 0 && items[len(items)-1].Number > s.last {
		items = items[:len(items)-1]
	}
	return page[journal.Link]{items, s.last, err}, ctx.Err()
}

// fetchDigests reads the records of a piece and keeps their digests only.
func (v *verifier) fetchDigests(ctx context.Context, s span) (page[digested], error) {
	records, err := readable(ctx, v, "record", s.first, int(s.last-s.first+1), func(limit int) ([]journal.Record, error) {
		return v.archive.Records(ctx, journal.RecordFilter{}, s.first-1, limit)
	}, number)
	items := make([]digested, 0, len(records))
	for i := range records {
		if number(&records[i]) > s.last {
			break
		}
		items = append(items, digest(&records[i]))
	}
	return page[digested]{items, s.last, err}, ctx.Err()
}

// readable reads up to limit rows from the one with that number on. Where that fails it reads those before the first
// that cannot be read, and says which that is.
func readable[T any](ctx context.Context, v *verifier, what string, first int64, limit int, read func(limit int) ([]T, error), number func(*T) int64) ([]T, error) {
	rows, err := read(limit)
	if err == nil || ctx.Err() != nil {
		return rows, err
	}
	most := sort.Search(limit, func(n int) bool {
		_, failed := read(n + 1)
		return failed != nil
	})
	rows = nil
	if most > 0 {
		var failed error
		if rows, failed = read(most); failed != nil || most == limit {
			return rows, failed // it was not the rows' fault
		}
		first = number(&rows[len(rows)-1]) + 1
	}
	if _, failed := v.archive.Head(ctx); failed != nil {
		return rows, fmt.Errorf("read the %ss from %d on: %w", what, first, err)
	}
	return rows, &Broken{what, first, "cannot be read: " + err.Error()}
}

// cursor goes from record to record.
type cursor struct {
	next  func() (page[digested], error, bool)
	close func()
	page  page[digested]
	// read is called for each page that was gone through.
	read func(last int64)
}

// open reads the records behind the one gone past last, up to that one.
func (v *verifier) open(ctx context.Context, last int64) *cursor {
	from := max(v.record+1, v.first) // nothing lies before the first
	c := &cursor{read: func(at int64) {
		if v.progress != nil {
			v.progress(at, last, v.report.Records)
		}
	}}
	c.next, c.close = iter.Pull2(readAhead(ctx, spans(from, last, recordPage), ahead, v.fetchDigests))
	return c
}

// at is the record with that number; nil where it is not there. It is asked for one after the other.
func (c *cursor) at(n int64) (*digested, error) {
	for len(c.page.items) == 0 && c.page.last < n {
		if c.page.last > 0 {
			c.read(c.page.last)
		}
		next, err, more := c.next()
		if err != nil {
			return nil, err
		}
		if !more {
			return nil, nil
		}
		c.page = next
	}
	if len(c.page.items) == 0 {
		return nil, c.page.err
	}
	item := &c.page.items[0]
	switch {
	case item.record > n:
		return nil, nil
	case item.record < n:
		return nil, brokenRecord(item.record, "is there twice: as an attempt and as another entry")
	}
	c.page.items = c.page.items[1:]
	return item, nil
}
