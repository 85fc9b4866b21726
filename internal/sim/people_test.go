package sim

import (
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
		if label := fmt.Sprint("person ", n, " #", s.nth["people"]); !s.calm && !s.may(label) {
			continue
		}
		s.running.Go(func() {
			if s.port(fmt.Sprint("person ", n)); orders && !s.calm {
				r.order(fmt.Sprintf("portal-%d", to), how%3)
				return
			}
			r.decide(how)
		})
	}
}

func (r *replica) order(name string, what int) {
	c := journal.DestinationCommand{Verb: journal.SendCanary, Reason: "simulated", By: "ana"}
	switch what {
	case 0:
		c.Verb, c.Until = journal.HoldClaims, r.Now().Add(10*time.Minute)
	case 1:
		c.Verb, c.PerMinute = journal.ReleaseAt, 10
	}
	r.say("somebody orders %s: %s", name, c.Verb)
	_ = r.gates.Command(r.life, name, c)
}

// decide decides on one dead letter, or on all of them by a bulk run.
func (r *replica) decide(how int) {
	items, _, err := r.letters.List(r.life, journal.DeadLetterFilter{}, "", 20)
	if err != nil || len(items) == 0 {
		return
	}
	if how == 0 {
		c := deadletter.BulkCommand{Action: journal.BulkRetry, Reason: "simulated", By: "ana", Force: true, PerMinute: 60}
		if p, err := r.letters.Plan(r.life, c); err == nil {
			_, _, err = r.letters.Start(r.life, c, p.Token)
			r.say("somebody starts a bulk run of %d: %v", len(items), err)
		}
		return
	}
	d := items[how%len(items)]
	c := deadletter.Command{ID: d.ID, Reason: "simulated", By: "ana", Force: how%2 == 0, Fresh: how%4 == 0}
	if r.calm || how < 5 {
		_, err = r.letters.Discard(r.life, c)
	} else {
		_, err = r.letters.Retry(r.life, c)
	}
	r.say("somebody decides on %s: %v", d.Subject.ID, err)
}
