package access

import (
	"net/netip"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Of the lines that strangers cause, the log takes sampleFirst of a kind each second, and every sampleThen-th after
// that, so that nobody can fill a disk.
const (
	sampleFirst = 10
	sampleThen  = 100
)

// sampled returns the log for what strangers cause. Its sampler's counters take half a megabyte, so it is made at the
// first line: most workers never write one.
func sampled(log *zap.Logger) func() *zap.Logger {
	return sync.OnceValue(func() *zap.Logger {
		return log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(c, time.Second, sampleFirst, sampleThen)
		}))
	})
}

// warn logs that a client at an address was not let in.
func (g *Gate) warn(from netip.Addr, event, message string, more ...zap.Field) {
	g.strangers().Warn(message, append(more, zap.String("event", event), zap.Stringer("from", from))...)
}

// Crowded logs that an address sends too many requests, or holds too many connections (web.Peers).
func (g *Gate) Crowded(from netip.Addr) {
	g.warn(from, "requests_limited", "an address sends too many requests, or holds too many connections")
}

func (g *Gate) providerFailed(err error) {
	g.strangers().Error("the OpenID provider cannot be reached; who is logged in stays so for 15 minutes at most, and "+
		"nobody else comes in by it", zap.String("event", "oidc_unavailable"), zap.Error(err))
}
