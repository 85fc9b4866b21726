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
func (a *Analyzer) report(ctx context.Context, j *Job, n *journal.Analysis, r *journal.Recorded, took time.Duration) {
	d := &r.Decision
	event := d.Event(a.rule, n.Error).LogName
	switch {
	case r.How == journal.Fresh:
		a.hooks.Decided(j.Type, d, took)
	case r.Ended:
		a.hooks.Replayed()
		a.hooks.Ended(d)
	default:
		a.hooks.Replayed()
		event = "decision_replayed"
	}
	warning := a.warning(n, r)
	line := a.log.Check(level(d, warning), d.RetryReason)
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
		zap.Int64("jobKey", j.Key),
		zap.Int64("processInstanceKey", j.ProcessInstanceKey),
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

// SubjectField names a subject in a log line as its policy does: claimId (RN-BIL-005 §13.4), messageId, jobId.
// What is personal in an id is redacted. An id variable that is called as another field is (message, event) would make
// a line with two of that name; it is subjectId there, and for p nil, a policy that is gone.
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

// level returns that of a decision's line.
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

// warning says what was odd about the input, and what was done about it.
func (a *Analyzer) warning(n *journal.Analysis, r *journal.Recorded) string {
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
	// maxMatchedBytes of what a rule matched are kept or logged, redacted.
	maxMatchedBytes = 200
	// maxSearchedBytes of an error are redacted to see whether what a rule matched far behind may be shown.
	maxSearchedBytes = 16_000
	// harmless is how much text names nobody: a status, that came beside the error.
	harmless = 3
)

// shownText returns what a rule matched in f's error as a sink may have it. line is that error, redacted: what is not
// found in it as it is was part of something personal (an e-mail address holds many a word), and is left out.
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
		return text // behind the cut
	}
	return ""
}

// Evidence is a piece of evidence in an error, as people may see it.
type Evidence struct {
	Rank int    `json:"rank"`
	Rule string `json:"rule"`
	Text string `json:"text"`
	// Lost says why it does not count; empty for what decided.
	Lost string `json:"lost"`
}
