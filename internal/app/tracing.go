package app

import (
	"context"
	"fmt"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"retry-worker/internal/config"
	"retry-worker/internal/redact"
)

// tracing makes spans and sends them by OTLP in the background; a nil one makes none. It is safe for concurrent use.
type tracing struct {
	provider *sdktrace.TracerProvider
}

// openTracing starts tracing if the settings ask for it.
func (a *App) openTracing() (err error) {
	if a.settings.TraceProtocol == "" {
		return nil
	}
	a.tracing, err = startTracing(context.Background(), a.settings.TraceProtocol, a.version, func(err error) {
		a.log.Warn("traces could not be sent and are dropped; decisions go on", zap.String("event", "traces_dropped"),
			zap.String("error", redact.Line(err.Error(), maxTraceError)))
	})
	if err != nil {
		return err
	}
	a.cleanups = append(a.cleanups, cleanup{"traces", a.tracing.close})
	return nil
}

// maxTraceError bounds the log's text on spans that were not sent, in bytes.
const maxTraceError = 300

// startTracing starts tracing; the collector may be down, and spans that it does not take are dropped. The exporter
// reads the standard OTEL_* variables. failed is called from any goroutine if spans could not be sent.
func startTracing(ctx context.Context, protocol, version string, failed func(error)) (*tracing, error) {
	client := otlptracehttp.NewClient()
	if protocol == config.TraceGRPC {
		client = otlptracegrpc.NewClient()
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("prepare to send traces: %w", err)
	}
	// The variables come last, so that OTEL_SERVICE_NAME wins over the name here.
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "retry-worker"),
			attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe this program for traces (OTEL_RESOURCE_ATTRIBUTES): %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(failed))
	return &tracing{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))}, nil
}

// tracer returns the tracer of the worker's own spans; nil if there is none.
func (t *tracing) tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.provider.Tracer("retry-worker")
}

// dialOption makes a span of each call to the engine except polls, which belong to no job. It also sends the trace
// context to the gateway.
func (t *tracing) dialOption() grpc.DialOption {
	if t == nil {
		return grpc.EmptyDialOption{}
	}
	return grpc.WithStatsHandler(otelgrpc.NewClientHandler(
		otelgrpc.WithTracerProvider(t.provider), otelgrpc.WithPropagators(propagation.TraceContext{}),
		otelgrpc.WithFilter(filters.Not(filters.MethodName("ActivateJobs")))))
}

// close sends the waiting spans, until ctx ends.
func (t *tracing) close(ctx context.Context) error { return t.provider.Shutdown(ctx) }
