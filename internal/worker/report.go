package worker

import (
	"context"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
)

// report feeds the metrics and writes the decision's one log line (RN-BIL-005 §13.4).
func (t *task) report(ctx context.Context, n *journal.Analysis, r *journal.Recorded, took time.Duration) {
	d := &r.Decision
	event := d.Event(t.rule, n.Error).LogName
	switch {
	case r.How == journal.Fresh:
		t.Hooks.Decided(d, took)
	case r.Ended:
		t.Hooks.Add(replayed, 1)
		t.Hooks.Ended(d.Policy)
	default:
		t.Hooks.Add(replayed, 1)
		event = "decision_replayed"
	}
	warning := warningOf(n, r)
	line := t.Log.Check(level(d, warning), d.RetryReason)
	if line == nil {
		return
	}
	fields := append(make([]zap.Field, 0, 23),
		zap.String("event", event),
		SubjectField(n.Policy, d.SubjectID),
		zap.String("submissionError", n.Error),
		zap.String("errorClassification", string(d.ErrorClassification)),
		zap.String("matchedRule", d.MatchedRule),
		zap.String("matchedText", d.MatchedText),
		zap.Int64("retryCount", d.RetryCount),
		zap.Int64("maxRetries", d.MaxRetries),
		zap.String("retryPolicy", d.Policy),
		zap.String("catalogue", d.Catalogue),
		zap.Float64("executionTimeMs", float64(took.Microseconds())/1000),
		zap.Int64("jobKey", t.Key),
		zap.Int64("processInstanceKey", t.ProcessInstanceKey),
	)
	if d.ShouldRetry() {
		fields = append(fields,
			zap.Int64("backoffMinutes", decision.Minutes(d.Wait())),
			zap.String("nextRetryTime", decision.Instant(d.NextRetryTime)))
	} else {
		fields = append(fields, zap.String("responsibleTeam", string(d.Team)),
			zap.String("deadLetterId", r.Attempt.DeadLetter))
	}
	if r.How == journal.Rebased {
		fields = append(fields, zap.Bool("rebased", true))
	}
	if warning != "" {
		fields = append(fields, zap.String("warning", warning))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
		fields = append(fields, zap.String(traceField, span.TraceID().String()))
	}
	line.Write(fields...)
}

// SubjectField returns the log field of a subject, redacted, under its policy's name: claimId (RN-BIL-005 §13.4),
// messageId, jobId. It is subjectId if the policy is gone (nil p), or if its name would clash with another field of the
// line.
func SubjectField(p *decision.Policy, id string) zap.Field {
	id = redact.Line(id, maxErrorBytes)
	if p == nil {
		return zap.String("subjectId", id)
	}
	switch p.IDVariable {
	case "timestamp", "level", "message", "logger", "event", "submissionError", "errorClassification", "matchedRule",
		"matchedText",
		"retryCount", "maxRetries", "retryPolicy", "catalogue", "executionTimeMs", "jobKey", "processInstanceKey",
		"backoffMinutes",
		"nextRetryTime", "responsibleTeam", "deadLetterId", "rebased", "warning", "state", traceField:
		return zap.String("subjectId", id)
	default:
		return zap.String(p.IDVariable, id)
	}
}

// level returns the log level of a decision.
func level(d *decision.Decision, warning string) zapcore.Level {
	switch {
	case d.Outcome == decision.MaxRetriesExceeded: // RN-BIL-005 §2.1.1
		return zap.ErrorLevel
	case d.Outcome == decision.PermanentError, d.ErrorClassification == decision.Unknown, warning != "": // R1.6
		return zap.WarnLevel
	default:
		return zap.InfoLevel
	}
}

// warningOf returns what is odd about the input and how that was treated.
func warningOf(n *journal.Analysis, r *journal.Recorded) string {
	switch {
	case r.Raised():
		return "retryCount " + strconv.FormatInt(r.Attempt.GivenCount, 10) +
			" is below the journal's and was raised to it; the model does not pass retryCount on"
	case n.Failure.LastSubmission.After(n.ReceivedAt): // R23
		return "lastSubmissionTime lies in the future and is ignored"
	case n.Failure.Own.NoDelay() && r.Decision.ShouldRetry():
		return n.Policy.Own.Delay + " is 0 and was raised to 1s"
	case r.Decision.Presumes() && r.Decision.ShouldRetry():
		return "looks like " + string(r.Decision.Reason) + ", retried to be sure"
	case decision.SaysNothing(n.Failure.Error):
		return n.Policy.ErrorVariable + " holds " + n.Failure.Error + ": the process passes no error text; check its mapping"
	default:
		return ""
	}
}

const (
	// maxMatchedBytes bounds the matched text that is kept or logged, redacted.
	maxMatchedBytes = 200
	// maxSearchedBytes is how much of a long error is redacted to look for matched text beyond maxErrorBytes.
	maxSearchedBytes = 16_000
	// harmless is the length of a text that identifies nobody, such as an HTTP status.
	harmless = 3
)

// shownText returns the matched text of f's error, if it may be shown; line is that error, redacted. Text that
// redaction changed was part of something personal, such as an e-mail address, and is left out.
func shownText(f *decision.Failure, matched, line string) string {
	if len(matched) <= harmless {
		return matched
	}
	text := redact.Line(matched, maxMatchedBytes)
	shown := strings.TrimSuffix(text, "…")
	if strings.Contains(line, shown) {
		return text
	}
	if len(f.Error) > maxErrorBytes && strings.Contains(redact.Line(f.Error, maxSearchedBytes), shown) {
		return text // beyond maxErrorBytes
	}
	return ""
}

// Evidence is evidence in an error, as people may see it.
type Evidence struct {
	Rank int    `json:"rank"`
	Rule string `json:"rule"`
	Text string `json:"text"`
	// Lost says why it does not count; empty for the deciding evidence.
	Lost string `json:"lost"`
}
