package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// people decide on dead letters, sometimes two on the same, order portals about, and plan bulk runs.
func (s *sim) people() {
	s.in(10*time.Minute, s.people)
	up := s.up()
	if len(up) == 0 {
		return
	}
	dice := s.draw("people")
	for n := range 1 + dice.IntN(2) {
		r, orders, how, to := up[dice.IntN(12)%len(up)], dice.IntN(4) == 0, dice.IntN(12), dice.IntN(len(s.portals))
		label := fmt.Sprint("person ", n, " #", s.nth["people"])
		if !s.calm && !s.may(label) {
			continue
		}
		s.running.Go(func() {
			if s.port(fmt.Sprint("person ", n)); orders && !s.calm {
				r.order(fmt.Sprintf("portal-%d", to), how%3)
				return
			}
			r.decide(label, how)
		})
	}
}

func (r *replica) order(name string, what int) {
	c := journal.DestinationCommand{Verb: journal.SendCanary, Reason: typed, By: "ana"}
	switch what {
	case 0:
		c.Verb, c.Until = journal.HoldClaims, r.Now().Add(10*time.Minute)
	case 1:
		c.Verb, c.PerMinute = journal.ReleaseAt, 10
	}
	r.say("somebody orders %s: %s", name, c.Verb)
	_ = r.gates.Command(r.life, name, c)
}

// typed is a person's reason, with what should not be in it.
const typed = "simulated, " + secret

// decide decides on one dead letter, or on all of them by a bulk run, or steers one. Nobody is told to have been faster
// than himself.
func (r *replica) decide(who string, how int) {
	if n := len(r.runs); how == 1 && n > 0 {
		verb := []journal.BulkVerb{journal.BulkPause, journal.BulkResume, journal.BulkCancel}[r.draw("steer").IntN(3)]
		_, err := r.letters.Steer(r.life, r.runs[n-1], verb, who)
		r.say("somebody steers the bulk run: %s, %v", verb, err)
		return
	}
	items, _, err := r.letters.List(r.life, journal.DeadLetterFilter{}, "", 20)
	if err != nil || len(items) == 0 {
		return
	}
	if how == 0 {
		c := deadletter.BulkCommand{Action: journal.BulkRetry, Reason: typed, By: who, Force: true, PerMinute: 60}
		if p, err := r.letters.Plan(r.life, c); err == nil {
			run, _, err := r.letters.Start(r.life, c, p.Token)
			if err == nil {
				r.runs = append(r.runs, run.ID)
			}
			r.say("somebody starts a bulk run of %d: %v", len(items), err)
		}
		return
	}
	d := items[how%len(items)]
	c := deadletter.Command{ID: d.ID, Reason: typed, By: who, Force: how%2 == 0, Fresh: how%4 == 0}
	if r.calm || how < 5 {
		_, err = r.letters.Discard(r.life, c)
	} else {
		_, err = r.letters.Retry(r.life, c)
	}
	r.say("somebody decides on %s: %v", d.Subject.ID, err)
	if e, ok := errors.AsType[*journal.DecidedError](err); ok && e.By == who {
		r.fail("%s, who decided on %s, is told: %v", who, d.Subject.ID, err)
	}
}

// checkReview: a dead letter is decided on once, unless it was opened again.
func (s *sim) checkReview(e *journal.Entry) {
	var b struct{ DeadLetterID, State, Decision, BulkRun string }
	if err := json.Unmarshal([]byte(e.Body), &b); err != nil {
		s.fail("record %d: %v", e.Record, err)
	}
	if e.Kind == journal.DeliveryEntry {
		if b.State == string(journal.DeadLetterOpen) {
			if s.decided[b.DeadLetterID] != "" {
				s.trail.letter("reopen", b.DeadLetterID)
			}
			if p := s.went[b.DeadLetterID]; p != nil && p.ended == "" {
				s.fail("the dead letter %s of %s is open again, and its process went on", b.DeadLetterID, e.Subject.ID)
			}
			delete(s.decided, b.DeadLetterID)
		}
		return
	}
	if s.decided[b.DeadLetterID] != "" {
		s.fail("the dead letter %s of %s is decided on twice", b.DeadLetterID, e.Subject.ID)
	}
	if b.BulkRun != "" {
		state := journal.BulkState(s.steered[b.BulkRun])
		if s.paced("bulk run "+b.BulkRun, most); state == journal.BulkPaused || state.Ended() {
			s.fail("bulk run %s decides on %s and is %s", b.BulkRun, e.Subject.ID, state)
		}
	}
	s.decided[b.DeadLetterID] = b.Decision
	s.trail.letter("review", b.DeadLetterID)
}
