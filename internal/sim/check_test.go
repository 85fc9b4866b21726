package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/destination"
	"retry-worker/internal/events"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

// invariants are what is known for checking.
type invariants struct {
	seen     int64                        // the last record that was looked at
	attempts map[int64][]*journal.Attempt // by job
	answers  map[int64]string             // first answer of a job
	wentAt   map[string][]time.Time       // claims that went to a portal
	tested   map[string]*process          // the claim that a portal is tested with
	events   map[string]string            // what was told, by the id of the event
	order    map[string]int64             // the last record that was told, by claim
	decided  map[string]bool              // dead letters, by their ids
	audited  int64
}

func (i *invariants) init() {
	i.attempts, i.answers, i.wentAt = map[int64][]*journal.Attempt{}, map[int64]string{}, map[string][]time.Time{}
	i.tested, i.events, i.order = map[string]*process{}, map[string]string{}, map[string]int64{}
	i.decided = map[string]bool{}
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
	for i := range page {
		s.seen = page[i].Number()
		s.checkRecord(&page[i])
	}
	if s.seen-s.audited >= 50 {
		s.audit()
	}
}

// audit: what is recorded is signed, and the projections are what the fold makes of it.
func (s *sim) audit() {
	s.audited = s.seen
	items, _, err := s.memory.DeadLetterPage(context.Background(), journal.DeadLetterFilter{}, "", 200)
	if err != nil {
		s.fail("dead letters cannot be read: %v", err)
	}
	open := map[journal.Subject]bool{}
	for i := range items {
		if of := items[i].Subject; open[of] {
			s.fail("%s has two open dead letters", of.ID)
		}
		open[items[i].Subject] = true
	}
	if _, err := audit.Verify(context.Background(), s.memory, audit.VerifyOptions{}, nil); err != nil {
		s.fail("the audit: %v", err)
	}
}

func (s *sim) checkRecord(r *journal.Record) {
	if a := r.Attempt; a != nil {
		for _, b := range s.attempts[a.JobKey] { // one that is gone says nothing: its keys may be a new broker's
			if b.Number != a.Number && !s.jobs[a.JobKey].done && !s.decided[b.DeadLetter] {
				s.fail("%s: job %d is decided as attempt %d and as attempt %d", a.Decision.SubjectID, a.JobKey, b.Number, a.Number)
			}
		}
		s.trail.attempt(a, s.attempts[a.JobKey])
		s.attempts[a.JobKey] = append(s.attempts[a.JobKey], a)
		s.clean("record", a)
		if d := &a.Decision; d.ShouldRetry() && (d.RetryCount > d.MaxRetries || d.NextRetryTime.Sub(d.FirstFailure) > totalLimit) {
			s.fail("%s: retry %d of %d at %s, first failure at %s", d.SubjectID, d.RetryCount, d.MaxRetries, d.NextRetryTime, d.FirstFailure)
		}
		return
	}
	s.clean("record", r.Entry)
	if of, err := journal.ReadSent(r.Entry); err == nil {
		s.trail.word(of, "answered")
	}
	switch r.Entry.Kind {
	case journal.ReviewEntry, journal.DeliveryEntry:
		s.checkReview(r.Entry)
	case journal.GateEntry:
		s.checkGate(r)
	case journal.DestinationEntry:
		if b, err := journal.ReadDestination(r.Entry); err == nil && b.State != nil {
			s.trail.state(r.Subject.ID, r.Entry.At, b.State)
		}
	}
}

// totalLimit of the policy.
const totalLimit = 48 * time.Hour

// checkReview: a dead letter is decided on once, unless it was opened again.
func (s *sim) checkReview(e *journal.Entry) {
	var b struct{ DeadLetterID, State string }
	if err := json.Unmarshal([]byte(e.Body), &b); err != nil {
		s.fail("record %d: %v", e.Record, err)
	}
	if e.Kind == journal.DeliveryEntry {
		if b.State == string(journal.DeadLetterOpen) {
			if s.decided[b.DeadLetterID] {
				s.trail.letter("reopen", b.DeadLetterID)
			}
			delete(s.decided, b.DeadLetterID)
		}
		return
	}
	if s.decided[b.DeadLetterID] {
		s.fail("the dead letter %s of %s is decided on twice", b.DeadLetterID, e.Subject.ID)
	}
	s.decided[b.DeadLetterID] = true
	s.trail.letter("review", b.DeadLetterID)
}

func (s *sim) checkGate(r *journal.Record) {
	b, err := journal.ReadGate(r.Entry)
	if err != nil {
		s.fail("record %d: %v", r.Number(), err)
		return
	}
	s.trail.held(&b)
	switch j := s.jobs[b.JobKey]; {
	case b.Action == journal.GateReleased && b.Kind == destination.Test:
		s.say("%s is the canary of %s", j.claim, b.Destination)
		if before := s.tested[b.Destination]; before != nil && before != j.process && before.phase == "portal" {
			s.fail("%s is the canary of %s, and %s is at the portal still", j.claim, b.Destination, before.claim)
		}
		s.tested[b.Destination] = j.process
	case b.Action == journal.GateHeld:
		s.say("%s is held", j.claim)
	case b.Action == journal.GateReleased:
		s.say("%s is let go: %s", j.claim, b.Kind)
	}
}

// clean: nothing secret.
func (s *sim) clean(what string, v any) {
	if text, err := json.Marshal(v); err != nil || strings.Contains(string(text), forbidden) {
		s.fail("a %s has a secret, or no JSON: %s", what, text)
	}
}

// sent: two answers to one job say the same, but for a retry whose time had passed (R20).
func (s *sim) sent(j *job, a answer) {
	var told struct {
		RetryCount                   int64
		NextRetryTime, BPMN          string
		ReviewDecision, DeadLetterID string
	}
	_ = json.Unmarshal([]byte(a.vars), &told)
	if j.kind == worker.SubmissionGate {
		return // one that was let through at once, and one that was held, differ
	}
	says := fmt.Sprint(a.thrown, told.RetryCount, told.ReviewDecision, told.DeadLetterID)
	if before, known := s.answers[j.key]; known && before != says && !s.rebased(j) {
		s.fail("%s: job %d is answered %s, and was answered %s", j.claim, j.key, says, before)
	}
	s.answers[j.key] = says
}

// rebased reports whether the job's decision was made anew.
func (s *sim) rebased(j *job) bool { return len(s.attempts[j.key]) > 1 }

// taken: what was answered is recorded.
func (s *sim) taken(j *job, told map[string]any) {
	if j.kind != worker.AnalyzeRetry {
		return
	}
	for _, a := range s.attempts[j.key] {
		if fmt.Sprint(a.Decision.RetryCount) == fmt.Sprint(told["retryCount"]) && a.Decision.ShouldRetry() != j.taken.thrown {
			return
		}
	}
	for _, all := range s.attempts { // a duplicate is told what another process was (R18)
		for _, a := range all {
			if a.Decision.SubjectID == j.claim && fmt.Sprint(a.Decision.RetryCount) == fmt.Sprint(told["retryCount"]) {
				return
			}
		}
	}
	s.fail("%s: job %d is answered with %v, which is not recorded", j.claim, j.key, told)
}

// most claims go to a portal in the time of pace.
const (
	paceTime = 10 * time.Second
	most     = 11
)

// went: no portal gets more than its pace.
func (s *sim) went(p *process) {
	now := time.Now()
	all := s.wentAt[p.portal]
	all = append(all, now)
	for now.Sub(all[0]) > paceTime {
		all = all[1:]
	}
	if s.wentAt[p.portal] = all; len(all) > most {
		s.fail("%d claims go to %s within %s", len(all), p.portal, paceTime)
	}
}

// lateness is how long after its deadline a claim may be let go or given up: clocks are off, and engines do not hear.
const lateness = 3 * time.Minute

// inTime: no claim goes whose deadline has passed.
func (s *sim) inTime(p *process) {
	if late := time.Since(p.deadline); !p.deadline.IsZero() && late > lateness {
		s.fail("%s goes %s after its deadline", p.claim, late)
	}
}

// silent: no claim waits at a gate whose deadline has passed, when all is calm.
func (s *sim) silent() {
	s.in(time.Minute, s.silent)
	for _, p := range s.processes {
		if p.phase == worker.SubmissionGate && time.Since(p.since) > lateness {
			s.inTime(p)
		}
	}
}

// heard: an event has one content, and those of a claim come in order.
func (s *sim) heard(m *journal.Message) {
	s.mu.Lock()
	before, known := s.events[m.ID]
	s.events[m.ID] = m.Body
	last := s.order[m.Key]
	s.order[m.Key] = max(last, m.Sequence)
	s.mu.Unlock()
	switch {
	case strings.Contains(m.Body, forbidden):
		s.fail("event %s has a secret", m.ID)
	case known && before != m.Body:
		s.fail("event %s is told with another content", m.ID)
	case !known && m.Sequence < last:
		s.fail("event %s of %s is told after a later one", m.ID, m.Key)
	}
}

// over reports whether every claim has come to its end, and everything is told.
func (s *sim) over() bool {
	for _, p := range s.processes {
		if p.ended == "" {
			return false
		}
	}
	return len(s.memory.Outbox()) == 0
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
	if n := len(s.memory.Outbox()); n > 0 {
		s.fail("%d messages are in the outbox", n)
	}
	told := 0
	for _, body := range s.events {
		if tellsRecord(body) {
			told++
		}
	}
	if told+s.untold != int(s.seen) {
		s.fail("%d records, and %d were told, and %d erased before", s.seen, told, s.untold)
	}
}

// tellsRecord reports whether an event is the one that each record has.
func tellsRecord(body string) bool {
	return strings.Contains(body, `"`+events.AuditRecorded+`"`) || strings.Contains(body, "."+events.AuditRecorded)
}

// erased: what is kept does not name the claim.
func (s *sim) erased(claim string) {
	all, err := s.memory.Records(context.Background(), journal.RecordFilter{}, 0, 1_000_000)
	if err != nil {
		s.fail("records cannot be read: %v", err)
	}
	for i := range all {
		if text, _ := json.Marshal(all[i]); strings.Contains(string(text), `"`+claim+`"`) {
			s.fail("%s is erased, and record %d names it", claim, all[i].Number())
		}
	}
	s.audit()
}
