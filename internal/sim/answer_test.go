package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

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
	if before, known := s.answers[j.key]; known && before != says && !s.rebased(j) && !late && !again {
		s.fail("%s: job %d is answered %s, and was answered %s", j.claim, j.key, says, before)
	}
	s.answers[j.key] = says
}

// leftFor is how long all know that a claim left its gate, of which the engine may not have heard.
const leftFor = 5 * time.Minute

// rebased reports whether the job's decision was made anew.
func (s *sim) rebased(j *job) bool { return len(s.attempts[j.key]) > 1 }

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
				told["shouldRetry"] == false && told["deadLetterId"] == b.DeadLetter && told["responsibleTeam"] == string(b.Team)
			break
		}
		atOnce := told["gateHeld"] == "PT0S" && told["gateReason"] == j.portal+" up" && told["gateCanary"] == false && (!held || j.two) // at once, unrecorded
		recorded = atOnce || b.Action != journal.GateGivenUp && (held && told["gateReason"] == b.Reason && told["gateCanary"] == b.Kind.Wanted() &&
			told["gateHeld"] == decision.ISODuration(b.recorded.Sub(b.Since)))
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
			"errorClassification": class, "retryPolicy": decision.DefaultPolicy, "originalError": original}
		if a.SuccessProbability > 0 {
			want["successProbability"] = a.SuccessProbability
		}
		if a.ShouldRetry() {
			want["backoffMinutes"], want["backoffDuration"] = decision.Minutes(a.Wait()), decision.ISODuration(a.Wait())
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
