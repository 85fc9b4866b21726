package app

import (
	"io"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zapgrpc"
	"google.golang.org/grpc/grpclog"

	"retry-worker/internal/redact"
)

// NewLogger writes lines in format (json or console) to out, instants in UTC. Messages and errors, which hold the words of
// others, lose what is personal or secret.
func NewLogger(out io.Writer, level zapcore.Level, format string) *zap.Logger {
	encoder := zapcore.NewJSONEncoder(encoderConfig())
	if format == "console" {
		encoder = zapcore.NewConsoleEncoder(encoderConfig())
	}
	return zap.New(redactingCore{zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(out)), level)})
}

// RedirectLogs has the standard library's logger and gRPC's go the way of log from then on.
func RedirectLogs(log *zap.Logger) {
	zap.RedirectStdLog(log)
	// GRPC reports each failed connection; the worker says it once.
	quiet := log.WithOptions(zap.IncreaseLevel(zapcore.ErrorLevel))
	grpcLog.to(quiet.Core())
}

// redactingCore writes to another core what redact leaves of messages, errors, paths, and whatever may hold a secret of ours.
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

// grpcLog is gRPC's from the program's start on: once that runs it must not be given another one.
var grpcLog = func() *replaceableCore {
	n := &replaceableCore{}
	n.to(zapcore.NewNopCore())
	grpclog.SetLoggerV2(zapgrpc.NewLogger(zap.New(n)))
	return n
}()

// replaceableCore writes lines where it was told to last. Safe for concurrent use.
type replaceableCore struct{ core atomic.Pointer[zapcore.Core] }

func (r *replaceableCore) to(c zapcore.Core) { r.core.Store(&c) }

func (r *replaceableCore) Enabled(l zapcore.Level) bool { return (*r.core.Load()).Enabled(l) }

func (r *replaceableCore) With(fields []zapcore.Field) zapcore.Core {
	return (*r.core.Load()).With(fields)
}

func (r *replaceableCore) Write(e zapcore.Entry, f []zapcore.Field) error {
	return (*r.core.Load()).Write(e, f)
}

func (r *replaceableCore) Sync() error { return (*r.core.Load()).Sync() }

func (r *replaceableCore) Check(e zapcore.Entry, c *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	return (*r.core.Load()).Check(e, c)
}

func encoderConfig() zapcore.EncoderConfig {
	return zapcore.EncoderConfig{
		TimeKey: "timestamp", LevelKey: "level", MessageKey: "message", NameKey: "logger",
		EncodeLevel:    zapcore.LowercaseLevelEncoder,
		EncodeDuration: zapcore.StringDurationEncoder,
		EncodeTime: func(t time.Time, e zapcore.PrimitiveArrayEncoder) {
			e.AppendString(t.UTC().Format("2006-01-02T15:04:05.000Z07:00"))
		},
	}
}
