package app

import (
	"io"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zapgrpc"
	"google.golang.org/grpc/grpclog"
)

// NewLogger writes lines in format (json or console) to out, instants in UTC. The standard library's
// logger and gRPC's go the same way from then on.
func NewLogger(out io.Writer, level zapcore.Level, format string) *zap.Logger {
	encoder := zapcore.NewJSONEncoder(encoderConfig())
	if format == "console" {
		encoder = zapcore.NewConsoleEncoder(encoderConfig())
	}
	log := zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(out)), level))
	zap.RedirectStdLog(log)
	quiet := log.WithOptions(zap.IncreaseLevel(zapcore.ErrorLevel)) // gRPC reports each failed connection; the worker says it once
	grpclog.SetLoggerV2(zapgrpc.NewLogger(quiet))
	return log
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
