package config_test

import (
	"strings"
	"testing"
)

// OpenTelemetry's own names decide; nothing is traced unless somebody says where to.
func TestWhenTracesAreSent(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"nothing said":              {nil, ""},
		"an endpoint":               {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, "http/protobuf"},
		"an endpoint of traces":     {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, "http/protobuf"},
		"by gRPC":                   {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "grpc"},
		"traces' own protocol":      {map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}, "http/protobuf"},
		"to where it is by default": {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, "http/protobuf"},
		"switched off by exporter":  {map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, ""},
		"switched off altogether":   {map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, ""},
		"for metrics alone":         {map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, c.env)
			if got := load(t).TraceProtocol; got != c.want {
				t.Errorf("traces are sent by %q, expected %q", got, c.want)
			}
		})
	}
}

func TestTracingThatCannotBe(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"OTEL_TRACES_EXPORTER":               {"OTEL_TRACES_EXPORTER": "zipkin"},
		"OTEL_SDK_DISABLED":                  {"OTEL_SDK_DISABLED": "perhaps"},
		"OTEL_EXPORTER_OTLP_PROTOCOL":        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http"},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, env)
			found := problems(t)
			if len(found) != 1 || !strings.HasPrefix(found[0], name+" is ") || !strings.Contains(found[0], "expected") {
				t.Errorf("it said %q, expected one line that names %s and what is expected", found, name)
			}
		})
	}
}
