package storetest

import (
	"fmt"
	"sync"
	"testing"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

func testNoticeCounts(t *testing.T, s Store) {
	const all, half = 400, 150
	d := doubled{s, testkit.NewMemory()}
	own := func(n int) int { return n }
	for _, numbers := range [][]int{nil, upTo(half), upTo(all)[half:]} {
		mustNot(t, bury(t.Context(), d, own, numbers...))
		for _, team := range append(letterTeams, "nobody") {
			got, err := s.OpenDeadLetters(t.Context(), team, 1000)
			mustNot(t, err)
			want, _ := d.memory.OpenDeadLetters(t.Context(), team, 1000)
			wantSame(t, "what is open of "+string(team), got, want)
			for after, top := range map[int64]int{0: 1000, half: 2, half + 1: 1000, all: 2} {
				got, err := s.NewDeadLetters(t.Context(), team, after, top)
				mustNot(t, err)
				want, _ := d.memory.NewDeadLetters(t.Context(), team, after, top)
				wantSame(t, fmt.Sprint("what is new of ", team, " after ", after), got, want)
			}
		}
	}
}

// testNoticeAges counts what is older than an instant, by the ledger's own instants.
func testNoticeAges(t *testing.T, s Store) {
	const all = 200
	for n := range all { // a link each, a millisecond apart
		mustNot(t, bury(t.Context(), s, func(n int) int { return n }, n))
	}
	before := func(ms int) (n int64) {
		for i := range all {
			if _, _, d := letterNumber(i, i); d.State == journal.DeadLetterOpen && d.Team == "ti" && i < ms {
				n++
			}
		}
		return n
	}
	got, err := s.OpenDeadLetters(t.Context(), "ti", 1, at(0), at(50), at(51), at(120), at(5000))
	mustNot(t, err)
	wantSame(t, "how many are older", got.Older, []int64{before(0), before(50), before(51), before(120), before(all)})
}

// testNoticeSettled: what is open no longer is not counted.
func testNoticeSettled(t *testing.T, s Store) {
	mustNot(t, bury(t.Context(), s, func(n int) int { return n }, 0)) // open, of cadastro
	of, _, d := letterNumber(0, 0)
	for _, state := range []journal.DeadLetterState{journal.DeadLetterOpen, journal.DeadLetterRecovered} {
		must(t, s, []journal.Lookup{{Subject: of, DeadLetter: d.ID}}, func(x *transaction) {
			d := *x.histories[0].DeadLetter
			d.State, x.drawn = state, true
			x.letter(0, d, x.histories[0].DeadLetter)
		})
		news, err := s.NewDeadLetters(t.Context(), d.Team, 0, 5)
		mustNot(t, err)
		open, err := s.OpenDeadLetters(t.Context(), d.Team, 5, at(5000))
		mustNot(t, err)
		want := 0
		if state == journal.DeadLetterOpen {
			want = 1
		}
		if int(news.N) != want || len(news.Top) != want || int(open.N) != want || int(open.Older[0]) != want {
			t.Errorf("where it is %s, %+v is new and %+v open, want %d", state, news, open, want)
		}
	}
}

func mustNot(t *testing.T, err error) {
	t.Helper()
	testkit.Must(t, err)
}

// notice is a message of the suite's.
func notice(id, key string) *journal.Message {
	return &journal.Message{ID: id, Queue: journal.NoticeQueue, Key: key, Type: "dead_letters.new", Body: `{"é":1}`, At: at(7)}
}

func wantMoved(t *testing.T, s journal.NoticeStore, from, to journal.NoticeMark, m *journal.Message, want bool) {
	t.Helper()
	if moved, err := s.MoveNoticeMark(t.Context(), from, to, m); err != nil || moved != want {
		t.Errorf("the mark moves from %+v to %+v: %t (%v), want %t", from, to, moved, err, want)
	}
}

func wantMarks(t *testing.T, s journal.NoticeStore, want ...journal.NoticeMark) {
	t.Helper()
	got, err := s.NoticeMarks(t.Context())
	mustNot(t, err)
	wantSame(t, "the marks", got, want)
}

func testNoticeMarks(t *testing.T, s Store) {
	wantMarks(t, s)
	zero := journal.NoticeMark{Team: "ti", Channel: "email", Kind: journal.NewsNotice}
	first, second := zero, zero
	first.Record, first.At = 10, at(1)
	second.Record, second.At = 20, at(2)
	wantMoved(t, s, first, second, nil, false) // it was never kept
	wantMoved(t, s, zero, first, notice("a", "ti/email"), true)
	wantMoved(t, s, zero, first, nil, false)                       // it is not zero any more
	wantMoved(t, s, first, second, notice("b", "ti/email"), false) // a waits
	wantMoved(t, s, second, second, nil, false)                    // it is first still
	other := journal.NoticeMark{Team: "ti", Channel: "webhook", Kind: journal.NewsNotice}
	moved := other
	moved.Record, moved.At = 5, at(3)
	wantMoved(t, s, other, moved, notice("c", "ti/webhook"), true) // another channel is another matter
	day := journal.NoticeMark{Team: "ti", Channel: "email", Kind: journal.DailyNotice}
	daily := day
	daily.Day, daily.At = "2026-11-21", at(4)
	wantMoved(t, s, day, daily, notice("d", "ti/email"), false) // a waits
	wantMoved(t, s, day, daily, nil, true)
	wantMarks(t, s, daily, first, moved)
	waiting := pending(t, s, journal.NoticeQueue, 10)
	if len(waiting) != 2 || waiting[0].ID != "a" || waiting[1].ID != "c" {
		t.Fatalf("%+v waits, want a and c", waiting)
	}
	want := *notice("a", "ti/email")
	want.Sequence = waiting[0].Sequence
	wantSame(t, "the message", waiting[0], want)
	must(t, s, nil, func(x *transaction) { x.Published = []int64{waiting[0].Sequence} })
	wantMoved(t, s, first, second, notice("b", "ti/email"), true)
	wantMarks(t, s, daily, second, moved)
	if head, _ := recall(t, s); head.Link != 0 {
		t.Error("marks are in the ledger")
	}
}

// testNoticeOnce: of many that see the same news, one tells.
func testNoticeOnce(t *testing.T, s Store) {
	var told sync.Map
	var group sync.WaitGroup
	from := journal.NoticeMark{Team: "ti", Channel: "email", Kind: journal.NewsNotice}
	for i := range 8 {
		group.Go(func() {
			to := from
			to.Record, to.At = int64(i+1), at(int64(i))
			moved, err := s.MoveNoticeMark(t.Context(), from, to, notice(string(rune('a'+i)), "ti/email"))
			if err != nil {
				t.Error(err)
			}
			if moved {
				told.Store(i, true)
			}
		})
	}
	group.Wait()
	n := 0
	told.Range(func(any, any) bool { n++; return true })
	if waiting := pending(t, s, journal.NoticeQueue, 10); n != 1 || len(waiting) != 1 {
		t.Errorf("%d moved the mark, %d messages wait, want one", n, len(waiting))
	}
}
