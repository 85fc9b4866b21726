package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
	"retry-worker/internal/text"
)

const (
	// maxErrorBytes bounds an error text that is kept or logged, redacted.
	maxErrorBytes = 1000
	// longBytes is the size of variables above which a job is long.
	longBytes = 64 << 10
	// maxContextBytes bounds one value of a claim's context.
	maxContextBytes = 200
)

// analyze is the use case of both rules: what follows a failed submission? It parses, then recalls, decides and records
// in one step of the journal, then replies.
func (t *task) analyze(ctx context.Context) (Reply, error) {
	if n := int64(min(len(t.Variables), maxVariableBytes)); n > longBytes {
		if err := t.long.Acquire(ctx, n); err != nil {
			return Reply{}, err
		}
		defer t.long.Release(n)
	}
	received, started := t.Now(), time.Now()
	policy, vs, err := t.open()
	if err != nil {
		return Reply{}, err
	}
	failure, rejection := policy.Read(policy.Variables(vs.get))
	if rejection != nil {
		return Reply{}, rejection
	}
	if policy.Stretch && t.Expected != nil {
		failure.Expected = t.Expected(failure.Destination)
	}
	analysis := t.analysis(policy, &failure, received)
	recorded, err := inJournal(ctx, t.Memory, analysis)
	switch {
	case err != nil:
		return Reply{}, err
	case recorded.How == journal.Stale:
		t.Log.Warn("the job was given to another worker while this one stood still, and was answered; nothing is recorded",
			zap.String("jobType", t.Type), zap.Int64("jobKey", t.Key))
		return Reply{Action: Superseded}, nil
	case recorded.Decision.Rejection != nil: // the journal has recorded it
		return t.reject(recorded.Decision.Rejection), nil
	}
	t.report(ctx, analysis, &recorded, time.Since(started))
	reply, d := Reply{Action: Completed, Taken: func() { t.Memory.Answered(&recorded) }}, &recorded.Decision
	if d.ShouldRetry() {
		reply.Variables = string(text.JSON(outputsOf(d, &failure)))
	} else {
		reply.Action, reply.Error = Thrown, thrown(d, &failure, recorded.Attempt.DeadLetter)
	}
	return reply, nil
}

func (t *task) analysis(p *decision.Policy, f *decision.Failure, received time.Time) *journal.Analysis {
	n := &journal.Analysis{
		Subject: t.subject(p.Name, f.ID),
		JobKey:  t.Key, ElementInstanceKey: t.ElementInstanceKey, ProcessInstanceKey: t.ProcessInstanceKey,
		LockedUntil: t.LockedUntil, Rule: t.rule, Policy: p, Failure: f, Error: redact.Line(f.Error, maxErrorBytes),
		ReceivedAt: received,
	}
	f.Match.Text, f.Destination, f.Context = shownText(f, f.Match.Text, n.Error), destinationOf(f), redacted(f.Context)
	return n
}

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
		"matchedText", "retryCount", "maxRetries", "retryPolicy", "catalogue", "executionTimeMs", "jobKey",
		"processInstanceKey", "backoffMinutes", "nextRetryTime", "responsibleTeam", "deadLetterId", "rebased", "warning",
		"state", traceField:
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

// Outputs holds the contract's outputs of a decision.
type Outputs struct {
	ShouldRetry         bool                         `json:"shouldRetry"`
	RetryCount          int64                        `json:"retryCount"`
	MaxRetries          int64                        `json:"maxRetries"`
	RetryReason         string                       `json:"retryReason"`
	ErrorClassification decision.ErrorClassification `json:"errorClassification"`
	OriginalError       json.RawMessage              `json:"originalError" type:"string,null" doc:"The error as it was sent."`
	RetryPolicy         string                       `json:"retryPolicy"`
	PossiblyAccepted    bool                         `json:"possiblyAccepted"`
	SuccessProbability  float64                      `json:"successProbability,omitempty" above:"0" below:"1"`
	BackoffMinutes      int64                        `json:"backoffMinutes,omitempty" doc:"Only where a retry follows."`
	BackoffDuration     string                       `json:"backoffDuration,omitempty" pattern:"^PT"`
	NextRetryTime       string                       `json:"nextRetryTime,omitempty" format:"date-time"`
	ResponsibleTeam     decision.Team                `json:"responsibleTeam,omitempty" doc:"Only where no retry follows."`
}

// outputsOf returns the outputs of a decision on a failure.
func outputsOf(d *decision.Decision, f *decision.Failure) Outputs {
	o := Outputs{
		ShouldRetry: d.ShouldRetry(), RetryCount: d.RetryCount, MaxRetries: d.MaxRetries, RetryReason: d.RetryReason,
		ErrorClassification: d.ErrorClassification, OriginalError: json.RawMessage(cmp.Or(f.OriginalError, "null")),
		RetryPolicy: d.Policy, PossiblyAccepted: d.PossiblyAccepted,
	}
	if !d.ShouldRetry() {
		o.ResponsibleTeam = d.Team
		return o
	}
	o.SuccessProbability, o.BackoffMinutes = d.SuccessProbability, decision.Minutes(d.Wait())
	o.BackoffDuration, o.NextRetryTime = text.ISODuration(d.Wait()), decision.Instant(d.NextRetryTime)
	return o
}

// thrown returns the BPMN error that tells the process of a decision.
func thrown(d *decision.Decision, f *decision.Failure, deadLetter string) BPMNError {
	variables := text.JSON(struct {
		Outputs
		DeadLetterID string `json:"deadLetterId"`
	}{outputsOf(d, f), deadLetter})
	return BPMNError{Code: string(d.Outcome), Message: d.RetryReason, Variables: string(variables)}
}

// Decision is what a dry run answers.
type Decision struct {
	Outcome decision.Outcome `json:"outcome"`
	Outputs
	MatchedRule *string         `json:"matchedRule"`
	Reason      decision.Reason `json:"reason"`
	MatchedText *string         `json:"matchedText"`
	Hint        *string         `json:"hint"`
	Catalogue   string          `json:"catalogue"`
	// Evidence lists the evidence, the deciding one first.
	Evidence []Evidence `json:"evidence,omitempty" doc:"What was found; the first decided."`
}

// DryRun decides without engine and journal, unless the input is rejected. get returns a variable of the process by
// name. foresee, unless nil, may change the failure; it gets the redacted error.
func DryRun(
	policies decision.Policies, policy string, get func(name string) decision.Value, now time.Time,
	foresee func(p *decision.Policy, f *decision.Failure, redacted string),
) (Decision, *decision.Rejection) {
	p, rejection := policies.Find(policy)
	if rejection != nil {
		return Decision{}, rejection
	}
	f, rejection := p.Read(p.Variables(get))
	if rejection != nil {
		return Decision{}, rejection
	}
	line := redact.Line(f.Error, maxErrorBytes)
	if foresee != nil {
		foresee(p, &f, line)
	}
	d := decision.Decide(&f, p, decision.Past{}, now)
	if d.Rejection != nil {
		return Decision{}, d.Rejection
	}
	shown := Decision{d.Outcome, outputsOf(&d, &f), journal.OrNull(d.MatchedRule), d.Reason,
		journal.OrNull(shownText(&f, f.Match.Text, line)), journal.OrNull(d.Hint(f.Match.Hint)), d.Catalogue, nil}
	for _, e := range p.Evidence(&f) {
		shown.Evidence = append(shown.Evidence, Evidence{int(e.Rank), e.Name, shownText(&f, e.Text, line), e.Lost})
	}
	return shown, nil
}
