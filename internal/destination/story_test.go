package destination

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/testkit/golden"
)

// TestStories plays testdata/*.txt, of which testdata/README.md says how to read and write them.
func TestStories(t *testing.T) {
	golden.Stories(t, "testdata", func(t *testing.T, file string) {
		s := &stage{fixture: newFixture(t, settings(60)), was: Up}
		golden.Story(t, file, func(command string) string {
			return golden.Play(command, map[string]func(*golden.Arguments) (string, error){
				"gate": s.begin, "arrive": s.arrives, "hold": s.hold, "admit": s.admit, "admitted": s.admitted, "fail": s.fails, "outcome": s.outcome, "probed": s.probed,
				"departed": s.departed, "lost": s.loses, "order": s.order, "until": s.passes, "queue": s.queue, "at": s.at,
			})
		})
	})
}

// stage plays stories on a gate.
type stage struct {
	*fixture
	told  int      // releases so far
	was   Phase    // when it was told last
	gone  int      // claims given up so far
	names []string // of claims, which are numbered from 1 on
}

// claim returns the number of a claim.
func (s *stage) claim(name string) int64 {
	if !slices.Contains(s.names, name) {
		s.names = append(s.names, name)
	}
	return int64(slices.Index(s.names, name) + 1)
}

// name returns the name of a claim.
func (s *stage) name(claim int64) string {
	if claim >= failedClaim {
		return fmt.Sprint("failed-", claim-failedClaim)
	}
	return s.names[claim-1]
}

func (s *stage) duration(a *golden.Arguments, name string) time.Duration {
	d, err := time.ParseDuration(a.Named[name])
	if err != nil && a.Named[name] != "" {
		s.t.Fatal(err)
	}
	return d
}

// begin begins with another gate, at 08:00.
func (s *stage) begin(a *golden.Arguments) (string, error) {
	most, err := strconv.ParseFloat(a.Named["pace"], 64)
	with := settings(most)
	with.Pace.Limited = !a.Words["free"]
	if hours := a.Named["hours"]; hours != "" {
		with.Calendar = closing(s.t, hours)
	}
	if a.Words["probed"] {
		with.Probe.URL = "https://portal.example/"
	}
	*s = stage{fixture: newFixture(s.t, with), was: Up}
	if a.Words["leads"] {
		s.gate.Lead(start)
	}
	return s.state(), err
}

// state tells how the gate is, and who went since it was told last.
func (s *stage) state() string {
	g, said := &s.gate, ""
	for _, r := range s.all[s.told:] {
		said += fmt.Sprintf("%s goes at %s as %s: %s\n", s.name(r.Claim), clock(r.At), r.Kind, r.Reason("unimed-sp", time.UTC))
	}
	for _, h := range s.lost[s.gone:] {
		said += s.name(h.Claim) + " is given up\n"
	}
	s.told, s.gone = len(s.all), len(s.lost)
	said += fmt.Sprintf("%s %s, %.6g a minute", clock(s.now), g.Phase, g.PerMinute(&g.Settings, s.now))
	if g.IsFree(s.now) {
		said += ", free"
	}
	if g.Phase == Ramping {
		said += fmt.Sprintf(", ramp %.6g", g.Flow.Ramp)
	}
	if n := g.Queue.Len(); n > 0 {
		said += fmt.Sprintf(", %d wait", n)
	}
	if o := g.Outage; !o.Since.IsZero() {
		said += fmt.Sprintf(", out %s to %s, %d tests", clock(o.Since), clock(o.Until), o.Tests)
		if o.Held > 0 {
			said += fmt.Sprintf(", %d of %d let go", o.Released, o.Held)
		}
	}
	if next := g.Next(s.now); !next.IsZero() {
		said += ", next " + clock(next)
	}
	if s.asked {
		said += ", asks its URL"
	}
	s.asked = false
	if g.Changed {
		said += ", to be recorded"
	}
	if g.Phase != s.was {
		said += " (was " + string(s.was) + ")"
	}
	g.Changed, s.was = false, g.Phase
	return said + "\n"
}

// clock shows an instant; the day only where it is not the first.
func clock(t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case t.Format(time.DateOnly) == start.Format(time.DateOnly):
		return t.Format("15:04:05.999")
	}
	return t.Format("2006-01-02T15:04:05.999")
}

// of returns the claims of a command: the named ones, or so many.
func of(a *golden.Arguments) (claims []string) {
	n, err := strconv.Atoi(a.First)
	if err != nil {
		return strings.Split(a.First, ",")
	}
	for i := range n {
		claims = append(claims, fmt.Sprintf("claim-%02d", i))
	}
	return claims
}

func (s *stage) arrives(a *golden.Arguments) (string, error) {
	for _, claim := range of(a) {
		s.arrive(s.claim(claim))
	}
	return s.state(), nil
}

// hold puts a claim into the queue; the gate does not act.
func (s *stage) hold(a *golden.Arguments) (string, error) {
	h := Held{Claim: s.claim(a.First), Since: s.now.Add(s.duration(a, "since")), RetriesLeft: 5, Cents: a.Number("cents")}
	if d := s.duration(a, "deadline"); d > 0 {
		h.Deadline = start.Add(d)
	}
	s.gate.Hold(h)
	return s.state(), nil
}

// admit asks so often whether a claim may go at once.
func (s *stage) admit(a *golden.Arguments) (string, error) {
	n := 0
	for range max(1, a.Number("times")) {
		if s.gate.Admit(s.now) {
			n++
		}
	}
	counted, _ := s.gate.Evidence.counts()
	return fmt.Sprintf("%d may, %d are counted\n%s", n, counted, s.state()), nil
}

// admitted tells of claims that other replicas let through.
func (s *stage) admitted(*golden.Arguments) (string, error) {
	s.apply(Admitted{})
	return s.state(), nil
}

// fails lets five claims fail, ten seconds apart.
func (s *stage) fails(*golden.Arguments) (string, error) {
	s.fail()
	return s.state(), nil
}

// outcome tells what came of claims.
func (s *stage) outcome(a *golden.Arguments) (string, error) {
	o := Outcome{Sent: s.now, RetryAfter: s.duration(a, "after")}
	if at := s.duration(a, "sent"); at > 0 {
		o.Sent = start.Add(at)
	}
	o.Tells = map[string]Tells{"failed": TellsFailed, "answered": TellsAnswered, "limited": TellsRateLimited}[a.Named["is"]]
	for range max(1, a.Number("times")) {
		for _, name := range of(a) {
			o.Claim = s.claim(name)
			if a.Words["admitted"] {
				s.gate.Apply(Admitted{1}, s.now)
			}
			s.apply(o)
		}
	}
	return s.state(), nil
}

func (s *stage) probed(a *golden.Arguments) (string, error) {
	for range max(1, a.Number("times")) {
		s.apply(Probed{OK: a.Words["ok"]})
	}
	return s.state(), nil
}

func (s *stage) departed(a *golden.Arguments) (string, error) {
	s.apply(Departed{s.claim(a.First)})
	return s.state(), nil
}

func (s *stage) loses(a *golden.Arguments) (string, error) {
	s.apply(Lost{s.claim(a.First)})
	return s.state(), nil
}

// order gives a person's order, for so long or at that pace.
func (s *stage) order(a *golden.Arguments) (string, error) {
	o := Order{Verb: Verb(a.First), By: "ana"}
	if !slices.Contains([]Verb{HoldClaims, SendCanary, ReleaseAt, TreatAsUp}, o.Verb) {
		return "", errors.New("no such order")
	}
	if d := s.duration(a, "for"); d > 0 {
		o.Until = s.now.Add(d)
	}
	o.PerMinute, _ = strconv.ParseFloat(a.Named["pace"], 64)
	s.apply(o)
	return s.state(), nil
}

// at moves the clock on; the gate does not act.
func (s *stage) at(a *golden.Arguments) (string, error) {
	d, err := time.ParseDuration(a.First)
	s.now = start.Add(d)
	return s.state(), err
}

// passes lets time pass until so long after 08:00, the gate acting whenever it wants to. With answering, what goes is answered within
// the second.
func (s *stage) passes(a *golden.Arguments) (string, error) {
	d, err := time.ParseDuration(a.First)
	for end := start.Add(d); a.Words["answering"] && s.now.Before(end); {
		for _, r := range s.until(s.now.Add(time.Second)) {
			s.apply(answered(r.Claim, r.At))
		}
	}
	s.until(start.Add(d))
	return s.state(), err
}

// queue tells who waits.
func (s *stage) queue(*golden.Arguments) (string, error) {
	since, deadline, cents := s.gate.Queue.Sum()
	said := fmt.Sprintf("since %s, deadline %s, worth %d, given up from %s:", clock(since), clock(deadline), cents, clock(s.gate.Queue.endsAt))
	for _, h := range s.gate.Queue.Next(2) {
		said += " " + s.name(h.Claim)
	}
	return said + "\n", nil
}
