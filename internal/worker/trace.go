package worker

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"retry-worker/internal/journal"
)

// What a span says of a job: keys of the engine and words of closed sets. Nothing of its variables: those are people's.
const (
	attrJobKey          = "zeebe.job.key"
	attrProcessInstance = "zeebe.process_instance.key"
	attrElementInstance = "zeebe.element_instance.key"
	attrTenant          = "zeebe.tenant.id"
	attrAction          = "retry_worker.action"
	attrPolicy          = "retry_worker.policy"
	attrOutcome         = "retry_worker.outcome"
	attrClassification  = "retry_worker.classification"
	attrReason          = "retry_worker.reason"
	attrTeam            = "retry_worker.team"
	attrRetryCount      = "retry_worker.retry_count"
	attrBackoff         = "retry_worker.backoff_seconds"
	attrHow             = "retry_worker.recorded_as"
	attrRejection       = "retry_worker.rejection"
	attrRecord          = "retry_worker.journal.record"
)

// traceField names a job's trace in its log line.
const traceField = "traceId"

// traceOf is the trace that ctx is in, in hexadecimal; empty where none is kept.
func traceOf(ctx context.Context) string {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsSampled() {
		return ""
	}
	return span.TraceID().String()
}

// traced is Handle with a span of the whole way, from the handler to the engine's answer; the calls of the journal and
// of the engine are spans in it.
func (w *Worker) traced(kill context.Context, j *Job, h Handler) Action {
	ctx, span := w.cfg.Tracer.Start(kill, j.Type, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.Int64(attrJobKey, j.Key), attribute.Int64(attrProcessInstance, j.ProcessInstanceKey),
		attribute.Int64(attrElementInstance, j.ElementInstanceKey), attribute.String(attrTenant, j.TenantID)))
	defer span.End()
	action := w.deliver(ctx, j, w.reply(ctx, j, h))
	span.SetAttributes(attribute.String(attrAction, string(action)))
	if action != Completed && action != Thrown && action != kept {
		span.SetStatus(codes.Error, string(action))
	}
	return action
}

// inJournal has the journal decide and record in a span of its own, where the job has one, and says there what came of
// it.
func inJournal(ctx context.Context, memory *journal.Journal, n *journal.Analysis) (journal.Recorded, error) {
	job := trace.SpanFromContext(ctx)
	if !job.IsRecording() {
		return memory.Analyze(ctx, n)
	}
	ctx, span := job.TracerProvider().Tracer("retry-worker").Start(ctx, "journal",
		trace.WithAttributes(attribute.String(attrPolicy, n.Policy.Name)))
	defer span.End()
	r, err := memory.Analyze(ctx, n)
	if err != nil {
		span.SetStatus(codes.Error, "not recorded")
		return r, err
	}
	span.SetAttributes(attribute.String(attrHow, string(r.How)))
	d := &r.Decision
	if d.Rejection != nil {
		job.SetAttributes(attribute.String(attrPolicy, n.Policy.Name),
			attribute.String(attrRejection, string(d.Rejection.Code)))
		return r, err
	}
	span.SetAttributes(attribute.Int64(attrRecord, r.Attempt.Record))
	job.SetAttributes(
		attribute.String(attrPolicy, n.Policy.Name), attribute.String(attrOutcome, string(d.Outcome)),
		attribute.String(attrReason, string(d.Reason)),
		attribute.String(attrClassification, string(d.ErrorClassification)), attribute.String(attrTeam, string(d.Team)),
		attribute.Int64(attrRetryCount, d.RetryCount), attribute.Float64(attrBackoff, d.Wait().Seconds()))
	return r, nil
}
