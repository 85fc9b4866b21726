package text

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Duration formats d as people and files write it, without trailing zero parts: 48h, 1h30m, 45m, 500ms.
func Duration(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-len("0s")]
		}
	}
	return s
}

// ISODuration formats d as ISO 8601: whole minutes as PT12M, otherwise seconds to the millisecond as PT5S or PT0.25S.
// It returns PT0S for 0 and less.
func ISODuration(d time.Duration) string {
	d = max(d, 0).Truncate(time.Millisecond)
	if d > 0 && d%time.Minute == 0 {
		return "PT" + strconv.FormatInt(int64(d/time.Minute), 10) + "M"
	}
	return "PT" + strconv.FormatFloat(float64(d.Milliseconds())/1000, 'f', -1, 64) + "S"
}

// LongestDuration is the longest that ParseDuration accepts.
const LongestDuration = 366 * day

const day = 24 * time.Hour

// durations matches ISO 8601 without years and months, whose length varies (PT30S, P1DT12H, PT0.5S), and the form of
// files (90m, 1h30m, 2d).
var durations = regexp.MustCompile(strings.ReplaceAll(
	`^(?:P(?:#W)?(?:#D)?(?:T(?:#H)?(?:#M)?(?:#S)?)?|(?:#d)?(?:#h)?(?:#m)?(?:#s)?(?:#ms)?)$`, "#", `([0-9]+(?:[.,][0-9]+)?)`))

// durationUnits holds the unit of each number in durations.
var durationUnits = [...]time.Duration{7 * day, day, time.Hour, time.Minute, time.Second,
	day, time.Hour, time.Minute, time.Second, time.Millisecond}

// fractionBefore matches a fraction that is followed by another number.
var fractionBefore = regexp.MustCompile(`[.,][0-9]+[A-Za-z]+[0-9]`)

// ParseDuration reads a duration in one of the two forms, to the millisecond. Only its last number may have a fraction.
// It returns false if s is neither, or longer than LongestDuration.
func ParseDuration(s string) (time.Duration, bool) {
	figures := durations.FindStringSubmatch(s)
	if figures == nil || s == "" || s[len(s)-1] == 'P' || s[len(s)-1] == 'T' || fractionBefore.MatchString(s) {
		return 0, false
	}
	total := 0.0
	for i, figure := range figures[1:] {
		if figure == "" {
			continue
		}
		n, err := strconv.ParseFloat(strings.Replace(figure, ",", ".", 1), 64)
		total += n * float64(durationUnits[i])
		if err != nil || total > float64(LongestDuration) {
			return 0, false
		}
	}
	return time.Duration(total).Round(time.Millisecond), true
}
