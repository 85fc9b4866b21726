package decision

import (
	"time"

	"retry-worker/internal/text"
)

// OwnVariables names the variables in which a job brings its own RetryPolicy (UC-004, R15).
type OwnVariables struct {
	// MaxAttempts is a whole number from 1 to 1000: the first try and the retries. If it is absent there is no
	// RetryPolicy, and the first failure is final (FA-004.1).
	MaxAttempts string `yaml:"maxAttemptsVariable"`
	// Delay is the time between two attempts: an ISO 8601 duration, or a number of milliseconds; 0 counts as 1 s. If it
	// is absent, the policy's backoff holds.
	Delay string `yaml:"delayVariable"`
	// NonRetryable is true if the error is final, whatever the count (FA-004.2).
	NonRetryable string `yaml:"nonRetryableVariable"`
}

// OwnPolicy is the RetryPolicy that a job brought (R15). The zero value is none.
type OwnPolicy struct {
	// MaxAttempts is 0 where the job brought none.
	MaxAttempts int64
	// Delay is meaningful if HasDelay.
	Delay    time.Duration
	HasDelay bool
	// NonRetryable reports whether the error is final (FA-004.2).
	NonRetryable bool
}

// NonRetryableRule is the matched rule of an error that the job itself calls final.
const NonRetryableRule = "nonRetryable"

// leastDelay replaces a delay of 0, with which a process would loop without a pause.
const leastDelay = time.Second

// ReadOwn reads the retry policy that a job brings (R15), or returns the first problem with it.
func (p *Policy) ReadOwn(v *Variables) (own OwnPolicy, refused *Rejection) {
	if p.Own == nil {
		return own, nil
	}
	own.MaxAttempts = optional(&refused, v.MaxAttempts, Value.attempts, InvalidRetryPolicy, p.Own.MaxAttempts,
		"a whole number from 1 to 1000, or none (no retry policy)")
	own.Delay = optional(&refused, v.Delay, Value.duration, InvalidRetryPolicy, p.Own.Delay,
		"an ISO 8601 duration such as PT30S, or milliseconds as a whole number, at most 366 days, or none")
	own.HasDelay = v.Delay.given()
	own.NonRetryable = optional(&refused, v.NonRetryable, Value.boolean, InvalidRetryPolicy, p.Own.NonRetryable,
		"true, false, or none")
	return own, refused
}

// Limits returns the retries and the backoff for a job: its own where it brought them, otherwise p's.
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

// NoDelay reports whether the job asks for retries without a delay. It gets leastDelay.
func (own OwnPolicy) NoDelay() bool { return own.HasDelay && own.Delay == 0 }

func (v Value) attempts() (int64, bool) {
	n, ok := v.whole()
	return n, ok && n >= 1 && n <= 1000
}

func (v Value) boolean() (is, ok bool) { return v == "true", v == "true" || v == "false" }

// duration returns the time that v holds, from 0 to text.LongestDuration: milliseconds if v is a number, ISO 8601 if it
// is a text.
func (v Value) duration() (time.Duration, bool) {
	if s, ok := v.text(); ok {
		d, ok := text.ParseDuration(s)
		return d, ok && s[0] == 'P'
	}
	n, ok := v.whole()
	return time.Duration(n) * time.Millisecond, ok && n <= text.LongestDuration.Milliseconds()
}
