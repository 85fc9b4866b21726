package sim

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// startRun has a bulk run decide on all dead letters, which is mostly paused or ended soon, and goes on later.
func (r *replica) startRun(who string, letters int) {
	dice := r.draw("run")
	c := deadletter.BulkCommand{Action: journal.BulkRetry, Reason: typed, By: who, PerMinute: []int64{1, 6, 60, 600}[dice.IntN(4)]}
	switch what := dice.IntN(12); {
	case what == 0:
		c.Action = journal.BulkDiscard
	case what > 1:
		c.Force, c.Fresh = true, what == 2
	}
	if c.Action == journal.BulkRetry && dice.IntN(2) == 0 {
		c.When = deadletter.Now
	}
	if dice.IntN(3) == 0 {
		c.Filter.Team = []decision.Team{team, "cadastro"}[dice.IntN(2)]
	}
	if dice.IntN(4) == 0 { // those of before
		c.Filter.Until = r.Now().Add(-time.Duration(dice.IntN(60)) * time.Minute)
	}
	p, err := r.letters.Plan(as(r.life, who), c)
	if err != nil {
		return
	}
	r.port("start " + who)
	run, _, err := r.letters.Start(as(r.life, who), c, p.Token)
	r.say("somebody starts a bulk run of %d, %d a minute: %v", letters, c.PerMinute, r.told(who, err))
	if err != nil {
		return
	}
	r.mu.Lock()
	r.runs = append(r.runs, run.ID)
	r.mu.Unlock()
	all := time.Duration(letters) * time.Minute / time.Duration(c.PerMinute)
	what, soon := dice.IntN(6), time.Duration(dice.Int64N(int64(all)+1)).Truncate(time.Millisecond)
	if dice.IntN(4) == 0 { // while its dead letters are gathered
		soon = 0
	}
	r.Rest(r.life, soon)
	r.port("steer " + who)
	r.steer(run.ID, what, who)
	r.Rest(r.life, min(5*soon, []time.Duration{5 * time.Second, 5 * time.Minute}[dice.IntN(2)]))
	r.port("resume " + who)
	r.steer(run.ID, 1, who)
}

// steer pauses, resumes or, seldom, ends a bulk run.
func (r *replica) steer(run string, what int, who string) {
	verb := []journal.BulkVerb{journal.BulkPause, journal.BulkResume, journal.BulkCancel, journal.BulkPause, journal.BulkPause, journal.BulkPause}[what]
	_, err := r.letters.Steer(as(r.life, who), run, verb, who)
	r.say("somebody steers the bulk run: %s, %v", verb, r.told(who, err))
}

// steering is what a bulk run was told to be last, and when.
type steering struct {
	state journal.BulkState
	at    time.Time
}

// slowRuns: a bulk run is through when its pace says so, where all is calm.
func (s *sim) slowRuns() {
	for _, run := range s.onTheWay() {
		all := time.Duration(run.Total) * time.Minute / time.Duration(run.PerMinute)
		if ago := min(time.Since(s.calmSince), time.Since(s.steered[run.ID].at)); ago > all+2*lateness {
			s.fail("a bulk run of %d, %d a minute, is not through after %s", run.Total, run.PerMinute, ago)
		}
	}
}

// schedule is how far ahead of its pace a bulk run is: as of when, by all clocks and by the one of who decided last.
type schedule struct {
	ahead   time.Duration
	as, at  time.Time
	burst   int64     // of them in one commit
	against time.Time // since when it decides though it shows that it does not
}

// mostAhead is how long a decision may be on its way.
const mostAhead = 30 * time.Second

// onSchedule: a bulk run makes nothing up that it missed, whoever leads it, but a second's worth, and what was late.
func (s *sim) onSchedule(run *journal.BulkRun, at time.Time) {
	interval, b := time.Minute/time.Duration(run.PerMinute), s.decides[run.ID]
	b.ahead = max(b.ahead-max(time.Since(b.as), at.Sub(b.at)), 0)
	if b.as.IsZero() || s.wasStolen(deadletter.BulkLease) || time.Since(s.ranSince) < time.Minute { // who begins does not know what is on its way
		b.ahead = 0
	}
	if b.ahead > min(interval, mostAhead)+2*time.Second {
		s.fail("a bulk run of %d a minute is %s ahead", run.PerMinute, b.ahead)
	}
	if at, rests := s.resting[run.ID]; !rests || time.Since(at) < lateness || s.isSlow() || s.wasStolen(deadletter.BulkLease) {
		b.against = time.Time{}
	} else if b.against.IsZero() {
		b.against = time.Now()
	} else if time.Since(b.against) > mostAhead {
		s.fail("a bulk run decides, and shows since %s why it does not", at.Sub(s.began))
	}
	if time.Now().Before(s.away) && time.Since(s.gone) > mostAhead {
		s.fail("a bulk run decides, and the engine is away since %s", s.gone.Sub(s.began))
	}
	if idle := min(time.Since(b.as), time.Since(s.ranSince), time.Since(s.away), time.Since(s.storeAway), time.Since(s.forgot),
		time.Since(s.unread), time.Since(s.steered[run.ID].at)); !b.as.IsZero() && idle > 3*interval+2*mostAhead/3 && !s.isSlow() {
		s.fail("a bulk run of %d a minute stood still for %s", run.PerMinute, idle)
	}
	if by := s.steered[run.ID]; !b.as.IsZero() && by.at.After(b.as) && time.Since(b.as) < interval-s.apart()-15*time.Second && time.Since(s.jumped) > interval && !s.isSlow() && !s.wasStolen(deadletter.BulkLease) {
		s.fail("a bulk run of %d a minute goes on %s after its last decision", run.PerMinute, time.Since(b.as))
	}
	if !at.Equal(b.at) {
		b.burst = 0
	}
	most := 2 * max(run.PerMinute/60, 1)
	if time.Since(s.forgot) < mostAhead { // one was on its way as the writing of others took long
		most += most / 2
	}
	if b.burst >= most && !s.wasStolen(deadletter.BulkLease) {
		s.fail("a bulk run of %d a minute decides %d at once", run.PerMinute, b.burst+1)
	}
	s.decides[run.ID] = schedule{b.ahead + interval, time.Now(), at, b.burst + 1, b.against}
	s.leave("run", 10)
}

// carrier is the replica that carries out bulk runs; nil where none does.
func (s *sim) carrier() *replica {
	i := slices.IndexFunc(s.replicas, func(r *replica) bool {
		return r.life.Err() == nil && strings.HasPrefix(s.holders[deadletter.BulkLease], r.name)
	})
	if i < 0 {
		return nil
	}
	return s.replicas[i]
}

// beside has a person decide on what a bulk run decides on next, at that instant, and both wait for what is written.
func (s *sim) beside(run *journal.BulkRun) {
	who := "person beside a run"
	if s.steady || !s.sometimes(who, 1, 8) {
		return
	}
	who += s.another()
	at := time.Minute / time.Duration(run.PerMinute)
	s.in(at-50*time.Millisecond, func() {
		if r := s.carrier(); r != nil {
			r.slow = time.Now().Add(5 * time.Second)
			s.running.Go(func() { r.port(who); r.order(s.portalNames()[0], 3) })
		}
	})
	s.in(at, func() {
		next, err := s.memory.BulkItems(context.Background(), run.ID, journal.BulkPlanned, 0, 1)
		r := s.carrier()
		if err != nil || len(next) == 0 || r == nil {
			return
		}
		s.running.Go(func() {
			r.port(who)
			_, err := r.letters.Discard(as(r.life, who), deadletter.Command{ID: next[0].DeadLetter, Reason: typed, By: who})
			r.say("somebody discards %s beside a run: %v", next[0].Subject.ID, r.told(who, err))
		})
	})
}

// onTheWay are the bulk runs that nobody has paused and that have not ended.
func (s *sim) onTheWay() []journal.BulkRun {
	runs, _ := s.memory.ActiveBulkRuns(context.Background())
	return slices.DeleteFunc(runs, func(r journal.BulkRun) bool { return r.State == journal.BulkPaused })
}

// checkBulk notes what a bulk run does.
func (s *sim) checkBulk(r *journal.Record) {
	var b struct{ BulkRun, State, Verb, Hold string }
	if json.Unmarshal([]byte(r.Entry.Body), &b) != nil {
		return
	}
	if b.Verb == "hold" || b.State != "" {
		delete(s.resting, b.BulkRun)
	}
	if b.Hold != "" {
		s.resting[b.BulkRun] = time.Now()
		if r := s.carrier(); r != nil && s.sometimes("killed in a held run", 1, 4) { // the next one goes on
			s.in(time.Second, r.die)
		}
	}
	if b.State != "" {
		s.steered[b.BulkRun] = steering{journal.BulkState(b.State), time.Now()}
	}
}
