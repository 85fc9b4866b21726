package notify_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// TestStories plays the files of testdata/stories, whose README.md has the commands. With -update their outputs are written anew.
func TestStories(t *testing.T) {
	golden.Stories(t, "testdata/stories", func(t *testing.T, file string) {
		play(t, nil, func(w *world) {
			s := &story{world: w, clock: &testkit.Clock{}, portals: &portals{}}
			w.options.Clock, w.options.Destinations, w.options.Learner = s.clock, s.portals.read, w.Learner
			golden.Story(w.t, file, s.play)
		})
	})
}

// story is a world in which a file of testdata/stories is played.
type story struct {
	*world
	clock   *testkit.Clock // of the gatherers
	portals *portals
	taught  int
	wake    func() // has the newest of those who gather look
}

type arguments = golden.Arguments

func (s *story) play(command string) string {
	return golden.Play(command, map[string]func(*arguments) (string, error){
		"teams": s.employ, "retention": s.retain, "gather": s.gathers, "end": s.stop, "die": s.dies, "fail": s.fails, "wait": golden.Wait, "clock": s.leap,
		"told": s.told, "digests": s.digests, "settle": s.settle, "assign": s.assign, "teach": s.teach, "portal": s.portal, "find": s.finds, "learn": s.learn,
	})
}

// employ has these teams, with the lines of each, and no others.
func (s *story) employ(a *arguments) (string, error) {
	s.reload(teams(s.t, a.Named))
	return "", nil
}

func (s *story) retain(a *arguments) (_ string, err error) {
	s.options.Retention, err = time.ParseDuration(a.First)
	return "", err
}

func (s *story) gathers(a *arguments) (string, error) {
	if a.Words["mailless"] {
		s.options.SMTP = nil
	}
	g, _ := s.gather()
	s.wake = g.Wake
	return "", nil
}

// stop ends whoever gathers longest.
func (s *story) stop(*arguments) (string, error) {
	s.ends[0]()
	s.ends = s.ends[1:]
	return "", nil
}

// fails has a claim fail, or so many; * in the id is the number of each. Each fails once, or as often as tries says.
func (s *story) fails(a *arguments) (string, error) {
	for i := range max(1, a.Number("claims")) {
		for n := range max(1, a.Number("tries")) {
			s.Fail(decision.DefaultPolicy, strings.Replace(a.First, "*", fmt.Sprint(i), 1), a.Named["error"], int(a.Number("count")+n))
		}
	}
	return "", nil
}

// dies gives up so many claims; with every, as many again and again, of which those who gather hear at once.
func (s *story) dies(a *arguments) (string, error) {
	n, err := strconv.Atoi(a.First)
	var deadline time.Time
	if due := a.Named["due"]; due != "" {
		var in time.Duration
		in, err = time.ParseDuration(due)
		deadline = time.Now().Add(in)
	}
	every, _ := time.ParseDuration(a.Named["every"])
	for range max(1, a.Number("times")) {
		if s.dieBefore(n, a.Named["error"], deadline, a.Named["worth"]); every > 0 {
			s.wake()
			golden.Pass(every)
		}
	}
	return "", err
}

// leap has the clocks of the gatherers go forward or back.
func (s *story) leap(a *arguments) (string, error) {
	d, err := time.ParseDuration(a.First)
	s.clock.Advance(d)
	return "", err
}

// take has receivers but one take what waits, and tells what that is.
func (s *story) take(but string) (told []string) {
	for _, m := range s.Memory.Outbox() {
		if m.Queue != deadletter.NoticeQueue || m.Key == but {
			continue
		}
		testkit.Must(s.t, s.Journal.Published(s.t.Context(), []int64{m.Sequence}))
		var n struct{ Data map[string]any }
		var is notify.Notice
		testkit.Must(s.t, json.Unmarshal([]byte(m.Body), &n))
		testkit.Must(s.t, json.Unmarshal([]byte(m.Body), &is))
		delete(n.Data, "kpis")
		maps.DeleteFunc(n.Data, func(_ string, v any) bool { return v == nil })
		text, err := json.Marshal(n.Data)
		testkit.Must(s.t, err)
		line := fmt.Sprintf("%s %s %s", m.Key, m.Type, text)
		policies := map[string]bool{}
		for _, k := range is.Data.KPIs {
			if policies[k.Policy] = true; k.Value != nil {
				line += fmt.Sprintf(", %s of %s is %g in %g h", k.Name, k.Policy, *k.Value, k.Window)
			}
		}
		if len(policies) > 0 {
			line += fmt.Sprintf(", figures of %d policies", len(policies))
		}
		told = append(told, line+"\n")
	}
	slices.Sort(told)
	return told
}

// told shows what waits for receivers, who take it.
func (s *story) told(a *arguments) (string, error) {
	if all := s.take(a.Named["but"]); len(all) > 0 {
		return strings.Join(all, ""), nil
	}
	return "nothing\n", nil
}

// digests shows the next ones, and the hour when they come; what else comes meanwhile is taken. It lasts until the next hour, as
// who gathers looks at times that are drawn.
func (s *story) digests(a *arguments) (text string, err error) {
	n, err := strconv.Atoi(a.First)
	for until := time.Now().Add(time.Duration(n) * 25 * time.Hour); n > 0 && time.Now().Before(until); golden.Pass(time.Minute) {
		for _, line := range s.take("") {
			if strings.Contains(line, notify.TypeDigest) {
				text, n = text+time.Now().Format("Mon 15h ")+line, n-1
			}
		}
	}
	golden.Pass(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour)))
	return text, err
}

// letter is a dead letter of ti, by its age.
func (s *story) letter(a *arguments) deadletter.Item {
	n, _ := strconv.Atoi(a.First)
	items, _, err := s.Memory.DeadLetterPage(s.t.Context(), journal.DeadLetterFilter{Team: "ti", Sort: deadletter.ByAge}, "", n)
	testkit.Must(s.t, err)
	return items[n-1]
}

func (s *story) settle(a *arguments) (string, error) {
	of := s.letter(a)
	_, err := s.Journal.Review(s.t.Context(), &journal.Review{Subject: of.Subject, DeadLetter: of.ID, Discard: true, Reason: "x", By: "ana"})
	return "", err
}

func (s *story) assign(a *arguments) (string, error) {
	until, err := time.ParseDuration(a.Named["until"])
	testkit.Must(s.t, err)
	_, err = s.DeadLetters.Assign(s.t.Context(), s.letter(a).ID, journal.Assignment{Assignee: a.Named["to"], FollowUpAt: time.Now().Add(until)})
	return "", err
}

// teach has an admin teach a cause, which a claim fails of then.
func (s *story) teach(a *arguments) (string, error) {
	s.taught++
	of := s.Fail(decision.DefaultPolicy, fmt.Sprintf("CLM-1-%d", s.taught), a.Named["error"], 0)
	_, err := s.DeadLetters.Teach(s.t.Context(), of.Fingerprint, journal.Teaching{Class: decision.ErrorClassification(a.First),
		Team: decision.Team(a.Named["team"]), Reason: "x", By: "ana"})
	return "", err
}

// portal has unimed-sp be in a phase, of a new outage where it is said to be one, and those who look look.
func (s *story) portal(a *arguments) (string, error) {
	p := s.portals
	if p.err = nil; a.Words["unread"] {
		p.err = journal.ErrUnavailable
		return "", nil
	}
	if a.Words["anew"] {
		p.began = s.clock.Now().Add(123456 * time.Nanosecond)
	}
	p.ordered = a.Words["ordered"]
	p.enter(destination.Phase(a.First), p.began)
	return "", nil
}

// finds looks for new causes, as each replica does every minute.
func (s *story) finds(*arguments) (string, error) {
	_, err := statistics.FindNew(s.t.Context(), s.Memory, time.Now())
	return "", err
}

func (s *story) learn(*arguments) (string, error) {
	return "", s.Learner.Refresh(s.t.Context(), time.Now())
}

// portals are the destinations that a Gatherer is told of.
type portals struct {
	mu  sync.Mutex
	all []gate.Destination
	err error
	// began is when the outage did.
	began time.Time
	// ordered tells that what they are in is a person's order.
	ordered bool
}

func (p *portals) read() ([]gate.Destination, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]gate.Destination(nil), p.all...), p.err
}

// enter has unimed-sp be in a phase of the outage that began at since, and those who look look.
func (p *portals) enter(phase destination.Phase, since time.Time) {
	p.mu.Lock()
	outage := destination.Outage{Since: since, Cause: destination.CauseFailures, Failed: 11, Admitted: 12, Held: 210}
	p.all = []gate.Destination{{Name: "tiss", State: destination.New(since)}, {
		Name: "unimed-sp", Held: 210, Unrecorded: p.ordered, Deadline: since.Add(9 * time.Hour),
		State: destination.State{Phase: phase, Since: time.Now(), NextTest: since.Add(time.Minute), Outage: outage},
	}}
	p.mu.Unlock()
	golden.Pass(10 * time.Second)
}
