package harness

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"retry-worker/internal/clock"
)

// SharedClock is this machine's clock plus what it was moved ahead, which several processes read from one file.
type SharedClock struct{ file *os.File }

// OpenSharedClock opens the clock of a file, which it makes if need be.
func OpenSharedClock(path string) (*SharedClock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the shared clock: %w", err)
	}
	return &SharedClock{file}, nil
}

// Environment returns the variable by which a worker of [BinaryWithClock] goes by the clock.
func (c *SharedClock) Environment() string { return "SHARED_CLOCK=" + c.file.Name() }

// Ahead returns how far the clock is ahead of this machine's.
func (c *SharedClock) Ahead() time.Duration {
	var b [8]byte
	_, _ = c.file.ReadAt(b[:], 0) // 0 before the first write
	return time.Duration(binary.LittleEndian.Uint64(b[:]))
}

// SetAhead moves the clock in all processes.
func (c *SharedClock) SetAhead(d time.Duration) error {
	_, err := c.file.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(d)), 0)
	return err
}

// Now implements clock.Clock.
func (c *SharedClock) Now() time.Time { return time.Now().Add(c.Ahead()) }

// NewTicker implements zapcore.Clock: a log's times are this clock's.
func (c *SharedClock) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }

// Rest implements clock.Clock. It looks now and then whether the clock was moved.
func (c *SharedClock) Rest(ctx context.Context, d time.Duration) {
	const lookEvery = 20 * time.Millisecond
	for end := c.Now().Add(d); ctx.Err() == nil; {
		left := end.Sub(c.Now())
		if left <= 0 {
			return
		}
		clock.Machine{}.Rest(ctx, min(left, lookEvery))
	}
}

// Close closes the file.
func (c *SharedClock) Close() error { return c.file.Close() }
