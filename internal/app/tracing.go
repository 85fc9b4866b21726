package app

import (
	"context"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"retry-worker/internal/redact"
	"retry-worker/internal/tracing"
	"retry-worker/internal/zeebe"
)

// maxTraceError bytes of what the log says of spans that were not sent.
const maxTraceError = 300

// openTracing begins to trace where the settings ask for it.
func (a *App) openTracing() (err error) {
	if a.settings.TraceProtocol == "" {
		return nil
	}
	a.tracing, err = tracing.Open(context.Background(), a.settings.TraceProtocol, a.version, func(err error) {
		a.log.Warn("traces could not be sent and are dropped; decisions go on", zap.String("event", "traces_dropped"),
			zap.String("error", redact.Line(err.Error(), maxTraceError)))
	})
	if err != nil {
		return err
	}
	a.cleanups = append(a.cleanups, cleanup{"traces", a.tracing.Close})
	return nil
}

// tracer of the jobs; nil where nothing is traced.
func (a *App) tracer() trace.Tracer {
	if a.tracing == nil {
		return nil
	}
	return a.tracing.Tracer()
}

func (a *App) engineOptions() zeebe.Options {
	o := a.settings.Engine
	o.UserAgent = zeebe.UserAgent(a.version)
	if a.tracing != nil {
		o.Trace = a.tracing.DialOption()
	}
	return o
}
