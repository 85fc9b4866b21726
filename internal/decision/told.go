package decision

import (
	"cmp"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// maxTold is the longest wait that a destination can ask for (R37, BIL-004-V3).
const maxTold = 240 * time.Minute

// retryAfterText matches a Retry-After header in an error text, as a number of seconds or as a date. Two separate words
// are a header only before a colon or a date: "retry after 503 failed" is none.
var retryAfterText = regexp.MustCompile(`(?i)` +
	`retry(?:[-_]?after(?:_seconds)?["'\\]*\s*[:=]?|\s+after\s*[:=])\s*["'\\[]*` +
	`([0-9]{1,9})(?:\.0+)?\s?s?(?:[^0-9a-z:-]|$)` +
	`|retry[-_ ]?after["'\\]*\s*[:=]?\s*["'\\[]*` +
	`([a-z]{3}, [0-9]{2} [a-z]{3} [0-9]{4} [0-9:]{8} GMT|[0-9-]{10}T[0-9:.]+(?:Z|[-+][0-9:]{5})?)`)

// RetryAfter returns how long a destination asks to wait. It reads the variable retryAfter or, if that is empty, the
// header of that name in the text: seconds, an HTTP date, or an instant. 0 means that it does not ask.
func RetryAfter(variable, text string, now time.Time) time.Duration {
	value := strings.TrimSpace(variable)
	if value == "" && (strings.Contains(text, "etry") || strings.Contains(text, "ETRY")) {
		if found := retryAfterText.FindStringSubmatch(text); found != nil {
			value = cmp.Or(found[1], found[2])
		}
	}
	if value == "" {
		return 0
	}
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds >= 0 && seconds <= math.MaxUint32 {
		return time.Duration(seconds * float64(time.Second)) // a process may hold 120 as 120.0
	}
	at, err := time.Parse(time.RFC1123, value)
	if err != nil {
		at, _ = ParseInstant(value)
	}
	return max(0, at.Sub(now))
}

// told returns how long the destination asks to wait before the next try, in Retry-After or in words, at most maxTold
// (R37). It is 0 for a failure without a destination.
func (f *Failure) told(now time.Time) time.Duration {
	if f.Destination == "" {
		return 0
	}
	return min(max(RetryAfter(f.RetryAfter, f.Error, now), f.Said.Wait), maxTold)
}
