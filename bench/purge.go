package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// purged fills a journal with half as many attempts as the full one and purges the oldest two fifths, while decisions
// go on at a busy hospital's rate. It verifies the audit before and after.
func (b *bench) purged(ctx context.Context, out io.Writer, p *place) error {
	url, err := p.fresh(ctx)
	if err != nil {
		return err
	}
	from := &source{reserve: b.attempts / 12}
	var old time.Time
	if err := p.with(ctx, url, func(s *session) error {
		s.source, s.discards = from, true
		s.flood(ctx, 500, times(b.attempts/5))
		old = time.Now()
		s.flood(ctx, 500, times(b.attempts*3/10))
		return nil
	}); err != nil {
		return fmt.Errorf("fill the journal: %w", err)
	}
	table(out, fmt.Sprintf("a purge of the oldest two fifths of %d attempts", b.attempts/2), "before", "meanwhile or after", "goal")
	before, err := b.verify(ctx, p, url)
	if err != nil {
		return err
	}
	var records int
	var took time.Duration
	if err := p.with(ctx, url, func(s *session) (err error) {
		s.source = from.latest(10_000)
		alone := s.paced(ctx, 200, 5*b.span)
		purge, purging := errgroup.WithContext(ctx)
		began := time.Now()
		purge.Go(func() (err error) {
			records, err = s.Purge(purging, s.store, time.Since(old), true)
			took = time.Since(began)
			return err
		})
		m := s.paced(ctx, 200, 20*b.span)
		row(out, "p99 wait at 200 decisions/s", fmt.Sprintf("%.1f ms", alone.wait(0.99)), fmt.Sprintf("%.1f ms", m.wait(0.99)), "≤ 20 ms")
		return purge.Wait()
	}); err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	after, err := b.verify(ctx, p, url)
	if err != nil {
		return err
	}
	row(out, strconv.Itoa(records)+" records went in", "", fmt.Sprintf("%.0f s", took.Seconds()), "")
	row(out, "size", fmt.Sprintf("%d MB", before.size>>20), fmt.Sprintf("%d MB", after.size>>20), "no more")
	row(out, "`audit verify`, peak of memory", fmt.Sprintf("%d MB", before.peak>>20), fmt.Sprintf("%d MB", after.peak>>20), "≤ 128 MB")
	row(out, "`audit verify`, records a second of its CPU", fmt.Sprintf("%.0f", before.rate), fmt.Sprintf("%.0f", after.rate), "≥ 60,000")
	return nil
}

// verified is a journal's size, and what `audit verify` took.
type verified struct {
	size int64   // bytes
	peak uint64  // bytes of memory
	rate float64 // records per CPU second
}

// verify measures the journal at url and runs the worker's `audit verify` on it.
func (b *bench) verify(ctx context.Context, p *place, url string) (v verified, err error) {
	if v.size, err = p.size(ctx, url); err != nil {
		return v, err
	}
	cmd := exec.CommandContext(ctx, b.worker, "audit", "verify", "-o", "json")
	cmd.Env = append(os.Environ(), "RETRY_WORKER_DATABASE_URL="+url)
	var text bytes.Buffer
	cmd.Stdout = &text
	if err := cmd.Start(); err != nil {
		return v, fmt.Errorf("audit verify: %w", err)
	}
	gone := make(chan error, 1)
	go func() { gone <- cmd.Wait() }()
	for running := true; running; {
		select {
		case err = <-gone:
			running = false
		case <-time.After(20 * time.Millisecond):
			if peak, err := peakOf(cmd.Process.Pid); err == nil { // else it has ended
				v.peak = max(v.peak, peak)
			}
		}
	}
	var said struct{ Records int }
	if err := errors.Join(err, json.Unmarshal(text.Bytes(), &said)); err != nil {
		return v, fmt.Errorf("audit verify: %w: %s", err, text.String())
	}
	v.rate = float64(said.Records) / (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return v, nil
}
