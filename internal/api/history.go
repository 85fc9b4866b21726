package api

import (
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Keys of the engine are texts in JSON: a number would lose its last digits in JavaScript.

// View is what the API and the command line show of a subject, as JSON.
type View struct {
	Tenant string `json:"tenant"`
	// State of the latest episode.
	State         journal.State  `json:"state"`
	Status        journal.Status `json:"status"`
	RetryCount    int64          `json:"retryCount"`
	NextRetryTime *string        `json:"nextRetryTime"`
	DeadLetterID  *string        `json:"deadLetterId"`
	// HeldSince is since when a process of it waits at a gate; null where none does.
	HeldSince *string `json:"heldSince"`

	Episodes []EpisodeView `json:"episodes"`
	Attempts []AttemptView `json:"attempts"`
}

// EpisodeView is one episode as JSON.
type EpisodeView struct {
	Number             int64         `json:"number"`
	State              journal.State `json:"state"`
	RetryCount         int64         `json:"retryCount"`
	FirstFailure       string        `json:"firstFailure"`
	OpenedAt           string        `json:"openedAt"`
	ClosedAt           *string       `json:"closedAt"`
	NextRetryTime      *string       `json:"nextRetryTime"`
	DeadLetterID       *string       `json:"deadLetterId"`
	ProcessInstanceKey int64         `json:"processInstanceKey,string"`
}

// AttemptView is one attempt as JSON, in one of its revisions.
type AttemptView struct {
	AttemptNumber       int64                        `json:"attemptNumber"`
	Revision            int64                        `json:"revision"`
	Episode             int64                        `json:"episode"`
	Timestamp           string                       `json:"timestamp"`
	Error               string                       `json:"error"`
	ErrorClassification decision.ErrorClassification `json:"errorClassification"`
	MatchedRule         *string                      `json:"matchedRule"`
	// MatchedText is what the rule matched, with nothing personal in it. It and Catalogue, the version of the
	// catalogue that was decided by, are null in records of a worker that did not keep them.
	MatchedText *string          `json:"matchedText"`
	Catalogue   *string          `json:"catalogue"`
	Reason      decision.Reason  `json:"reason"`
	Outcome     decision.Outcome `json:"outcome"`
	// AnalysedRetryCount is what was decided on, RetryCount what the process got.
	AnalysedRetryCount int64         `json:"analysedRetryCount"`
	RetryCount         int64         `json:"retryCount"`
	MaxRetries         int64         `json:"maxRetries"`
	BackoffMinutes     *int64        `json:"backoffMinutes"`
	NextRetryTime      *string       `json:"nextRetryTime"`
	RetryReason        string        `json:"retryReason"`
	ResponsibleTeam    decision.Team `json:"responsibleTeam,omitempty"`
	DeadLetterID       *string       `json:"deadLetterId"`
	ExecutionTimeMs    float64       `json:"executionTimeMs"`
	JobKey             int64         `json:"jobKey,string"`
	ProcessInstanceKey int64         `json:"processInstanceKey,string"`
}

// ViewOf returns the story as it stands at instant now.
func ViewOf(s *journal.Story, now time.Time) View {
	v := View{Tenant: s.Subject.Tenant, Episodes: make([]EpisodeView, 0, len(s.Episodes)), Attempts: make([]AttemptView, 0, len(s.Attempts)),
		Status: journal.StatusPending} // until it fails
	for i := range s.Episodes {
		v.Episodes = append(v.Episodes, episodeView(&s.Episodes[i], now))
	}
	for i := range s.Attempts {
		v.Attempts = append(v.Attempts, attemptView(&s.Attempts[i]))
	}
	if len(s.Held) > 0 {
		v.HeldSince = journal.InstantOrNull(s.Held[0].Since)
	}
	if n := len(v.Episodes); n > 0 {
		latest := &v.Episodes[n-1]
		v.State, v.Status = latest.State, latest.State.Status()
		v.RetryCount, v.NextRetryTime, v.DeadLetterID = latest.RetryCount, latest.NextRetryTime, latest.DeadLetterID
	}
	return v
}

func episodeView(e *journal.Episode, now time.Time) EpisodeView {
	return EpisodeView{
		Number: e.Number, State: e.StateAt(now), RetryCount: e.Retries, ProcessInstanceKey: e.ProcessInstanceKey,
		FirstFailure: decision.Instant(e.FirstFailure), OpenedAt: decision.Instant(e.OpenedAt), ClosedAt: journal.InstantOrNull(e.ClosedAt),
		NextRetryTime: journal.InstantOrNull(e.NextRetryTime), DeadLetterID: journal.OrNull(e.DeadLetter),
	}
}

func attemptView(a *journal.Attempt) AttemptView {
	d := &a.Decision
	v := AttemptView{
		AttemptNumber: a.Number, Revision: a.Revision, Episode: a.Episode, Timestamp: decision.Instant(d.AnalysedAt), Error: a.Error,
		ErrorClassification: d.ErrorClassification, MatchedRule: journal.OrNull(d.MatchedRule),
		MatchedText: journal.OrNull(d.MatchedText), Catalogue: journal.OrNull(d.Catalogue), Reason: d.Reason, Outcome: d.Outcome,
		AnalysedRetryCount: a.AnalysedCount, RetryCount: d.RetryCount, MaxRetries: d.MaxRetries,
		NextRetryTime: journal.InstantOrNull(d.NextRetryTime), RetryReason: d.RetryReason, ResponsibleTeam: d.Team,
		DeadLetterID: journal.OrNull(a.DeadLetter), ExecutionTimeMs: float64(a.Took.Microseconds()) / 1000,
		JobKey: a.JobKey, ProcessInstanceKey: a.ProcessInstanceKey,
	}
	if d.ShouldRetry() {
		minutes := decision.Minutes(d.Wait())
		v.BackoffMinutes = &minutes
	}
	return v
}
