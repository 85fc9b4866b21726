package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// testGrown reads the last moments of a journal with many records: that costs what it finds, not what lies before. It
// compares with a read from a known place. The clock went back in between.
func testGrown(t *testing.T, s Store) {
	const links, records, most = 500, 200, 20
	entries := slices.Repeat([]journal.Entry{{Kind: journal.RejectionEntry,
		Body: `{"code":"MISSING_FIELD","job":1,"text":"` + strings.Repeat("x", 400) + `"}`}}, records)
	now := func(link int64) time.Time { // each hundredth is by a clock a day slow
		return at(0).Add(time.Duration(link)*time.Hour - time.Duration(link%100/99)*24*time.Hour)
	}
	write := func(ahead time.Duration) {
		testkit.Must(t, s.Transact(t.Context(), nil, func(head journal.Head, _ []journal.History) *journal.Changes {
			c, err := journal.Append(head, now(head.Link).Add(ahead), nil, nil, entries...)
			testkit.Must(t, err)
			return c
		}))
	}
	for range links {
		write(0)
	}
	read := func(f journal.RecordFilter, after int64) func() int64 {
		return func() int64 {
			all, err := s.Records(t.Context(), f, after, 5)
			testkit.Must(t, err)
			if len(all) == 0 {
				return 0
			}
			return all[0].Record
		}
	}
	const wanted = (links-3)*records + 1
	since := now(links - 3)
	_, told := best(read(journal.RecordFilter{}, wanted-1))
	first, found := best(read(journal.RecordFilter{Since: since}, 0))
	last, before := best(func() int64 {
		n, err := s.LastRecordBefore(t.Context(), since)
		testkit.Must(t, err)
		return n
	})
	// A read with Until ends soon: a link holds an hour, and a clock is at most a day slow.
	until := journal.RecordFilter{Until: now(2)}
	ended, nothing := best(read(until, 2*records))
	lagged, _ := best(read(journal.RecordFilter{Until: now(99).Add(time.Minute)}, 99*records))
	if ended != 0 || lagged != 99*records+1 {
		t.Errorf("behind what was recorded until an instant %d is found, by a clock behind %d, want none and %d",
			ended, lagged, 99*records+1)
	}
	if first != wanted || last != wanted-1 {
		t.Errorf("the first record since %s is %d, the last before it %d, want %d and %d", since, first, last, wanted, wanted-1)
	}
	t.Logf("of %d records: told where to begin %s, since an instant %s, the last before it %s, none until another %s",
		links*records, told, found, before, nothing)
	if found > most*told || before > most*told || nothing > 10*most*told {
		t.Errorf("it takes %s, %s and %s, where %s is enough once the place is known", found, before, nothing, told)
	}
	write(8766 * time.Hour) // a clock a year ahead, which is put right
	write(0)
	righted := int64((links+1)*records + 1)
	if n := read(journal.RecordFilter{Until: now(links + 2)}, righted-1)(); n != righted {
		t.Errorf("until an instant behind which a clock was a year ahead, %d is found, want %d", n, righted)
	}
}

// best returns read's result, and the shortest time it took.
func best(read func() int64) (n int64, least time.Duration) {
	least = time.Hour
	for range 5 {
		began := time.Now()
		n = read()
		least = min(least, time.Since(began))
	}
	return n, least
}
