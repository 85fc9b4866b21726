package text

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Duration returns d as people and files write it, without the parts that are zero at its end: 48h, 1h30m, 45m, 500ms.
func Duration(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-len("0s")]
		}
	}
	return s
}

// ISODuration returns d as ISO 8601: PT12M where it is whole minutes, otherwise seconds down to the millisecond: PT5S,
// PT0.25S. Nothing, and less, is PT0S.
func ISODuration(d time.Duration) string {
	d = max(d, 0).Truncate(time.Millisecond)
	if d > 0 && d%time.Minute == 0 {
		return "PT" + strconv.FormatInt(int64(d/time.Minute), 10) + "M"
	}
	return "PT" + strconv.FormatFloat(float64(d.Milliseconds())/1000, 'f', -1, 64) + "S"
}

// LongestDuration that ParseDuration takes.
const LongestDuration = 366 * day

const day = 24 * time.Hour

// durations are ISO 8601 without years and months, whose length is not known, such as PT30S, P1DT12H or PT0.5S; or as
// files have them, such as 90m, 1h30m or 2d.
var durations = regexp.MustCompile(strings.ReplaceAll(
	`^(?:P(?:#W)?(?:#D)?(?:T(?:#H)?(?:#M)?(?:#S)?)?|(?:#d)?(?:#h)?(?:#m)?(?:#s)?(?:#ms)?)$`, "#", `([0-9]+(?:[.,][0-9]+)?)`))

// durationUnits are those of its figures, in their order.
var durationUnits = [...]time.Duration{7 * day, day, time.Hour, time.Minute, time.Second,
	day, time.Hour, time.Minute, time.Second, time.Millisecond}

// fractionBefore is a fraction with another figure behind it.
var fractionBefore = regexp.MustCompile(`[.,][0-9]+[A-Za-z]+[0-9]`)

// ParseDuration reads a duration in one of the two forms, to the millisecond; false where s is none, or longer than
// LongestDuration. Only its last figure may have a fraction.
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
