package zeebe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// AddTime moves the broker's clock forward by d, in milliseconds, on top of earlier moves: timers that are
// due by then fire within about a second, and so do time-outs and back-offs of jobs. To go back there is
// ResetTime only. The clock of this machine, and so a worker's, stays: an absolute time that a worker
// computes lies in the broker's future only where it is further ahead than the broker's clock is.
func (b *Broker) AddTime(ctx context.Context, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("the broker's clock cannot be moved by %v: ResetTime goes back", d)
	}
	b.change.Lock()
	defer b.change.Unlock()
	b.moved = true
	_, err := b.clock(ctx, http.MethodPost, "/add", fmt.Sprintf(`{"offsetMilli":%d}`, d.Milliseconds()))
	return err
}

// ResetTime sets the broker's clock to the real time again, by a restart where it has been moved, which
// takes 4 to 10 s. A living broker that is set back (the actuator can do that) waits with timers
// (8.6.0) and with time-outs of jobs (8.5.8 too) until its clock is again where it had been; after the
// restart all of them run. What was made while the clock was ahead keeps its time: a job activated
// then stays locked until the real clock has come that far.
func (b *Broker) ResetTime(ctx context.Context) error {
	now, err := b.Time(ctx)
	if err != nil {
		return err
	}
	b.change.Lock()
	defer b.change.Unlock()
	if !b.moved && time.Since(now).Abs() < askTimeout { // it may have been moved from outside
		return nil
	}
	return b.restart(ctx)
}

// Time is the broker's clock.
func (b *Broker) Time(ctx context.Context) (time.Time, error) {
	return b.clock(ctx, http.MethodGet, "", "")
}

func (b *Broker) clock(ctx context.Context, method, path, body string) (time.Time, error) {
	request, err := http.NewRequestWithContext(ctx, method, b.ActuatorURL()+"/actuator/clock"+path, strings.NewReader(body))
	if err != nil {
		return time.Time{}, fmt.Errorf("the broker's clock: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return time.Time{}, fmt.Errorf("the broker's clock: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return time.Time{}, fmt.Errorf("the broker's clock: %w", err)
	}
	var answer struct{ EpochMilli int64 }
	if response.StatusCode != http.StatusOK || json.Unmarshal(text, &answer) != nil {
		return time.Time{}, fmt.Errorf("the broker's clock: it answers %s: %s", response.Status, text)
	}
	return time.UnixMilli(answer.EpochMilli), nil
}
