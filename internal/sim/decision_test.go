package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
	"retry-worker/internal/worker"
)

// checkAttempt: a job is decided once, unless a person decided on what it came to, or another episode began since.
func (s *sim) checkAttempt(a *journal.Attempt) {
	j, last, all := s.jobs[a.JobKey], s.last[a.Decision.SubjectID], s.attempts[a.JobKey]
	settled := false // nobody acts on what the process did not catch
	if n := len(all) - 1; n >= 0 && j.uncaught {
		d := s.letter(all[n].DeadLetter)
		now := d.State == journal.DeadLetterSuperseded && d.ChangedAt.Equal(a.At) // by what is decided
		settled = s.memory.Answered(all[n].Record) && d.State != journal.DeadLetterOpen && !now
	}
	answered := s.isMarked(a.JobKey)
	for _, b := range all {
		d := s.letter(b.DeadLetter)
		late := settled || j.changed || j.two && answered || // the other replica was faster
			a.At.Sub(b.At) > retention-clocksApart || // it may be purged
			s.begun(j.claim) > 1 && d.State == journal.DeadLetterSuperseded && d.ChangedAt.Before(a.At) // the claim's other process failed since
		if b.Number != a.Number && !late && s.decided[b.DeadLetter] == "" && !s.recovered(b) && (last == nil || last.Episode == b.Episode) {
			s.fail("%s: job %d is decided as attempt %d and as attempt %d", a.Decision.SubjectID, a.JobKey, b.Number, a.Number)
		}
	}
	s.trail.attempt(a, all)
	s.checkDecision(a)
	s.checkFacts(a, j)
	s.attempts[a.JobKey] = append(all, a)
	if strings.HasPrefix(a.Error, unknownError) {
		s.unknown = a.Fingerprint
	}
	s.clean("record", a)
	s.heardOf(a.Sent)
	switch to := s.portals[j.portal]; a.Tells {
	case destination.TellsFailed:
		to.fails()
	case destination.TellsAnswered, destination.TellsRateLimited:
		to.answers()
		if a.Tells == destination.TellsRateLimited && a.Sent.At.After(to.limited) {
			to.limited, to.heard = a.Sent.At, time.Now()
		}
		if until := time.Now().Add(min(a.RetryAfter, longestPause)); until.After(to.paused.until) {
			to.paused = hold{time.Now(), until}
		}
	}
	// The task before an analysis is the gate. One that was given to two may have been held as it went.
	if through := a.Sent.JobKey; through != 0 && through != a.JobKey-10 && !s.jobs[through].two && s.begun(a.Decision.SubjectID) == 1 {
		s.fail("%s fails as what gate %d let go, and went through gate %d since", a.Decision.SubjectID, through, a.JobKey-10)
	}
	of := a.Decision.SubjectID
	s.checkCount(a, last)
	s.checkEpisode(a, all)
	if a.DeadLetter != "" {
		s.born(of, a.Record, a.At, &journal.DeadLetter{ID: a.DeadLetter, Episode: a.Episode, Outcome: a.Outcome, Reason: a.Reason, Team: a.Team,
			Fingerprint: a.Fingerprint, RetryCount: a.RetryCount, MaxRetries: a.MaxRetries, Context: a.Context, Deadline: a.Deadline,
			ProcessInstanceKey: a.ProcessInstanceKey, FirstFailure: a.FirstFailure, PossiblyAccepted: a.PossiblyAccepted})
	}
	dies := s.letter(a.DeadLetter).State == journal.DeadLetterOpen
	s.tally.attempt(a, a.ShouldRetry() || dies)
	switch {
	case a.Revision == 0 && a.ShouldRetry():
		s.expect("RetryScheduled", of)
	case a.Revision == 0 && a.Outcome == decision.PermanentError:
		s.expect("PermanentErrorDetected", of)
	case a.Revision == 0, dies:
		s.expect("MaxRetriesExceeded", of)
	}
	if last == nil || cmp.Or(cmp.Compare(a.Number, last.Number), cmp.Compare(a.Revision, last.Revision)) > 0 { // else it is made anew late
		s.last[of] = a
	}
}

// checkFacts: an attempt tells of its job and its claim as they are.
func (s *sim) checkFacts(a *journal.Attempt, j *job) {
	text, _, _ := strings.Cut(fmt.Sprint(j.vars["submissionError"]), s.secret)
	l, left := s.left[a.Sent.JobKey]
	what := ""
	switch {
	case a.ElementInstanceKey != j.key+1, a.ProcessInstanceKey != j.process.key, a.Destination != j.portal, !a.Deadline.Equal(j.deadline):
		what = "job"
	case !j.changed && !strings.HasPrefix(a.Error, text):
		what = "error"
	case left && !a.Sent.At.Equal(l.recorded):
		what = "departure"
	case a.Revision == 0 && strings.HasPrefix(a.Error, unknownError) && a.Taught != s.taught[a.Fingerprint].Record:
		what = "teaching"
	}
	if what != "" {
		s.fail("%s: job %d, which says %q, of a claim with the deadline %s, has another %s than is recorded: %+v", j.claim, j.key, text, j.deadline,
			what, a)
	}
}

// nominal is how long a retry waits before that is varied.
func nominal(retry int64) time.Duration {
	return min(5*time.Minute<<min(max(retry-1, 0), 10), 4*time.Hour)
}

// checkEpisode: a failure belongs to the open episode where the same process reports it, or another that knows of as many retries
// (R18); else it begins one, with the retries that came with it.
func (s *sim) checkEpisode(a *journal.Attempt, before []*journal.Attempt) {
	e := s.tally.episodes[a.Decision.SubjectID]
	if e == nil || a.Revision > 0 || len(before) > 0 || s.wasWiped(a.Decision.SubjectID) || a.At.Sub(e.first) > s.limit-clocksApart {
		return
	}
	given := a.GivenCount
	switch {
	case given < 0 && !e.state.Open():
		given = 0
	case given < 0:
		given = e.retries
	}
	joins := e.state.Open() && (e.process == a.ProcessInstanceKey || e.state != journal.Dead && given == e.retries)
	l := s.last[a.Decision.SubjectID]
	if e.state == journal.Scheduled && l != nil && l.Revision == 0 && e.process != a.ProcessInstanceKey && given == l.AnalysedCount && l.NextRetryTime.Sub(a.At) > clocksApart &&
		a.ShouldRetry() && a.ErrorClassification == l.ErrorClassification && a.PossiblyAccepted == l.PossiblyAccepted {
		s.fail("%s asks what another process was told, and is told something else than that its retry is at %s", a.Decision.SubjectID, l.NextRetryTime)
	}
	if joins != (a.Episode == e.number) || !joins && (a.Episode != e.number+1 || a.AnalysedCount != given) {
		s.fail("%s fails after %d retries in episode %d, and has made %d in episode %d", a.Decision.SubjectID, a.GivenCount, a.Episode, e.retries, e.number)
	}
}

// checkCount: a failure counts the retries that came with it or are known, whichever are more, and its clock stands.
func (s *sim) checkCount(a, b *journal.Attempt) {
	e := s.tally.episodes[a.Decision.SubjectID]
	earliest := a.AnalysedAt
	if at := s.jobs[a.JobKey].submitted; !at.IsZero() && at.Before(earliest) {
		earliest = at
	}
	if b == nil && e == nil && a.Revision == 0 && !a.FirstFailure.Equal(earliest) {
		s.fail("%s failed first at %s, and that was %s", a.Decision.SubjectID, a.FirstFailure, earliest)
	}
	if b == nil || e == nil || a.Revision > 0 || b.Revision > 0 || e.number != a.Episode || b.JobKey == a.JobKey ||
		b.ProcessInstanceKey != a.ProcessInstanceKey || a.At.Sub(b.At) > retention-clocksApart {
		return
	}
	first := slices.MinFunc([]time.Time{e.first, earliest}, time.Time.Compare)
	if a.AnalysedCount != max(a.GivenCount, e.retries) || !a.FirstFailure.Equal(first) {
		s.fail("%s fails after %d retries, %d are known and %d came with it; it failed first at %s, and that was %s", a.Decision.SubjectID,
			a.AnalysedCount, e.retries, a.GivenCount, a.FirstFailure, first)
	}
}

// begun is how many processes a claim had.
func (s *sim) begun(claim string) (n int) {
	for _, p := range s.processes {
		if p.claim == claim {
			n++
		}
	}
	return n
}

// wasWiped reports whether the engine lost a process of the claim, and gives its keys again.
func (s *sim) wasWiped(claim string) bool {
	return slices.ContainsFunc(s.processes, func(p *process) bool { return p.claim == claim && p.ended == "wiped" })
}

// recovered reports whether the process reported success of what the attempt had given up.
func (s *sim) recovered(a *journal.Attempt) bool {
	return s.letter(a.DeadLetter).State == journal.DeadLetterRecovered
}

// onLadder reports whether that is how long a retry of a claim waits: 5, 10, 20, … minutes, varied by a fifth, and the same
// whoever decides it, whenever.
func (s *sim) onLadder(claim string, retry int64, wait time.Duration) bool {
	raw, before := nominal(retry), s.delays[fmt.Sprint(claim, "/", max(retry, 1))]
	return wait >= max(raw*4/5, 5*time.Minute) && wait <= min(raw*6/5, 4*time.Hour) && wait%time.Minute == 0 && (before == 0 || before == wait)
}

// checkDecision: a failure is retried after 5, 10, 20, … minutes, varied by a fifth, within all limits, and is given up
// where it is permanent, the retries are used up or the next would be too late. None is earlier than its portal asks, where
// that is in time (R37).
func (s *sim) checkDecision(a *journal.Attempt) {
	d, permanent, w := &a.Decision, s.isPermanent(a), s.portals[s.jobs[a.JobKey].portal]
	wait, least := d.Backoff.Delay, asked(a)
	late := func(at, limit time.Time) bool { return !limit.IsZero() && at.After(limit) }
	limit, last := w.openFor(s.limit, d.FirstFailure), w.nextOpen(d.AnalysedAt.Add(min(nominal(d.RetryCount+1)*6/5, 4*time.Hour)))
	asks := w.nextOpen(d.AnalysedAt.Add(least)).Add(spread)
	planned := func(wait time.Duration) bool {
		return s.isPlanned(w, d.NextRetryTime, a.At.Truncate(time.Second).Add(wait))
	}
	var right bool
	switch {
	case d.ShouldRetry():
		right = !permanent && d.RetryCount >= 1 && d.RetryCount <= d.MaxRetries && !late(d.NextRetryTime, a.Deadline) &&
			(w.hoursChanged() || !late(d.NextRetryTime, limit) && (planned(max(wait, least)) || planned(wait) && (late(asks, a.Deadline) || late(asks, limit)))) &&
			s.onLadder(d.SubjectID, d.RetryCount, wait)
		s.delays[fmt.Sprint(d.SubjectID, "/", d.RetryCount)] = wait
	case d.Outcome == decision.PermanentError:
		right = permanent && (d.Team == "cadastro") == (strings.HasPrefix(a.Error, ofPatient) || strings.HasPrefix(a.Error, unknownError))
	case d.Reason == decision.ReasonDeadline:
		right = late(last, a.Deadline) || w.hoursChanged()
	case d.Reason == decision.ReasonTimeLimit:
		right = late(last.Add(spread), limit) || w.hoursChanged()
	default:
		right = d.RetryCount >= d.MaxRetries
	}
	next := d.RetryCount - a.AnalysedCount // a retry is one more
	known := a.Revision > 0 || !strings.HasPrefix(a.Error, unknownError) || d.ErrorClassification == cmp.Or(s.taught[a.Fingerprint].Class, decision.Unknown)
	if !right || !known || d.ShouldRetry() != (next == 1) || next < 0 || next > 1 || d.ShouldRetry() != (a.DeadLetter == "") {
		s.fail("%s: %s %s, %d of %d retries, at %s, of a first failure at %s, for %q", d.SubjectID, d.Outcome, d.Reason, d.RetryCount,
			d.MaxRetries, d.NextRetryTime, d.FirstFailure, a.Error)
	}
}

// asked returns how long a claim's portal asks to wait, in whole minutes.
func asked(a *journal.Attempt) time.Duration {
	var seconds time.Duration
	if _, after, is := strings.Cut(a.Error, "Retry-After: "); is && a.Destination != "" {
		_, _ = fmt.Sscan(after, &seconds)
	}
	return (seconds*time.Second + time.Minute - 1).Truncate(time.Minute)
}

// isPlanned reports whether a retry that is wanted at an instant is planned for another: soon after its portal opens, or when one
// that is down may be back.
func (s *sim) isPlanned(w *portal, at, wanted time.Time) bool {
	down := w.recorded.State != nil && (w.recorded.Phase != destination.Up || time.Since(w.recorded.at) < noLongerDown) ||
		max(since(w.failures, failedWithin), len(w.row)) >= inARow-1 || time.Now().Before(w.held.until) // that is being recorded
	return w.isMade(at, wanted) || s.policies[decision.DefaultPolicy].Stretch && down && at.After(wanted) && w.nextOpen(at).Equal(at)
}

// isPermanent reports whether an error is no passing one, as refusals are, and what looks like one for the second time (R25).
func (s *sim) isPermanent(a *journal.Attempt) bool {
	e := s.tally.episodes[a.Decision.SubjectID]
	again := a.Revision == 0 && e != nil && e.number == a.Episode && e.presumed > 0
	if taught := s.taught[a.Fingerprint].Class; taught != "" && a.Revision == 0 {
		return taught == decision.Permanent
	}
	return classOf(a.Error) == decision.Permanent || again && strings.HasPrefix(a.Error, presumedError)
}

// sent: two answers to one job say the same, but for a retry whose time had passed (R20).
func (s *sim) sent(j *job, a answer) {
	var told struct {
		RetryCount                   int64
		NextRetryTime, GateHeld      string
		GateReason                   string
		ReviewDecision, DeadLetterID string
	}
	_ = json.Unmarshal([]byte(a.vars), &told)
	if j.kind == worker.SubmissionGate { // one that was let through at once, and one that was held, differ
		l, left := s.left[j.key]
		if up := j.portal + " up"; left && !j.two && told.GateHeld == "PT0S" && told.GateReason == up && l.Reason != up && time.Since(l.at) < leftFor && s.started.Before(l.at) {
			s.fail("%s: job %d was %s at its gate at %s, and is let through at once", j.claim, j.key, l.Action, l.at.Sub(s.began))
		}
		return
	}
	if at, err := time.Parse(time.RFC3339, told.NextRetryTime); err == nil && j.kind == worker.AnalyzeRetry && time.Since(at) > clocksApart {
		s.fail("%s: job %d is answered with a retry at %s, which is past", j.claim, j.key, at.Sub(s.began))
	}
	says := fmt.Sprint(a.thrown, told.RetryCount, told.ReviewDecision, told.DeadLetterID)
	twice := s.begun(j.claim) > 1
	late := (j.two || j.copied || twice) && j.done && j.kind == worker.RetryReview // another's, as nobody decides any more
	again := j.kind == worker.AnalyzeRetry && !j.done && twice                     // told what another was, which is another thing now
	if before, known := s.answers[j.key]; known && before != says && !s.rebased(j) && !late && !again &&
		!(twice && told.ReviewDecision == "discard" && s.wentThrough(j)) {
		s.fail("%s: job %d is answered %s, and was answered %s", j.claim, j.key, says, before)
	}
	s.answers[j.key] = says
}

// leftFor is how long all know that a claim left its gate, of which the engine may not have heard.
const leftFor = 5 * time.Minute

// rebased reports whether the job's decision was made anew.
func (s *sim) rebased(j *job) bool { return len(s.attempts[j.key]) > 1 }

// wentThrough reports whether the claim of a dead letter went through, by another process, before the job was answered about it.
func (s *sim) wentThrough(j *job) bool {
	told, _, _ := s.memory.Story(context.Background(), subjectOf(j.claim))
	return slices.ContainsFunc(told.DeadLetters, func(d journal.DeadLetter) bool {
		return d.ID == j.vars["deadLetterId"] && d.State == journal.DeadLetterRecovered
	})
}

// isMarked reports whether it is recorded that the job's answer was taken.
func (s *sim) isMarked(key int64) bool {
	return slices.ContainsFunc(s.attempts[key], func(a *journal.Attempt) bool { return s.memory.Answered(a.Record) })
}

// taken: what was answered is recorded, and nothing secret.
func (s *sim) taken(j *job, told map[string]any) {
	recorded := true
	switch j.kind {
	case worker.AnalyzeRetry:
		recorded = s.recorded(j, told)
	case worker.SubmissionGate:
		b, held := s.left[j.key]
		if j.taken.thrown {
			why := "Deadline " + decision.Instant(b.Deadline)
			if b.GiveUp == decision.ReasonTimeLimit {
				why = "Time limit " + decision.Instant(b.Limit)
			}
			recorded = told["retryReason"] == why+" cannot be met" && told["retryPolicy"] == decision.DefaultPolicy && b.Action == journal.GateGivenUp && told["retryCount"] == float64(b.Retries) && told["maxRetries"] == float64(b.MaxRetries) &&
				told["shouldRetry"] == false && told["possiblyAccepted"] == s.letters[b.DeadLetter].PossiblyAccepted && told["deadLetterId"] == b.DeadLetter && told["responsibleTeam"] == string(b.Team)
			break
		}
		atOnce := told["gateHeld"] == "PT0S" && told["gateReason"] == j.portal+" up" && told["gateCanary"] == false && (!held || j.two || time.Since(b.at) >= leftFor) // at once, unrecorded
		recorded = atOnce || b.Action != journal.GateGivenUp && (held && told["gateReason"] == b.Reason && told["gateCanary"] == b.Kind.Wanted() &&
			told["gateHeld"] == text.ISODuration(b.recorded.Sub(b.Since)))
	case worker.RetryReview:
		id, until := fmt.Sprint(j.vars["deadLetterId"]), fmt.Sprint(cmp.Or[any](told["submissionDeadline"], time.Time{}.Format(time.RFC3339)))
		again := told["reviewDecision"] == "reprocess"
		wait, err := time.ParseDuration(strings.ToLower(strings.TrimPrefix(fmt.Sprint(told["backoffDuration"]), "PT")))
		if again && (err != nil || told["backoffMinutes"] != float64(decision.Minutes(wait))) {
			s.fail("%s: job %d is to wait %v, %v minutes", j.claim, j.key, told["backoffDuration"], told["backoffMinutes"])
		}
		recorded = slices.ContainsFunc(s.reviews[id], func(b review) bool {
			return told["reviewedBy"] == b.By && told["reviewReason"] == b.Reason && again == (b.Decision == string(journal.DeadLetterReprocessing)) && (!again ||
				told["retryCount"] == float64(b.RetryCount) && told["nextRetryTime"] == decision.Instant(b.NextRetryTime) && told["shouldRetry"] == true && until == decision.Instant(b.SubmissionDeadline))
		}) || !again && told["reviewedBy"] == "retry-worker" // nobody decides on it any more
		s.went[id] = j.process
	}
	if !recorded {
		s.fail("%s: job %d is answered with %v, which is not recorded", j.claim, j.key, told)
	}
	told = maps.Clone(told)
	delete(told, "originalError") // the process's own
	s.clean("variable", told)
}

// classOf is how an error of a portal is classified; empty where that depends on what came before, or was taught.
func classOf(text string) decision.ErrorClassification {
	switch {
	case strings.HasPrefix(text, permanentError), strings.HasPrefix(text, ofPatient):
		return decision.Permanent
	case strings.HasPrefix(text, unknownError), strings.HasPrefix(text, presumedError):
		return ""
	}
	return decision.Transient
}

func (s *sim) recorded(j *job, told map[string]any) bool {
	original := j.vars["submissionError"]
	if j.changed { // it may be answered as before
		original = told["originalError"]
	}
	known := classOf(fmt.Sprint(original))
	is := func(a *journal.Attempt) bool {
		class := cmp.Or(known, a.ErrorClassification)
		want := map[string]any{"shouldRetry": a.ShouldRetry(), "retryCount": a.RetryCount, "maxRetries": a.MaxRetries, "retryReason": a.RetryReason,
			"errorClassification": class, "retryPolicy": decision.DefaultPolicy, "originalError": original,
			"possiblyAccepted": a.PossiblyAccepted || strings.HasPrefix(fmt.Sprint(original), "Read timed out")}
		if a.SuccessProbability > 0 {
			want["successProbability"] = a.SuccessProbability
		}
		if a.ShouldRetry() {
			want["backoffMinutes"], want["backoffDuration"] = decision.Minutes(a.Wait()), text.ISODuration(a.Wait())
			want["nextRetryTime"] = decision.Instant(a.NextRetryTime)
		} else {
			want["deadLetterId"], want["responsibleTeam"] = a.DeadLetter, a.Team
		}
		return fmt.Sprint(want) == fmt.Sprint(told) && a.ShouldRetry() != j.taken.thrown && (a.ShouldRetry() || j.taken.code == string(a.Outcome))
	}
	if slices.ContainsFunc(s.attempts[j.key], is) {
		return true
	}
	for _, all := range s.attempts { // a duplicate is told what another process was (R18)
		if slices.ContainsFunc(all, func(a *journal.Attempt) bool { return a.Decision.SubjectID == j.claim && is(a) }) {
			return true
		}
	}
	return false
}
