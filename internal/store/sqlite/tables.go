package sqlite

import (
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

type (
	subjectRow    = journal.KeyedSubject
	episodeRow    = journal.KeyedEpisode
	attemptRow    = journal.KeyedAttempt
	deadLetterRow = journal.KeyedDeadLetter
)

var subjects = define(table[subjectRow]{name: "subjects", columns: []column[subjectRow]{
	number("key", func(r *subjectRow) *int64 { return &r.Key }),
	text("tenant", func(r *subjectRow) *string { return &r.Subject.Tenant }),
	text("policy", func(r *subjectRow) *string { return &r.Subject.Policy }),
	text("id", func(r *subjectRow) *string { return &r.Subject.ID }),
}})

var episodes = define(table[episodeRow]{name: "episodes", key: 2, upserts: true, columns: []column[episodeRow]{
	number("subject", func(r *episodeRow) *int64 { return &r.Key }),
	number("number", func(r *episodeRow) *int64 { return &r.Episode.Number }),
	text("state", func(r *episodeRow) *journal.State { return &r.Episode.State }),
	number("process_instance_key", func(r *episodeRow) *int64 { return &r.Episode.ProcessInstanceKey }),
	number("retries", func(r *episodeRow) *int64 { return &r.Episode.Retries }),
	number("scheduled", func(r *episodeRow) *int64 { return &r.Episode.Scheduled }),
	number("presumed", func(r *episodeRow) *int64 { return &r.Episode.Presumed }),
	instant("first_failure", func(r *episodeRow) *time.Time { return &r.Episode.FirstFailure }),
	instant("opened_at", func(r *episodeRow) *time.Time { return &r.Episode.OpenedAt }),
	instant("closed_at", func(r *episodeRow) *time.Time { return &r.Episode.ClosedAt }),
	instant("next_retry_time", func(r *episodeRow) *time.Time { return &r.Episode.NextRetryTime }),
	text("dead_letter", func(r *episodeRow) *string { return &r.Episode.DeadLetter }),
}})

// attempts are read into rows whose Attempt is not nil. The decision's policy and subject are those of
// the subject.
var attempts = define(table[attemptRow]{name: "attempts", columns: []column[attemptRow]{
	number("record", func(r *attemptRow) *int64 { return &r.Attempt.Record }),
	number("subject", func(r *attemptRow) *int64 { return &r.Key }),
	number("number", func(r *attemptRow) *int64 { return &r.Attempt.Number }),
	number("revision", func(r *attemptRow) *int64 { return &r.Attempt.Revision }),
	number("episode", func(r *attemptRow) *int64 { return &r.Attempt.Episode }),
	octets("identity", func(r *attemptRow) []byte { return r.Attempt.Identity[:] }),
	number("job_key", func(r *attemptRow) *int64 { return &r.Attempt.JobKey }),
	number("element_instance_key", func(r *attemptRow) *int64 { return &r.Attempt.ElementInstanceKey }),
	number("process_instance_key", func(r *attemptRow) *int64 { return &r.Attempt.ProcessInstanceKey }),
	text("rule", func(r *attemptRow) *decision.BusinessRule { return &r.Attempt.Rule }),
	text("error", func(r *attemptRow) *string { return &r.Attempt.Error }),
	number("given_count", func(r *attemptRow) *int64 { return &r.Attempt.GivenCount }),
	number("analysed_count", func(r *attemptRow) *int64 { return &r.Attempt.AnalysedCount }),
	instant("received_at", func(r *attemptRow) *time.Time { return &r.Attempt.ReceivedAt }),
	span("took_us", time.Microsecond, func(r *attemptRow) *time.Duration { return &r.Attempt.Took }),
	instant("analysed_at", func(r *attemptRow) *time.Time { return &r.Attempt.Decision.AnalysedAt }),
	instant("first_failure", func(r *attemptRow) *time.Time { return &r.Attempt.Decision.FirstFailure }),
	text("outcome", func(r *attemptRow) *decision.Outcome { return &r.Attempt.Decision.Outcome }),
	text("classification", func(r *attemptRow) *decision.ErrorClassification { return &r.Attempt.Decision.ErrorClassification }),
	text("reason", func(r *attemptRow) *decision.Reason { return &r.Attempt.Decision.Reason }),
	text("matched_rule", func(r *attemptRow) *string { return &r.Attempt.Decision.MatchedRule }),
	number("retry_count", func(r *attemptRow) *int64 { return &r.Attempt.Decision.RetryCount }),
	number("max_retries", func(r *attemptRow) *int64 { return &r.Attempt.Decision.MaxRetries }),
	span("delay_ns", time.Nanosecond, func(r *attemptRow) *time.Duration { return &r.Attempt.Decision.Backoff.Delay }),
	span("raw_ns", time.Nanosecond, func(r *attemptRow) *time.Duration { return &r.Attempt.Decision.Backoff.Raw }),
	fraction("jitter_ratio", func(r *attemptRow) *float64 { return &r.Attempt.Decision.Backoff.JitterRatio }),
	truth("at_maximum", func(r *attemptRow) *bool { return &r.Attempt.Decision.Backoff.AtMaximum }),
	instant("next_retry_time", func(r *attemptRow) *time.Time { return &r.Attempt.Decision.NextRetryTime }),
	text("retry_reason", func(r *attemptRow) *string { return &r.Attempt.Decision.RetryReason }),
	text("team", func(r *attemptRow) *decision.Team { return &r.Attempt.Decision.Team }),
	truth("count_assumed", func(r *attemptRow) *bool { return &r.Attempt.Decision.CountAssumed }),
	text("dead_letter", func(r *attemptRow) *string { return &r.Attempt.DeadLetter }),
	text("catalogue", func(r *attemptRow) *string { return &r.Attempt.Decision.Catalogue }),
	text("matched_text", func(r *attemptRow) *string { return &r.Attempt.Decision.MatchedText }),
}})

var deadLetters = define(table[deadLetterRow]{name: "dead_letters", key: 1, upserts: true, columns: []column[deadLetterRow]{
	text("id", func(r *deadLetterRow) *string { return &r.DeadLetter.ID }),
	number("subject", func(r *deadLetterRow) *int64 { return &r.Key }),
	text("state", func(r *deadLetterRow) *journal.DeadLetterState { return &r.DeadLetter.State }),
	number("episode", func(r *deadLetterRow) *int64 { return &r.DeadLetter.Episode }),
	number("record", func(r *deadLetterRow) *int64 { return &r.DeadLetter.Record }),
	text("outcome", func(r *deadLetterRow) *decision.Outcome { return &r.DeadLetter.Outcome }),
	text("reason", func(r *deadLetterRow) *decision.Reason { return &r.DeadLetter.Reason }),
	text("team", func(r *deadLetterRow) *decision.Team { return &r.DeadLetter.Team }),
	number("retry_count", func(r *deadLetterRow) *int64 { return &r.DeadLetter.RetryCount }),
	number("max_retries", func(r *deadLetterRow) *int64 { return &r.DeadLetter.MaxRetries }),
	number("process_instance_key", func(r *deadLetterRow) *int64 { return &r.DeadLetter.ProcessInstanceKey }),
	instant("created_at", func(r *deadLetterRow) *time.Time { return &r.DeadLetter.CreatedAt }),
	instant("changed_at", func(r *deadLetterRow) *time.Time { return &r.DeadLetter.ChangedAt }),
	kept(text("policy", func(r *deadLetterRow) *string { return &r.Policy })),
	kept(text("fingerprint", func(r *deadLetterRow) *string { return &r.Fingerprint })),
	text("delivery", func(r *deadLetterRow) *journal.Delivery { return &r.DeadLetter.Delivery }),
	number("answer", func(r *deadLetterRow) *int64 { return &r.DeadLetter.Answer }),
	number("review_job_key", func(r *deadLetterRow) *int64 { return &r.DeadLetter.ReviewJobKey }),
	instant("review_seen", func(r *deadLetterRow) *time.Time { return &r.DeadLetter.ReviewSeen }),
	truth("review_discard", func(r *deadLetterRow) *bool { return &r.DeadLetter.Review.Discard }),
	truth("review_force", func(r *deadLetterRow) *bool { return &r.DeadLetter.Review.Force }),
	truth("review_fresh", func(r *deadLetterRow) *bool { return &r.DeadLetter.Review.Fresh }),
	text("review_reason", func(r *deadLetterRow) *string { return &r.DeadLetter.Review.Reason }),
	text("reviewed_by", func(r *deadLetterRow) *string { return &r.DeadLetter.Review.By }),
	instant("reviewed_at", func(r *deadLetterRow) *time.Time { return &r.DeadLetter.Review.At }),
	instant("review_next", func(r *deadLetterRow) *time.Time { return &r.DeadLetter.Review.NextRetryTime }),
	text("run", func(r *deadLetterRow) *string { return &r.DeadLetter.Run }),
}})

var entries = define(table[journal.Entry]{name: "entries", columns: []column[journal.Entry]{
	number("record", func(r *journal.Entry) *int64 { return &r.Record }),
	text("kind", func(r *journal.Entry) *journal.EntryKind { return &r.Kind }),
	instant("at", func(r *journal.Entry) *time.Time { return &r.At }),
	text("tenant", func(r *journal.Entry) *string { return &r.Subject.Tenant }),
	text("policy", func(r *journal.Entry) *string { return &r.Subject.Policy }),
	text("id", func(r *journal.Entry) *string { return &r.Subject.ID }),
	text("body", func(r *journal.Entry) *string { return &r.Body }),
}})

var outbox = define(table[journal.Message]{name: "outbox", columns: []column[journal.Message]{
	text("id", func(r *journal.Message) *string { return &r.ID }),
	text("queue", func(r *journal.Message) *string { return &r.Queue }),
	text("key", func(r *journal.Message) *string { return &r.Key }),
	text("type", func(r *journal.Message) *string { return &r.Type }),
	text("body", func(r *journal.Message) *string { return &r.Body }),
	instant("at", func(r *journal.Message) *time.Time { return &r.At }),
}})

// queued are messages with their place in the outbox, as they are read.
var queued = define(table[journal.Message]{name: "outbox", columns: append(
	[]column[journal.Message]{number("sequence", func(r *journal.Message) *int64 { return &r.Sequence })}, outbox.columns...)})

var figures = define(table[journal.Figure]{name: "figures", key: 4, upserts: true, columns: []column[journal.Figure]{
	number("slot", func(r *journal.Figure) *int64 { return &r.Slot }),
	text("policy", func(r *journal.Figure) *string { return &r.Policy }),
	text("name", func(r *journal.Figure) *journal.FigureName { return &r.Name }),
	number("bucket", func(r *journal.Figure) *int64 { return &r.Bucket }),
	summed(number("value", func(r *journal.Figure) *int64 { return &r.Value })),
}})

var fingerprints = define(table[journal.Fingerprint]{name: "fingerprints", key: 1, upserts: true, columns: []column[journal.Fingerprint]{
	text("id", func(r *journal.Fingerprint) *string { return &r.ID }),
	kept(text("policy", func(r *journal.Fingerprint) *string { return &r.Policy })),
	kept(text("reason", func(r *journal.Fingerprint) *decision.Reason { return &r.Reason })),
	kept(text("classification", func(r *journal.Fingerprint) *decision.ErrorClassification { return &r.Classification })),
	kept(text("pattern", func(r *journal.Fingerprint) *string { return &r.Pattern })),
	least(instant("first_seen", func(r *journal.Fingerprint) *time.Time { return &r.FirstSeen })),
	greatest(instant("last_seen", func(r *journal.Fingerprint) *time.Time { return &r.LastSeen })),
	summed(number("failures", func(r *journal.Fingerprint) *int64 { return &r.Failures })),
	summed(number("retried", func(r *journal.Fingerprint) *int64 { return &r.Retried })),
	summed(number("exhausted", func(r *journal.Fingerprint) *int64 { return &r.Exhausted })),
	summed(number("permanent", func(r *journal.Fingerprint) *int64 { return &r.Permanent })),
	summed(number("recovered", func(r *journal.Fingerprint) *int64 { return &r.Recovered })),
}})

// bulkRow is a bulk run, and the last record of the commit it was begun in.
type bulkRow struct {
	journal.BulkRun
	begun int64
}

var bulkRuns = define(table[bulkRow]{name: "bulk_runs", key: 1, upserts: true, columns: []column[bulkRow]{
	text("id", func(r *bulkRow) *string { return &r.ID }),
	text("state", func(r *bulkRow) *journal.BulkState { return &r.State }),
	kept(text("action", func(r *bulkRow) *journal.BulkAction { return &r.Action })),
	kept(text("filter_policy", func(r *bulkRow) *string { return &r.Filter.Policy })),
	kept(text("filter_team", func(r *bulkRow) *decision.Team { return &r.Filter.Team })),
	kept(text("filter_reason", func(r *bulkRow) *decision.Reason { return &r.Filter.Reason })),
	kept(text("filter_fingerprint", func(r *bulkRow) *string { return &r.Filter.Fingerprint })),
	kept(instant("filter_since", func(r *bulkRow) *time.Time { return &r.Filter.Since })),
	kept(instant("filter_until", func(r *bulkRow) *time.Time { return &r.Filter.Until })),
	kept(text("filter_query", func(r *bulkRow) *string { return &r.Filter.Query })),
	kept(number("through", func(r *bulkRow) *int64 { return &r.Through })),
	kept(text("reason", func(r *bulkRow) *string { return &r.Reason })),
	kept(text("begun_by", func(r *bulkRow) *string { return &r.By })),
	kept(truth("force", func(r *bulkRow) *bool { return &r.Force })),
	kept(truth("fresh", func(r *bulkRow) *bool { return &r.Fresh })),
	kept(truth("now", func(r *bulkRow) *bool { return &r.Now })),
	kept(number("per_minute", func(r *bulkRow) *int64 { return &r.PerMinute })),
	text("hold", func(r *bulkRow) *string { return &r.Hold }),
	instant("held_at", func(r *bulkRow) *time.Time { return &r.HeldAt }),
	text("changed_by", func(r *bulkRow) *string { return &r.ChangedBy }),
	instant("changed_at", func(r *bulkRow) *time.Time { return &r.ChangedAt }),
	kept(instant("created_at", func(r *bulkRow) *time.Time { return &r.CreatedAt })),
	instant("started_at", func(r *bulkRow) *time.Time { return &r.StartedAt }),
	instant("ended_at", func(r *bulkRow) *time.Time { return &r.EndedAt }),
	kept(number("begun", func(r *bulkRow) *int64 { return &r.begun })),
}})
