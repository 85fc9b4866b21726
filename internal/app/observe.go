package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
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
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/grpclog"

	"retry-worker/internal/access"
	"retry-worker/internal/config"
	"retry-worker/internal/redact"
	"retry-worker/internal/text"
)

const (
	// logDelay is how long a log line may wait, up to logBytes, for others to be written with it: writing each line
	// alone takes a tenth of the CPU time under load.
	logDelay = 100 * time.Millisecond
	logBytes = 64 << 10
	// mostPending is how many lines may wait for a reader of the log. Lines beyond it are lost and counted.
	mostPending = 8 << 10
	// logEnd is how long a stop waits for the last lines.
	logEnd = time.Second
)

// StartLog is NewLogger that writes in the background, so that nobody waits for a reader. stop writes the waiting
// lines.
func StartLog(out io.Writer, level zapcore.Level, format string) (log *zap.Logger, stop func()) {
	lines := &lineQueue{lines: make(chan []byte, mostPending)}
	log = NewLogger(lines, level, format)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		lines.write(out, log, end)
	}()
	return log, func() {
		close(end)
		select {
		case <-ended:
		case <-time.After(logEnd):
		}
	}
}

// lineQueue holds lines of a log until they are written. It is safe for concurrent use.
type lineQueue struct {
	lines  chan []byte
	missed atomic.Int64
}

// Write queues one line. It never fails or waits.
func (q *lineQueue) Write(line []byte) (int, error) {
	select {
	case q.lines <- bytes.Clone(line):
	default:
		q.missed.Add(1)
	}
	return len(line), nil
}

// write writes what is queued until end. Once lines are written again it logs how many were lost.
func (q *lineQueue) write(out io.Writer, log *zap.Logger, end <-chan struct{}) {
	w := &zapcore.BufferedWriteSyncer{WS: zapcore.AddSync(unfailing{out}), Size: logBytes, FlushInterval: logDelay}
	defer func() { _ = w.Stop() }()
	for {
		select {
		case line := <-q.lines:
			_, _ = w.Write(line)
			if n := q.missed.Swap(0); n > 0 {
				log.Warn("lines of the log were lost: nobody read them", zap.Int64("lines", n))
			}
		case <-end:
			for len(q.lines) > 0 {
				_, _ = w.Write(<-q.lines)
			}
			return
		}
	}
}

// unfailing is a writer without errors: there is no place to report one, and later writes may succeed.
type unfailing struct{ io.Writer }

func (u unfailing) Write(b []byte) (int, error) {
	_, _ = u.Writer.Write(b)
	return len(b), nil
}

// NewLogger writes lines in format (json or console) to out, with instants in UTC. It removes personal and secret data
// from messages and errors, which may quote others.
func NewLogger(out io.Writer, level zapcore.Level, format string) *zap.Logger {
	encoder := zapcore.NewJSONEncoder(encoderConfig())
	if format == "console" {
		encoder = zapcore.NewConsoleEncoder(encoderConfig())
	}
	return zap.New(redactingCore{zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(out)), level)})
}

// redactingCore passes entries to another core, with messages, errors, paths and other fields that may hold secrets
// redacted.
type redactingCore struct{ zapcore.Core }

func (r redactingCore) With(fields []zapcore.Field) zapcore.Core {
	return redactingCore{r.Core.With(redacted(fields))}
}

func (r redactingCore) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if r.Enabled(e.Level) {
		return c.AddCore(e, r)
	}
	return c
}

func (r redactingCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	e.Message = redact.Text(e.Message)
	return r.Core.Write(e, redacted(fields))
}

func redacted(fields []zapcore.Field) []zapcore.Field {
	for i, f := range fields {
		switch err, _ := f.Interface.(error); {
		case f.Type == zapcore.ErrorType && err != nil:
			fields[i] = zap.String(f.Key, redact.Text(err.Error()))
		case f.Type == zapcore.StringType && (f.Key == "path" || redact.HoldsOwn(f.String)):
			fields[i].String = redact.Text(f.String)
		}
	}
	return fields
}

// gRPC's own log is off: the worker itself logs a failed connection, once. It must be set before gRPC is used.
func init() { grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)) }

func encoderConfig() zapcore.EncoderConfig {
	return zapcore.EncoderConfig{
		TimeKey: "timestamp", LevelKey: "level", MessageKey: "message", NameKey: "logger",
		EncodeLevel:    zapcore.LowercaseLevelEncoder,
		EncodeDuration: func(d time.Duration, e zapcore.PrimitiveArrayEncoder) { e.AppendString(text.Duration(d)) },
		EncodeTime: func(t time.Time, e zapcore.PrimitiveArrayEncoder) {
			e.AppendString(t.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
		},
	}
}

// unencrypted lists connections that may carry secrets or patients' data unencrypted, each with what to do. It leaves
// out connections within this machine, and those that a setting explicitly allows.
func unencrypted(s *config.Settings) (lines []string) {
	console := url.URL{Host: s.HTTPAddr}
	if s.TLSCertFile == "" && !access.IsLoopback(console.Hostname()) {
		lines = append(lines, "console and API speak plain HTTP to other machines, log-ins among it: put a proxy with TLS "+
			"before them, or set RETRY_WORKER_TLS_CERT_FILE")
	}
	if strings.HasPrefix(s.DatabaseURL, "postgres") && mayBePlain(s.DatabaseURL) {
		lines = append(lines, "the connection to PostgreSQL is encrypted only if the server offers it, and the server is "+
			"not verified: add sslmode=verify-full to the database's address")
	}
	if u, err := url.Parse(s.EventsURL); err == nil && u.Scheme == "nats" && u.User != nil &&
		!access.IsLoopback(u.Hostname()) {
		lines = append(lines, "user and password of the events' NATS server may travel unencrypted: write tls:// instead "+
			"of nats://")
	}
	if o := s.Engine.OAuth; o != nil {
		if u, err := url.Parse(o.URL); err == nil && u.Scheme == "http" && !access.IsLoopback(u.Hostname()) {
			lines = append(lines, "the engine's client secret travels unencrypted to the identity provider: write https:// "+
				"in "+s.Engine.Said("ZEEBE_AUTHORIZATION_SERVER_URL"))
		}
	}
	return lines
}

// mayBePlain reports whether a PostgreSQL address leaves encryption to the server.
func mayBePlain(address string) bool {
	c, err := pgconn.ParseConfig(address)
	if err != nil || access.IsLoopback(c.Host) { // the store refuses an invalid one
		return false
	}
	return slices.ContainsFunc(c.Fallbacks, func(f *pgconn.FallbackConfig) bool {
		return (f.TLSConfig == nil) != (c.TLSConfig == nil)
	})
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
