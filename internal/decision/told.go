package decision

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxTold bounds how long a claim waits since it was told to (R37, BIL-004-V3).
const maxTold = 240 * time.Minute

// retryAfterText is the header's name, as error texts quote it, before its value.
var retryAfterText = regexp.MustCompile(
	`(?i)retry[-_ ]?after["']?\s*[:=]?\s*["']?([0-9]{1,9}|[a-z]{3}, [0-9]{2} [a-z]{3} [0-9]{4} [0-9:]{8} GMT)`)

// RetryAfter returns how long a destination asks to wait, of what the variable retryAfter holds or, where that is
// empty, what the header of that name in the text does: seconds, or an instant as HTTP writes it. 0 is nothing.
func RetryAfter(variable, text string, now time.Time) time.Duration {
	value := strings.TrimSpace(variable)
	if value == "" && (strings.Contains(text, "etry") || strings.Contains(text, "ETRY")) {
		if found := retryAfterText.FindStringSubmatch(text); found != nil {
			value = found[1]
		}
	}
	if value == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := time.Parse(time.RFC1123, value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// told returns how long a failure says to wait before the claim is sent again: RetryAfter, or in words; at most maxTold
// (R37). Only what goes to a destination is told so.
func (f *Failure) told(now time.Time) time.Duration {
	if f.Destination == "" {
		return 0
	}
	return min(max(RetryAfter(f.RetryAfter, f.Error, now), f.Said.Wait), maxTold)
}
