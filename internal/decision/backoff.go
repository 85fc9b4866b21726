package decision

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// BackoffRule is a backoff with jitter. The raw delay of retry n (from 0) is min(Base × Factor^n, Max), or item n of
// List. The delay is drawn from raw ± Jitter × raw, rounded to Rounding and kept within [Min, Max] (R5, BIL-004-V3,
// V4).
type BackoffRule struct {
	// Base, Min and Max are positive, Min ≤ Max.
	Base, Min, Max time.Duration
	// List holds raw delays that replace Base and Factor; the last one repeats. It is usually empty.
	List []time.Duration
	// Factor is at least 1.
	Factor float64
	// Jitter is the largest deviation from raw as a fraction, in [0, 1).
	Jitter float64
	// Rounding of the delay: time.Minute for tiss-submission.
	Rounding time.Duration
}

// Backoff is the value object BackoffCalculation of RN-BIL-005 §12.2.
type Backoff struct {
	// Delay to wait: rounded and held in the rule's bounds.
	Delay time.Duration `json:"delay"`
	// Raw delay before jitter.
	Raw time.Duration `json:"raw"`
	// JitterRatio is the drawn deviation from Raw, in [−Jitter, +Jitter), before rounding and bounds (R19).
	JitterRatio float64 `json:"-"`
	// AtMaximum reports whether a growing Raw has reached the rule's Max (R19).
	AtMaximum bool `json:"most,omitempty"`
}

// Precision returns the unit of the instants that r computes: whole seconds, or milliseconds if its delays are below a
// minute (R7).
func (r *BackoffRule) Precision() time.Duration {
	if r.Min < time.Minute {
		return time.Millisecond
	}
	return time.Second
}

// Raw returns the nominal delay before retry number n (0 or more) of a ladder; it never falls as n grows
// and does not overflow for any n.
func (r *BackoffRule) Raw(n int64) time.Duration {
	if last := int64(len(r.List)) - 1; last >= 0 {
		return min(r.List[min(n, last)], r.Max)
	}
	raw := float64(r.Base) * math.Pow(r.Factor, float64(n))
	if raw >= float64(r.Max) {
		return r.Max
	}
	return time.Duration(raw)
}

// After returns the delay before retry number n (0 or more) for a draw in [0, 1).
func (r *BackoffRule) After(draw float64, n int64) Backoff {
	raw := r.Raw(n)
	ratio := r.Jitter * (2*draw - 1)
	if ratio == 0 {
		ratio = 0 // not −0, which some databases do not return
	}
	delay := time.Duration(math.MaxInt64)
	if ns := float64(raw) * (1 + ratio); ns < math.MaxInt64 {
		delay = time.Duration(ns).Round(r.Rounding)
	}
	return Backoff{
		Delay:       min(max(delay, r.Min), r.Max),
		Raw:         raw,
		JitterRatio: ratio,
		AtMaximum:   raw == r.Max && r.Factor > 1,
	}
}

// draw returns a number in [0, 1), uniform over subjects and always the same for the same policy, subject, count and
// salt. A repeated analysis so gets the same backoff without a memory (R6).
func (p *Policy) draw(subject string, count int64) float64 {
	var room [256]byte
	b := room[:0]
	for _, part := range [...]string{p.Name, p.Salt, subject} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	b = binary.AppendVarint(b, count)
	sum := sha256.Sum256(b)
	const bits = 53 // what a float64 holds exactly
	return float64(binary.BigEndian.Uint64(sum[:8])>>(64-bits)) / (1 << bits)
}

// Manual returns the backoff of a retry that a person asks for after count retries (R17). Its draw is the one that an
// automatic retry would have had (R6). After the last step the last delay repeats (R14: 30 s for failed-job). own is
// the policy that the job brought, if any. The total limit (R20) does not apply to people.
func (p *Policy) Manual(subject string, own OwnPolicy, count int64) Backoff {
	_, rule := p.Limits(own)
	return rule.After(p.draw(subject, count), count)
}

// Open returns at or, if the destination is closed then, a time in the first half of its next opening. The time depends
// on subject and count alone, so it is the same each time. It is not after until (zero: no limit), unless the opening
// itself is.
func (p *Policy) Open(destination, subject string, count int64, at, until time.Time) time.Time {
	to := p.Destinations.Of(destination)
	return to.Open(at, until, p.draw(subject, count))
}

// TimeLimit returns the end of the total limit for a first failure at an instant; zero if there is none. Hours in which
// the destination is closed do not count (R27).
func (p *Policy) TimeLimit(destination string, first time.Time) time.Time {
	if p.TotalLimit == 0 {
		return time.Time{}
	}
	return p.Destinations.Of(destination).Calendar.Add(first, p.TotalLimit)
}

// stretchSpread is the time over which retries are spread that wait for a destination to come back.
const stretchSpread = 10 * time.Minute

// stretched returns when to retry if the destination is down and expected back only after wanted: whole minutes after
// AnalysedAt. It returns zero if the retry need not wait.
func (d *Decision) stretched(p *Policy, f *Failure, wanted time.Time) time.Time {
	if !p.Stretch || !f.Expected.After(wanted) {
		return time.Time{}
	}
	spread := time.Duration(p.draw(d.SubjectID, d.RetryCount) * float64(stretchSpread))
	return d.AnalysedAt.Add(time.Duration(Minutes(f.Expected.Add(spread).Sub(d.AnalysedAt))) * time.Minute)
}

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
