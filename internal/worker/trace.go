package worker

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"retry-worker/internal/journal"
)

// traceField names a job's trace in its log line.
const traceField = "traceId"

// traced is Handle within a span, from the handler to the engine's answer; calls of the journal and of the engine are
// spans inside it. Spans hold the engine's keys and words of closed sets, but no variables, which may be personal.
func (w *Worker) traced(kill context.Context, j *Job, h Handler) Action {
	ctx, span := w.cfg.Tracer.Start(kill, j.Type, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.Int64("zeebe.job.key", j.Key), attribute.Int64("zeebe.process_instance.key", j.ProcessInstanceKey),
		attribute.Int64("zeebe.element_instance.key", j.ElementInstanceKey),
		attribute.String("zeebe.tenant.id", j.TenantID)))
	defer span.End()
	action := w.deliver(ctx, j, w.reply(ctx, j, h))
	span.SetAttributes(attribute.String("retry_worker.action", string(action)))
	if action != Completed && action != Thrown && action != held {
		span.SetStatus(codes.Error, string(action))
	}
	return action
}

// inJournal calls the journal's Analyze, in a span of its own if the job has one.
func inJournal(ctx context.Context, memory *journal.Journal, n *journal.Analysis) (journal.Recorded, error) {
	job := trace.SpanFromContext(ctx)
	if !job.IsRecording() {
		return memory.Analyze(ctx, n)
	}
	policy := attribute.String("retry_worker.policy", n.Policy.Name)
	ctx, span := job.TracerProvider().Tracer("retry-worker").Start(ctx, "journal", trace.WithAttributes(policy))
	defer span.End()
	r, err := memory.Analyze(ctx, n)
	if err != nil {
		span.SetStatus(codes.Error, "not recorded")
		return r, err
	}
	span.SetAttributes(attribute.String("retry_worker.recorded_as", string(r.How)))
	d := &r.Decision
	if d.Rejection != nil {
		job.SetAttributes(policy, attribute.String("retry_worker.rejection", string(d.Rejection.Code)))
		return r, err
	}
	span.SetAttributes(attribute.Int64("retry_worker.journal.record", r.Attempt.Record))
	job.SetAttributes(policy,
		attribute.String("retry_worker.outcome", string(d.Outcome)),
		attribute.String("retry_worker.reason", string(d.Reason)),
		attribute.String("retry_worker.classification", string(d.ErrorClassification)),
		attribute.String("retry_worker.team", string(d.Team)),
		attribute.Int64("retry_worker.retry_count", d.RetryCount),
		attribute.Float64("retry_worker.backoff_seconds", d.Wait().Seconds()))
	return r, nil
}
