package text

import (
	"strings"
	"testing"
	"time"
)

// TestParseDuration: ISO 8601 where the length is known, and what files have.
func TestParseDuration(t *testing.T) {
	const refused = time.Duration(-1)
	for s, want := range map[string]time.Duration{
		"PT30S": 30 * time.Second, "PT1M": time.Minute, "P1D": day, "P2W": 14 * day, "PT0S": 0, "P0D": 0, "P1DT12H": 36 * time.Hour,
		"P1DT2H3M4S": 26*time.Hour + 3*time.Minute + 4*time.Second, "PT0,5S": 500 * time.Millisecond, "PT1.5H": 90 * time.Minute,
		"PT0.0004S": 0, "PT0.0006S": time.Millisecond, "PT90M": 90 * time.Minute, "PT007S": 7 * time.Second, "PT1M0.001S": time.Minute + time.Millisecond,
		"P366D": 366 * day, "PT31622400S": 366 * day, "P365DT1439M60S": 366 * day,
		"500ms": 500 * time.Millisecond, "5s": 5 * time.Second, "90m": 90 * time.Minute, "1h30m": 90 * time.Minute, "2d": 2 * day, "1h5ms": time.Hour + 5*time.Millisecond,

		"P366DT1S": refused, "P367D": refused, "367d": refused, "P53W": refused, "PT31622400.001S": refused, "PT9223372036854775807S": refused,
		"PT1" + strings.Repeat("0", 400) + "S": refused, "P300DT1584H1S": refused,
		"": refused, "P": refused, "PT": refused, "T1S": refused, "1S": refused, "30": refused, "P1S": refused, "PT1D": refused, "PT1W": refused,
		"P1Y": refused, "P1M": refused, "P1MT1M": refused, "P1DT": refused, "PT1S ": refused, "pt1s": refused, "-PT1S": refused, "PT+1S": refused,
		"PT1S1M": refused, "PT1H1D": refused, "P1D1W": refused, "PTT1S": refused, "PT1": refused, "PTS": refused, "PT1M1": refused, "1m1h": refused, "5w": refused,
		"PT0.5M1S": refused, "0.5m1s": refused, "PT1.5.5S": refused, "PT.5S": refused, "PT5.S": refused, "PT1e3S": refused, "PT１S": refused, "-5s": refused,
		"PTInfS": refused, "2025-01-12": refused, "\x00": refused,
	} {
		if got, ok := ParseDuration(s); ok != (want != refused) || ok && got != want {
			t.Errorf("%.40q is read as %s, %t, want %s", s, got, ok, want)
		}
	}
}

// TestDurations: as people have them; in ISO 8601 minutes where they are whole, and seconds otherwise. Clocks may differ, so
// that less than nothing is nothing there.
func TestDurations(t *testing.T) {
	for _, tt := range []struct {
		of          time.Duration
		people, iso string
	}{
		{0, "0s", "PT0S"}, {-time.Second, "-1s", "PT0S"}, {250 * time.Millisecond, "250ms", "PT0.25S"}, {5 * time.Second, "5s", "PT5S"},
		{90 * time.Second, "1m30s", "PT90S"}, {12 * time.Minute, "12m", "PT12M"}, {10 * time.Hour, "10h", "PT600M"}, {48 * time.Hour, "48h", "PT2880M"},
		{90 * time.Minute, "1h30m", "PT90M"}, {time.Hour + time.Second, "1h0m1s", "PT3601S"}, {9_007_199_254_740_993, "2501h59m59.254740993s", "PT9007199.254S"},
	} {
		if people, iso := Duration(tt.of), ISODuration(tt.of); people != tt.people || iso != tt.iso {
			t.Errorf("%s is %s and %s, want %s and %s", tt.of, people, iso, tt.people, tt.iso)
		}
	}
}
