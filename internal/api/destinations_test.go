package api_test

import (
	"fmt"
	"testing"
	"time"

	"retry-worker/internal/api"
	"retry-worker/internal/calendar"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/testkit"
)

// TestDestinationThatIsClosed: people see that its calendar has it closed, why, and until when.
func TestDestinationThatIsClosed(t *testing.T) {
	c, err := calendar.New(time.UTC, []calendar.Window{{Hours: "08:00-18:00"}}, calendar.Holidays("BR"))
	testkit.Must(t, err)
	settings := destination.Defaults()
	settings.Calendar = c
	christmas := time.Date(2026, 12, 25, 10, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]string{
		christmas:                   "0 Natal (Lei 662/1949) 2026-12-26T08:00:00Z",
		christmas.AddDate(0, 0, -1): "60 <nil> <nil>",
	} {
		d := api.DestinationOf(&gate.Destination{Settings: settings, State: destination.New(at)}, at)
		var closed, opens any
		if d.Closed != nil {
			closed, opens = *d.Closed, *d.OpensAt
		}
		if got := fmt.Sprint(d.PerMinute, " ", closed, " ", opens); got != want {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
}
