package storetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// notice returns a message of the suite.
func notice(id, key string) *journal.Message {
	return &journal.Message{ID: id, Queue: deadletter.NoticeQueue, Key: key, Type: "dead_letters.new", Body: `{"é":1}`, At: at(7)}
}

func wantMoved(t *testing.T, s deadletter.NoticeStore, from, to deadletter.Watermark, m *journal.Message, want bool) {
	t.Helper()
	if moved, err := s.MoveWatermark(t.Context(), from, to, m); err != nil || moved != want {
		t.Errorf("the mark moves from %+v to %+v: %t (%v), want %t", from, to, moved, err, want)
	}
}

func wantMarks(t *testing.T, s deadletter.NoticeStore, want ...deadletter.Watermark) {
	t.Helper()
	got, err := s.Watermarks(t.Context())
	testkit.Must(t, err)
	wantSame(t, "the marks", got, want)
}

func testWatermarks(t *testing.T, s Store) {
	wantMarks(t, s)
	zero := deadletter.Watermark{Team: "ti", Channel: "email", Kind: deadletter.NewsNotice}
	first, second := zero, zero
	first.Record, first.At = 10, at(1)
	second.Record, second.At = 20, at(2)
	wantMoved(t, s, first, second, nil, false) // it was never stored
	wantMoved(t, s, zero, first, notice("a", "ti/email"), true)
	wantMoved(t, s, zero, first, nil, false)                       // it is no longer zero
	wantMoved(t, s, first, second, notice("b", "ti/email"), false) // a waits
	wantMoved(t, s, second, second, nil, false)                    // it is still first
	other := deadletter.Watermark{Team: "ti", Channel: "webhook", Kind: deadletter.NewsNotice}
	moved := other
	moved.Record, moved.At = 5, at(3)
	wantMoved(t, s, other, moved, notice("c", "ti/webhook"), true) // another channel is another matter
	day := deadletter.Watermark{Team: "ti", Channel: "email", Kind: deadletter.DigestNotice}
	daily := day
	daily.Day, daily.At = "2026-11-21", at(4)
	wantMoved(t, s, day, daily, notice("d", "ti/email"), false) // a waits
	wantMoved(t, s, day, daily, nil, true)
	wantMarks(t, s, daily, first, moved)
	waiting := pending(t, s, deadletter.NoticeQueue, 10)
	if len(waiting) != 2 || waiting[0].ID != "a" || waiting[1].ID != "c" {
		t.Fatalf("%+v waits, want a and c", waiting)
	}
	want := *notice("a", "ti/email")
	want.Sequence = waiting[0].Sequence
	wantSame(t, "the message", waiting[0], want)
	must(t, s, nil, func(x *transaction) { x.Published = []int64{waiting[0].Sequence} })
	wantMoved(t, s, first, second, notice("b", "ti/email"), true)
	wantMarks(t, s, daily, second, moved)
	if head, _ := recall(t, s); head.Link != 4 || head.Message != 3 {
		t.Errorf("the ledger has %d links and %d messages, want one for each that came or went, and none for marks", head.Link, head.Message)
	}
	Verify(t, s)
}

// once has eight do the same at once, one of which must have done it.
func once(t *testing.T, does func(i int) bool) {
	t.Helper()
	var did atomic.Int64
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			if does(i) {
				did.Add(1)
			}
		})
	}
	if group.Wait(); did.Load() != 1 {
		t.Errorf("%d did it, want one", did.Load())
	}
}

// testNoticeOnce: of many that see the same news at once, one tells.
func testNoticeOnce(t *testing.T, s Store) {
	from := deadletter.Watermark{Team: "ti", Channel: "email", Kind: deadletter.NewsNotice}
	once(t, func(i int) bool {
		to := from
		to.Record, to.At = int64(i+1), at(int64(i))
		moved, err := s.MoveWatermark(t.Context(), from, to, notice(string(rune('a'+i)), "ti/email"))
		if err != nil {
			t.Error(err)
		}
		return moved
	})
	if waiting := pending(t, s, deadletter.NoticeQueue, 10); len(waiting) != 1 {
		t.Errorf("%d messages wait, want one", len(waiting))
	}
}

// testTellCause: of many that find a cause new at once, one tells, and again only once it is back. Of two causes, the
// one told later has the later instant, whatever the clocks say.
func testTellCause(t *testing.T, s Store) {
	w, job := newBulkWorld(t, s), int64(0)
	fails := func(text string) (c journal.Cause) {
		t.Helper()
		job++
		r, err := w.analyze("CLM-1-1", job, text, 0)
		testkit.Must(t, err)
		causes, err := s.Causes(t.Context(), journal.CauseFilter{IDs: []string{r.Attempt.Fingerprint}}, nil, 1)
		testkit.Must(t, err)
		return causes[0]
	}
	tell := func(c journal.Cause, at time.Time) (journal.News, bool) {
		t.Helper()
		c.News = &journal.News{At: at, First: c.Began, Failures: 5, Before: &journal.Before{Closed: 7}}
		told, err := s.TellCause(t.Context(), &c)
		testkit.Must(t, err)
		return *c.News, told
	}
	c := fails("TIMEOUT")
	once(t, func(int) bool {
		_, told := tell(c, w.Now())
		return told
	})
	_, err := w.analyze("CLM-2-1", 90, "TIMEOUT", 0)
	testkit.Must(t, err)
	seen := fails("TIMEOUT")
	first := seen.News
	second, told := tell(fails("DUPLICATE_CLAIM"), first.At.Add(-time.Hour))
	if !told || !second.At.After(first.At) {
		t.Errorf("the second was told of at %v (%t), the first at %v", second.At, told, first.At)
	}
	w.Set(w.Now().Add(journal.Silence - time.Hour))
	w.succeeds("CLM-2-1") // which is no failure
	w.Set(w.Now().Add(time.Hour))
	back := fails("TIMEOUT")
	wantSame(t, "what was told before", back.News, first)
	if !back.Prior.Equal(seen.LastSeen) || !back.Began.Equal(w.Now()) {
		t.Errorf("it is back since %v, after %v", back.Began, back.Prior)
	}
	if _, told := tell(c, w.Now()); told {
		t.Error("what it was before it was back is told")
	}
	if _, told := tell(back, w.Now()); !told {
		t.Error("that it is back is not told")
	}
	Verify(t, s)
}
