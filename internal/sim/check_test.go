package sim

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
	"retry-worker/internal/events"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
)

// invariants are what is known for checking.
type invariants struct {
	seen, audited int64                         // the last record that was looked at
	seenAt        time.Time                     // when it was
	attempts      map[int64][]*journal.Attempt  // by job
	answers       map[int64]string              // first answer of a job
	last          map[string]*journal.Attempt   // the latest of a claim
	delays        map[string]time.Duration      // of retries, by claim and count
	waits         map[int64]waiting             // how a job does at a gate
	taught        map[string]journal.Teaching   // of causes, as an admin said last
	left          map[int64]departed            // how a job left a gate
	reported      map[int64]bool                // what succeeded of that
	events        map[string]string             // what was told, by the id of the event
	expected      map[said]int                  // events, less those that were told
	order         map[string]int64              // the last record that was told, by claim
	decided       map[string]string             // what people decided on dead letters, by their ids
	due           map[string]time.Time          // when discards of the console are, by dead letter and person
	reviews       map[string][]review           // people's decisions on dead letters, by their ids
	went          map[string]*process           // that took the decision on a dead letter, by its id
	letters       map[string]journal.DeadLetter // as they are to be, by their ids
	notices       map[string]string             // by their ids
	noticing      time.Time                     // when a notice was last on its way
	steered       map[string]steering           // bulk runs
	decides       map[string]schedule           // of bulk runs
	stolen        map[string]time.Time          // when leases were last
	tally
}

func (i *invariants) init() {
	i.attempts, i.answers, i.last = map[int64][]*journal.Attempt{}, map[int64]string{}, map[string]*journal.Attempt{}
	i.delays, i.waits, i.left, i.reported = map[string]time.Duration{}, map[int64]waiting{}, map[int64]departed{}, map[int64]bool{}
	i.events, i.expected, i.order = map[string]string{}, map[said]int{}, map[string]int64{}
	i.decided, i.due, i.reviews, i.went = map[string]string{}, map[string]time.Time{}, map[string][]review{}, map[string]*process{}
	i.letters = map[string]journal.DeadLetter{}
	i.notices, i.steered = map[string]string{}, map[string]steering{}
	i.taught, i.tally = map[string]journal.Teaching{}, tally{sums: map[journal.SumName]int64{}, episodes: map[string]*episode{}}
	i.decides, i.stolen = map[string]schedule{}, map[string]time.Time{}
}

// forget forgets a job, whose key is another's from now on.
func (s *sim) forget(key int64) {
	delete(s.attempts, key)
	delete(s.answers, key)
	delete(s.left, key)
	delete(s.reported, key)
	delete(s.waits, key)
	delete(s.trail.claims, key)
	delete(s.trail.worded, key)
}

// checkStep holds what was recorded since against what may be.
func (s *sim) checkStep() {
	if s.memory.End().Record == s.seen {
		return
	}
	page, err := s.memory.Records(context.Background(), journal.RecordFilter{}, s.seen, 1000)
	if err != nil {
		s.fail("records cannot be read: %v", err)
	}
	s.seenAt = time.Now()
	for i := range page {
		s.seen = page[i].Record
		s.checkRecord(&page[i])
	}
	checked := map[journal.Subject]bool{}
	for i := range page {
		if of := page[i].Subject; of.Policy != "" && !checked[of] {
			checked[of] = true
			s.checkSubject(of)
		}
	}
	if s.seen-s.audited >= 50 {
		s.audit()
	}
}

// audit: what is recorded is signed, and the projections are what the fold makes of it. What the engine still offers is
// not marked as taken.
func (s *sim) audit() {
	s.audited = s.seen
	if _, err := audit.Verify(context.Background(), s.memory, journal.Head{}, nil); err != nil {
		s.fail("the audit: %v", err)
	}
	s.checkSums()
	for key := range s.attempts {
		if j := s.jobs[key]; !j.done && !j.uncaught && s.isMarked(key) {
			s.fail("%s: job %d is marked as answered, and is not", j.claim, key)
		}
	}
}

func (s *sim) checkRecord(r *journal.Entry) {
	s.expected[said{Kind: events.AuditRecorded, Record: r.Record}]++
	if r.Attempt != nil {
		s.checkAttempt(r.Attempt)
		return
	}
	s.clean("record", r)
	s.tally.entry(r)
	of, err := journal.ReadSent(r)
	if l, left := s.left[of.JobKey]; left && !of.At.Equal(l.recorded) {
		s.fail("%s went at %s, and is said to have gone at %s", r.Subject.ID, l.recorded, of.At)
	}
	if err == nil && of.JobKey != 0 {
		s.trail.word(of, "answered")
		s.heardOf(of)
		s.reported[of.JobKey] = true
		s.portals[of.Destination].answers()
	}
	switch r.Kind {
	case journal.ReviewEntry, journal.DeliveryEntry:
		s.checkReview(r)
	case journal.OutcomeEntry:
		s.checkOutcome(r, &of)
	case journal.BulkEntry:
		s.checkBulk(r)
	case journal.NoteEntry:
		var b struct {
			Note                     journal.NoteVerb
			DeadLetterID, By, Reason string
			Assignee                 string
			FollowUpAt               time.Time
			journal.RetryOptions
		}
		_ = json.Unmarshal([]byte(r.Body), &b)
		d, m := s.letters[b.DeadLetterID], journal.Mark{By: b.By, Text: b.Reason, At: r.At, Record: r.Record}
		switch b.Note {
		case journal.Assign:
			d.Assigned = journal.Assignment{Assignee: b.Assignee, FollowUpAt: b.FollowUpAt, Mark: m}
		case journal.RetryLater, journal.DiscardLater, journal.Undo:
			s.due[b.DeadLetterID+b.By] = time.Now().Add(journal.UndoFor - s.apart())
			if d.Later = (journal.Later{Verb: b.Note, RetryOptions: b.RetryOptions, Mark: m}); b.Note == journal.Undo {
				d.Later = journal.Later{}
			}
		}
		s.letters[b.DeadLetterID] = d
	case journal.TeachingEntry:
		b, _ := journal.BodyOf[journal.TeachingBody](r)
		b.Record, b.At = r.Record, r.At
		if s.taught[r.Subject.ID] = b.Teaching; b.Forgotten {
			delete(s.taught, r.Subject.ID)
		}
	case journal.GateEntry:
		s.checkGate(r)
	case journal.DestinationEntry:
		s.checkDestination(r)
	}
}

// checkOutcome: how a process ended is told by the process, as it is; one that gives its claim up waits for no retry and has
// heard nothing from its portal, and what went well did so after the last failure.
func (s *sim) checkOutcome(r *journal.Entry, of *journal.SentJob) {
	var b struct {
		State           journal.State
		Outcome         string
		DeadLetterID    string
		ResponsibleTeam decision.Team
		At              time.Time
		Episode         int64
	}
	_ = json.Unmarshal([]byte(r.Body), &b)
	claim := r.Subject.ID
	if last := s.last[claim]; last != nil && last.Revision == 0 && b.At.Before(last.AnalysedAt.Add(-clocksApart)) {
		s.fail("%s recovers by what went well at %s, and failed at %s", claim, b.At.Sub(s.began), last.AnalysedAt.Sub(s.began))
	}
	if b.State == journal.Recovered {
		s.expect(events.RetryRecovered, claim)
	}
	if b.Outcome != "failure" {
		return
	}
	s.givesUp(claim, b.DeadLetterID, b.ResponsibleTeam, r)
	if of.JobKey != 0 {
		s.fail("%s is said to have failed, and %s to have answered", claim, of.Destination)
	}
	waits := func(p *process) bool { return p.claim == claim && p.waitsFor(clocksApart) }
	if s.begun(claim) == 1 && slices.ContainsFunc(s.processes, waits) {
		s.fail("%s is said to have failed, and waits for its retry", claim)
	}
}

// clean: nothing secret.
func (s *sim) clean(what string, v any) {
	if text, err := json.Marshal(v); err != nil || !isRedacted(string(text)) {
		s.fail("a %s has a secret, or no JSON: %s", what, text)
	}
}

// paceTime is the time in which claims are counted that go to a portal.
const paceTime = 10 * time.Second

// paced: no more claims go to a portal than one, and what the pace lets through meanwhile. One more goes where the record of
// another took long, or who acts for the portal knows of none that went before.
func (s *sim) paced(portal string, held bool) {
	if !held && !s.limited() {
		return
	}
	w := s.portals[portal]
	w.paces = append(w.paces, time.Now())
	pace := s.settings.Destinations.Named[portal].Pace.Most
	if time.Since(s.configured) < time.Minute {
		pace = max(pace, s.paceBefore)
	}
	most := 1 + int(pace*paceTime.Minutes())
	if min(time.Since(s.forgot), time.Since(s.jumped), time.Since(s.started), time.Since(s.ledSince)) < time.Minute {
		most++
	}
	if n := since(w.paces, paceTime); n > most && !s.wasStolen(gate.Lease) {
		s.fail("%d claims go to %s within %s, at most %d may", n, portal, paceTime, most)
	}
}

// wasStolen reports whether two may act as holders of a lease for a moment.
func (s *sim) wasStolen(lease string) bool { return time.Since(s.stolen[lease]) < time.Minute }

// lateness is how long what is due may take: clocks are off, and engines do not hear.
const lateness, longLateness = 3 * time.Minute, 40 * time.Minute

// silent: what is to happen has, after a while, which is longer where all is not calm.
func (s *sim) silent() {
	s.in(time.Minute, s.silent)
	after := longLateness
	if s.calm && time.Since(s.calmSince) > lateness {
		after = lateness
		s.slowRuns()
	}
	open := s.openLetters()
	s.untoldOutages()
	s.seenByPeople(true)
	s.discards(open)
	s.unsent(after)
	s.untaken()
	s.unprobed()
	s.unfollowed()
	for _, p := range s.processes {
		s.checkWaiting(p, after)
	}
}

// over reports whether every claim has come to its end, bulk runs too but those that are paused, and everything is told.
func (s *sim) over() bool {
	for _, p := range s.processes {
		if p.ended == "" {
			return false
		}
	}
	return len(s.memory.Outbox()) == 0 && len(s.onTheWay()) == 0
}

// checkEnd: all claims have ended, and each record was told once.
func (s *sim) checkEnd() {
	if s.failed != "" {
		return
	}
	s.audit()
	for _, p := range s.processes {
		if p.ended == "" {
			s.fail("%s has not ended: %s since %s", p.claim, p.phase, p.since.Sub(s.began))
		}
	}
	for _, run := range s.onTheWay() {
		s.fail("bulk run %s has not ended", run.ID)
	}
	if all := s.memory.Outbox(); len(all) > 0 {
		s.fail("%d messages are in the outbox, the first for %s since %s: %s", len(all), all[0].Queue, all[0].At.Sub(s.began), all[0].Key)
	}
	for event, n := range s.expected {
		if n != 0 {
			s.fail("%d records are told as %+v, less those that were told or erased before", n, event)
		}
	}
}

// forgotten stands for the decision on a dead letter of which nobody knows any more.
const forgotten = "forgotten"

// anew: dead letters of which nobody knows any more may come again, and where nothing is known of a claim, its episodes begin
// at 1.
func (s *sim) anew() {
	for id := range s.decided {
		if s.letter(id).ID == "" {
			s.decided[id] = forgotten
		}
	}
	for claim := range s.tally.episodes {
		if told, _, _ := s.memory.Story(context.Background(), subjectOf(claim)); len(told.Episodes) == 0 {
			delete(s.last, claim)
			delete(s.tally.episodes, claim)
		}
	}
}

// erased: what is kept does not name the claim.
func (s *sim) erased(claim string) {
	s.anew()
	for _, p := range s.processes {
		if p.claim == claim { // nobody knows any more what it went through
			s.reported[p.latest()], s.reported[p.latest()-10] = true, true
			for _, key := range p.keys() {
				if !s.jobs[key].done {
					delete(s.attempts, key)
					delete(s.answers, key)
				}
			}
		}
	}
	for _, w := range s.portals {
		if w.tested != nil && w.tested.claim == claim { // who acts may not have read what came of it
			w.word = time.Time{}
		}
	}
	all, err := s.memory.Records(context.Background(), journal.RecordFilter{}, 0, 1_000_000)
	if err != nil {
		s.fail("records cannot be read: %v", err)
	}
	for i := range all {
		if text, _ := json.Marshal(all[i]); strings.Contains(string(text), `"`+claim+`"`) {
			s.fail("%s is erased, and record %d names it", claim, all[i].Record)
		}
	}
	s.audit()
}
