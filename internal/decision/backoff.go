package decision

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
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
