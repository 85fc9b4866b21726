package outbox_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

var errRefused = errors.New("refused")

func TestAllIsSentInOrderAndLetGo(t *testing.T) {
	bubble(t, func(s *stage) {
		s.sink.takes = 3 * time.Millisecond
		s.fill(3000, keys(100)...)
		r := s.relay("a")
		s.within(time.Minute, "all is sent", s.empty)
		r.stop()
		s.sink.checkOrder(t, false)
		if s.sink.count() != 3000 {
			t.Errorf("%d were sent", s.sink.count())
		}
		if s.account().onWayMax < 32 {
			t.Errorf("%d on their way at most: they are sent one by one", s.account().onWayMax)
		}
		if len(s.account().states) != 0 {
			t.Errorf("states %v though nothing failed", s.account().states)
		}
	})
}

func TestLaterOnesOfAKeyWait(t *testing.T) {
	bubble(t, func(s *stage) {
		s.fill(9, "A", "B", "C") // A: 1, 4, 7
		failures := 3
		s.sink.answer = func(m *journal.Message) error {
			if m.Sequence == 4 && failures > 0 {
				failures--
				return errRefused
			}
			return nil
		}
		s.relay("a")
		s.within(time.Second, "B and C are sent", func() bool { return len(s.sink.sequences("B"))+len(s.sink.sequences("C")) == 6 })
		if got := s.sink.sequences("A"); !slices.Equal(got, []int64{1}) {
			t.Errorf("of A came %v, want 1 alone", got)
		}
		s.within(time.Minute, "all is sent", s.empty)
		if got := s.sink.sequences("A"); !slices.Equal(got, []int64{1, 4, 7}) {
			t.Errorf("of A came %v", got)
		}
		if len(s.account().states) != 0 {
			t.Errorf("states %v though the sink took messages", s.account().states)
		}
	})
}

// TestKeyThatGetsOn: one of which each message fails once is held up a second each time, and not ever longer.
func TestKeyThatGetsOn(t *testing.T) {
	bubble(t, func(s *stage) {
		failed := map[int64]bool{}
		s.sink.answer = func(m *journal.Message) error {
			if m.Key == "A" && !failed[m.Sequence] {
				failed[m.Sequence] = true
				return errRefused
			}
			return nil
		}
		s.fill(40, "A", "B")
		s.relay("a")
		s.within(time.Minute, "all is sent", s.empty)
	})
}

// TestSinkGoesDownInMidPage: all keys fail where others of the page were taken, and it is the sink all the same.
func TestSinkGoesDownInMidPage(t *testing.T) {
	bubble(t, func(s *stage) {
		s.sink.takes = time.Millisecond // that all keys go on in step
		takes := 100
		s.sink.answer = func(*journal.Message) error {
			if takes--; takes < 0 {
				return errRefused
			}
			return nil
		}
		s.fill(1000, keys(50)...)
		s.relay("a")
		time.Sleep(time.Hour)
		s.sink.set(func() { s.sink.answer = nil })
		if took := s.within(time.Minute, "all is sent", s.empty); took > 8*time.Second {
			t.Errorf("it took %s until all was sent", took)
		}
		time.Sleep(time.Second)
		if !slices.Equal(s.account().states, []bool{false, true}) {
			t.Errorf("states %v, want down once and up once", s.account().states)
		}
	})
}

// TestLaterPageWaits: what failed holds its key up on the pages behind, too, though its pause is over before they are read.
func TestLaterPageWaits(t *testing.T) {
	bubble(t, func(s *stage) {
		s.sink.takes = 200 * time.Millisecond
		failed := false
		s.sink.answer = func(m *journal.Message) error {
			if m.Sequence == 1 && !failed {
				failed = true
				return errRefused
			}
			return nil
		}
		s.fill(1101, append([]string{"A"}, keys(1099)...)...) // the last is A's, too
		s.relay("a")
		s.within(time.Minute, "all is sent", s.empty)
		s.sink.checkOrder(t, false)
	})
}

// TestRefusedForEver: what is never taken holds up its own subject only, however many there are.
func TestRefusedForEver(t *testing.T) {
	for _, refused := range []int{1, 7, 8, 700} {
		bubble(t, func(s *stage) {
			bad := keys(refused)
			s.sink.answer = func(m *journal.Message) error {
				if slices.Contains(bad, m.Key) {
					return errRefused
				}
				return nil
			}
			s.fill(refused, bad...)
			s.fill(100, "GOOD-1", "GOOD-2")
			r := s.relay("a")
			s.within(time.Minute, "the others are sent", func() bool { return s.sink.count() == 100 })
			time.Sleep(time.Minute)
			changes := len(s.account().states)
			for range 20 { // twenty minutes of life
				s.fill(1, "GOOD-1")
				r.Wake()
				if took := s.within(time.Minute, "another is sent", func() bool { return len(s.Outbox()) == refused }); took > 2*time.Second {
					t.Errorf("%d refused: another waited %s", refused, took)
				}
				time.Sleep(time.Minute)
			}
			if more := len(s.account().states) - changes; more > 0 {
				t.Errorf("%d refused: the sink was said to go up and down %d times", refused, more)
			}
			if n := s.logs.Len(); n > 8 {
				t.Errorf("%d refused: %d lines of log: %v", refused, n, s.logs.All())
			}
		})
	}
}

// TestSinkIsDown for an hour: it is seldom tried, and soon found to be up again.
func TestSinkIsDown(t *testing.T) {
	for name, test := range map[string]struct {
		messages, keys int
		hangs          bool
		most           time.Duration // until all is sent again
	}{
		"it refuses": {5_000, 2000, false, 8 * time.Second}, "and has one key": {2, 1, false, 6 * time.Second}, "it hangs": {2000, 500, true, 30 * time.Second},
	} {
		bubble(t, func(s *stage) {
			s.sink.hang = test.hangs
			s.sink.answer = func(*journal.Message) error { return errRefused }
			s.fill(test.messages, keys(test.keys)...)
			s.relay("a")
			time.Sleep(time.Hour)
			if s.account().tries > 70_000 || s.account().reads > 30_000 {
				t.Errorf("%s: %d tries, %d looks at the outbox in an hour", name, s.account().tries, s.account().reads)
			}
			s.sink.set(func() { s.sink.hang, s.sink.answer = false, nil })
			if took := s.within(time.Minute, "all is sent", s.empty); took > test.most {
				t.Errorf("%s: it took %s until all was sent", name, took)
			}
			s.sink.checkOrder(t, false)
			if !slices.Equal(s.account().states, []bool{false, true}) {
				t.Errorf("%s: states %v, want down once and up once", name, s.account().states)
			}
			if n := s.logs.FilterMessageSnippet("messages").Len(); n != 3 { // it leads, down, up
				t.Errorf("%s: %d lines of log: %v", name, n, s.logs.All())
			}
		})
	}
}

// TestLateCommits: a row that appears below those that were sent is found.
func TestLateCommits(t *testing.T) {
	bubble(t, func(s *stage) {
		s.hidden = map[int64]bool{3: true, 700: true}
		s.fill(1000, keys(1000)...)
		s.relay("a")
		s.within(time.Minute, "the rest is sent", func() bool { return len(s.Outbox()) == 2 })
		s.set(func() { s.hidden = map[int64]bool{} })
		s.within(time.Second, "the late ones are sent", s.empty)
	})
}

func TestIdleRelayLooksSeldomAndHeedsAWake(t *testing.T) {
	bubble(t, func(s *stage) {
		r := s.relay("a")
		time.Sleep(10 * time.Second)
		if s.account().reads > 60 {
			t.Errorf("%d looks at an empty outbox in 10 s", s.account().reads)
		}
		for range 100 {
			r.Wake()
			time.Sleep(time.Millisecond)
		}
		if s.account().reads > 70 {
			t.Errorf("%d looks after a storm of wakes", s.account().reads)
		}
		s.fill(1, "A")
		r.Wake()
		s.within(50*time.Millisecond, "it is sent", s.empty)
	})
}

// TestJournalDown: what was sent and cannot be let go of is not sent again by the same process.
func TestJournalDown(t *testing.T) {
	bubble(t, func(s *stage) {
		s.noRelief = true
		s.fill(50, keys(10)...)
		s.relay("a")
		time.Sleep(5 * time.Minute)
		if s.sink.count() != 50 || len(s.Outbox()) != 50 {
			t.Errorf("%d sent, %d left", s.sink.count(), len(s.Outbox()))
		}
		s.set(func() { s.noRelief = false })
		s.within(10*time.Second, "they are let go of", s.empty)
		s.SetDown(true)
		time.Sleep(5 * time.Second)
		s.SetDown(false)
		s.fill(50, keys(10)...)
		s.within(30*time.Second, "the rest is sent", s.empty)
		s.sink.checkOrder(t, false)
		if !slices.Equal(s.account().states, []bool{false, true, false, true}) {
			t.Errorf("states %v", s.account().states)
		}
	})
}

// TestFailoverThatLosesMessages: others get the numbers of what was sent and not let go of. They are sent, too.
func TestFailoverThatLosesMessages(t *testing.T) {
	bubble(t, func(s *stage) {
		s.noRelief = true
		s.fill(600, keys(10)...)
		s.relay("a")
		s.within(time.Minute, "a page is sent", func() bool { return s.sink.count() == 512 })
		s.set(func() { s.noRelief, s.others = false, true })
		s.within(time.Minute, "all are let go of", s.empty)
		if n := s.sink.count(); n != 512+600 {
			t.Errorf("%d are sent, want the first page and all that came instead", n)
		}
	})
}

// TestErasedWhileSent: of many messages to a slow sink only few are sent once they are gone, those of a page behind too.
func TestErasedWhileSent(t *testing.T) {
	bubble(t, func(s *stage) {
		s.sink.takes = 4 * time.Second
		s.fill(600, "A", "B", "C")
		s.relay("a")
		time.Sleep(time.Second)
		var gone []int64
		for _, m := range s.Outbox() {
			if m.Key == "A" {
				gone = append(gone, m.Sequence)
			}
		}
		testkit.Must(t, s.letGo(t.Context(), gone))
		time.Sleep(time.Hour)
		s.sink.checkOrder(t, false)
		if n := len(s.Outbox()); n > 0 {
			t.Errorf("of all others %d are not sent", n)
		}
		if sent := len(s.sink.sequences("A")); sent > 2 {
			t.Errorf("%d are sent that were gone after a second", sent)
		}
	})
}

func TestStopAwaitsWhatIsOnItsWay(t *testing.T) {
	bubble(t, func(s *stage) {
		s.sink.takes = time.Second
		s.fill(1000, keys(500)...)
		r := s.relay("a")
		time.Sleep(500 * time.Millisecond)
		began := time.Now()
		r.stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the stop took %s", took)
		}
		if s.sink.count() != 64 || len(s.Outbox()) != 1000-64 {
			t.Errorf("%d sent, %d left", s.sink.count(), len(s.Outbox()))
		}
		if held, err := s.Lease(t.Context(), "outbox/"+queue, "another", time.Second); !held || err != nil {
			t.Errorf("the lease was not given back: %v", err)
		}
	})
}

func TestKillReturnsAtOnce(t *testing.T) {
	bubble(t, func(s *stage) {
		s.sink.hang = true
		s.fill(100, keys(100)...)
		r := s.relay("a")
		time.Sleep(time.Second)
		began := time.Now()
		r.kill()
		<-r.done
		synctest.Wait()
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %s", took)
		}
	})
}

// TestForgedMessages are not sent, and hold up nobody but their own keys, however many they are; it is said once why.
func TestForgedMessages(t *testing.T) {
	bubble(t, func(s *stage) {
		s.forged = map[int64]bool{}
		for n := range int64(20) {
			s.forged[n+1] = true
		}
		s.fill(20, keys(20)...)
		s.relay("a")
		time.Sleep(time.Minute)
		s.fill(40, keys(40)...)
		s.within(time.Minute, "all others are sent", func() bool { return s.sink.count() == 20 })
		time.Sleep(10 * time.Minute)
		for _, m := range s.sink.taken {
			if m.Sequence <= 40 {
				t.Errorf("message %d of %s was sent, which is forged or stands behind one that is", m.Sequence, m.Key)
			}
		}
		told := s.logs.FilterLevelExact(zap.WarnLevel).All()
		if n := len(told); n == 0 || n > 3 || !strings.Contains(fmt.Sprint(told[0].ContextMap()), "audit verify") {
			t.Errorf("%d warnings: %v", n, told)
		}
	})
}
