package app

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/clock"
	"retry-worker/internal/config"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/metrics"
	"retry-worker/internal/notify"
	"retry-worker/internal/statistics"
	"retry-worker/internal/store"
	"retry-worker/internal/testkit"
)

// purging is a store that is purged until the context ends.
type purging struct {
	store.Store
	read int // how often the gauges were read
}

func (p *purging) Lease(ctx context.Context, _, _ string, _ time.Duration) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

func (p *purging) DeadLetterCounts(ctx context.Context, f journal.DeadLetterFilter) ([]deadletter.Count, error) {
	if f.State == deadletter.AllStates {
		p.read++
	}
	return p.Store.DeadLetterCounts(ctx, f)
}

// TestGaugesDuringAPurge: a purge of years of records takes hours, in which deadlines come near. With each, the log names
// the teams that are not notified.
func TestGaugesDuringAPurge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "journal.db"))
		testkit.Must(t, err)
		p := &purging{Store: s}
		core, logged := observer.New(zap.WarnLevel)
		a := &App{store: p, clock: clock.Machine{}, metrics: metrics.New(metrics.Build{}), log: zap.New(core),
			settings: config.Settings{Retention: time.Hour}, catalogue: catalogue.Default}
		ends, end := context.WithCancel(t.Context())
		go (&service{App: a, learner: statistics.NewLearner(p), gates: new(gate.Gates), notices: new(notify.Sink)}).upkeep(ends, ends)
		time.Sleep(4*gaugePause + time.Second)
		end()
		synctest.Wait()
		testkit.Must(t, s.Close())
		if p.read != 5 {
			t.Errorf("in %v of a purge the gauges were read %d times, want 5", 4*gaugePause, p.read)
		}
		if n := logged.FilterField(zap.String("event", "nobody_told")).Len(); n != 1 {
			t.Errorf("the log names the teams that are not notified %d times, want once", n)
		}
	})
}
