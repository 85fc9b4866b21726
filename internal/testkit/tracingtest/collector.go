// Package tracingtest collects spans, for tests.
package tracingtest

import (
	"cmp"
	"context"
	"encoding/hex"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it arrived: ids in hexadecimal digits, values as text.
type Span struct {
	Name, ID, Parent, Trace string
	Attributes, Resource    map[string]string
	// Start is when it began, in nanoseconds.
	Start uint64
	// Failed reports whether its status is an error.
	Failed bool
}

// Collector takes spans by OTLP. Safe for concurrent use.
type Collector struct {
	collector.UnimplementedTraceServiceServer

	mu    sync.Mutex
	spans []Span
}

// Start returns a collector on loopback for the duration of a test, and points the standard variables at it.
func Start(t *testing.T, protocol string) *Collector {
	t.Helper()
	c := &Collector{}
	address := ""
	if protocol == "http/protobuf" {
		server := httptest.NewServer(c)
		t.Cleanup(server.Close)
		address = server.URL
	} else {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		collector.RegisterTraceServiceServer(server, c)
		go func() { _ = server.Serve(l) }()
		t.Cleanup(server.Stop)
		address = "http://" + l.Addr().String()
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
	return c
}

// Export takes spans by gRPC.
func (c *Collector) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.take(r)
	return &collector.ExportTraceServiceResponse{}, nil
}

// ServeHTTP takes spans by HTTP.
func (c *Collector) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	r := &collector.ExportTraceServiceRequest{}
	if err != nil || q.URL.Path != "/v1/traces" || proto.Unmarshal(body, r) != nil {
		http.Error(w, "expected spans at /v1/traces", http.StatusBadRequest)
		return
	}
	c.take(r)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *Collector) take(r *collector.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.ResourceSpans {
		about := values(of.Resource.GetAttributes())
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, Span{
					Name: s.Name, ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId), Trace: hex.EncodeToString(s.TraceId),
					Attributes: values(s.Attributes), Resource: maps.Clone(about),
					Start: s.StartTimeUnixNano, Failed: s.Status.GetCode() == 2,
				})
			}
		}
	}
}

func values(all []*common.KeyValue) map[string]string {
	texts := make(map[string]string)
	for _, a := range all {
		text := a.Value.GetStringValue()
		if _, is := a.Value.GetValue().(*common.AnyValue_StringValue); !is {
			text = a.Value.String()
		}
		texts[a.Key] = text
	}
	return texts
}

// All returns the spans, the first to begin first.
func (c *Collector) All() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(c.spans), func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
}

// Spans returns the spans by name; the last of each.
func (c *Collector) Spans() map[string]Span {
	byName := make(map[string]Span)
	for _, s := range c.All() {
		byName[s.Name] = s
	}
	return byName
}
