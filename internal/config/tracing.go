package config

import "retry-worker/internal/tracing"

// otelEnv are the standard names of OpenTelemetry that decide whether, and by which protocol, traces are sent; all
// others (endpoint, certificates, headers, sampler, service name, …) are read where they are used.
type otelEnv struct {
	SDKDisabled                string `group:"Traces" envconfig:"SDK_DISABLED" default:"false" desc:"true: no traces whatever the others say"`
	TracesExporter             string `envconfig:"TRACES_EXPORTER" desc:"otlp: send traces; none: do not; empty: where an endpoint is named"`
	ExporterOTLPEndpoint       string `envconfig:"EXPORTER_OTLP_ENDPOINT" desc:"collector, such as http://127.0.0.1:4318"`
	ExporterOTLPTracesEndpoint string `envconfig:"EXPORTER_OTLP_TRACES_ENDPOINT" desc:"the same for traces alone"`
	ExporterOTLPProtocol       string `envconfig:"EXPORTER_OTLP_PROTOCOL" default:"http/protobuf" desc:"http/protobuf or grpc"`
	ExporterOTLPTracesProtocol string `envconfig:"EXPORTER_OTLP_TRACES_PROTOCOL" desc:"the same for traces alone"`
}

const otelPrefix = "OTEL"

// tracing returns the protocol by which traces are sent; empty where none are.
func (c *checker) tracing() string {
	var o otelEnv
	c.load(otelPrefix, &o)
	if c.boolean("OTEL_SDK_DISABLED", o.SDKDisabled) {
		return ""
	}
	switch o.TracesExporter {
	case "none":
		return ""
	case "":
		if o.ExporterOTLPEndpoint+o.ExporterOTLPTracesEndpoint == "" {
			return ""
		}
	default:
		c.oneOf("OTEL_TRACES_EXPORTER", o.TracesExporter, "otlp", "none")
	}
	if o.ExporterOTLPTracesProtocol != "" {
		return c.oneOf("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", o.ExporterOTLPTracesProtocol, tracing.HTTP, tracing.GRPC)
	}
	return c.oneOf("OTEL_EXPORTER_OTLP_PROTOCOL", o.ExporterOTLPProtocol, tracing.HTTP, tracing.GRPC)
}
