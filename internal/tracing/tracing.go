// Package tracing sends spans by OTLP where the standard OTEL_* variables ask for it.
package tracing

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
	"google.golang.org/grpc"
)

// The protocols by which spans are sent, in the words of OTEL_EXPORTER_OTLP_PROTOCOL.
const (
	GRPC = "grpc"
	HTTP = "http/protobuf"
)

// Tracing makes spans and sends them in the background; of a nil one there are none. Safe for concurrent use.
type Tracing struct {
	provider *sdktrace.TracerProvider
}

// Open begins to trace; the collector need not be there, and spans that it does not take are dropped. protocol is one
// of the above; address, certificates, headers, sampler and the like are read from the standard variables. failed is
// told, from any goroutine, what could not be sent.
func Open(ctx context.Context, protocol, version string, failed func(error)) (*Tracing, error) {
	client := otlptracehttp.NewClient()
	if protocol == GRPC {
		client = otlptracegrpc.NewClient()
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("prepare to send traces: %w", err)
	}
	// What the variables say comes last: OTEL_SERVICE_NAME beats the name here.
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "retry-worker"),
			attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe this program for traces (OTEL_RESOURCE_ATTRIBUTES): %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(failed))
	return &Tracing{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))}, nil
}

// Tracer returns the one of the worker's own spans.
func (t *Tracing) Tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.provider.Tracer("retry-worker")
}

// DialOption makes a span of each call to the engine but the polls, which are nobody's job, and lets the gateway know
// of whose trace it is.
func (t *Tracing) DialOption() grpc.DialOption {
	if t == nil {
		return grpc.EmptyDialOption{}
	}
	return grpc.WithStatsHandler(otelgrpc.NewClientHandler(
		otelgrpc.WithTracerProvider(t.provider), otelgrpc.WithPropagators(propagation.TraceContext{}),
		otelgrpc.WithFilter(filters.Not(filters.MethodName("ActivateJobs")))))
}

// Close sends what waits, until ctx ends at the latest.
func (t *Tracing) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }
