package api

import (
	"strconv"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// DeadLetter is a dead letter as the API shows it. Keys of the engine are texts: a number would lose its last digits in
// JavaScript.
type DeadLetter struct {
	ID              string                  `json:"id"`
	State           journal.DeadLetterState `json:"state"`
	Subject         SubjectName             `json:"subject"`
	Outcome         decision.Outcome        `json:"outcome"`
	Reason          decision.Reason         `json:"reason"`
	ResponsibleTeam decision.Team           `json:"responsibleTeam"`
	// ErrorClassification, MatchedRule and Fingerprint are null where the process reported the failure itself.
	ErrorClassification *string `json:"errorClassification"`
	MatchedRule         *string `json:"matchedRule"`
	// Error has nothing personal in it.
	Error       string  `json:"error"`
	Fingerprint *string `json:"fingerprint"`
	RetryCount  int64   `json:"retryCount"`
	MaxRetries  int64   `json:"maxRetries"`
	// ForceNeeded tells that a retry takes forceRetry: the limit is reached.
	ForceNeeded        bool    `json:"forceNeeded"`
	Episode            int64   `json:"episode"`
	FirstFailure       *string `json:"firstFailure"`
	CreatedAt          string  `json:"createdAt"`
	ChangedAt          string  `json:"changedAt"`
	ProcessInstanceKey int64   `json:"processInstanceKey,string"`
	// Process says whether one waits for a decision, Delivery what became of the answer to it.
	Process  deadletter.Process `json:"process"`
	Delivery string             `json:"delivery"`
	// ReviewJobKey is the job by which the process waits, ReviewSeen when it was last seen; null where none was.
	ReviewJobKey *string `json:"reviewJobKey"`
	ReviewSeen   *string `json:"reviewSeen"`
	// Review that was decided; null where nothing was.
	Review *Review `json:"review"`
	// BulkRun that decided it; null where a person decided on this one alone, or nobody did.
	BulkRun *string `json:"bulkRun"`
}

// SubjectName is what a dead letter is of.
type SubjectName struct {
	Tenant string `json:"tenant"`
	Policy string `json:"policy"`
	ID     string `json:"id"`
}

// Review is what a person decided.
type Review struct {
	// Decision is reprocess or discard.
	Decision      string  `json:"decision"`
	Reason        string  `json:"reason"`
	By            string  `json:"by"`
	At            string  `json:"at"`
	ForceRetry    bool    `json:"forceRetry"`
	Fresh         bool    `json:"fresh"`
	NextRetryTime *string `json:"nextRetryTime"`
}

// noDelivery is journal.DeliveryNone in words, answered is deadletter.Answered.
const (
	noDelivery                    = "none"
	answered   deadletter.Process = "answered"
)

func deadLetterOf(i *deadletter.Item) DeadLetter {
	d := DeadLetter{
		ID: i.ID, State: i.State, Subject: SubjectName{i.Subject.Tenant, i.Subject.Policy, i.Subject.ID},
		Outcome: i.Outcome, Reason: i.Reason, ResponsibleTeam: i.Team,
		ErrorClassification: journal.OrNull(string(i.Classification)), MatchedRule: journal.OrNull(i.MatchedRule), Error: i.Error, Fingerprint: journal.OrNull(i.Fingerprint),
		RetryCount: i.RetryCount, MaxRetries: i.MaxRetries, ForceNeeded: i.RetryCount >= i.MaxRetries, Episode: i.Episode,
		FirstFailure: journal.InstantOrNull(i.FirstFailure), CreatedAt: decision.Instant(i.CreatedAt), ChangedAt: decision.Instant(i.ChangedAt),
		ProcessInstanceKey: i.ProcessInstanceKey, Process: i.Process, Delivery: string(i.Delivery),
		ReviewSeen: journal.InstantOrNull(i.ReviewSeen), Review: reviewOf(&i.Review), BulkRun: journal.OrNull(i.Run),
	}
	if i.Delivery == journal.DeliveryNone {
		d.Delivery = noDelivery
	}
	if i.Process == deadletter.Answered {
		d.Process = answered
	}
	if i.ReviewJobKey != 0 {
		d.ReviewJobKey = journal.OrNull(strconv.FormatInt(i.ReviewJobKey, 10))
	}
	return d
}

func reviewOf(n *journal.ReviewNote) *Review {
	if n.At.IsZero() {
		return nil
	}
	r := &Review{Decision: "reprocess", Reason: n.Reason, By: n.By, At: decision.Instant(n.At), ForceRetry: n.Force, Fresh: n.Fresh,
		NextRetryTime: journal.InstantOrNull(n.NextRetryTime)}
	if n.Discard {
		r.Decision = "discard"
	}
	return r
}
