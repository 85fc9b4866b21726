package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/events"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

// people decide on dead letters, sometimes two on the same, order portals about, and plan bulk runs.
func (s *sim) people() {
	every := 10 * time.Minute
	if s.calm { // what waits has to end
		every = 2 * time.Minute
	}
	s.in(every, s.people)
	up := s.up()
	if len(up) == 0 {
		return
	}
	dice := s.draw("people")
	for n := range 1 + dice.IntN(2) {
		r, orders, how, to := s.oneOf("asked", up), dice.IntN(4) == 0, dice.IntN(12), dice.IntN(len(s.portals))
		label := fmt.Sprint("person ", n, s.another())
		if !s.calm && !s.may(label) {
			continue
		}
		s.running.Go(func() {
			if s.port(fmt.Sprint("person ", n)); orders && !s.calm {
				r.order(fmt.Sprintf("portal-%d", to), how%4)
				return
			}
			r.decide(label, how)
		})
	}
}

func (r *replica) order(name string, what int) {
	c := destination.Order{Verb: destination.SendCanary, Reason: typed, By: "ana"}
	switch what {
	case 0, 4:
		minutes := []int{2, 10, 30, 50, 70, 90}
		c.Verb, c.Until = destination.HoldClaims, r.Now().Add(time.Duration(minutes[r.draw("hold").IntN(6-what)])*time.Minute)
	case 1:
		c.Verb, c.PerMinute = destination.ReleaseAt, releaseAt
	case 2:
		c.Verb, c.Until = destination.TreatAsUp, r.Now().Add([]time.Duration{10 * time.Minute, time.Hour}[r.draw("up").IntN(2)])
		if r.sometimes("thinks better of it", 1, 2) {
			r.orderSoon(name, time.Minute, 4)
		}
	}
	r.say("somebody orders %s: %s", name, c.Verb)
	_ = r.gates.Command(as(r.life, "ana"+r.another()), name, c)
}

// orderSoon has a person order that of a portal after a while.
func (r *replica) orderSoon(name string, after time.Duration, what int) {
	r.in(after, func() {
		r.running.Go(func() { r.port(fmt.Sprint("orders ", what, " of ", name)); r.order(name, what) })
	})
}

// typed is a person's reason, with what may not be in a record; kept is what is recorded of it.
const typed, kept = "simulated, " + secret, "simulated, senha=[SECRET] de [CPF]"

// decide decides on one dead letter, or on all by a bulk run, or steers one. Nobody is told to be faster than himself.
func (r *replica) decide(who string, how int) {
	if n := len(r.runs); how == 1 && n > 0 {
		r.steer(r.runs[n-1], r.draw("steer").IntN(3), who)
		return
	}
	items, _, err := r.letters.List(r.life, journal.DeadLetterFilter{Sort: deadletter.Newest}, "", 20)
	if err != nil || len(items) == 0 {
		return
	}
	for _, d := range items {
		if ago := min(time.Since(d.CreatedAt), time.Since(r.away)); d.Process == deadletter.Nobody && d.Delivery != journal.DeliveryNobody && ago < deadletter.ExpectedFor-r.apart() {
			r.fail("nobody is said to wait for a decision about %s, %s after it was given up or the engine came back", d.Subject.ID, ago)
		}
	}
	if lazy := r.lazy && !r.calm; lazy && len(items) < 5 {
		return
	} else if how == 0 || lazy {
		r.startRun(who, len(items))
		return
	}
	d := pick(&r.scheduler, "decided on", items, func(d deadletter.Item) string { return d.Subject.ID })
	c := deadletter.Command{ID: d.ID, Reason: typed, By: who, RetryOptions: journal.RetryOptions{Force: how%2 == 0, Fresh: how%4 == 0}}
	if how%3 == 0 {
		c.When = deadletter.Now
	}
	if how%5 == 1 { // the insurer has given more time
		c.Deadline = time.Now().Add(time.Duration(r.draw("new deadline").IntN(120)-10) * time.Minute).Truncate(time.Second)
	}
	if how > 9 && !r.calm { // its process is ended just before
		r.cancel(d.Subject.ID, worker.RetryReview)
	}
	if how == 6 && !r.calm && !r.steady { // others are at the same dead letter, and the journal is busy
		r.slow = time.Now().Add(12 * time.Second)
		for n, verb := range []journal.NoteVerb{journal.DiscardLater, journal.Undo, journal.DiscardLater} {
			also := c
			also.By = fmt.Sprint(who, " and ", n)
			r.running.Go(func() {
				r.port("note " + also.By)
				_, _ = r.letters.Note(as(r.life, also.By), also, verb)
			})
		}
	}
	switch {
	case how == 7 && !r.calm: // says something of it
		what := r.draw("says").IntN(4)
		if what == 0 {
			_, err = r.letters.Note(as(r.life, who), c, journal.Comment)
		} else { // takes it, gives it to another, or gives it back
			a := journal.Assignment{Assignee: []string{who, "bia", ""}[what-1], FollowUpAt: time.Now().Add(time.Hour), Mark: journal.Mark{By: who, Text: typed}}
			_, err = r.letters.Assign(as(r.life, who), d.ID, a)
		}
		r.say("somebody says of %s: %d, %v", d.Subject.ID, what, r.told(who, err))
		return
	case how%4 == 1: // in the console, where it can be undone
		verb := []journal.NoteVerb{journal.DiscardLater, journal.RetryLater, journal.Undo}[r.draw("undo").IntN(3)]
		for _, d := range items[:min(5, len(items))] {
			c.ID = d.ID
			_, err = r.letters.Note(as(r.life, who), c, verb)
			if how == 5 { // undoes it, and asks for it again
				for _, verb := range []journal.NoteVerb{journal.Undo, journal.DiscardLater} {
					r.Rest(r.life, 9*time.Second)
					r.port("note " + who)
					_, err = r.letters.Note(as(r.life, who), c, verb)
				}
			}
		}
	case how == 4 && !r.calm: // looks it up at the portal, which has it
		closes := deadletter.Command{ID: d.ID, Action: journal.BulkAccept, Reason: typed, By: who, Protocol: "2026/" + d.ID[:8]}
		_, err = r.letters.Decide(as(r.life, who), closes)
	case r.calm || how < 5:
		_, err = r.letters.Decide(as(r.life, who), deadletter.Command{ID: d.ID, Action: journal.BulkDiscard, Reason: typed, By: who})
	default:
		c.Action = journal.BulkRetry
		_, err = r.letters.Decide(as(r.life, who), c)
	}
	err = r.told(who, err)
	r.say("somebody decides on %s: %v", d.Subject.ID, err)
	by := slices.IndexFunc(r.reviews[d.ID], func(b review) bool { return b.By == who })
	switch {
	case err != nil || how%4 == 1:
	case by < 0:
		r.fail("%s is told to have decided on %s, and another did", who, d.Subject.ID)
	case r.reviews[d.ID][by].Decision == string(journal.DeadLetterReprocessing):
		if b := r.reviews[d.ID][by]; b.ForceRetry != c.Force || b.Fresh != (c.Force && c.Fresh) || !c.Deadline.IsZero() && !b.SubmissionDeadline.Equal(c.Deadline) {
			r.fail("%s sends %s again by %+v, and that is recorded as %+v", who, d.Subject.ID, c, b)
		}
	}
	if no := journal.RefusalOf(err); no != nil && no.By == who && how%4 != 1 { // a clock may be fast that a discard is carried out by
		r.fail("%s, who decided on %s, is told: %v", who, d.Subject.ID, err)
	}
}

// told is the error that somebody is told, which at a replica's end is one of several.
func (r *replica) told(who string, err error) error {
	r.port("told " + who) // several are in one commit
	return cmp.Or(r.life.Err(), err)
}

// teach has an admin say what an error comes to that nobody knows, or take that back.
func (r *replica) teach() {
	t := journal.Teaching{Class: decision.Permanent, Team: "cadastro", Reason: typed, By: "ana"}
	if n := r.draw("class").IntN(3); n > 0 {
		t.Class, t.Team = []decision.ErrorClassification{decision.Transient, ""}[n-1], ""
	}
	who := "taught" + r.another()
	_, err := r.letters.Teach(r.life, r.unknown, t)
	r.say("somebody teaches that %q is %q: %v", unknownError, t.Class, r.told(who, err))
}

// discards has a replica carry the discards out that are due, and none of them is forgotten.
func (s *sim) discards(open []deadletter.Item) {
	up, box := s.up(), s.memory.Outbox()
	if i := slices.IndexFunc(box, func(m journal.Message) bool { return m.Queue == journal.LaterQueue }); len(up) > 0 && i >= 0 {
		n := s.draw("later").IntN(12)
		r, other, d := up[n%len(up)], up[(n+1)%len(up)], s.letter(box[i].Key)
		if time.Since(box[i].At) > journal.UndoFor && s.sometimes("undone as it is carried out", 1, 4) {
			r.slow = time.Now().Add(time.Second)
			s.running.Go(func() {
				other.port(other.name + " undoes " + d.ID)
				_, _ = other.letters.Note(as(other.life, d.Later.By), deadletter.Command{ID: d.ID, By: d.Later.By}, journal.Undo)
			})
		}
		s.running.Go(func() {
			r.port(r.name + " discards")
			_ = r.letters.DecideDue(r.life, r.store)
		})
	}
	for _, d := range open {
		if d.Later != (journal.Later{}) && min(time.Since(d.Later.At), time.Since(s.storeAway), time.Since(s.started)) > atOnce {
			s.fail("the dead letter of %s is open, and was to be discarded at %s", d.Subject.ID, d.Later.At.Sub(s.began))
		}
	}
}

// apart is how far the replicas' clocks are from each other.
func (s *sim) apart() time.Duration {
	all := []time.Time{time.Now()}
	for _, r := range s.replicas {
		all = append(all, r.Now())
	}
	return slices.MaxFunc(all, time.Time.Compare).Sub(slices.MinFunc(all, time.Time.Compare))
}

// review is a person's decision, as it is recorded, or what became of it.
type review struct {
	DeadLetterID, State, Decision, BulkRun, By, Delivery string
	Reason                                               string
	Accepted                                             *journal.Acceptance
	RetryCount, Episode                                  int64
	JobKey                                               int64 `json:",string"`
	ForceRetry, Fresh                                    bool
	NextRetryTime, SubmissionDeadline                    time.Time
	record                                               int64
}

// allowed: one retry more, or none where it begins anew, no more than the policy has but by force, of the process that waits,
// now or after the claim's own delay (R17), no later than its deadline but by force (R29).
func (s *sim) allowed(b *review, e *journal.Entry) bool {
	d := s.letter(b.DeadLetterID)
	want := d.RetryCount + 1
	if b.Fresh {
		want = 0
	}
	j, wait := s.jobs[b.JobKey], b.NextRetryTime.Sub(e.At.Truncate(time.Second))
	if j == nil {
		return false
	}
	w := s.portals[j.portal]
	opened := func(c stretch) bool { return w.isMade(b.NextRetryTime, c.from) }
	now := b.NextRetryTime.Equal(e.At)
	if run, _, _ := s.memory.BulkRun(context.Background(), b.BulkRun); b.BulkRun != "" && (run.When == deadletter.Now) != now && len(w.closed) == 0 && !w.hoursChanged() {
		return false
	}
	last := d.Deadline // the new one, if any
	return b.RetryCount == want && (b.ForceRetry && b.SubmissionDeadline.IsZero() || last.IsZero() || !b.NextRetryTime.After(last)) && (b.ForceRetry || !b.Fresh && d.RetryCount < d.MaxRetries) && j.claim == e.Subject.ID &&
		(w.hoursChanged() || (now || s.onLadder(e.Subject.ID, want, wait) || slices.ContainsFunc(w.closed, opened)) &&
			(s.last[e.Subject.ID] == nil || w.nextOpen(b.NextRetryTime).Equal(b.NextRetryTime)))
}

// checkReview: a dead letter is decided on once, unless it was opened again.
func (s *sim) checkReview(e *journal.Entry) {
	var b review
	if err := json.Unmarshal([]byte(e.Body), &b); err != nil {
		s.fail("record %d: %v", e.Record, err)
	}
	again := string(journal.DeadLetterReprocessing)
	d := s.letters[b.DeadLetterID]
	if b.Decision != "" || b.Delivery == string(journal.DeliveryPending) {
		d.Answer = e.Record
		s.letters[b.DeadLetterID] = d
	}
	if e.Kind == journal.DeliveryEntry {
		if d := s.letter(b.DeadLetterID); b.Delivery == "waiting" && e.Record == s.memory.End().Record && d.State == journal.DeadLetterOpen &&
			(d.Delivery != journal.DeliveryNone || d.ReviewJobKey != b.JobKey) {
			s.fail("job %d waits for a decision on the dead letter of %s, which shows %q for job %d", b.JobKey, e.Subject.ID, d.Delivery, d.ReviewJobKey)
		}
		if !slices.Contains([]string{"", "reprocess", "discard", "accepted"}, b.Decision) {
			s.fail("the decision on %s of %s is told as %s", b.DeadLetterID, e.Subject.ID, b.Decision)
		}
		if was := cmp.Or(s.decided[b.DeadLetterID], forgotten); (b.Decision == "discard" || b.Decision == "accepted") && b.State == again || b.Decision == "reprocess" && was != again && was != forgotten {
			s.fail("the decision on %s of %s is told as %s, and is %s", b.DeadLetterID, e.Subject.ID, b.Decision, was)
		}
		if b.Delivery == string(journal.DeliveryTaken) && b.Decision == "reprocess" && s.went[b.DeadLetterID] == nil {
			s.fail("the decision on %s of %s is said to be taken, and no process did", b.DeadLetterID, e.Subject.ID)
		}
		if j := s.jobs[b.JobKey]; b.Delivery == string(journal.DeliveryNobody) && j != nil && !j.done && j.process.ended == "" && j.process.latest() == j.key {
			s.fail("nobody is said to take the decision on %s of %s, and job %d waits", b.DeadLetterID, e.Subject.ID, j.key)
		}
		if b.State == string(journal.DeadLetterOpen) {
			if s.decided[b.DeadLetterID] != "" {
				s.trail.letter("reopen", b.DeadLetterID)
			}
			if p := s.went[b.DeadLetterID]; p != nil && p.ended == "" && p.key == d.ProcessInstanceKey { // the engine is asked about that one
				s.fail("the dead letter %s of %s is open again, and its process went on", b.DeadLetterID, e.Subject.ID)
			}
			delete(s.decided, b.DeadLetterID)
			if e, d := s.tally.episodes[e.Subject.ID], s.letter(b.DeadLetterID); e != nil {
				e.retries, e.state = d.RetryCount, journal.Dead
			}
		}
		return
	}
	s.expect(events.DeadLetterReviewed, e.Subject.ID)
	if before := s.decided[b.DeadLetterID]; before != "" && before != forgotten {
		s.fail("the dead letter %s of %s is decided on twice", b.DeadLetterID, e.Subject.ID)
	}
	if early := time.Until(s.due[b.DeadLetterID+b.By]); early > s.apart()+time.Second && time.Since(s.jumped) > time.Minute {
		s.fail("the dead letter of %s is discarded %s before that can be undone no longer", e.Subject.ID, early)
	}
	if b.BulkRun != "" {
		run, _, _ := s.memory.BulkRun(context.Background(), b.BulkRun)
		s.onSchedule(&run, e.At)
		s.beside(&run)
		if discards := b.Decision == string(journal.DeadLetterDiscarded); discards != (run.Action == journal.BulkDiscard) ||
			b.ForceRetry != run.Force || b.Fresh != run.Fresh || b.By != run.By {
			s.fail("a bulk run decides %+v, and is %+v", b, run)
		}
		if d := s.letter(b.DeadLetterID); run.Filter.Team != "" && d.ID != "" && d.Team != run.Filter.Team {
			s.fail("a bulk run for %s decides on the dead letter of %s, which is for %s", run.Filter.Team, d.Subject.ID, d.Team)
		} else if until := run.Filter.Until; !until.IsZero() && !d.CreatedAt.Before(until) {
			s.fail("a bulk run of those before %s decides on the dead letter of %s, of %s", until, d.Subject.ID, d.CreatedAt)
		}
		if state := s.steered[b.BulkRun].state; state == journal.BulkPaused || state.Ended() {
			s.fail("bulk run %s decides on %s and is %s", b.BulkRun, e.Subject.ID, state)
		}
	}
	if b.Decision == string(journal.DeadLetterReprocessing) && !s.allowed(&b, e) {
		s.fail("the dead letter %s of %s is sent again as %+v", b.DeadLetterID, e.Subject.ID, b)
	}
	if j := s.jobs[b.JobKey]; j != nil && !s.steady && s.begun(j.claim) == 1 && s.sometimes("begun again as it is decided", 1, 12) { // and the answer is late
		set(&s.mu, &j.cutOff, time.Now().Add(5*time.Minute))
		s.send(j.claim, j.portal, j.process.key+another, time.Second, j.deadline)
	}
	if j := s.jobs[b.JobKey]; j != nil && s.begun(j.claim) == 1 && s.sometimes("replaced as it is decided", 1, 10) {
		s.in(time.Duration(s.draw("replaced").IntN(3000))*time.Millisecond, func() {
			if p := j.process; !j.done && p.ended == "" && p.latest() == j.key {
				s.toReview(p)
			}
		})
	}
	if closes := b.Decision == string(journal.DeadLetterAccepted); closes != (b.Accepted != nil) {
		s.fail("the dead letter of %s is decided on as %+v", e.Subject.ID, b)
	}
	d.Review = journal.ReviewNote{Discard: b.Decision == string(journal.DeadLetterDiscarded), Accepted: b.Accepted, Force: b.ForceRetry, Fresh: b.Fresh, Reason: b.Reason,
		By: b.By, At: e.At, NextRetryTime: b.NextRetryTime, Deadline: b.SubmissionDeadline}
	d.Deadline = cmp.Or(b.SubmissionDeadline, d.Deadline)
	d.Run, d.Assigned, d.Later = b.BulkRun, journal.Assignment{}, journal.Later{}
	s.letters[b.DeadLetterID] = d
	s.decided[b.DeadLetterID] = b.Decision
	b.record = e.Record
	s.reviews[b.DeadLetterID] = append(s.reviews[b.DeadLetterID], b)
	s.trail.letter("review", b.DeadLetterID)
}
