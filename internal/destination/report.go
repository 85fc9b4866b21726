package destination

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
)

// down are the reasons that speak of the destination. SERVER_ERROR is none: it may be this claim that it cannot take.
var down = []decision.Reason{"TIMEOUT", "CONNECTION_ERROR", "SERVICE_UNAVAILABLE", "NETWORK_ERROR", "503", "504"}

// FailureEvent returns what the failure of a claim that went at sent tells of its destination; nil is nothing. That the
// destination refused a claim shows that it works.
func FailureEvent(m *classify.Match, claim string, sent time.Time, retryAfter time.Duration) Event {
	switch {
	case m.Reason == "RATE_LIMIT" || retryAfter > 0:
		return RateLimited{claim, sent, retryAfter}
	case slices.Contains(down, m.Reason):
		return Failed{claim, sent}
	case m.Class == decision.Permanent && m.Reason != "INVALID_CERTIFICATE": // which lets no connection come about
		return Answered{claim, sent}
	}
	return nil
}

// retryAfterText is the header's name, as error texts quote it, before its value.
var retryAfterText = regexp.MustCompile(
	`(?i)retry[-_ ]?after["']?\s*[:=]?\s*["']?([0-9]{1,9}|[a-z]{3}, [0-9]{2} [a-z]{3} [0-9]{4} [0-9:]{8} GMT)`)

// RetryAfter returns how long a destination asks to wait, of what the variable retryAfter holds or, where that is
// empty, of an error's text: seconds, or an HTTP date. 0 is nothing.
func RetryAfter(variable, text string, now time.Time) time.Duration {
	value := strings.TrimSpace(variable)
	if value == "" {
		if found := retryAfterText.FindStringSubmatch(text); found != nil {
			value = found[1]
		}
	}
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := time.Parse(time.RFC1123, value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
