package postgres

import (
	"time"

	"retry-worker/internal/journal"
)

// The tables, by the rows that the journal knows. What a column holds is said in migrations.
var (
	lookupsTable     = tableOf("lookups", lookupFields, zero[journal.Lookup])
	subjectsTable    = tableOf("subjects", subjectFields, zero[journal.KeyedSubject])
	episodesTable    = tableOf("episodes", episodeFields, zero[journal.KeyedEpisode])
	attemptsTable    = tableOf("attempts", attemptFields, emptyAttempt)
	deadLettersTable = tableOf("dead_letters", deadLetterFields, zero[journal.KeyedDeadLetter])
	entriesTable     = tableOf("entries", entryFields, zero[journal.Entry])
	outboxTable      = tableOf("outbox", messageFields, zero[journal.Message])
	answeredTable    = tableOf("answered", runFields, zero[journal.Run])
	figuresTable     = tableOf("figures", figureFields, zero[journal.Figure])
	fingerprintTable = tableOf("fingerprints", fingerprintFields, zero[journal.Fingerprint])
)

// lookupFields are no table's: what the statement that loads is asked with.
func lookupFields(f fields, l *journal.Lookup) {
	tenancy(f, &l.Subject)
	if (l.Identity == journal.Identity{}) {
		f.fixed("identity", nil) // is nobody's
	} else {
		f.fixed("identity", l.Identity[:])
	}
	f.text("dead_letter", &l.DeadLetter)
}

func tenancy(f fields, s *journal.Subject) {
	f.text("tenant", &s.Tenant)
	f.text("policy", &s.Policy)
	f.text("id", &s.ID)
}

func subjectFields(f fields, s *journal.KeyedSubject) {
	f.number("key", &s.Key)
	tenancy(f, &s.Subject)
}

func episodeFields(f fields, k *journal.KeyedEpisode) {
	e := &k.Episode
	f.number("subject", &k.Key)
	f.number("number", &e.Number)
	f.text("state", (*string)(&e.State))
	f.number("process_instance_key", &e.ProcessInstanceKey)
	f.number("retries", &e.Retries)
	f.number("scheduled", &e.Scheduled)
	f.number("presumed", &e.Presumed)
	f.instant("first_failure", &e.FirstFailure)
	f.instant("opened_at", &e.OpenedAt)
	f.instant("closed_at", &e.ClosedAt)
	f.instant("next_retry_time", &e.NextRetryTime)
	f.text("dead_letter", &e.DeadLetter)
}

func emptyAttempt() journal.KeyedAttempt { return journal.KeyedAttempt{Attempt: new(journal.Attempt)} }

func attemptFields(f fields, k *journal.KeyedAttempt) {
	a, d := k.Attempt, &k.Attempt.Decision
	f.number("record", &a.Record)
	f.number("subject", &k.Key)
	f.number("number", &a.Number)
	f.number("revision", &a.Revision)
	f.number("episode", &a.Episode)
	f.fixed("identity", a.Identity[:])
	f.number("job_key", &a.JobKey)
	f.number("element_instance_key", &a.ElementInstanceKey)
	f.number("process_instance_key", &a.ProcessInstanceKey)
	f.text("rule", (*string)(&a.Rule))
	f.text("error", &a.Error)
	f.number("given_count", &a.GivenCount)
	f.number("analysed_count", &a.AnalysedCount)
	f.instant("received_at", &a.ReceivedAt)
	f.duration("took_us", &a.Took, time.Microsecond)
	f.text("dead_letter", &a.DeadLetter)
	f.instant("analysed_at", &d.AnalysedAt)
	f.instant("first_failure", &d.FirstFailure)
	f.text("outcome", (*string)(&d.Outcome))
	f.text("classification", (*string)(&d.ErrorClassification))
	f.text("reason", (*string)(&d.Reason))
	f.text("matched_rule", &d.MatchedRule)
	f.number("retry_count", &d.RetryCount)
	f.number("max_retries", &d.MaxRetries)
	f.duration("delay_ns", &d.Backoff.Delay, time.Nanosecond)
	f.duration("raw_ns", &d.Backoff.Raw, time.Nanosecond)
	f.ratio("jitter_ratio", &d.Backoff.JitterRatio)
	f.truth("at_maximum", &d.Backoff.AtMaximum)
	f.instant("next_retry_time", &d.NextRetryTime)
	f.text("retry_reason", &d.RetryReason)
	f.text("team", (*string)(&d.Team))
	f.truth("count_assumed", &d.CountAssumed)
	f.text("catalogue", &d.Catalogue)
	f.text("matched_text", &d.MatchedText)
}

func deadLetterFields(f fields, k *journal.KeyedDeadLetter) {
	d := &k.DeadLetter
	f.text("id", &d.ID)
	f.number("subject", &k.Key)
	f.text("state", (*string)(&d.State))
	f.number("episode", &d.Episode)
	f.number("record", &d.Record)
	f.text("outcome", (*string)(&d.Outcome))
	f.text("reason", (*string)(&d.Reason))
	f.text("team", (*string)(&d.Team))
	f.number("retry_count", &d.RetryCount)
	f.number("max_retries", &d.MaxRetries)
	f.number("process_instance_key", &d.ProcessInstanceKey)
	f.instant("created_at", &d.CreatedAt)
	f.instant("changed_at", &d.ChangedAt)
	f.text("policy", &k.Policy)
	f.text("fingerprint", &k.Fingerprint)
	f.text("delivery", (*string)(&d.Delivery))
	f.number("answer", &d.Answer)
	f.number("review_job_key", &d.ReviewJobKey)
	f.instant("review_seen", &d.ReviewSeen)
	f.truth("review_discard", &d.Review.Discard)
	f.truth("review_force", &d.Review.Force)
	f.truth("review_fresh", &d.Review.Fresh)
	f.text("review_reason", &d.Review.Reason)
	f.text("reviewed_by", &d.Review.By)
	f.instant("reviewed_at", &d.Review.At)
	f.instant("review_next", &d.Review.NextRetryTime)
	f.text("run", &d.Run)
}

func entryFields(f fields, e *journal.Entry) {
	f.number("record", &e.Record)
	f.text("kind", (*string)(&e.Kind))
	f.instant("at", &e.At)
	tenancy(f, &e.Subject)
	f.text("body", &e.Body)
}

func messageFields(f fields, m *journal.Message) {
	f.text("id", &m.ID)
	f.text("queue", &m.Queue)
	f.text("key", &m.Key)
	f.text("type", &m.Type)
	f.text("body", &m.Body)
	f.instant("at", &m.At)
}

func runFields(f fields, r *journal.Run) {
	f.number("first", &r.First)
	f.number("last", &r.Last)
}

func figureFields(f fields, g *journal.Figure) {
	f.number("slot", &g.Slot)
	f.text("policy", &g.Policy)
	f.text("name", (*string)(&g.Name))
	f.number("bucket", &g.Bucket)
	f.number("value", &g.Value)
}

// figureSums and fingerprintSums say what becomes of a row's columns that is there already.
var (
	figureSums      = map[string]string{"value": "sum"}
	fingerprintSums = map[string]string{"first_seen": "min", "last_seen": "max",
		"failures": "sum", "retried": "sum", "exhausted": "sum", "permanent": "sum", "recovered": "sum"}
)

func fingerprintFields(f fields, p *journal.Fingerprint) {
	f.text("id", &p.ID)
	f.text("policy", &p.Policy)
	f.text("reason", (*string)(&p.Reason))
	f.text("classification", (*string)(&p.Classification))
	f.text("pattern", &p.Pattern)
	f.instant("first_seen", &p.FirstSeen)
	f.instant("last_seen", &p.LastSeen)
	f.number("failures", &p.Failures)
	f.number("retried", &p.Retried)
	f.number("exhausted", &p.Exhausted)
	f.number("permanent", &p.Permanent)
	f.number("recovered", &p.Recovered)
}
