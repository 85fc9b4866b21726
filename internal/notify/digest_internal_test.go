package notify

import (
	"testing"
	"time"
	_ "time/tzdata"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/testkit"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	testkit.Must(t, err)
	return z
}

func TestDigestsAreDue(t *testing.T) {
	for _, tt := range []struct {
		zone, now     string
		daily, weekly string
	}{
		{"America/Sao_Paulo", "2026-11-21T09:59:59Z", "2026-11-20", "2026-11-16"}, // 06:59:59 on a Saturday
		{"America/Sao_Paulo", "2026-11-21T10:00:00Z", "2026-11-21", "2026-11-16"},
		{"America/Sao_Paulo", "2026-11-22T02:59:59Z", "2026-11-21", "2026-11-16"}, // 23:59 there
		{"America/Sao_Paulo", "2026-11-23T09:59:59Z", "2026-11-22", "2026-11-16"}, // a Monday
		{"America/Sao_Paulo", "2026-11-23T10:00:00Z", "2026-11-23", "2026-11-23"},
		{"America/Sao_Paulo", "2026-11-22T12:00:00Z", "2026-11-22", "2026-11-16"}, // a Sunday
		{"America/Sao_Paulo", "2026-01-01T10:00:00Z", "2026-01-01", "2025-12-29"},
		{"UTC", "2028-02-29T07:00:00Z", "2028-02-29", "2028-02-28"},
		{"Pacific/Kiritimati", "2026-11-20T17:00:00Z", "2026-11-21", "2026-11-16"},
	} {
		now, err := time.Parse(time.RFC3339, tt.now)
		testkit.Must(t, err)
		s := schedule{7, 0, zone(t, tt.zone)}
		daily, weekly := s.due(catalogue.Daily, now), s.due(catalogue.Weekly, now)
		if daily != tt.daily || weekly != tt.weekly {
			t.Errorf("%s in %s: daily %s, weekly %s, want %s and %s", tt.now, tt.zone, daily, weekly, tt.daily, tt.weekly)
		}
	}
}

// TestEachDayHasOneDigest over two years of zones whose clocks change, at each time of day that they pass over or show twice.
func TestEachDayHasOneDigest(t *testing.T) {
	for _, name := range []string{"America/Sao_Paulo", "America/Santiago", "Europe/Lisbon", "Australia/Lord_Howe", "America/New_York"} {
		for _, at := range [][2]int{{0, 0}, {0, 30}, {1, 30}, {2, 15}, {7, 0}, {23, 59}} {
			s := schedule{at[0], at[1], zone(t, name)}
			begin := time.Date(2017, 1, 1, 12, 0, 0, 0, s.zone) // São Paulo had summer time then
			last := s.due(catalogue.Daily, begin)
			days := map[string]bool{last: true}
			for now := begin; now.Before(begin.AddDate(2, 0, 0)); now = now.Add(10 * time.Minute) {
				day := s.due(catalogue.Daily, now)
				if day == last {
					continue
				}
				before, _ := time.Parse(time.DateOnly, last)
				if day < last || days[day] || before.AddDate(0, 0, 1).Format(time.DateOnly) != day {
					t.Fatalf("%s %v: %s follows %s at %s", name, at, day, last, now)
				}
				days[day], last = true, day
			}
			if len(days) < 730 || len(days) > 731 {
				t.Errorf("%s %v: %d digests in two years", name, at, len(days))
			}
		}
	}
}
