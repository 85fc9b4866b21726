package audit

import (
	"context"
	"errors"
	"fmt"
	"math"

	"retry-worker/internal/journal"
)

// VerifyOptions say what is known from elsewhere.
type VerifyOptions struct {
	// Head that somebody kept; the zero value is none. Only with one a ledger shows that its tail was cut off, or
	// that all of it was written anew.
	Head Mark
}

// Report is what a verification went through.
type Report struct {
	// Links and Records that hold.
	Links   int64 `json:"links"`
	Records int64 `json:"records"`
	// Purged records are rightly missing: their retention has ended, their digests stay.
	Purged int64 `json:"purged"`
	// Head is the last link that holds.
	Head Mark `json:"head"`
}

// Broken is the first record, or link, that is not as it was written.
type Broken struct {
	// What is broken, "record" or "link", and its number.
	What   string `json:"what"`
	Number int64  `json:"number"`
	// Problem says what is wrong with it and what was expected, in one line.
	Problem string `json:"problem"`
}

func (b *Broken) Error() string { return fmt.Sprintf("%s %d %s", b.What, b.Number, b.Problem) }

func brokenRecord(n int64, format string, args ...any) error {
	return &Broken{"record", n, fmt.Sprintf(format, args...)}
}

func brokenLink(n int64, format string, args ...any) error {
	return &Broken{"link", n, fmt.Sprintf(format, args...)}
}

// Verify holds every record against its digest in the ledger and every link against the one before it, up to the
// head as it is at the beginning; a worker may write meanwhile. Its memory does not grow with the ledger. Its error
// is the first *Broken, or tells what could not be read; the report then says what holds before it. progress may
// be nil.
func Verify(ctx context.Context, a journal.Archive, o VerifyOptions, progress Progress) (Report, error) {
	v := &verifier{archive: a, mark: o.Head, progress: progress}
	head, err := a.Head(ctx)
	if err != nil {
		return v.report, fmt.Errorf("read the ledger's head: %w", err)
	}
	err = v.begin(ctx)
	if err == nil {
		err = v.walk(ctx, head)
	}
	if err == nil {
		err = v.end(ctx, head)
	}
	if _, is := errors.AsType[*Broken](err); is {
		err = v.earliest(ctx, err)
	}
	return v.report, err
}

// verifier walks over the links and the records at the same pace.
type verifier struct {
	archive  journal.Archive
	mark     Mark
	progress Progress
	report   Report
	// first record that is there, above all others where none is; 0 where that is not known. before is why not.
	first  int64
	before error
	// record is the last one that was gone past.
	record int64
	// missing records, and up to which of them they may be: what the last purge that was gone past says.
	missing gaps
	through int64
	// allowed is what purges say that were not gone past yet.
	allowed int64
}

// begin looks at what lies before the ledger's begin, and before what is left after a purge.
func (v *verifier) begin(ctx context.Context) error {
	links, err := v.archive.Links(ctx, math.MinInt64, 1)
	first, err2 := v.archive.Records(ctx, journal.RecordFilter{}, 0, 1)
	lowest, err3 := v.archive.Records(ctx, journal.RecordFilter{}, math.MinInt64, 2) // after the first: a purge only deletes
	if v.before = errors.Join(err, err2, err3); v.before == nil {
		v.first = math.MaxInt64
	}
	least := int64(1)
	if len(first) > 0 {
		least = number(&first[0])
		v.first = least
	}
	switch {
	case len(links) > 0 && links[0].Number < 1:
		return brokenLink(links[0].Number, "was put in: numbers begin at 1")
	case len(lowest) > 0 && number(&lowest[0]) < least:
		return brokenRecord(number(&lowest[0]), "was put in: the first record there can be is %d", least)
	}
	return nil
}

// walk goes on to head.
func (v *verifier) walk(ctx context.Context, head journal.Head) error {
	records := v.open(ctx, head.Record)
	defer records.close()
	pieces := spans(v.report.Head.Link+1, head.Link, linkPage)
	for page, err := range readAhead(ctx, pieces, ahead, v.fetchLinks) {
		if err != nil {
			return err
		}
		for i := range page.items {
			if err := v.link(ctx, &page.items[i], records); err != nil {
				return err
			}
		}
		if page.err != nil {
			return page.err
		}
		if v.report.Head.Link != page.last {
			return brokenLink(v.report.Head.Link+1, "is missing: the head says that there are %d", head.Link)
		}
	}
	if v.record != head.Record || v.report.Head.Hash != head.Hash {
		return brokenLink(head.Link, "is not what the head says: it ends at record %d with the hash %s, expected record %d and %s",
			v.record, v.report.Head.Hash, head.Record, head.Hash)
	}
	records.read(head.Record)
	return nil
}

// link holds one link against the one before it and its digests against their records.
func (v *verifier) link(ctx context.Context, l *journal.Link, records *cursor) error {
	prev := v.report.Head
	switch {
	case l.Number != prev.Link+1:
		return brokenLink(prev.Link+1, "is missing: link %d follows link %d", l.Number, prev.Link)
	case l.First != v.record+1:
		return brokenLink(l.Number, "begins at record %d, expected %d", l.First, v.record+1)
	case l.Hash != l.HashAfter(prev.Hash):
		return brokenLink(l.Number, "(records %d to %d) was changed, or does not follow link %d: its hash is %s, expected %s",
			l.First, l.First+int64(len(l.Digests))-1, prev.Link, l.Hash, l.HashAfter(prev.Hash))
	case l.Number == v.mark.Link && l.Hash != v.mark.Hash:
		return brokenLink(l.Number, "has the hash %s, expected %s as in the given head: the ledger was written anew", l.Hash, v.mark.Hash)
	}
	for i := range l.Digests {
		if err := v.hold(ctx, l, l.Digests[i], records); err != nil {
			return err
		}
	}
	v.report.Links++
	v.report.Head = Mark{l.Number, l.Hash}
	return nil
}

// hold the next record against its digest.
func (v *verifier) hold(ctx context.Context, l *journal.Link, want journal.Digest, records *cursor) error {
	n := v.record + 1
	got, err := records.at(n)
	switch {
	case err != nil:
		return err
	case got == nil:
		if err := v.miss(ctx, n); err != nil {
			return err
		}
	case got.digest != want:
		return brokenRecord(n, "was changed: its digest is %s, expected %s as in link %d", got.digest, want, l.Number)
	default:
		v.report.Records++
		v.through = max(v.through, got.through)
	}
	v.record = n
	return nil
}

// miss remembers a record that is missing. Where that makes too many gaps, a later purge must allow all of them: it is
// held against the ledger when the walk comes to it.
func (v *verifier) miss(ctx context.Context, n int64) error {
	if v.missing.add(n); !v.missing.full() {
		return nil
	}
	if _, is := v.missing.above(v.allowed); is {
		through, err := v.laterPurges(ctx)
		if err != nil {
			return fmt.Errorf("look for a purge: %w", err)
		}
		v.allowed = through
	}
	if n, is := v.missing.above(v.allowed); is {
		return v.lost(n, v.allowed)
	}
	v.missing.merge()
	return nil
}

// end looks at what lies behind the ledger's end, and whether what is missing was purged.
func (v *verifier) end(ctx context.Context, head journal.Head) error {
	if _, is := v.missing.above(v.through); is { // a purge that began meanwhile recorded that first
		now, err := v.archive.Head(ctx)
		if err != nil {
			return fmt.Errorf("read the ledger's head: %w", err)
		}
		if err := v.walk(ctx, now); err != nil {
			return err
		}
		head = now
	}
	if n, is := v.missing.above(v.through); is {
		return v.lost(n, v.through)
	}
	v.report.Purged = v.missing.total
	if v.before != nil {
		return fmt.Errorf("read what lies before record 1: %w", v.before)
	}
	if v.mark.Link > head.Link {
		return brokenLink(head.Link+1, "is missing: the ledger ends at link %d, the given head is link %d: its tail was cut off", head.Link, v.mark.Link)
	}
	return v.behind(ctx, head)
}

func (v *verifier) lost(n, through int64) error {
	return brokenRecord(n, "is missing: the ledger has its digest, and what was purged ends at record %d", through)
}

// behind finds what no link vouches for. What a worker writes meanwhile, a later head does.
func (v *verifier) behind(ctx context.Context, head journal.Head) error {
	records, err := v.archive.Records(ctx, journal.RecordFilter{}, head.Record, 1)
	links, err2 := v.archive.Links(ctx, head.Link, 1)
	now, err3 := v.archive.Head(ctx)
	switch err := errors.Join(err, err2, err3); {
	case err != nil:
		return fmt.Errorf("read what lies behind the ledger's head: %w", err)
	case len(records) > 0 && number(&records[0]) > now.Record:
		return brokenRecord(number(&records[0]), "was put in: no link vouches for it, the last record is %d", now.Record)
	case len(links) > 0 && links[0].Number > now.Link:
		return brokenLink(links[0].Number, "lies behind the head, which says that link %d is the last", now.Link)
	}
	return nil
}

// earliest is err, or a record that is missing before it: which of them were purged, a later entry may say.
func (v *verifier) earliest(ctx context.Context, err error) error {
	if v.missing.total == 0 {
		return err
	}
	through, failed := v.laterPurges(ctx)
	if n, is := v.missing.above(through); is && failed == nil {
		return v.lost(n, through)
	}
	return err
}
