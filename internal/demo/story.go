package demo

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// story tells the screen what happens, claim by claim, and knows when every claim has ended. Safe for
// concurrent use.
type story struct {
	out  io.Writer
	json bool          // a JSON object a line, for programs
	told chan struct{} // a token for each thing told: the demo waits while things happen

	mu    sync.Mutex
	open  map[string]Kind // claims that have not ended
	ended map[Kind]map[string]int
	all   chan struct{} // closed when open is empty
}

func newStory(out io.Writer, asJSON bool, claims []Claim) *story {
	s := &story{out: out, json: asJSON, told: make(chan struct{}, 1), open: make(map[string]Kind), ended: make(map[Kind]map[string]int), all: make(chan struct{})}
	for i := range claims {
		s.open[claims[i].ID] = claims[i].Kind
	}
	return s
}

func (s *story) say(claim, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if s.json {
		s.line(map[string]any{"claim": claim, "says": strings.TrimSpace(text)})
	} else {
		fmt.Fprintf(s.out, "  %-18s %s\n", claim, text)
	}
	select {
	case s.told <- struct{}{}:
	default:
	}
}

func (s *story) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.json {
		s.line(map[string]any{"note": fmt.Sprintf(format, args...)})
		return
	}
	fmt.Fprintf(s.out, "\n"+format+"\n\n", args...)
}

func (s *story) line(content map[string]any) { fmt.Fprintln(s.out, jsonObject(content)) }

func (s *story) failed(c *Claim, submission int, text string) {
	s.say(c.ID, "submission %d: the portal says %q", submission, text)
}

func (s *story) accepted(c *Claim, submission int) {
	s.say(c.ID, "submission %d: accepted by the portal", submission)
	s.end(c.ID, fmt.Sprintf("accepted at submission %d", submission))
}

func (s *story) reviewed(c *Claim, v jobVariables) {
	what := "corrected and sent again"
	if c.Discard {
		what = "discarded"
	}
	s.say(c.ID, "review by %s (dead letter %.8s): %s", v.ResponsibleTeam, v.DeadLetterID, what)
}

func (s *story) discarded(c *Claim) { s.end(c.ID, "discarded by a person") }

// decided is told by the worker's own log.
func (s *story) decided(d logLine) {
	switch d.Event {
	case "retry_scheduled", "submission_retry_scheduled":
		rule := d.MatchedRule
		if rule == "" {
			rule = "no rule matched"
		}
		s.say(d.ClaimID, "  decided: %s, in %d min, at %s (%s)", d.Message, d.BackoffMinutes, d.NextRetryTime, rule)
	case "max_retries_exceeded", "permanent_error_detected":
		s.say(d.ClaimID, "  decided: %s; goes to %s", d.Message, d.ResponsibleTeam)
	}
}

// rejected is told by the worker's own log.
func (s *story) rejected(claim, message string) {
	s.say(claim, "  rejected: %s", message)
	s.end(claim, "incident, waiting for a correction")
}

func (s *story) end(claim, how string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, open := s.open[claim]
	if !open {
		return
	}
	delete(s.open, claim)
	if s.ended[kind] == nil {
		s.ended[kind] = make(map[string]int)
	}
	s.ended[kind][how]++
	if len(s.open) == 0 {
		close(s.all)
	}
}

// quiet waits until nothing has been told for a while, and tells whether claims are still open.
func (s *story) quiet(stop <-chan struct{}, pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	for {
		select {
		case <-s.told:
			t.Reset(pause)
		case <-t.C:
			return true
		case <-s.all:
			return false
		case <-stop:
			return false
		}
	}
}

// summarize tells what became of each kind, and which claims have not ended.
func (s *story) summarize(claims int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.json {
		s.line(map[string]any{"claims": claims, "ended": s.ended, "open": s.open})
		return
	}
	fmt.Fprintf(s.out, "\nWhat became of the %d claims:\n\n", claims)
	for _, kind := range []Kind{Accepted, Transient, Unknown, Permanent, Exhausted, Rejected} {
		for _, how := range sortedKeys(s.ended[kind]) {
			fmt.Fprintf(s.out, "  %2d %-10s %s\n", s.ended[kind][how], kind, how)
		}
	}
	for _, id := range sortedKeys(s.open) {
		fmt.Fprintf(s.out, "     %-10s %s has not ended\n", s.open[id], id)
	}
}

// waiting are the claims that have not ended, but for those of a kind that nobody here hears of.
func (s *story) waiting(but Kind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, kind := range s.open {
		if kind != but {
			n++
		}
	}
	return n
}
