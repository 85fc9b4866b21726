package audit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// filled is a ledger of 12 records in as many links: 1…8 failures of claims, 9 a rejection, 10 an outcome, 11 and 12
// failures.
func filled(t testing.TB) *ledger {
	t.Helper()
	store := testkit.NewMemory()
	w := write(t, store)
	for i := range 8 {
		w.fails(fmt.Sprintf("CLM-1-%d", i+1), "TIMEOUT", -1)
	}
	w.rejects()
	w.succeeds("CLM-1-1")
	w.fails("CLM-1-2", "DUPLICATE_CLAIM", 1)
	w.fails("CLM-2-1", "what is this", 0)
	return copied(t, store)
}

func verify(t testing.TB, a journal.Archive, head audit.Mark) (audit.Report, error) {
	t.Helper()
	return audit.Verify(t.Context(), a, audit.VerifyOptions{Head: head}, nil)
}

func TestVerify(t *testing.T) {
	l := filled(t)
	for name, mark := range map[string]audit.Mark{
		"alone": {}, "with its head": {Link: 12, Hash: l.head.Hash}, "with an earlier head": {Link: 5, Hash: l.links[4].Hash},
	} {
		report, err := verify(t, l, mark)
		want := audit.Report{Links: 12, Records: 12, Head: audit.Mark{Link: 12, Hash: l.head.Hash}}
		if err != nil || report != want {
			t.Errorf("%s: got %+v, %v, want %+v", name, report, err, want)
		}
	}
}

func TestVerifyNothing(t *testing.T) {
	if report, err := verify(t, &ledger{}, audit.Mark{}); err != nil || report != (audit.Report{}) {
		t.Errorf("got %+v, %v", report, err)
	}
}

// relinked computes the hashes anew from the link with index from on, as somebody would who wants to hide a change.
func (l *ledger) relinked(from int) {
	for i := from; i < len(l.links); i++ {
		prev := journal.Digest{}
		if i > 0 {
			prev = l.links[i-1].Hash
		}
		l.links[i].Hash = l.links[i].HashAfter(prev)
		l.head.Hash = l.links[i].Hash
	}
}

// none is a link's number where it is about a record.
const none = math.MinInt64

// tampering is what somebody did to a ledger of 12 records and links, and what must be found.
var tampering = []struct {
	name         string
	do           func(l *ledger)
	record, link int64
	says         string
}{
	{"an edited error", func(l *ledger) { l.at(5).Attempt.Error = "nothing" }, 5, none, "was changed"},
	{"an edited time", func(l *ledger) {
		a := l.at(1).Attempt
		a.Decision.NextRetryTime = a.Decision.NextRetryTime.Add(time.Millisecond)
	}, 1, none, "was changed"},
	{"another claim's record", func(l *ledger) { l.at(3).Subject.ID = "CLM-9-9" }, 3, none, "was changed"},
	{"an edited entry", func(l *ledger) { l.at(10).Entry.Body = strings.Replace(l.at(10).Entry.Body, "success", "failure", 1) }, 10, none, "was changed"},
	{"an edited last record", func(l *ledger) { l.at(12).Attempt.Decision.RetryReason = "" }, 12, none, "was changed"},
	{"two edits", func(l *ledger) { l.at(11).Attempt.Error, l.at(4).Attempt.Error = "", "" }, 4, none, "was changed"},
	{"a deleted record", func(l *ledger) { l.drop(6) }, 6, none, "is missing"},
	{"the first deleted", func(l *ledger) { l.drop(1) }, 1, none, "is missing"},
	{"the last deleted", func(l *ledger) { l.drop(12) }, 12, none, "is missing"},
	{"all deleted", func(l *ledger) { l.records = nil }, 1, none, "is missing"},
	{"a deleted one before an edit", func(l *ledger) { l.drop(3); l.at(7).Attempt.Error = "" }, 3, none, "is missing"},
	{"an edit before a deleted one", func(l *ledger) { l.drop(7); l.at(3).Attempt.Error = "" }, 3, none, "was changed"},
	{"two swapped", func(l *ledger) { l.swap(4, 8) }, 4, none, "was changed"},
	{"one put in", func(l *ledger) {
		r := *l.at(4)
		l.records = slices.Insert(l.records, 4, r)
	}, 4, none, "is there twice"},
	{"one put in before all", func(l *ledger) {
		r := *l.at(1)
		r.Attempt = new(*r.Attempt)
		r.Attempt.Record = -3
		l.records = slices.Insert(l.records, 0, r)
	}, -3, none, "was put in"},
	{"one put in as number 0", func(l *ledger) {
		r := *l.at(1)
		r.Attempt = new(*r.Attempt)
		r.Attempt.Record = 0
		l.records = slices.Insert(l.records, 0, r)
	}, 0, none, "was put in"},
	{"one put in behind all", func(l *ledger) {
		r := *l.at(12)
		r.Attempt = new(*r.Attempt)
		r.Attempt.Record = 13
		l.records = append(l.records, r)
	}, 13, none, "was put in"},
	{"one that cannot be read", func(l *ledger) { l.unreadable = 8 }, 8, none, "cannot be read"},
	{"an edit before one that cannot be read", func(l *ledger) { l.unreadable = 8; l.at(2).Attempt.Error = "" }, 2, none, "was changed"},
	{"a record and its digest edited", func(l *ledger) {
		r := l.at(7)
		r.Attempt.Error = "nothing"
		l.links[6].Digests[0] = journal.DigestAttempt(r.Subject, r.Attempt)
	}, 0, 7, "was changed"},
	{"a record, its digest and its link's hash edited", func(l *ledger) {
		r := l.at(7)
		r.Attempt.Error = "nothing"
		l.links[6].Digests[0] = journal.DigestAttempt(r.Subject, r.Attempt)
		l.links[6].Hash = l.links[6].HashAfter(l.links[5].Hash)
	}, 0, 8, "does not follow link 7"},
	{"a link's time edited", func(l *ledger) { l.links[2].At = l.links[2].At.Add(time.Millisecond) }, 0, 3, "was changed"},
	{"a link's hash edited", func(l *ledger) { l.links[2].Hash[0]++ }, 0, 3, "was changed"},
	{"a link deleted", func(l *ledger) { l.links = slices.Delete(l.links, 4, 5) }, 0, 5, "is missing"},
	{"the last links deleted", func(l *ledger) { l.links = l.links[:10] }, 0, 11, "the head says that there are 12"},
	{"a link and its record deleted, the rest numbered anew", func(l *ledger) {
		l.links = slices.Delete(l.links, 4, 5)
		for i := 4; i < len(l.links); i++ {
			l.links[i].Number--
		}
		l.head.Link--
	}, 0, 5, "begins at record 6, expected 5"},
	{"a link put in before all", func(l *ledger) { l.links = slices.Insert(l.links, 0, journal.Link{Number: 0}) }, 0, 0, "was put in"},
	{"a link behind the head", func(l *ledger) { l.links = append(l.links, journal.Link{Number: 13, First: 13}) }, 0, 13, "lies behind the head"},
	{"the head's hash edited", func(l *ledger) { l.head.Hash[5]++ }, 0, 12, "is not what the head says"},
	{"the head's record edited", func(l *ledger) { l.head.Record++ }, 0, 12, "is not what the head says"},
	{"the head put back", func(l *ledger) { l.head.Link, l.head.Record, l.head.Hash = 11, 11, l.links[10].Hash }, 12, none, "was put in"},
	{"a head out of all bounds", func(l *ledger) { l.head.Link, l.head.Record = 1<<63-1, 1<<63-1 }, 0, 13, "is missing"},
}

// swap exchanges what two records say but for their numbers.
func (l *ledger) swap(a, b int64) {
	one, other := l.at(a), l.at(b)
	*one.Attempt, *other.Attempt = *other.Attempt, *one.Attempt
	one.Subject, other.Subject = other.Subject, one.Subject
	one.Attempt.Record, other.Attempt.Record = a, b
}

func TestVerifyFindsTheFirstBroken(t *testing.T) {
	for _, tt := range tampering {
		t.Run(tt.name, func(t *testing.T) {
			l := filled(t)
			tt.do(l)
			_, err := verify(t, l, audit.Mark{})
			wantBroken(t, err, tt.record, tt.link, tt.says)
		})
	}
}

func wantBroken(t *testing.T, err error, record, link int64, says string) {
	t.Helper()
	b, ok := errors.AsType[*audit.Broken](err)
	if !ok {
		t.Fatalf("got %v, want what is broken", err)
	}
	what, number := "record", record
	if link != none {
		what, number = "link", link
	}
	if b.What != what || b.Number != number || !strings.Contains(b.Problem, says) {
		t.Errorf("got %s %d: %s; want %s %d: %s", b.What, b.Number, b.Problem, what, number, says)
	}
	if strings.ContainsAny(err.Error(), "\r\n") {
		t.Errorf("more than one line: %q", err)
	}
}

// Who changes everything consistently is found by a head that was kept elsewhere, and by that only.
func TestVerifyAgainstAKeptHead(t *testing.T) {
	kept := audit.Mark{Link: 12, Hash: filled(t).head.Hash}
	for _, tt := range []struct {
		name string
		do   func(l *ledger)
		mark audit.Mark
		link int64
		says string
	}{
		{"a cut tail", func(l *ledger) {
			l.links, l.records = l.links[:9], l.records[:9]
			l.head.Link, l.head.Record, l.head.Hash = 9, 9, l.links[8].Hash
		}, kept, 10, "its tail was cut off"},
		{"all cut", func(l *ledger) { l.links, l.records, l.head = nil, nil, journal.Head{} }, kept, 1, "its tail was cut off"},
		{"an edit and everything behind it anew", func(l *ledger) {
			r := l.at(7)
			r.Attempt.Error = "nothing"
			l.links[6].Digests[0] = journal.DigestAttempt(r.Subject, r.Attempt)
			l.relinked(6)
		}, kept, 12, "written anew"},
		{"the same, by an earlier head", func(l *ledger) {
			r := l.at(7)
			r.Attempt.Error = "nothing"
			l.links[6].Digests[0] = journal.DigestAttempt(r.Subject, r.Attempt)
			l.relinked(6)
		}, audit.Mark{Link: 7, Hash: filled(t).links[6].Hash}, 7, "written anew"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := filled(t)
			tt.do(l)
			if _, err := verify(t, l, audit.Mark{}); err != nil {
				t.Errorf("it shows without a kept head: %v", err)
			}
			_, err := verify(t, l, tt.mark)
			wantBroken(t, err, 0, tt.link, tt.says)
		})
	}
}

// purgedThrough is a ledger whose records up to 6 may be missing, by entry 13.
func purgedThrough(t *testing.T) (*testkit.Memory, *writer) {
	t.Helper()
	store := testkit.NewMemory()
	w := write(t, store)
	for i := range 6 {
		w.fails(fmt.Sprintf("CLM-1-%d", i+1), "TIMEOUT", -1)
	}
	w.pass(48 * time.Hour)
	for i := range 6 {
		w.fails(fmt.Sprintf("CLM-2-%d", i+1), "TIMEOUT", -1)
	}
	n, err := w.Purge(t.Context(), store, begin.Add(time.Hour))
	if err != nil || n != 6 {
		t.Fatalf("%d purged, %v", n, err)
	}
	return store, w
}

func TestVerifyAfterAPurge(t *testing.T) {
	store, w := purgedThrough(t)
	report, err := verify(t, store, audit.Mark{})
	if err != nil || report.Purged != 6 || report.Records != 7 || report.Links != 13 {
		t.Errorf("got %+v, %v, want 6 purged, 7 records, 13 links", report, err)
	}
	for name, tt := range map[string]struct {
		do     func(l *ledger)
		record int64
		says   string
	}{
		"one above deleted":               {func(l *ledger) { l.drop(7) }, 7, "what was purged ends at record 6"},
		"one far above deleted":           {func(l *ledger) { l.drop(11) }, 11, "what was purged ends at record 6"},
		"one above deleted, one edited":   {func(l *ledger) { l.drop(8); l.at(10).Attempt.Error = "" }, 8, "is missing"},
		"one above edited":                {func(l *ledger) { l.at(10).Attempt.Error = "" }, 10, "was changed"},
		"the purge's own entry deleted":   {func(l *ledger) { l.drop(13) }, 1, "is missing"},
		"the purge's own entry edited":    {func(l *ledger) { l.at(13).Entry.Body = `{"through":12}` }, 13, "was changed"},
		"an edit, and the entry's edited": {func(l *ledger) { l.at(9).Attempt.Error = ""; l.at(13).Entry.Body = `{"through":1}` }, 2, "is missing"},
	} {
		l := copied(t, store)
		tt.do(l)
		_, err := verify(t, l, audit.Mark{})
		t.Run(name, func(t *testing.T) { wantBroken(t, err, tt.record, none, tt.says) })
	}
	w.fails("CLM-2-1", "TIMEOUT", -1)
	if report, err = verify(t, store, audit.Mark{}); err != nil || report.Records != 8 {
		t.Errorf("with a record behind the purge: got %+v, %v", report, err)
	}
}

// A purge that was cut off leaves holes below what it said.
func TestVerifyAfterHalfAPurge(t *testing.T) {
	store := testkit.NewMemory()
	w := write(t, store)
	const many = 10_000
	for i := range many {
		w.fails(fmt.Sprintf("CLM-1-%d", i+1), "TIMEOUT", -1)
	}
	before := copied(t, store)
	w.pass(48 * time.Hour)
	w.fails("CLM-2-1", "TIMEOUT", -1)
	if _, err := w.Purge(t.Context(), store, begin.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	half := func() *ledger {
		l := copied(t, store)
		for i := len(before.records) - 1; i >= 0; i -= 2 { // every second one is still there
			l.records = append(l.records, before.records[i])
		}
		slices.SortFunc(l.records, func(a, b journal.Record) int { return int(numberOf(a) - numberOf(b)) })
		return l
	}
	if report, err := verify(t, half(), audit.Mark{}); err != nil || report.Purged != many/2 || report.Records != many/2+2 {
		t.Errorf("got %+v, %v", report, err)
	}
	l := half()
	l.drop(many + 1)
	_, err := verify(t, l, audit.Mark{})
	wantBroken(t, err, many+1, none, "is missing")
	l = half()
	l.drop(many + 2) // the purge's entry
	_, err = verify(t, l, audit.Mark{})
	wantBroken(t, err, 1, none, "is missing")
}

// A worker purges while somebody verifies: what is missing then is in an entry behind the head that was read.
func TestVerifyWhileThereIsAPurge(t *testing.T) {
	store, w := purgedThrough(t)
	l := copied(t, store)
	w.pass(48 * time.Hour)
	w.fails("CLM-3-1", "TIMEOUT", -1)
	if n, err := w.Purge(t.Context(), store, begin.Add(49*time.Hour)); err != nil || n != 7 {
		t.Fatalf("%d purged, %v", n, err)
	}
	later := copied(t, store)
	first := true
	l.meanwhile = func() {
		l.head, l.links = later.head, later.links
		l.records = later.records
		first = false
	}
	l.drop(7) // the first that the purge deletes, just before it is read
	report, err := verify(t, l, audit.Mark{})
	if err != nil || first || report.Head.Link != later.head.Link {
		t.Errorf("got %+v, %v, the purge ran: %t", report, err, !first)
	}
}

func TestVerifyBesideAWriter(t *testing.T) {
	store := testkit.NewMemory()
	w := write(t, store)
	w.fails("CLM-1-1", "TIMEOUT", -1)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				w.fails(fmt.Sprintf("CLM-2-%d", i), "TIMEOUT", -1)
			}
		}
	}()
	for range 50 {
		if _, err := verify(t, store, audit.Mark{}); err != nil {
			t.Error(err)
		}
	}
	close(done)
	<-ended
}

func TestVerifyIsTold(t *testing.T) {
	l := filled(t)
	var last, of, held int64
	_, err := audit.Verify(t.Context(), l, audit.VerifyOptions{}, func(at, all, counted int64) { last, of, held = at, all, counted })
	if err != nil || last != 12 || of != 12 || held != 12 {
		t.Errorf("got %d of %d, %d hold, %v", last, of, held, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := audit.Verify(ctx, l, audit.VerifyOptions{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

// What cannot be read at all is no broken record.
func TestVerifyUnavailable(t *testing.T) {
	store := testkit.NewMemory()
	write(t, store).fails("CLM-1-1", "TIMEOUT", -1)
	store.SetDown(true)
	_, err := verify(t, store, audit.Mark{})
	if _, broken := errors.AsType[*audit.Broken](err); err == nil || broken {
		t.Errorf("got %v", err)
	}
}

func TestMark(t *testing.T) {
	m := audit.Mark{Link: 12, Hash: journal.Digest{0xab, 31: 0xcd}}
	if got, err := audit.ParseMark(" " + m.String() + "\n"); err != nil || got != m {
		t.Errorf("got %v, %v, want %v", got, err, m)
	}
	for _, s := range []string{"", "12", "12:", "0:" + m.Hash.String(), "-1:" + m.Hash.String(), m.String() + "00", m.String()[:60], "x:" + m.Hash.String(), "12:" + strings.Repeat("z", 64)} {
		if got, err := audit.ParseMark(s); err == nil || got != (audit.Mark{}) {
			t.Errorf("%q: got %v, %v, want an error", s, got, err)
		}
	}
}
