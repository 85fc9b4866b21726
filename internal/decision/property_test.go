package decision_test

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/testkit/seeded"
)

// message is an error text built from codes, parts of codes, digits, separators and noise.
var message = rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, 9).Draw(t, "pieces"), "") })

var (
	anyCode = rapid.SampledFrom(append(permanentCodes[:5:5], transientCodes...))

	separator = rapid.SampledFrom([]string{
		"", " ", "_", "-", ".", ",", ";", ":", "/", "__", "--", "..", "\n", "\t", "\x00", "\u00a0", "\u200b", "–", "\xff", "é", "²",
	})

	number = rapid.OneOf(
		rapid.SampledFrom([]string{"503", "504", "5", "03", "50", "4", "0", "15037", "503504", "５０３", "٣"}),
		rapid.Map(rapid.IntRange(0, 99_999), strconv.Itoa),
	)

	noise = rapid.OneOf(
		rapid.SampledFrom([]string{"TIME", "OUT", "RATE", "LIMIT", "SERVER", "ERROR", "UNAVAILABLE", "CLM-1-", "R$ ", "CPF ", "ſ", "ı", "İ", "ß", "ﬁ", "\u212a"}),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 5), func(b []byte) string { return string(b) }),
	)

	piece = rapid.OneOf(
		anyCode, separator, separator, number, number, noise,
		rapid.Map(anyCode, strings.ToLower),
		rapid.Custom(func(t *rapid.T) string { // a code with other separators between its words
			between := separator.Filter(func(s string) bool { return s != "" }) // in one word it is a name, whose neighbours count
			return strings.ReplaceAll(anyCode.Draw(t, "code"), "_", between.Draw(t, "between"))
		}),
		rapid.Custom(func(t *rapid.T) string { // a code with a piece cut off
			code := anyCode.Draw(t, "code")
			return code[rapid.IntRange(0, len(code)).Draw(t, "from"):]
		}),
	)
)

// TestClassifyEqualsOracle on generated messages; the log tells that every class is among them.
func TestClassifyEqualsOracle(t *testing.T) {
	p := decisiontest.TISSSubmission()
	seen := map[decision.ErrorClassification]int{}
	seeded.Check(t, func(t *rapid.T) {
		for _, text := range rapid.SliceOfN(message, 1, 40).Draw(t, "messages") {
			class, code := oracleClass(text)
			if m := p.Rules.Classify(text, 0); m.Class != class || m.Name != code {
				t.Fatalf("%q is %s by %q, want %s by %q", text, m.Class, m.Name, class, code)
			}
			seen[class]++
		}
	})
	t.Logf("messages by class: %v", seen)
	if len(seen) != 3 {
		t.Errorf("the messages are of the classes %v only", seen)
	}
}

// failures are variables of every kind, mostly sound.
var failures = rapid.Custom(func(t *rapid.T) decision.Variables {
	return decision.Variables{
		ID:                 mostly(rapid.Map(rapid.StringMatching(`CLM-.{0,20}-[0-9]{1,10}`), decision.Text)).Draw(t, "id"),
		RetryCount:         mostly(retryCounts).Draw(t, "retryCount"),
		LastSubmissionTime: mostly(submissionTimes).Draw(t, "lastSubmissionTime"),
		Error:              mostly(rapid.Map(message, decision.Text)).Draw(t, "error"),
	}
})

// mostly is a sound value, now and then a number, a near miss or junk.
func mostly(sound *rapid.Generator[decision.Value]) *rapid.Generator[decision.Value] {
	return rapid.OneOf(sound, sound, sound, sound, sound, sound, rapid.OneOf(numbers, nearTimes, junk))
}

var (
	retryCounts = rapid.Map(rapid.SampledFrom([]string{"0", "1", "2", "3", "4", "5", "7", "2.0", "2e0", "", "null"}),
		func(s string) decision.Value { return decision.Value(s) })
	numbers = rapid.Map(rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?`),
		func(s string) decision.Value { return decision.Value(s) })

	submissionTimes = rapid.Custom(func(t *rapid.T) decision.Value {
		layout := rapid.SampledFrom([]string{time.RFC3339, time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", ""}).Draw(t, "layout")
		if layout == "" {
			return ""
		}
		return decision.Text(instants.Draw(t, "lastSubmission").Format(layout))
	})
	nearTimes = rapid.Map(rapid.StringMatching(
		`20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2]?[0-9]:[0-6][0-9](:[0-6][0-9]([.,][0-9]{1,12})?(Z|[+-][0-2][0-9]:[0-6][0-9])?)?`), decision.Text)
)

var junk = rapid.OneOf(
	rapid.SampledFrom([]decision.Value{"", "null", "true", "[]", "{}", `""`, `" "`, "2.5", "1e400", `"2"`, "-1"}),
	rapid.Map(rapid.String(), func(s string) decision.Value { return decision.Value(s) }),
)

// TestDecideEqualsOracle: outcome, classification, rule, count, sentence, bounds and times.
func TestDecideEqualsOracle(t *testing.T) {
	p := decisiontest.TISSSubmission()
	seen := map[decision.Outcome]int{}
	seeded.Check(t, func(t *rapid.T) {
		for range 20 {
			v, now := failures.Draw(t, "variables"), instants.Draw(t, "now")
			past := decision.Past{Retries: rapid.Int64Range(0, 7).Draw(t, "remembered")}
			if rapid.Bool().Draw(t, "an episode is open") {
				past.FirstFailure = rapid.OneOf(instants, ages(now)).Draw(t, "firstFailure")
			}
			d := decideWith(p, v, past, now)
			if wrong := disagreement(&d, v, past, now); wrong != "" {
				t.Fatalf("%+v at %s: %s", v, now, wrong)
			}
			seen[d.Outcome]++
			if d.Reason == decision.ReasonTimeLimit {
				seen["beyond the time limit"]++
			}
		}
	})
	t.Logf("decisions by outcome: %v", seen)
	if len(seen) != 5 {
		t.Errorf("the decisions are %v only", seen)
	}
}

// ages are first failures around 48 hours before now (R20).
func ages(now time.Time) *rapid.Generator[time.Time] {
	return rapid.Map(rapid.Int64Range(45*3600, 49*3600), func(seconds int64) time.Time {
		return now.Truncate(time.Second).Add(-time.Duration(seconds) * time.Second)
	})
}

var instants = rapid.Map(rapid.Int64Range(-1e18, 8e18), func(ns int64) time.Time {
	return time.Unix(0, ns).In(time.FixedZone("", int(ns%840)*60)) // up to 14 hours, in whole minutes
})

// disagreement says where d is not what the oracle says of v; empty where it is.
func disagreement(d *decision.Decision, v decision.Variables, past decision.Past, now time.Time) string {
	second := now.UTC().Add(-time.Duration(now.Nanosecond()))
	want := oracle(v, past, second)
	got := answer{outcome: d.Outcome}
	if d.Rejection != nil {
		got.rejection = d.Rejection.Code
	} else {
		got.id, got.class, got.code = d.SubjectID, d.ErrorClassification, d.MatchedRule
		got.count, got.reason, got.first = d.RetryCount, d.RetryReason, d.FirstFailure
	}
	got.first, want.first = got.first.UTC(), want.first.UTC()
	if got != want {
		return fmt.Sprintf("got %+v, want %+v", got, want)
	}
	if d.Outcome != decision.Retry {
		return ""
	}
	least, most := oracleMinutes(d.RetryCount - 1)
	switch m := decision.Minutes(d.Backoff.Delay); {
	case m < least || m > most || d.Backoff.Delay != time.Duration(m)*time.Minute:
		return fmt.Sprintf("backoff of %s, want %d to %d whole minutes", d.Backoff.Delay, least, most)
	case !d.NextRetryTime.Equal(second.Add(d.Backoff.Delay)) || !d.NextRetryTime.After(now):
		return fmt.Sprintf("next retry at %s, %s after %s", d.NextRetryTime, d.Backoff.Delay, second)
	}
	return ""
}

// rules are backoff rules of every size, up to the longest duration there is.
var rules = rapid.Custom(func(t *rapid.T) decision.BackoffRule {
	least := rapid.Int64Range(int64(time.Millisecond), math.MaxInt64).Draw(t, "min")
	return decision.BackoffRule{
		Base:     time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "base")),
		Min:      time.Duration(least),
		Max:      time.Duration(rapid.Int64Range(least, math.MaxInt64).Draw(t, "max")),
		Factor:   rapid.OneOf(rapid.Just(1.0), rapid.Just(2.0), rapid.Float64Range(1.05, 10)).Draw(t, "factor"),
		Jitter:   rapid.OneOf(rapid.Just(0.0), rapid.Just(0.2), rapid.Float64Range(1e-9, 0.999)).Draw(t, "jitter"),
		Rounding: rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, time.Minute, time.Hour}).Draw(t, "rounding"),
	}
})

// oracleRaw is min(base × factor^n, max), multiplied out with far more digits than a float64 has.
func oracleRaw(r decision.BackoffRule, n int64) *big.Float {
	precise := func(x float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(x) }
	raw, most := precise(0).SetInt64(int64(r.Base)), precise(0).SetInt64(int64(r.Max))
	for i := int64(0); i < n && r.Factor > 1 && raw.Cmp(most) < 0; i++ {
		raw.Mul(raw, precise(r.Factor))
	}
	if raw.Cmp(most) > 0 {
		return most
	}
	return raw
}

var counts = rapid.OneOf(rapid.Int64Range(0, 30), rapid.Int64Range(0, math.MaxInt64))

// TestRawBackoffProperties: equal to the oracle's, never falling, never above the maximum, for any
// count up to the largest integer.
func TestRawBackoffProperties(t *testing.T) {
	seeded.Check(t, func(t *rapid.T) {
		r, n := rules.Draw(t, "rule"), counts.Draw(t, "n")
		raw := r.Raw(n)
		want, _ := oracleRaw(r, n).Float64()
		if math.Abs(float64(raw)-want) > 1+want*1e-12 {
			t.Fatalf("raw %d ns, want %.0f", raw, want)
		}
		if raw < 0 || raw > r.Max {
			t.Fatalf("raw %s is out of 0 to %s", raw, r.Max)
		}
		later := max(n, counts.Draw(t, "later"))
		if next := r.Raw(later); next < raw {
			t.Fatalf("raw falls: %s at %d, %s at %d", raw, n, next, later)
		}
	})
}

// TestBackoffProperties: within the bounds, within the jitter, rounded, and without overflow.
func TestBackoffProperties(t *testing.T) {
	seeded.Check(t, func(t *rapid.T) {
		r, n := rules.Draw(t, "rule"), counts.Draw(t, "n")
		draw := rapid.OneOf(rapid.SampledFrom([]float64{0, 0.5, almostOne}), rapid.Float64Range(0, almostOne)).Draw(t, "draw")
		b := r.After(draw, n)
		if b.Delay < r.Min || b.Delay > r.Max {
			t.Fatalf("%s is out of %s to %s", b.Delay, r.Min, r.Max)
		}
		if b.JitterRatio < -r.Jitter || b.JitterRatio > r.Jitter || b.JitterRatio == r.Jitter && r.Jitter > 0 {
			t.Fatalf("ratio %v is out of [−%v, +%v)", b.JitterRatio, r.Jitter, r.Jitter)
		}
		jittered := float64(b.Raw) * (1 + b.JitterRatio)
		if off := math.Abs(float64(b.Delay) - jittered); b.Delay != r.Min && b.Delay != r.Max {
			if off > float64(r.Rounding)/2+1+jittered*1e-12 {
				t.Fatalf("%s is %.0f ns off %.0f", b.Delay, off, jittered)
			}
			if r.Rounding > 0 && b.Delay%r.Rounding != 0 {
				t.Fatalf("%s is not rounded to %s", b.Delay, r.Rounding)
			}
		}
		if m := decision.Minutes(b.Delay); m < 1 || float64(m)*6e10 < float64(b.Delay)-1 || float64(m-1)*6e10 >= float64(b.Delay)+1e4 {
			t.Fatalf("%s are %d minutes", b.Delay, m)
		}
	})
}
