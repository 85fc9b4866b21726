package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// checkSubject: one episode and one dead letter of a claim are open at most, the dead letter where the episode is dead;
// the dead letters that are shown are what the claim's records come to.
func (s *sim) checkSubject(of journal.Subject) {
	told, known, err := s.memory.Story(context.Background(), of)
	if err != nil || !known {
		return
	}
	var open []journal.State
	retries, letters, underWay, want := int64(0), 0, 0, s.tally.episodes[of.ID]
	for i := range told.Episodes {
		e := &told.Episodes[i]
		if e.State.Open() {
			open, retries = append(open, e.State), e.Retries
		}
		if i > 0 && e.Number != told.Episodes[i-1].Number+1 {
			s.fail("%s has an episode %d behind %d", of.ID, e.Number, told.Episodes[i-1].Number)
		}
		if want != nil && e.Number == want.number && (e.State != want.state || e.ProcessInstanceKey != want.process ||
			!e.OpenedAt.Equal(want.opened) || !e.FirstFailure.Equal(want.first)) {
			s.fail("%s has the episode %+v, and is to have %+v", of.ID, *e, *want)
		}
	}
	for i := range told.DeadLetters {
		d := &told.DeadLetters[i]
		if d.State == journal.DeadLetterOpen {
			if letters++; d.RetryCount != retries {
				s.fail("%s has made %d retries, and its dead letter %d", of.ID, retries, d.RetryCount)
			}
		}
		if d.State == journal.DeadLetterReprocessing {
			if a := s.last[of.ID]; a != nil && a.Revision == 0 && d.Delivery == journal.DeliveryPending && a.ProcessInstanceKey == d.ProcessInstanceKey && a.Record > s.letters[d.ID].Answer {
				s.fail("%s has failed again since it was sent again, and its decision is said to be on its way", of.ID)
			}
			if underWay++; d.Delivery == journal.DeliveryTaken && s.went[d.ID] == nil {
				s.fail("the decision on %s of %s is said to be taken, and no process did", d.ID, of.ID)
			}
		}
		shown, found, _ := s.memory.DeadLetter(context.Background(), d.ID)
		if is := fmt.Sprint(d.State, d.Delivery, d.RetryCount); found && fmt.Sprint(shown.State, shown.Delivery, shown.RetryCount) != is {
			s.fail("the dead letter %s of %s is shown as %s %s, and is %s", d.ID, of.ID, shown.State, shown.Delivery, is)
		}
		want := s.letters[d.ID]
		if d.State != journal.DeadLetterOpen {
			want.Assigned, want.Later = journal.Assignment{}, journal.Later{}
		}
		if lasting(d) != lasting(&want) && !strings.HasPrefix(of.ID, "erased-") {
			s.fail("the dead letter of %s is %s, and is to be %s", of.ID, lasting(d), lasting(&want))
		}
	}
	if dead := slices.Contains(open, journal.Dead); len(open) > 1 || letters+underWay > 1 || dead != (letters == 1) {
		s.fail("%s has the open episodes %v, %d open dead letters and %d that are sent again", of.ID, open, letters, underWay)
	}
}

// openLetters are the dead letters that wait for people.
func (s *sim) openLetters() []deadletter.Item {
	items, _, err := s.memory.DeadLetterPage(context.Background(), journal.DeadLetterFilter{Sort: deadletter.Newest}, "", 200)
	if err != nil {
		s.fail("dead letters cannot be read: %v", err)
	}
	return items
}

// letter is a dead letter as it is shown; its zero value where there is none.
func (s *sim) letter(id string) deadletter.Item {
	d, _, _ := s.memory.DeadLetter(context.Background(), id)
	return d
}

// lasting returns what of a dead letter is as it was born, or as people left it.
func lasting(d *journal.DeadLetter) string {
	l := *d
	l.State, l.ChangedAt, l.Delivery, l.Answer, l.Accepts = "", time.Time{}, "", 0, false
	l.ReviewJobKey, l.ReviewProcess = 0, 0
	text, _ := json.Marshal(l)
	return string(text)
}

// born notes a dead letter that is born with a record of a claim.
func (s *sim) born(claim string, record int64, at time.Time, d *journal.DeadLetter) {
	if d.Record, d.CreatedAt = record, at; len(d.Context) > 0 {
		d.Cents = worthOf(claim)
	}
	s.letters[d.ID] = *d
}

// givesUp notes the dead letter of a claim whose process gave it up by itself: it has what is known of the last failure, or of
// the dead letter that a person sent again since.
func (s *sim) givesUp(claim, id string, by decision.Team, e *journal.Entry) {
	d, is, last := journal.DeadLetter{ID: id, Outcome: decision.MaxRetriesExceeded, Reason: decision.ReasonReported, Team: team},
		s.tally.episodes[claim], int64(0)
	d.Episode, d.RetryCount, d.ProcessInstanceKey, d.FirstFailure, d.PossiblyAccepted = is.number, is.retries, is.process, is.first, is.doubt
	if a := s.last[claim]; a != nil {
		d.MaxRetries, d.Fingerprint, d.Deadline, d.Context, last = a.MaxRetries, a.Fingerprint, a.Deadline, a.Context, a.Record
	}
	told, _, _ := s.memory.Story(context.Background(), subjectOf(claim))
	for _, before := range told.DeadLetters {
		if all := s.reviews[before.ID]; len(all) > 0 && all[len(all)-1].record > last {
			was := s.letters[before.ID]
			d.MaxRetries, d.Fingerprint, d.Deadline, d.Context = was.MaxRetries, was.Fingerprint, was.Deadline, was.Context
		}
	}
	if s.born(claim, e.Record, e.At, &d); by != team {
		s.fail("%s is given up by its process, and is for %q", claim, by)
	}
}

// tally is what the journal's sums are to be (R19): what is recorded, counted anew.
type tally struct {
	sums     map[journal.SumName]int64
	episodes map[string]*episode // the last of each claim
}

type episode struct {
	number, retries int64
	presumed        int           // errors that look permanent and were retried
	state           journal.State // what became of it
	died            bool          // once, whatever people made of it since
	failed, retried bool          // since it began; before it failed first, too
	doubt           bool          // whether a failure left open that the portal took the claim (R33)
	first           time.Time     // its first failure, as it was recorded last, or when it began without one
	opened          time.Time     // when it was recorded that it began
	process         int64         // the instance that asked last
}

// of returns the episode of a claim; it ends the one before.
func (t *tally) of(claim string, number int64, ends journal.State, at time.Time) *episode {
	e := t.episodes[claim]
	if e == nil || e.number != number {
		if e != nil && ends != "" && !e.died {
			t.sums[journal.SumClosed]++
		}
		ended := e == nil || slices.Contains([]journal.State{journal.Recovered, journal.Accepted, journal.Discarded, journal.Expired}, e.state)
		e = &episode{number: number, opened: at, doubt: !ended && e.doubt}
		t.episodes[claim] = e
	}
	return e
}

// dies counts that an episode is given up, or ends.
func (t *tally) dies(e *episode, byLimit bool) {
	if !e.died {
		t.sums[journal.SumClosed]++
		if byLimit {
			t.sums[journal.SumExhausted]++
		}
	}
	if e.died = true; byLimit && e.retried {
		t.sums[journal.SumExhaustedRetried]++
	}
}

func (t *tally) attempt(a *journal.Attempt, open bool) {
	if last := t.episodes[a.Decision.SubjectID]; a.Revision > 0 && (!open || last != nil && last.number > a.Episode) {
		return // the episode went on, or another began
	}
	e := t.of(a.Decision.SubjectID, a.Episode, a.Ends, a.At)
	e.retried = e.retried || a.ShouldRetry() || !e.failed && a.AnalysedCount > 0
	e.failed = true
	if a.Revision == 0 {
		e.first, e.process, e.doubt = a.FirstFailure, a.ProcessInstanceKey, a.PossiblyAccepted
		t.sums[journal.SumDecisions]++
		if a.ErrorClassification == decision.Permanent {
			t.sums[journal.SumPermanent]++
		}
		if a.ShouldRetry() {
			if strings.HasPrefix(a.Error, presumedError) {
				e.presumed++
			}
			t.sums[journal.SumScheduled]++
			t.sums[journal.SumBackoff] += a.Backoff.Delay.Milliseconds()
		}
	}
	if a.Revision == 0 || !a.ShouldRetry() { // else it may be of an earlier one
		e.retries = a.RetryCount
	}
	switch {
	case !a.ShouldRetry() && e.state != journal.Dead:
		t.dies(e, a.Outcome == decision.MaxRetriesExceeded)
		e.state = journal.Dead
	case a.Revision == 0 && a.ShouldRetry():
		e.state = journal.Scheduled
	}
}

func (t *tally) gate(claim string, b *journal.GateBody, at time.Time) {
	if b.Action != journal.GateGivenUp {
		return
	}
	e := t.of(claim, b.Episode, "", at)
	if b.Opens {
		e.first = b.Since
	}
	e.retries, e.state, e.process = b.Retries, journal.Dead, b.ProcessInstanceKey
	t.dies(e, true)
}

func (t *tally) entry(e *journal.Entry) {
	var b struct {
		Episode, RetryCount int64
		State               journal.State
		Decision            journal.DeadLetterState
		Fresh               bool
		At                  time.Time
	}
	_ = json.Unmarshal([]byte(e.Body), &b)
	switch is := t.episodes[e.Subject.ID]; {
	case is == nil:
	case e.Kind == journal.OutcomeEntry:
		is.state = b.State
		if t.dies(is, false); b.State == journal.Recovered && is.retried {
			t.sums[journal.SumRecoveredRetried]++
		}
	case e.Kind == journal.ReviewEntry && b.Decision == journal.DeadLetterDiscarded:
		is.state = journal.Discarded
	case e.Kind == journal.ReviewEntry && b.Decision == journal.DeadLetterAccepted:
		is.state = journal.Accepted
		t.sums[journal.SumAccepted]++
	case e.Kind == journal.ReviewEntry:
		if is.state, is.retries = journal.Reprocessing, b.RetryCount; b.Fresh {
			*is = episode{number: is.number + 1, state: is.state, retries: is.retries, died: is.died, first: e.At, opened: e.At, process: is.process, doubt: is.doubt}
		}
	}
}

// checkSums: the sums are what was recorded.
func (s *sim) checkSums() {
	all, err := s.memory.Sums(context.Background(), 0)
	sums := map[journal.SumName]int64{}
	for _, f := range all {
		sums[f.Name] += f.N
	}
	for name, want := range s.tally.sums {
		if err != nil || sums[name] != want {
			s.fail("the sum %s is %d, and is to be %d", name, sums[name], want)
		}
	}
}

// startRun has a bulk run decide on all dead letters, which is mostly paused or ended soon, and goes on later.
func (r *replica) startRun(who string, letters int) {
	dice := r.draw("run")
	c := journal.BulkCommand{Action: journal.BulkRetry, Reason: typed, By: who, PerMinute: []int64{1, 6, 60, 600}[dice.IntN(4)]}
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
	ahead  time.Duration
	as, at time.Time
	burst  int64 // of them in one commit
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
	s.decides[run.ID] = schedule{b.ahead + interval, time.Now(), at, b.burst + 1}
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
			_, err := r.letters.Decide(as(r.life, who), deadletter.Command{Action: journal.BulkDiscard, ID: next[0].DeadLetter, Reason: typed, By: who})
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
func (s *sim) checkBulk(r *journal.Entry) {
	var b struct{ BulkRun, State, Hold string }
	if json.Unmarshal([]byte(r.Body), &b) != nil {
		return
	}
	if r := s.carrier(); b.Hold != "" && r != nil && s.sometimes("killed in a held run", 1, 4) { // the next one goes on
		s.in(time.Second, r.die)
	}
	if b.State != "" {
		s.steered[b.BulkRun] = steering{journal.BulkState(b.State), time.Now()}
	}
}
