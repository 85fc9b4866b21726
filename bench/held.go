package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"

	"retry-worker/e2e/harness"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/engine"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

const (
	heldPortal = "portal-held" // takes heldPace claims a minute
	heldPace   = 6000
)

// heldClaims measures what b.held waiting claims cost: how much more memory a worker needs than with a single one,
// how long the console's pages take, and how many claims go in a minute once they may.
func (b *bench) heldClaims(ctx context.Context, out io.Writer) error {
	var without, with, perMinute float64
	var page time.Duration
	if err := b.whileHeld(ctx, "sqlite:"+b.freshDatabase(), 1, func(w *heldWorker) (err error) {
		without, err = w.memory()
		return err
	}); err != nil {
		return err
	}
	if err := b.whileHeld(ctx, "sqlite:"+b.freshDatabase(), b.held, func(w *heldWorker) (err error) {
		if page, err = w.pages("/", "/destinations", "/destinations/"+heldPortal, "/api/v1/destinations"); err == nil {
			if with, err = w.memory(); err == nil {
				perMinute, err = w.released(ctx, 10*b.span)
			}
		}
		return err
	}); err != nil {
		return err
	}
	table(out, fmt.Sprintf("%d claims held", b.held), "measured", "goal")
	row(out, "memory above that of a worker that holds one", fmt.Sprintf("%.1f MB", with-without), "≤ 60 MB")
	row(out, "a page of the console, p95", fmt.Sprintf("%.1f ms", page.Seconds()*1000), "< 100 ms")
	row(out, "released in a minute, at a pace of "+strconv.Itoa(heldPace), fmt.Sprintf("%.0f", perMinute), strconv.Itoa(heldPace))
	return nil
}

// hold makes a journal in which the claims of n jobs wait for a destination that a person holds. The engine has given
// the jobs away for days.
func (g *gateway) hold(ctx context.Context, url string, n int) error {
	events, err := g.make(ctx, int64(n))
	for err == nil && g.held < n { // one activation is bounded
		_, err = g.Do(ctx, engine.Activate{
			Type: g.mix.jobType(), Worker: "bench", Timeout: 48 * time.Hour, Max: n, Tenants: []string{engine.DefaultTenant},
		})
	}
	if err != nil {
		return err
	}
	return (&place{}).with(ctx, url, func(s *session) error {
		order := destination.Order{Verb: destination.HoldClaims, Until: time.Now().Add(time.Hour), Reason: "bench", By: "bench"}
		if err := s.RecordDestination(ctx, heldPortal, journal.DestinationBody{Command: &order}); err != nil {
			return err
		}
		policy, now := catalogue.Default().Policies[decision.DefaultPolicy], time.Now()
		callers, inCall := errgroup.WithContext(ctx)
		callers.SetLimit(usualCallers)
		for i := range events {
			e, v := &events[i], &events[i].Value
			if e.ValueType != "JOB" {
				continue
			}
			callers.Go(func() error {
				return s.Hold(inCall, &journal.Arrival{
					Subject: journal.Subject{Tenant: "<default>", Policy: policy.Name, ID: "CLM-BENCH-" + strconv.FormatInt(e.Key, 10)},
					JobKey:  e.Key, ProcessInstanceKey: v.ProcessInstanceKey, ElementInstanceKey: v.ElementInstanceKey, Destination: heldPortal,
					Deadline: now.Add(24*time.Hour + time.Duration(i)*time.Second), Policy: policy,
				})
			})
		}
		return callers.Wait()
	})
}

// heldWorker is a worker with waiting claims.
type heldWorker struct {
	cmd     *exec.Cmd
	gateway *gateway
	address string
}

// whileHeld makes that many claims wait in the journal at url and starts a worker on it. It calls f once the worker
// holds them, and stops the worker after f.
func (b *bench) whileHeld(ctx context.Context, url string, held int, f func(*heldWorker) error) error {
	w := &heldWorker{gateway: &gateway{mix: mix{gate: true}}}
	if err := w.gateway.open(ctx); err != nil {
		return err
	}
	defer w.gateway.Close()
	if held > 0 {
		if err := w.gateway.hold(ctx, url, held); err != nil {
			return fmt.Errorf("hold %d claims: %w", held, err)
		}
	}
	address, err := w.gateway.listen()
	if err != nil {
		return err
	}
	ports, err := harness.Ports(1)
	if err != nil {
		return fmt.Errorf("look for a port for the console: %w", err)
	}
	w.address = testkit.Loopback(ports[0])
	w.cmd = b.workerCommand(address)
	w.cmd.Env = append(w.cmd.Env, "RETRY_WORKER_HTTP_ADDR="+w.address, "RETRY_WORKER_DATABASE_URL="+url)
	if err := w.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", w.cmd.Path, err)
	}
	defer func() { // even a bench that fails leaves no process
		_ = w.cmd.Process.Signal(syscall.SIGTERM)
		_ = w.cmd.Wait()
	}()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var d struct{ Held int }
		if harness.Ask(ctx, "http://"+w.address, "", "/destinations/"+heldPortal, nil, &d) == nil && d.Held == held {
			return f(w)
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("%s holds %d claims after a minute, expected %d", w.cmd.Path, d.Held, held)
		}
	}
}

// get reads a whole page.
func (w *heldWorker) get(path string) error {
	answer, err := http.Get("http://" + w.address + path)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, answer.Status, text)
	}
	return err
}

// memory returns the process's memory, in MB.
func (w *heldWorker) memory() (float64, error) {
	p, err := procfs.NewProc(w.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	used, err := p.Stat()
	return float64(used.ResidentMemory()) / (1 << 20), err
}

// pages returns the 95th percentile of how long these pages take.
func (w *heldWorker) pages(paths ...string) (time.Duration, error) {
	var took []time.Duration
	for range 40 {
		for _, path := range paths {
			began := time.Now()
			if err := w.get(path); err != nil {
				return 0, err
			}
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	return took[len(took)*95/100], nil
}

// released lets the claims go, and returns how many went a minute.
func (w *heldWorker) released(ctx context.Context, within time.Duration) (float64, error) {
	order := map[string]any{"perMinute": heldPace, "reason": "bench"}
	if err := harness.Ask(ctx, "http://"+w.address, "", "/destinations/"+heldPortal+"/release", order, new(any)); err != nil {
		return 0, err
	}
	before, began := w.gateway.answered(), time.Now()
	time.Sleep(within)
	return float64(w.gateway.answered()-before) / time.Since(began).Minutes(), nil
}
