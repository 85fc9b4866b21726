package journal_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/journal"
)

// clock shows a time as an operator reads it: the date only where it is not the scenarios' first day.
func clock(t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case t.Format(time.DateOnly) == "2025-01-12":
		return t.Format("15:04:05.999")
	default:
		return t.Format("2006-01-02T15:04:05.999")
	}
}

// tellRecorded says what an analysis was answered.
func (s *stage) tellRecorded(r *journal.Recorded) string {
	d := &r.Decision
	if r.How == journal.Stale {
		return "stale\n"
	}
	if d.Rejection != nil {
		return "rejected " + journal.RejectionMessage(d.Rejection) + "\n"
	}
	text := fmt.Sprintf("%s %s %s retryCount=%d/%d", r.How, d.Outcome, d.ErrorClassification, d.RetryCount, d.MaxRetries)
	if d.ShouldRetry() {
		text += fmt.Sprintf(" next=%s (%d min)", clock(d.NextRetryTime), (d.Wait()+time.Minute-1)/time.Minute)
	}
	if r.Attempt.DeadLetter != "" {
		text += " deadLetter=" + s.letter(r.Attempt.DeadLetter)
	}
	if r.Attempt.GivenCount < 0 {
		text += " count assumed"
	}
	if r.Raised() {
		text += fmt.Sprintf(" raised from %d", r.Attempt.GivenCount)
	}
	if d.PossiblyAccepted {
		text += " possibly accepted"
	}
	if d.Catalogue != "" {
		text += fmt.Sprintf(" %q by catalogue %s, recorded %s", d.MatchedText, d.Catalogue, r.Attempt.Decision.Catalogue)
	}
	return text + "\n"
}

// letter is a short name for a dead letter, in the order they are first told of.
func (s *stage) letter(id string) string {
	if id == "" {
		return "-"
	}
	if s.letters[id] == "" {
		s.letters[id] = fmt.Sprintf("D%d", len(s.letters)+1)
	}
	return s.letters[id]
}

// changes tells what is new in the subject's story since it was last told.
func (s *stage) changes(subject journal.Subject) string {
	story, _, err := s.memory.Story(s.t.Context(), subject)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	key := fmt.Sprint(subject)
	before := strings.Split(s.story(s.stories[key]), "\n")
	s.stories[key] = story
	text := ""
	for line := range strings.Lines(s.story(story)) {
		if !slices.Contains(before, strings.TrimSuffix(line, "\n")) {
			text += "  " + line
		}
	}
	if text == "" {
		return "  nothing changed\n"
	}
	return text
}

func (s *stage) history(a *arguments) (string, error) {
	story, known, err := s.memory.Story(s.t.Context(), s.subject(a))
	if !known {
		return "nothing is known\n", err
	}
	return s.story(story), err
}

// story tells everything, a line each.
func (s *stage) story(story journal.Story) string {
	var b strings.Builder
	for i := range story.Attempts {
		b.WriteString(s.tellAttempt(&story.Attempts[i]))
	}
	for i := range story.Episodes {
		b.WriteString(s.tellEpisode(&story.Episodes[i]))
	}
	for i := range story.DeadLetters {
		d := &story.DeadLetters[i]
		fmt.Fprintf(&b, "dead letter %s %s: episode %d, %s %s, retryCount %d/%d, instance %d, team %q%s\n",
			s.letter(d.ID), d.State, d.Episode, d.Outcome, d.Reason, d.RetryCount, d.MaxRetries, d.ProcessInstanceKey, d.Team, tellClaim(d)+tellProcess(d))
	}
	for i := range story.Entries {
		e := &story.Entries[i]
		body := string(e.Told())
		for id, short := range s.letters {
			body = strings.ReplaceAll(body, id, short)
		}
		heard := ""
		if sent, err := journal.ReadSent(e); err == nil && sent.JobKey != 0 {
			heard = fmt.Sprintf(" (its portal answered what job %d let through)", sent.JobKey)
		}
		fmt.Fprintf(&b, "%s %s (record %d) %s%s\n", e.Kind, clock(e.At), e.Record, body, heard)
	}
	return b.String()
}

// tellClaim says what the claim brought, and where no failure is known.
func tellClaim(d *journal.DeadLetter) string {
	text := ""
	if !d.Deadline.IsZero() {
		text = ", deadline " + clock(d.Deadline)
	}
	for _, v := range d.Context {
		text += fmt.Sprintf(", %s %s in %d", v.Variable, v.Value, d.Cents)
	}
	if d.Fingerprint == "" {
		text += ", of no cause"
	}
	return text
}

// tellProcess says what is known of the process that waits for a review.
func tellProcess(d *journal.DeadLetter) string {
	text := ""
	if d.ReviewJobKey != 0 {
		text = fmt.Sprintf(", review job %d", d.ReviewJobKey)
	}
	if d.Delivery != journal.DeliveryNone {
		text += ", delivery " + string(d.Delivery)
	}
	return text
}

func (s *stage) tellAttempt(a *journal.Attempt) string {
	given := "none"
	if a.GivenCount >= 0 {
		given = fmt.Sprint(a.GivenCount)
	}
	revision := ""
	if a.Revision > 0 {
		revision = fmt.Sprintf(" revision %d", a.Revision)
	}
	next := "final"
	if a.Decision.ShouldRetry() {
		next = "next " + clock(a.Decision.NextRetryTime)
	}
	if a.Destination != "tiss" { // the policy's own
		next += ", at " + a.Destination
	}
	return fmt.Sprintf("attempt %d%s (record %d): episode %d, job %d of instance %d, count %d (given %s), %s\n",
		a.Number, revision, a.Record, a.Episode, a.JobKey, a.ProcessInstanceKey, a.AnalysedCount, given, next)
}

func (s *stage) tellEpisode(e *journal.Episode) string {
	text := fmt.Sprintf("episode %d %s: instance %d, retries %d, scheduled %d, first failure %s", e.Number, e.State,
		e.ProcessInstanceKey, e.Retries, e.Scheduled, clock(e.FirstFailure))
	if !e.NextRetryTime.IsZero() {
		text += ", next " + clock(e.NextRetryTime)
	}
	if e.DeadLetter != "" {
		text += ", dead letter " + s.letter(e.DeadLetter)
	}
	if !e.ClosedAt.IsZero() {
		text += ", closed " + clock(e.ClosedAt)
	}
	return text + "\n"
}

// pending lists the retries that lie ahead or are due.
func (s *stage) pending(a *arguments) (string, error) {
	retries, err := s.memory.PendingRetries(s.t.Context(), 0, 100)
	text := ""
	for _, p := range retries {
		if e := p.Episode; a.First == "" || a.First == p.Subject.Policy {
			text += fmt.Sprintf("%s %s retryCount %d, %s, of %s in %s\n", clock(e.NextRetryTime), p.Subject.ID, e.Retries, e.State, p.Subject.Policy, p.Subject.Tenant)
		}
	}
	if text == "" {
		text = "none\n"
	}
	return text, err
}

// audit holds the ledger against the records: a sum of what there is, or what is broken.
func (s *stage) audit(*arguments) (string, error) {
	if err := verifyLedger(s.memory); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d links, %d records, all in order\n", s.memory.End().Link, s.memory.End().Record), nil
}
