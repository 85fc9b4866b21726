package app

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"retry-worker/internal/config"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/tracingtest"
	"retry-worker/internal/testkit/wait"
)

func TestSpansArrive(t *testing.T) {
	for _, protocol := range []string{config.TraceGRPC, config.TraceHTTP} {
		t.Run(protocol, func(t *testing.T) {
			collector := tracingtest.Start(t, protocol)
			t.Setenv("OTEL_SERVICE_NAME", "retry-worker-night")
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
			tr := traced(t, protocol, func(err error) { t.Errorf("spans were not sent: %v", err) })
			ctx, span := tr.Tracer("retry-worker").Start(context.Background(), "work")
			headers := callEngine(ctx, t, tr, "/gateway_protocol.Gateway/CompleteJob")
			callEngine(context.Background(), t, tr, "/gateway_protocol.Gateway/ActivateJobs")
			span.End()
			testkit.Must(t, tr.Shutdown(wait.Context(t)))
			spans := collector.Spans()
			if len(spans) != 2 {
				t.Fatalf("%d spans arrived, expected the work and its call of the engine, not the poll: %v", len(spans), spans)
			}
			work, call := spans["work"], spans["gateway_protocol.Gateway/CompleteJob"]
			if call.Parent != work.ID || call.Trace != work.Trace {
				t.Errorf("the call is a span of %q in trace %q, expected of %q in %q", call.Parent, call.Trace, work.ID, work.Trace)
			}
			if about := work.Resource; about["service.name"] != "retry-worker-night" || about["service.version"] != "v1" || about["deployment.environment.name"] != "test" {
				t.Errorf("the spans are of %v, expected what the standard variables say, and the version", about)
			}
			if got := strings.Join(headers["traceparent"], ""); !strings.Contains(got, work.Trace) || !strings.Contains(got, call.ID) {
				t.Errorf("the gateway was told %q, expected trace %s and span %s", got, work.Trace, call.ID)
			}
		})
	}
}

// A collector that is away costs its spans, nothing else.
func TestCollectorThatIsAway(t *testing.T) {
	for _, protocol := range []string{config.TraceGRPC, config.TraceHTTP} {
		t.Run(protocol, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+deaf(t))
			t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "200")
			told := make(chan error, 100)
			tr := traced(t, protocol, func(err error) { told <- err })
			_, span := tr.Tracer("retry-worker").Start(context.Background(), "work")
			span.End()
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			err := tr.Shutdown(ctx)
			if err == nil {
				select {
				case err = <-told:
				case <-wait.Context(t).Done():
				}
			}
			if err == nil {
				t.Error("nobody was told that the spans are lost")
			}
		})
	}
}

func traced(t *testing.T, protocol string, failed func(error)) *sdktrace.TracerProvider {
	t.Helper()
	tr, err := startTracing(context.Background(), protocol, "v1", failed)
	testkit.Must(t, err)
	return tr
}

// deaf is an address that takes connections and answers nothing.
func deaf(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// callEngine calls a gateway as the worker does, and returns what the gateway was told beside the request.
func callEngine(ctx context.Context, t *testing.T, tr *sdktrace.TracerProvider, method string) metadata.MD {
	t.Helper()
	var told metadata.MD
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		told, _ = metadata.FromIncomingContext(s.Context())
		return status.Error(codes.NotFound, "no such job")
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), traceCalls(tr))
	testkit.Must(t, err)
	defer conn.Close()
	if err := conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{}); status.Code(err) != codes.NotFound {
		t.Fatalf("the gateway answered %v", err)
	}
	return told
}
