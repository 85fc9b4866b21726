package app

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/audit"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/clock"
	"retry-worker/internal/config"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/metrics"
	"retry-worker/internal/notify"
	"retry-worker/internal/testkit"
)

// vast is a journal whose purge goes on until its context ends. It counts how often the outbox is counted.
type vast struct {
	*testkit.Memory
	audit.Rebuilder
	io.Closer
	read int
}

func (v *vast) LastRecordBefore(ctx context.Context, _ time.Time) (int64, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

func (v *vast) Backlog(ctx context.Context) (map[string]int64, error) {
	v.read++
	return v.Memory.Backlog(ctx)
}

// TestFiguresBesideAPurge: they are read while a purge goes on.
func TestFiguresBesideAPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &vast{Memory: testkit.NewMemory()}
		a := &App{settings: config.Settings{Retention: time.Hour}, store: v, log: zap.NewNop(), clock: clock.Machine{},
			metrics: metrics.New(metrics.Build{}), catalogue: catalogue.Default}
		memory := journal.New(v, time.Now, nil, journal.NoHooks())
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		a.upkeep(ctx, memory, gate.New(gate.Options{}), &notify.Sink{})
		if want := int(time.Hour / gaugePause); v.read < want {
			t.Errorf("the figures were read %d times in an hour, want %d", v.read, want)
		}
	})
}
