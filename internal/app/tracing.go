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
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"retry-worker/internal/config"
	"retry-worker/internal/redact"
)

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
	a.cleanups = append(a.cleanups, cleanup{"traces", a.tracing.Shutdown})
	return nil
}

// maxTraceError bounds the log's text on spans that were not sent, in bytes.
const maxTraceError = 300

// startTracing makes spans and sends them by OTLP in the background; the collector may be down, and spans that it does
// not take are dropped. The exporter reads the standard OTEL_* variables. failed is called from any goroutine if spans
// could not be sent.
func startTracing(
	ctx context.Context, protocol, version string, failed func(error),
) (*sdktrace.TracerProvider, error) {
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
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about)), nil
}

// traceCalls makes a span of each call to the engine except polls, which belong to no job. It also sends the trace
// context to the gateway.
func traceCalls(spans *sdktrace.TracerProvider) grpc.DialOption {
	return grpc.WithStatsHandler(otelgrpc.NewClientHandler(
		otelgrpc.WithTracerProvider(spans), otelgrpc.WithPropagators(propagation.TraceContext{}),
		otelgrpc.WithFilter(filters.Not(filters.MethodName("ActivateJobs")))))
}
