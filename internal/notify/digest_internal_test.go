package notify

import (
	"testing"
	"time"
	_ "time/tzdata"

	"retry-worker/internal/testkit"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	testkit.Must(t, err)
	return z
}

func TestDigestIsDue(t *testing.T) {
	for _, tt := range []struct{ zone, now, day string }{
		{"America/Sao_Paulo", "2026-11-21T09:59:59Z", "2026-11-20"}, // 06:59:59 there
		{"America/Sao_Paulo", "2026-11-21T10:00:00Z", "2026-11-21"},
		{"America/Sao_Paulo", "2026-11-22T02:59:59Z", "2026-11-21"}, // 23:59:59 there
		{"America/Sao_Paulo", "2026-01-01T09:00:00Z", "2025-12-31"},
		{"UTC", "2028-02-29T07:00:00Z", "2028-02-29"},
		{"Pacific/Kiritimati", "2026-11-20T17:00:00Z", "2026-11-21"},
	} {
		now, err := time.Parse(time.RFC3339, tt.now)
		testkit.Must(t, err)
		if day := (&Settings{DigestHour: 7, Zone: zone(t, tt.zone)}).digestDay(now); day != tt.day {
			t.Errorf("%s in %s: %s, want %s", tt.now, tt.zone, day, tt.day)
		}
	}
}

// TestEachDayHasOneDigest over two years of zones whose clocks change, at each time of day that they pass over or show twice.
func TestEachDayHasOneDigest(t *testing.T) {
	for _, name := range []string{"America/Sao_Paulo", "America/Santiago", "Europe/Lisbon", "Australia/Lord_Howe", "America/New_York"} {
		for _, at := range [][2]int{{0, 0}, {0, 30}, {1, 30}, {2, 15}, {7, 0}, {23, 59}} {
			s := Settings{DigestHour: at[0], DigestMinute: at[1], Zone: zone(t, name)}
			begin := time.Date(2017, 1, 1, 12, 0, 0, 0, s.Zone) // São Paulo had summer time then
			last := s.digestDay(begin)
			days := map[string]bool{last: true}
			for now := begin; now.Before(begin.AddDate(2, 0, 0)); now = now.Add(10 * time.Minute) {
				day := s.digestDay(now)
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
