package decision

import (
	"strconv"
	"strings"
	"time"
)

// OwnVariables name the variables in which a job brings its own RetryPolicy (UC-004, R15).
type OwnVariables struct {
	// MaxAttempts is a whole number from 1: the first try and the retries. Absent: no RetryPolicy, the first failure
	// is final (FA-004.1).
	MaxAttempts string
	// Delay between two attempts: an ISO 8601 duration, or a number of milliseconds. Absent: the policy's backoff.
	Delay string
	// NonRetryable is true where the error is final whatever the count says (FA-004.2).
	NonRetryable string
}

// OwnPolicy is the RetryPolicy that a job brought (R15). The zero value is none.
type OwnPolicy struct {
	// MaxAttempts is 0 where the job brought none.
	MaxAttempts int64
	// Delay is meaningful if HasDelay.
	Delay    time.Duration
	HasDelay bool
	// NonRetryable says that the error is final (FA-004.2).
	NonRetryable bool
}

// NonRetryableRule is the matched rule of an error that the job itself calls final.
const NonRetryableRule = "nonRetryable"

// longestDelay that a job may ask for.
const longestDelay = 366 * 24 * time.Hour

// readOwn reads what a job says of its own retries.
func (p *Policy) readOwn(v Variables) (own OwnPolicy, r *Rejection) {
	if p.Own == nil {
		return own, nil
	}
	if v.MaxAttempts.given() {
		n, ok := v.MaxAttempts.whole()
		if !ok || n < 1 {
			return own, &Rejection{InvalidRetryPolicy, p.Own.MaxAttempts, v.MaxAttempts.describe(), "a whole number from 1, or none (no retry policy)"}
		}
		own.MaxAttempts = n
	}
	if v.Delay.given() {
		if own.Delay, own.HasDelay = v.Delay.duration(); !own.HasDelay || own.Delay > longestDelay {
			return own, &Rejection{InvalidRetryPolicy, p.Own.Delay, v.Delay.describe(),
				"an ISO 8601 duration such as PT30S, or milliseconds as a whole number, at most 366 days, or none"}
		}
	}
	switch v.NonRetryable {
	case "true":
		own.NonRetryable = true
	case "false", "null", "":
	default:
		return own, &Rejection{InvalidRetryPolicy, p.Own.NonRetryable, v.NonRetryable.describe(), "true, false, or none"}
	}
	return own, nil
}

// Limits are the retries and the backoff that hold for a job with its own policy: p's, where it brought none.
func (p *Policy) Limits(own OwnPolicy) (maxRetries int64, backoff BackoffRule) {
	maxRetries, backoff = p.MaxRetries, p.Backoff
	if own.MaxAttempts > 0 {
		maxRetries = own.MaxAttempts - 1 // R15
	}
	if own.HasDelay {
		backoff = BackoffRule{Base: own.Delay, Max: own.Delay, Factor: 1, Rounding: time.Millisecond}
	}
	return maxRetries, backoff
}

// duration is the time that v holds: milliseconds where it is a number, ISO 8601 where it is a text. It is at least 0.
func (v Value) duration() (time.Duration, bool) {
	if text, ok := v.text(); ok {
		return parseISODuration(text)
	}
	const most = int64(1<<63-1) / int64(time.Millisecond)
	n, ok := v.whole()
	return time.Duration(n) * time.Millisecond, ok && n <= most
}

// isoUnits are the units of ISO 8601 whose length is known, in the order they must come in: those of days, then, behind
// T, those of the clock.
var isoUnits = [...]struct {
	letter byte
	clock  bool
	length time.Duration
}{
	{'W', false, 7 * 24 * time.Hour}, {'D', false, 24 * time.Hour},
	{'H', true, time.Hour}, {'M', true, time.Minute}, {'S', true, time.Second},
}

// parseISODuration reads an ISO 8601 duration without years and months, whose length is not known: PT30S, P1DT12H,
// PT0.5S. Only the last figure may have a fraction.
func parseISODuration(s string) (time.Duration, bool) {
	rest, ok := strings.CutPrefix(s, "P")
	if !ok || rest == "" || rest[len(rest)-1] == 'T' {
		return 0, false
	}
	var total time.Duration
	clock, next := false, 0
	for rest != "" {
		if rest[0] == 'T' && !clock {
			clock, rest = true, rest[1:]
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != ',' })
		if end < 1 {
			return 0, false
		}
		figure := strings.ReplaceAll(rest[:end], ",", ".")
		for next < len(isoUnits) && (isoUnits[next].letter != rest[end] || isoUnits[next].clock != clock) {
			next++
		}
		n, err := strconv.ParseFloat(figure, 64)
		if next == len(isoUnits) || err != nil || strings.Contains(figure, ".") && end+1 < len(rest) {
			return 0, false
		}
		part := n * float64(isoUnits[next].length)
		if part > float64(longestDelay) || total > longestDelay {
			return 0, false
		}
		total += time.Duration(part).Round(time.Millisecond)
		rest = rest[end+1:]
		next++
	}
	return total, true
}
