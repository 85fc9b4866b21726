// Package decision decides what follows a failure: another try, when, or a person.
//
// It is pure: values in, values out. It has no clock, no random source, no context, no I/O and no
// logging; the caller owns them. The same failure, policy, past and instant give the same decision.
//
// R-numbers in comments are those of the specification's RESOLUTIONS, BIL-numbers those of the
// business rules RN-BIL-004 and RN-BIL-005.
package decision

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"retry-worker/internal/classify"
	"retry-worker/internal/text"
)

// Outcome is the result of a decision. The set is closed.
type Outcome string

// The outcomes, by the names that BPMN errors and the command line use.
const (
	Retry              Outcome = "RETRY"
	MaxRetriesExceeded Outcome = "MAX_RETRIES_EXCEEDED"
	PermanentError     Outcome = "PERMANENT_ERROR"
	Rejected           Outcome = "REJECTED"
)

// Past is what is remembered of a subject when a new failure of it is analysed. Its zero value means
// that nothing is known.
type Past struct {
	// Retries counts the retries scheduled in the open episode; it replaces an absent retryCount (R9).
	Retries int64
	// FirstFailure of the open episode; zero when there is none.
	FirstFailure time.Time
	// Presumed counts the failures of the open episode that were presumed permanent. It is valid only if Remembers;
	// otherwise the count of retries replaces it.
	Presumed  int64
	Remembers bool
	// PossiblyAccepted reports whether an earlier failure, since the subject's history was last finished, left open
	// whether the portal took the claim (R33).
	PossiblyAccepted bool
}

// Decision is the outcome of one analysis: the aggregate SubmissionRetryAttempt of RN-BIL-005 §12.2. The JSON names are
// those of the journal's records, short because there are many. Records hold policy and subject elsewhere.
type Decision struct {
	Outcome Outcome `json:"out"`
	// Policy that decided, by name.
	Policy string `json:"-"`
	// SubjectID is the claim, message or job the failure belongs to (§12.2 ClaimId).
	SubjectID string `json:"-"`
	// ErrorClassification of the error text; UNKNOWN where the limit was reached and the text is empty.
	ErrorClassification ErrorClassification `json:"class"`
	// Reason is the cause, from a closed set that metrics, audit, console and command line share.
	Reason Reason `json:"why"`
	// MatchedRule is the code or the rule that classified the error; empty if none did. MatchedText is the text that it
	// matched, as in the failure's Match.
	MatchedRule string `json:"by,omitempty"`
	MatchedText string `json:"text,omitempty"`
	// Catalogue is the version of the catalogue that the policy came from.
	Catalogue string `json:"cat,omitempty"`
	// RetryCount is the number of retries made once this decision is carried out: one more than the
	// analysed count on Retry, the analysed count otherwise (R12).
	RetryCount int64 `json:"count"`
	// MaxRetries the policy allows.
	MaxRetries int64 `json:"of"`
	// Backoff until the next try, with the raw delay and the jitter it came from; zero unless Retry.
	Backoff Backoff `json:"backoff,omitzero"`
	// NextRetryTime is AnalysedAt plus Backoff.Delay, or a later time at which the destination is open, in UTC. It is
	// zero unless Retry (R7, R29).
	NextRetryTime time.Time `json:"next,omitzero"`
	// RetryReason is the sentence of R8.
	RetryReason string `json:"says"`
	// Team that must act; empty on Retry (R21).
	Team Team `json:"team,omitempty"`
	// AnalysedAt is the instant of the analysis in UTC, truncated to the policy's precision (R7).
	AnalysedAt time.Time `json:"at,omitzero"`
	// FirstFailure starts the episode's clock: the earliest of Past.FirstFailure, lastSubmissionTime
	// and the analysis (R23).
	FirstFailure time.Time `json:"first,omitzero"`
	// Taught is the number of the record in which a person taught what to do about the cause; 0 if nobody did (R26).
	Taught int64 `json:"taught,omitempty"`
	// SuccessProbability is the failure's, if it is retried; 0 if too little is known (R26).
	SuccessProbability float64 `json:"chance,omitempty"`
	// PossiblyAccepted reports whether this failure, or an earlier one that is not settled, leaves open whether the
	// portal took the claim (R33).
	PossiblyAccepted bool `json:"perhaps,omitempty"`
	// Rejection says what is wrong with the input; nil unless Outcome is Rejected.
	Rejection *Rejection `json:"-"`
}

// Instant returns t as RFC 3339 in UTC, with milliseconds unless they are zero (R7).
func Instant(t time.Time) string { return t.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano) }

// Wait returns the time until the next retry: the backoff, or longer if the destination is closed then (R29).
func (d *Decision) Wait() time.Duration {
	if d.NextRetryTime.IsZero() {
		return 0
	}
	return d.NextRetryTime.Sub(d.AnalysedAt)
}

// Minutes returns d in whole minutes, rounded up.
func Minutes(d time.Duration) int64 {
	minutes := int64(d / time.Minute)
	if d%time.Minute > 0 {
		minutes++
	}
	return minutes
}

// ShouldRetry reports whether another try is scheduled.
func (d *Decision) ShouldRetry() bool { return d.Outcome == Retry }

// Presumes reports whether the error looks permanent and is retried to be sure (R25). Reason and MatchedRule say what
// it looks like.
func (d *Decision) Presumes() bool { return d.ErrorClassification == Unknown && d.MatchedRule != "" }

// Decide applies policy p to failure f at instant now, in R1's order: the limit, an empty error, a permanent error, a
// transient one, anything else. Read must have accepted f. Decide does not change its arguments and is safe for
// concurrent use.
func Decide(f *Failure, p *Policy, past Past, now time.Time) Decision {
	now = now.UTC()
	maxRetries, backoff := p.Limits(f.Own)
	d := Decision{
		Policy:     p.Name,
		Catalogue:  p.Catalogue,
		SubjectID:  f.ID,
		MaxRetries: maxRetries,
		RetryCount: f.RetryCount,
		AnalysedAt: now.Truncate(p.Precision()),
	}
	if !f.HasRetryCount {
		d.RetryCount = past.Retries
	}
	d.FirstFailure = d.AnalysedAt
	for _, t := range [...]time.Time{past.FirstFailure, f.LastSubmission} { // one in the future is ignored (R23)
		if !t.IsZero() && t.Before(d.FirstFailure) {
			d.FirstFailure = t
		}
	}
	match := &f.Match
	d.ErrorClassification, d.Reason, d.MatchedRule, d.MatchedText = match.Class, match.Reason, match.Name, match.Text
	d.Taught = f.Taught
	d.PossiblyAccepted = past.PossiblyAccepted || f.Said.Perhaps
	presumed := past.Presumed
	if !past.Remembers {
		presumed = d.RetryCount
	}
	if match.Presumed() && presumed < p.PresumedRetries {
		d.ErrorClassification = Unknown
	}

	switch {
	case d.RetryCount >= maxRetries: // BIL-005-V1, R10
		d.giveUp(MaxRetriesExceeded, ReasonMaxRetries, p.LimitTeam, "")
	case f.Error == "" && p.EmptyError == RejectEmptyError: // BIL-005-V4, BIL-004-V6, R11
		return Decision{Outcome: Rejected, Policy: d.Policy, SubjectID: d.SubjectID, AnalysedAt: d.AnalysedAt,
			Rejection: &Rejection{InvalidErrorMessage, p.ErrorVariable, f.OriginalError.describe(), "text that says what failed"}}
	case d.ErrorClassification == Permanent: // BIL-005-V2, R2
		d.giveUp(PermanentError, match.Reason, match.Team, "")
		if match.Presumed() && p.PresumedRetries > 0 { // it was retried before, to be sure
			d.RetryReason += " again"
		}
		d.RetryReason += d.taught()
	case match.Class == Transient:
		d.schedule(p, &backoff, f)
	case f.Error == "":
		d.ErrorClassification, d.Reason = Transient, ReasonEmptyError
		d.schedule(p, &backoff, f)
	case p.UnknownError == GiveUpUnknown && !d.Presumes():
		d.giveUp(PermanentError, match.Reason, p.LimitTeam, "Unknown error, not retried")
	default:
		d.schedule(p, &backoff, f)
	}
	if past.PossiblyAccepted && AlreadyThere(match.Class, match.Reason) && !d.ShouldRetry() {
		d.Reason, d.Team = ReasonProbablyAccepted, ProbablyAcceptedTeam
	}
	return d
}

// taught returns the part of RetryReason which says that a person taught this decision.
func (d *Decision) taught() string {
	if d.Taught == 0 {
		return ""
	}
	return "; taught of its cause"
}

// Rebase returns d as if it were made at now, with the same backoff. It gives up if the retry would come too late (R20,
// R29). d must be a retry of f under p.
func (d Decision) Rebase(p *Policy, f *Failure, now time.Time) Decision {
	d.AnalysedAt = now.UTC().Truncate(p.Precision())
	d.plan(p, f)
	return d
}

func (d *Decision) giveUp(o Outcome, why Reason, team Team, sentence string) {
	d.Outcome, d.Reason, d.Team = o, why, team
	d.Backoff, d.NextRetryTime, d.SuccessProbability = Backoff{}, time.Time{}, 0
	d.RetryReason = cmp.Or(sentence, d.Sentence())
}

// schedule schedules a retry, or gives up if it would come too late.
func (d *Decision) schedule(p *Policy, backoff *BackoffRule, f *Failure) {
	d.Backoff = backoff.After(p.draw(d.SubjectID, d.RetryCount), d.RetryCount)
	d.Outcome = Retry
	d.RetryCount++
	d.plan(p, f)
}

// plan sets the time of the retry: after the backoff, or when the destination opens (R29). It gives up if that is after
// the claim's deadline or the total limit. The retry is later if the destination asked for that (R37), or is expected
// back later, unless it would then be too late.
func (d *Decision) plan(p *Policy, f *Failure) {
	until, limit := f.Deadline, p.TimeLimit(f.Destination, d.FirstFailure)
	if until.IsZero() || !limit.IsZero() && limit.Before(until) {
		until = limit
	}
	isAfter := func(end time.Time) bool { return !end.IsZero() && d.NextRetryTime.After(end) }
	at := d.AnalysedAt.Add(d.Backoff.Delay)
	closed := d.open(p, f, at, until)
	switch {
	case isAfter(f.Deadline):
		d.RetryCount-- // this retry is not made
		d.giveUp(MaxRetriesExceeded, ReasonDeadline, p.LimitTeam, "Deadline "+Instant(f.Deadline)+" cannot be met")
		return
	case isAfter(limit):
		d.RetryCount--
		d.Catalogue = p.Catalogue
		d.giveUp(MaxRetriesExceeded, ReasonTimeLimit, p.LimitTeam, "Time limit of "+text.Duration(p.TotalLimit)+" reached")
		return
	}
	d.RetryReason, d.SuccessProbability = d.Sentence()+d.taught(), f.SuccessProbability
	wait := func(later time.Time, why string) {
		sooner := d.NextRetryTime
		at = later
		if still := d.open(p, f, later, until); isAfter(until) {
			d.NextRetryTime = sooner
		} else {
			d.RetryReason, closed = d.RetryReason+why+Instant(later), still
		}
	}
	if told := d.AnalysedAt.Add(time.Duration(Minutes(f.told(d.AnalysedAt))) * time.Minute); told.After(at) {
		wait(told, "; told to wait until ")
	}
	if back := d.stretched(p, f, at); !back.IsZero() {
		wait(back, "; "+f.Destination+" is down and expected back by ")
	}
	d.RetryReason += closed
}

// Sentence returns the RetryReason of R8 for the outcome, without additions.
func (d *Decision) Sentence() string {
	most := strconv.FormatInt(d.MaxRetries, 10)
	switch {
	case d.Outcome == PermanentError:
		return "Permanent error, not retried"
	case !d.ShouldRetry():
		return "Maximum of " + most + " retries reached"
	case d.ErrorClassification == Transient:
		return "Transient error, retry " + strconv.FormatInt(d.RetryCount, 10) + " of " + most
	}
	return "Unknown error, retry " + strconv.FormatInt(d.RetryCount, 10) + " of " + most
}

// open sets NextRetryTime to wanted or, if the destination is closed then, to a time in the next opening, before until
// if that can be. It returns the addition to RetryReason that says so; empty if it is open.
func (d *Decision) open(p *Policy, f *Failure, wanted, until time.Time) (closed string) {
	d.NextRetryTime = wanted
	c := p.Destinations.Of(f.Destination).Calendar
	if c.IsOpen(wanted) {
		return ""
	}
	d.NextRetryTime = p.Open(f.Destination, d.SubjectID, d.RetryCount, wanted, until)
	whole := d.AnalysedAt.Add(time.Duration(Minutes(d.Wait())) * time.Minute)
	if p.Precision() == time.Second && c.IsOpen(whole) && (until.IsZero() || !whole.After(until)) {
		d.NextRetryTime = whole
	}
	return "; closed at " + Instant(wanted) + ": " + c.Why(wanted)
}

// Event is the domain event of a decision (§12.3 of the business rules).
type Event struct {
	// Type is the event's name in the contract, such as RetryScheduled.
	Type string
	// LogName is the event field of the log line (R16, RN-BIL-005 §13.4).
	LogName string
	// Fields holds the fields of §12.3 by name, and possiblyAccepted (R33). claimId is the subject's id, even if its
	// policy has another name for it.
	Fields map[string]any
}

// BusinessRule is the document that defines the event and log names of a job type.
type BusinessRule string

// The two rules of claim re-submission.
const (
	RNBIL004 BusinessRule = "RN-BIL-004"
	RNBIL005 BusinessRule = "RN-BIL-005"
)

// severityCritical marks events that need a person.
const severityCritical = "CRITICAL"

// Event returns the domain event of d under a rule; nil for a rejection, which decides nothing.
// redactedError is the error text as events may carry it.
func (d *Decision) Event(rule BusinessRule, redactedError string) (e *Event) {
	at := Instant(d.AnalysedAt)
	switch {
	case d.Outcome == Retry:
		e = &Event{"RetryScheduled", "retry_scheduled", map[string]any{
			"claimId": d.SubjectID, "retryCount": d.RetryCount, "backoffMinutes": Minutes(d.Wait()),
			"nextRetryTime": Instant(d.NextRetryTime), "errorClassification": d.ErrorClassification,
		}}
		if rule == RNBIL004 {
			e.Type, e.LogName, e.Fields["timestamp"] = "SubmissionRetryScheduled", "submission_retry_scheduled", at
		} else {
			e.Fields["maxRetries"], e.Fields["scheduledAt"] = d.MaxRetries, at
			e.Fields["version"] = d.RetryCount // of the aggregate: it grows with every retry of an episode
		}
	case d.Outcome == MaxRetriesExceeded && rule == RNBIL004:
		e = &Event{"SubmissionRetryExhausted", "max_retries_exceeded", map[string]any{
			"claimId": d.SubjectID, "retryCount": d.RetryCount, "lastError": redactedError, "timestamp": at,
		}}
	case d.Outcome == MaxRetriesExceeded:
		attempts := min(d.RetryCount, math.MaxInt64-1) + 1 // the first submission counts (R12)
		e = Exceeded(d.SubjectID, redactedError, attempts, d.FirstFailure, d.AnalysedAt)
	case d.Outcome == PermanentError:
		e = &Event{"PermanentErrorDetected", "permanent_error_detected", map[string]any{
			"claimId": d.SubjectID, "errorType": d.Reason, "errorMessage": redactedError, "detectedAt": at,
			"severity": severityCritical,
		}}
	default:
		return nil
	}
	e.Fields["possiblyAccepted"] = d.PossiblyAccepted
	return e
}

// Exceeded returns the event of a claim that is given up at the instant at, after attempts tries since firstFailure.
func Exceeded(claim, redactedError string, attempts int64, firstFailure, at time.Time) *Event {
	return &Event{"MaxRetriesExceeded", "max_retries_exceeded", map[string]any{
		"claimId": claim, "finalError": redactedError, "totalAttempts": attempts,
		"totalDuration": text.ISODuration(at.Sub(firstFailure)), "exceededAt": Instant(at),
		"severity": severityCritical,
	}}
}

// The reasons for which the specification has no code.
const (
	ReasonMaxRetries Reason = "MAX_RETRIES"
	// ReasonTimeLimit is the policy's total limit reached (R20).
	ReasonTimeLimit Reason = "TIME_LIMIT"
	// ReasonDeadline is the claim's own deadline, which cannot be met any more (R29).
	ReasonDeadline   Reason = "DEADLINE"
	ReasonUnknown    Reason = "UNKNOWN"
	ReasonEmptyError Reason = "EMPTY_ERROR"
	// ReasonReported says that the process itself reported that it gave up (record-retry-outcome).
	ReasonReported Reason = "REPORTED_FAILURE"
	// ReasonNonRetryable says that the job itself called its error final (UC-004, FA-004.2).
	ReasonNonRetryable Reason = "NON_RETRYABLE"
	// ReasonProbablyAccepted is a duplicate of a claim whose first sending was not answered (R33).
	ReasonProbablyAccepted Reason = "PROBABLY_ACCEPTED"
)

// ruleReasons are the reasons that a rule may give: the codes of RN-BIL-005 and RN-BIL-004, then those without a code
// there.
var ruleReasons = []Reason{
	"INVALID_PATIENT_DATA", "INSURANCE_EXPIRED", "AUTHORIZATION_DENIED", "DUPLICATE_CLAIM", "INVALID_PROCEDURE_CODE",
	"TIMEOUT", "CONNECTION_ERROR", "SERVICE_UNAVAILABLE", "NETWORK_ERROR", "TEMPORARY_ERROR", "RATE_LIMIT", "SERVER_ERROR",
	"503", "504",

	"POSSIBLY_ACCEPTED",   // the other side may have it already: ask, do not resend
	"DEFERRED",            // waits for a date or a person
	"INVALID_CREDENTIALS", // one cause for many
	"INVALID_CERTIFICATE",
	"ACCESS_DENIED",
	"INVALID_MESSAGE",   // outside the schema, wrong hash, wrong version
	"INVALID_RECIPIENT", // sent to, or by, whom the other side does not know
	"CLAIM_DENIED",      // a business denial that has no code of its own
	"DEADLINE_PASSED",
	"INVALID_REQUEST",
	"NOT_FOUND",
}

// RuleReasons lists the reasons that a rule may give.
func RuleReasons() []Reason { return slices.Clone(ruleReasons) }

// Reasons lists every reason.
func Reasons() []Reason {
	return append([]Reason{ReasonMaxRetries, ReasonTimeLimit, ReasonDeadline, ReasonUnknown, ReasonEmptyError,
		ReasonReported, ReasonNonRetryable, ReasonProbablyAccepted}, ruleReasons...)
}

// Types of package classify under the names that the business rules use.
type (
	// ErrorClassification is the value object of RN-BIL-005 §12.2.
	ErrorClassification = classify.Class
	// Reason is the cause of a decision, from a closed set.
	Reason = classify.Reason
	// Team is the team that must act on a dead letter (R21).
	Team = classify.Team
)

// The classifications (R4).
const (
	Transient = classify.Transient
	Permanent = classify.Permanent
	Unknown   = classify.Unknown
)

// Hint returns what people should do about d; it may be empty. rule is the hint of the rule that matched, if any.
func (d *Decision) Hint(rule string) string {
	if d.Reason == ReasonProbablyAccepted {
		return "Procure o protocolo desta guia na operadora: ela provavelmente já foi aceita no envio que ficou sem resposta."
	}
	return rule
}

// ProbablyAcceptedTeam acts on claims that the portal already has (R33).
const ProbablyAcceptedTeam Team = "faturamento"

// AlreadyThere reports whether an error of that class and reason says that the portal already has the claim.
func AlreadyThere(class ErrorClassification, reason Reason) bool {
	return class == Permanent && (reason == "DUPLICATE_CLAIM" || reason == "POSSIBLY_ACCEPTED")
}
