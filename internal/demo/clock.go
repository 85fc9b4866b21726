package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Clock is the time that the demo may move.
type Clock interface {
	// Now returns the worker's time.
	Now() time.Time
	// Add moves the engine's time ahead, and the worker's where that can be moved.
	Add(ctx context.Context, d time.Duration) error
}

// EngineClock moves the engine's own clock, where it may be moved (ZEEBE_CLOCK_CONTROLLED): a broker for trying
// things out, never one at work. The worker's stays.
type EngineClock struct {
	// ActuatorURL of the broker, such as http://127.0.0.1:9600.
	ActuatorURL string
}

// Now implements Clock.
func (EngineClock) Now() time.Time { return time.Now() }

// Add implements Clock.
func (c EngineClock) Add(ctx context.Context, d time.Duration) error {
	url := strings.TrimSuffix(c.ActuatorURL, "/") + "/actuator/clock/add"
	body := fmt.Sprintf(`{"offsetMilli":%d}`, d.Milliseconds())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("--clock-url %q: %w; expected the broker's actuator, such as http://127.0.0.1:9600", c.ActuatorURL,
			err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("move the engine's clock: %w; is --clock-url the broker's actuator?", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("move the engine's clock: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("move the engine's clock: %s answers %s; start the broker with ZEEBE_CLOCK_CONTROLLED=true", url,
			response.Status)
	}
	return nil
}
