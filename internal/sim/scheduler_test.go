package sim

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sort"
	"sync"
	"testing/synctest"
	"time"
)

// scheduler runs what the product does one call of a port at a time. Each goroutine that calls a port is parked there;
// once all are, the seed says who goes on. Where nobody is parked, time passes up to the next event.
type scheduler struct {
	plan
	began  time.Time
	agenda []event        // in the order of time
	nth    map[string]int // how often each label was drawn for in this second
	second time.Duration  // since began, in whole seconds
	check  func()         // after each step

	instant time.Time
	steps   int      // at this instant
	recent  []string // the last labels

	mu     sync.Mutex
	parked []*call
	wake   chan struct{}
	broken string // the format of failed
	failed string // the first invariant that was broken
	story  []string
	trace  uint64
	ended  bool
}

// mostSteps at one instant: what takes more goes round in a circle.
const mostSteps = 20_000

// call is a goroutine that is parked at a port; the least turn goes on first.
type call struct {
	label string
	turn  uint64
	goOn  chan struct{}
}

// event is what happens at an instant of the agenda.
type event struct {
	at time.Time
	do func()
}

// in has something happen after that long. An odd number of nanoseconds keeps it apart from the product's own timers.
func (s *scheduler) in(d time.Duration, do func()) {
	at := time.Now().Add(d.Truncate(time.Microsecond) + 7*time.Nanosecond)
	after := sort.Search(len(s.agenda), func(i int) bool { return s.agenda[i].at.After(at) })
	s.agenda = slices.Insert(s.agenda, after, event{at, do})
}

// draw returns the dice of a label: what is drawn for one changes neither with what is drawn for others nor with what was
// before this second.
func (s *scheduler) draw(label string) *rand.Rand {
	s.mu.Lock()
	defer s.mu.Unlock()
	return rand.New(rand.NewPCG(s.seed, s.hash(s.here(label))))
}

// lucky returns the label of what depends on luck, too.
func (s *scheduler) lucky(label string) string { return fmt.Sprint(s.luck, " of ", label) }

// hash is what the seed makes of a text.
func (s *scheduler) hash(text string) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, s.seed, text)
	return h.Sum64()
}

// pick draws one of some by their names: the same one where others were taken away.
func pick[T any](s *scheduler, label string, of []T, name func(T) string) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	label = s.here(label)
	return slices.MinFunc(of, func(a, b T) int { return cmp.Compare(s.hash(label+name(a)), s.hash(label+name(b))) })
}

// here returns a label with the second that it is, and how often it was asked for in that. The caller holds s.mu.
func (s *scheduler) here(label string) string {
	if now := time.Since(s.began) / time.Second; now != s.second {
		clear(s.nth)
		s.second = now
	}
	s.nth[label]++
	return fmt.Sprintf("%s #%d.%d", label, s.second, s.nth[label])
}

// get and set are for what the product asks for without a port.
func get[T any](mu *sync.Mutex, of *T) T {
	mu.Lock()
	defer mu.Unlock()
	return *of
}

func set[T any](mu *sync.Mutex, of *T, to T) {
	mu.Lock()
	defer mu.Unlock()
	*of = to
}

// port parks the calling goroutine until its turn comes.
func (s *scheduler) port(label string) {
	s.mu.Lock()
	c := &call{label, s.hash(s.here(s.lucky(label))), make(chan struct{})}
	s.parked = append(s.parked, c)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	<-c.goOn
}

// next returns who goes on, nil where nobody is parked, and whether another is parked under the same label. It does not depend
// on what happened before, so that a world with less in it goes as the whole one did.
func (s *scheduler) next() (c *call, alike bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parked) == 0 {
		return nil, false
	}
	c = slices.MinFunc(s.parked, func(a, b *call) int { return cmp.Compare(a.turn, b.turn) })
	s.parked = slices.DeleteFunc(s.parked, func(p *call) bool { return p == c })
	return c, slices.ContainsFunc(s.parked, func(p *call) bool { return p.label == c.label })
}

// run plays until an instant, or until done or an invariant is broken.
func (s *scheduler) run(until time.Time, done func() bool) {
	for s.failed == "" && !done() && time.Now().Before(until) {
		s.step(until)
	}
}

func (s *scheduler) step(until time.Time) {
	synctest.Wait()
	if now := time.Now(); !now.Equal(s.instant) {
		s.instant, s.steps = now, 0
	}
	if s.steps++; s.steps > mostSteps {
		s.fail("time stands still: %v", s.recent)
		return
	}
	if c, alike := s.next(); c != nil {
		if alike {
			s.fail("two wait at %q, and which of them goes on the seed does not say", c.label)
		}
		s.recent = append(s.recent[max(len(s.recent)-20, 0):], c.label)
		close(c.goOn)
		synctest.Wait()
		s.check()
		return
	}
	if len(s.agenda) > 0 && !s.agenda[0].at.After(time.Now()) {
		next := s.agenda[0]
		s.agenda = s.agenda[1:]
		next.do()
		synctest.Wait()
		s.check()
		return
	}
	at := until
	if len(s.agenda) > 0 && s.agenda[0].at.Before(at) {
		at = s.agenda[0].at
	}
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-s.wake:
	case <-timer.C:
	}
}

// drain lets everybody go on until all have ended.
func (s *scheduler) drain(all *sync.WaitGroup) {
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	for {
		synctest.Wait()
		if c, _ := s.next(); c != nil {
			close(c.goOn)
			continue
		}
		select {
		case <-ended:
			return
		case <-s.wake:
		case <-time.After(time.Minute):
		}
	}
}

// say adds a line to the story. The trace is the hash of them all.
func (s *scheduler) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Since(s.began).Truncate(time.Millisecond)
	line := fmt.Sprintf("%12s  ", at) + fmt.Sprintf(format, args...)
	h := fnv.New64a()
	fmt.Fprint(h, s.trace, line)
	s.trace = h.Sum64()
	s.story = append(s.story, line)
}

// another returns what tells one of a kind from the others, in labels.
func (s *scheduler) another() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.here("")
}

// fail tells that an invariant is broken; the first counts.
func (s *scheduler) fail(format string, args ...any) {
	if s.failed == "" && !s.ended {
		s.broken, s.failed = format, fmt.Sprintf(format, args...)
		s.say("BROKEN: %s", s.failed)
	}
}
