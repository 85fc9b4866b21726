package outbox_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/outbox"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// TestStories plays testdata/relay.txt and lease.txt, whose README.md has the commands.
func TestStories(t *testing.T) {
	for _, file := range []string{"testdata/relay.txt", "testdata/lease.txt"} {
		t.Run(file, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s *stage
				golden.Story(t, file, func(command string) string {
					if rest, is := strings.CutPrefix(command, "new"); is {
						s.end()
						s = newStage(t, strings.Contains(rest, "patient"))
						return ""
					}
					return s.play(command)
				})
				s.end()
			})
		})
	}
}

func (s *stage) play(command string) string {
	return golden.Play(command, map[string]func(*golden.Arguments) (string, error){
		"fill": s.fills, "relay": s.begins, "stop": s.stops, "kill": s.kills, "wake": s.wakes, "sink": s.sinkIs, "store": s.storeIs,
		"wait": golden.Wait, "within": s.within, "lives": s.lives, "erase": s.erase, "shows": s.shows, "tries": s.triesOf, "logged": s.logged,
	})
}

// keys returns the keys that a word names: so many, or those between commas.
func keys(word string) []string {
	n, err := strconv.Atoi(word)
	if err != nil {
		return strings.Split(word, ",")
	}
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("CLM-%d-1", i)
	}
	return all
}

// fill puts messages into the outbox, with the keys in turn.
func (s *stage) fill(n int, keys []string) {
	c := &journal.Changes{}
	for i := range n {
		s.filled++
		c.Outbox = append(c.Outbox, journal.Message{ID: fmt.Sprint("id-", s.filled), Queue: queue, Key: keys[i%len(keys)],
			Type: "RetryScheduled", Body: "{}", At: time.Now()})
	}
	testkit.Must(s.t, s.Transact(context.Background(), nil, func(head journal.Head, _ []journal.History) *journal.Changes {
		c.Seal(head, time.Now())
		return c
	}))
}

func (s *stage) fills(a *golden.Arguments) (string, error) {
	n, err := strconv.Atoi(a.First)
	s.fill(n, keys(a.Named["keys"]))
	return "", err
}

func (s *stage) begins(a *golden.Arguments) (string, error) {
	r := &running{stage: s, holder: a.First, done: make(chan struct{})}
	r.Relay = outbox.New(queue, r.holder, s, s.letGo, r, s.log)
	if s.patience.Message > 0 {
		r.Patience = s.patience
	}
	stop, halt := context.WithCancel(context.Background())
	killed, kill := context.WithCancel(context.Background())
	r.halt, r.kill = halt, kill
	go func() { defer close(r.done); r.Run(stop, killed) }()
	s.relays[r.holder] = r
	return "", nil
}

// over ends a relay, and tells how long that took if it is longer than within.
func (s *stage) over(a *golden.Arguments, end func(*running)) (string, error) {
	within, _ := time.ParseDuration(a.Named["within"])
	began, r := time.Now(), s.relays[a.First]
	end(r)
	<-r.done
	if took := time.Since(began); took > within {
		return fmt.Sprintf("after %s\n", took), nil
	}
	return "", nil
}

func (s *stage) stops(a *golden.Arguments) (string, error) {
	return s.over(a, func(r *running) { r.halt() })
}

func (s *stage) kills(a *golden.Arguments) (string, error) {
	return s.over(a, func(r *running) { r.kill() })
}

// wakes wakes a relay so often, a millisecond apart.
func (s *stage) wakes(a *golden.Arguments) (string, error) {
	for range a.Number("times") {
		s.relays[a.First].Wake()
		time.Sleep(time.Millisecond)
	}
	return "", nil
}

func (s *stage) sinkIs(a *golden.Arguments) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sink = *a
	return "", nil
}

func (s *stage) storeIs(a *golden.Arguments) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store = *a
	s.SetDown(a.Words["down"])
	return "", nil
}

// sent is how many messages were taken, and left how many are in the outbox.
func (s *stage) sent() (sent, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, err := s.Backlog(context.Background())
	testkit.Must(s.t, err)
	return len(s.taken), int(waiting[queue])
}

// within waits until so many are left, or were sent, or more than now; it says so if that takes longer, or less than
// least.
func (s *stage) within(a *golden.Arguments) (string, error) {
	long, err := time.ParseDuration(a.First)
	testkit.Must(s.t, err)
	least, _ := time.ParseDuration(a.Named["least"])
	began, now := time.Now(), 0
	now, _ = s.sent()
	for {
		sent, left := s.sent()
		if n, asked := a.Named["left"]; asked && fmt.Sprint(left) == n || a.Named["sent"] == fmt.Sprint(sent) || a.Words["more"] && sent > now {
			break
		}
		if time.Since(began) > long {
			return fmt.Sprintf("not yet: %d are sent, %d left\n", sent, left), nil
		}
		time.Sleep(time.Millisecond)
	}
	if took := time.Since(began); took < least {
		return fmt.Sprintf("after %s already\n", took), nil
	}
	return "", nil
}

// lives has a message come each minute, for so many minutes, of which the relay is told, and says which took longer
// than two seconds.
func (s *stage) lives(a *golden.Arguments) (said string, _ error) {
	for range a.Number("minutes") {
		_, before := s.sent()
		s.fill(1, keys(a.Named["keys"]))
		s.relays[a.First].Wake()
		late, _ := s.within(&golden.Arguments{First: "2s", Named: map[string]string{"left": fmt.Sprint(before)}})
		said += late
		time.Sleep(time.Minute)
	}
	return said, nil
}

// erase takes the messages of a key out of the outbox.
func (s *stage) erase(a *golden.Arguments) (string, error) {
	var gone []int64
	for _, m := range s.Outbox() {
		if m.Key == a.First {
			gone = append(gone, m.Sequence)
		}
	}
	return "", s.letGo(s.t.Context(), gone)
}

// shows tells what was sent, in which order where a few keys are named, and by whom; and how often the outbox and the
// sink were asked if that is more than it may.
func (s *stage) shows(a *golden.Arguments) (string, error) {
	sent, left := s.sent()
	s.mu.Lock()
	defer s.mu.Unlock()
	said := ""
	highest, times, tries := map[string]int64{}, map[int64]int{}, 0
	order := map[string][]int64{}
	for _, m := range s.taken {
		if times[m.Sequence]++; times[m.Sequence] == 1 && m.Sequence < highest[m.Key] {
			said += fmt.Sprintf("message %d of %s came after %d\n", m.Sequence, m.Key, highest[m.Key])
		}
		highest[m.Key] = max(highest[m.Key], m.Sequence)
		order[m.Key] = append(order[m.Key], m.Sequence)
	}
	for _, n := range s.tries {
		tries += n
	}
	said = fmt.Sprintf("%d sent, %d left, the sink was %v\n", len(times), left, s.states) + said
	if twice := sent - len(times); twice > int(a.Number("twice")) {
		said += fmt.Sprintf("%d came twice\n", twice)
	}
	for key := range strings.SplitSeq(a.Named["keys"], ",") {
		if key != "" {
			said += fmt.Sprintf("%s: %v\n", key, order[key])
		}
	}
	for what, n := range map[string]int{"reads": s.reads, "tries": tries} {
		if a.Named[what] != "" && n > int(a.Number(what)) {
			said += fmt.Sprintf("%d %s\n", n, what)
		}
	}
	if a.Words["senders"] {
		said += fmt.Sprintln("by", slices.Sorted(maps.Keys(s.holders)))
	}
	if a.Words["together"] {
		said += fmt.Sprintln("on their way at once:", s.most)
	}
	return said, nil
}

// triesOf holds how often a key was tried, and how far apart from the number-th try on, against bounds.
func (s *stage) triesOf(a *golden.Arguments) (said string, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.tried[a.First]
	if n := int64(len(all)); n < a.Number("least") || n > a.Number("most") {
		said = fmt.Sprintf("%d tries\n", n)
	}
	apart, _ := time.ParseDuration(a.Named["apart"])
	longest, _ := time.ParseDuration(a.Named["longest"])
	for i := 1; i < len(all); i++ {
		if gap := all[i].Sub(all[i-1]); i >= int(a.Number("from")) && gap < apart || gap > longest {
			said += fmt.Sprintf("try %d comes %s after the one before\n", i+1, gap)
		}
	}
	return said, nil
}

// logged tells the lines of the log: a message so many times.
func (s *stage) logged(*golden.Arguments) (said string, _ error) {
	lines := map[string]int{}
	for _, line := range s.logs.TakeAll() {
		text := fmt.Sprintf("%s %s", line.Level, line.Message)
		if err := line.ContextMap()["error"]; err != nil {
			text += fmt.Sprintf(": %v", err)
		}
		lines[text]++
	}
	for _, text := range slices.Sorted(maps.Keys(lines)) {
		said += fmt.Sprintf("%d times: %s\n", lines[text], text)
	}
	return said, nil
}
