package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Clock is the time that the demo may move.
type Clock interface {
	// Now returns the worker's time.
	Now() time.Time
	// Next returns how far to move it for the next timers to fire; ok is false where no more are expected.
	Next() (d time.Duration, ok bool)
	// Add moves the engine's time ahead, and the worker's where that can be moved.
	Add(ctx context.Context, d time.Duration) error
}

// clockSteps move the clock over all ladders. The first ones suit timers that wait for a duration: the 1, 5 and
// 25 s of a failed job, a queued job's own, the minute after which it looks for its dependencies, and a message's 5 s,
// 30 s and 5 min. SUB_06's timers wait for an instant, 6, 12, 24, 48 and 96 minutes after the decision at most.
var clockSteps = []time.Duration{
	5 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute,
	12 * time.Minute, 24 * time.Minute, 48 * time.Minute, 96 * time.Minute,
}

// EngineClock moves the clock of an engine elsewhere, where that may be moved (ZEEBE_CLOCK_CONTROLLED): one for trying
// things out, never one at work. The worker's stays.
type EngineClock struct {
	// ActuatorURL of the engine, such as http://127.0.0.1:9600.
	ActuatorURL string

	steps int // taken
}

// Now implements Clock.
func (*EngineClock) Now() time.Time { return time.Now() }

// Next implements Clock. What the engine waits for is not known here: it goes through clockSteps. On a busy machine a step may
// be over before all of its timers have fired: the last one is repeated.
func (c *EngineClock) Next() (time.Duration, bool) {
	const most = 4
	c.steps++
	return clockSteps[min(c.steps, len(clockSteps))-1], c.steps <= most*len(clockSteps)
}

// Add implements Clock.
func (c *EngineClock) Add(ctx context.Context, d time.Duration) error {
	url := strings.TrimSuffix(c.ActuatorURL, "/") + "/actuator/clock/add"
	body := fmt.Sprintf(`{"offsetMilli":%d}`, d.Milliseconds())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("--clock-url: %w; expected the engine's actuator, such as http://127.0.0.1:9600", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("move the engine's clock: %w; is --clock-url its actuator?", err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("move the engine's clock: %s answers %s; a broker wants ZEEBE_CLOCK_CONTROLLED=true", url, response.Status)
	}
	return nil
}
