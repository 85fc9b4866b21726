package gate_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/clock"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/store/sqlite"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// countingEngine counts the jobs that it completes.
type countingEngine struct {
	mu    sync.Mutex
	times []time.Time
}

func (e *countingEngine) Complete(context.Context, *worker.Job, string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.times = append(e.times, time.Now())
	return nil
}

func (*countingEngine) Throw(context.Context, *worker.Job, worker.BPMNError) error { return nil }

// BenchmarkHeld holds 100,000 claims: what they take of memory, how long it takes to read them at a start, to show a page of
// them, and how many are released in ten seconds at 6,000 a minute. A run is one of these, whatever b.N says.
func BenchmarkHeld(b *testing.B) {
	const held, name = 100_000, "unimed-sp"
	ctx := context.Background()
	store, err := sqlite.Open(ctx, filepath.Join(b.TempDir(), "journal.db"))
	testkit.Must(b, err)
	defer store.Close()
	var gates *gate.Gates
	hooks := journal.NoHooks()
	hooks.Recorded = func(records []journal.Happening) {
		if gates != nil {
			gates.Recorded(records)
		}
	}
	memory := journal.New(store, time.Now, nil, hooks)
	testkit.RunJournal(b, memory)
	policy := catalogue.Default().Policies[decision.DefaultPolicy]
	var arriving errgroup.Group
	arriving.SetLimit(256)
	for i := range held {
		arriving.Go(func() error {
			return memory.Hold(ctx, &journal.Arrival{Subject: testkit.Subject(policy.Name, fmt.Sprintf("CLM-%d-1", i)), JobKey: int64(i + 1),
				Destination: name, Policy: policy, Deadline: time.Now().Add(24 * time.Hour)})
		})
	}
	testkit.Must(b, arriving.Wait())
	engine, settings := &countingEngine{}, destination.Defaults()
	settings.Pace.Most = 6000
	before := heap()
	gates = gate.New(gate.Options{Store: store, Memory: memory, Engine: engine, Clock: clock.Machine{}, Zone: time.UTC, Hooks: gate.NoHooks(),
		Log: zap.NewNop(), Settings: func() gate.Settings {
			return gate.Settings{Version: "1", Configured: map[string]destination.Settings{name: settings}, Otherwise: settings}
		}})
	stop, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	began := time.Now()
	running.Go(func() { gates.Run(stop) })
	wait.Until(b, "the held claims to be read", func() bool {
		d, _, err := gates.Destination(name)
		return err == nil && d.Held == held
	})
	b.ReportMetric(time.Since(began).Seconds(), "s/start")
	b.ReportMetric(float64(heap()-before)/1e6, "MB")
	began = time.Now()
	for range 100 {
		_, _, _ = gates.Destination(name)
	}
	b.ReportMetric(time.Since(began).Seconds()*10, "ms/page")
	running.Go(func() { gates.Lead(stop, stop) })
	for began = time.Now(); time.Since(began) < 11*time.Second; {
		time.Sleep(100 * time.Millisecond)
	}
	engine.mu.Lock()
	defer engine.mu.Unlock()
	n := 0
	for _, at := range engine.times {
		if at.Sub(engine.times[0]) < 10*time.Second {
			n++
		}
	}
	b.ReportMetric(float64(n), "released/10s")
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
