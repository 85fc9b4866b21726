package decision

import (
	"time"

	"retry-worker/internal/text"
)

// OwnVariables name the variables in which a job brings its own RetryPolicy (UC-004, R15).
type OwnVariables struct {
	// MaxAttempts is a whole number from 1 to 1000: the first try and the retries. Absent: no RetryPolicy, the first
	// failure is final (FA-004.1).
	MaxAttempts string `yaml:"maxAttemptsVariable"`
	// Delay between two attempts: an ISO 8601 duration, or a number of milliseconds; 0 is taken as 1 s. Absent: the
	// policy's backoff.
	Delay string `yaml:"delayVariable"`
	// NonRetryable is true where the error is final whatever the count says (FA-004.2).
	NonRetryable string `yaml:"nonRetryableVariable"`
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

const (
	// maxAttempts that a job may ask for: as many retries as a policy may have, at most.
	maxAttempts = 1000
	// leastDelay stands for a delay of 0, by which a process would do nothing but fail.
	leastDelay = time.Second
)

// readOwn reads what a job says of its own retries.
func (p *Policy) readOwn(v Variables) (own OwnPolicy, r *Rejection) {
	if p.Own == nil {
		return own, nil
	}
	var ok bool
	if v.MaxAttempts.given() {
		if own.MaxAttempts, ok = v.MaxAttempts.whole(); !ok || own.MaxAttempts < 1 || own.MaxAttempts > maxAttempts {
			return own, &Rejection{InvalidRetryPolicy, p.Own.MaxAttempts, v.MaxAttempts.describe(),
				"a whole number from 1 to 1000, or none (no retry policy)"}
		}
	}
	if v.Delay.given() {
		if own.Delay, own.HasDelay = v.Delay.duration(); !own.HasDelay {
			return own, &Rejection{InvalidRetryPolicy, p.Own.Delay, v.Delay.describe(),
				"an ISO 8601 duration such as PT30S, or milliseconds as a whole number, at most 366 days, or none"}
		}
	}
	if own.NonRetryable, ok = v.NonRetryable.boolean(); !ok {
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
		delay := own.Delay
		if own.NoDelay() {
			delay = leastDelay
		}
		backoff = BackoffRule{Base: delay, Max: delay, Factor: 1, Rounding: time.Millisecond}
	}
	return maxRetries, backoff
}

// NoDelay reports whether the job asks for retries without a delay. It gets one second.
func (own OwnPolicy) NoDelay() bool { return own.HasDelay && own.Delay == 0 }

// boolean is what v holds; nothing is false.
func (v Value) boolean() (is, ok bool) {
	return v == "true", v == "true" || v == "false" || v.absent()
}

// duration is the time that v holds: milliseconds where it is a number, ISO 8601 where it is a text; from 0 to
// text.LongestDuration.
func (v Value) duration() (time.Duration, bool) {
	if s, ok := v.text(); ok {
		d, ok := text.ParseDuration(s)
		return d, ok && s[0] == 'P'
	}
	n, ok := v.whole()
	return time.Duration(n) * time.Millisecond, ok && n <= text.LongestDuration.Milliseconds()
}
