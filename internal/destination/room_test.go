package destination

import (
	"testing"
	"time"

	"retry-worker/internal/calendar"
)

// TestRoom: those who wait for an opening come within the time that 600 claims take, an hour, half of the opening, or
// what is left until the deadline.
func TestRoom(t *testing.T) {
	hours, err := calendar.New(time.UTC, []calendar.Window{{Hours: "08:00-09:00"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	opens := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		most     float64
		calendar *calendar.Calendar
		until    time.Time
		want     time.Duration
	}{
		{60, nil, time.Time{}, 10 * time.Minute},
		{20, hours, time.Time{}, 30 * time.Minute},
		{1, nil, time.Time{}, time.Hour},
		{1, hours, time.Time{}, 30 * time.Minute},
		{60, nil, opens.Add(time.Minute), time.Minute},
		{60, nil, opens.Add(-time.Minute), 0},
	} {
		s := Settings{Calendar: tt.calendar, Pace: Pace{Most: tt.most}}
		if got := s.Room(opens, tt.until); got != tt.want {
			t.Errorf("%g a minute until %s: %s, want %s", tt.most, tt.until, got, tt.want)
		}
	}
}
