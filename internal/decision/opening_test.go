package decision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/destination"
	"retry-worker/internal/testkit"
)

// office returns tiss-submission for a destination that is open on working days from 08:00 to 18:00 in São Paulo.
func office(t testing.TB) *decision.Policy {
	t.Helper()
	zone, err := time.LoadLocation("America/Sao_Paulo")
	testkit.Must(t, err)
	c, err := calendar.New(zone, []calendar.Window{{Weekdays: "mon-fri", Hours: "08:00-18:00"}}, calendar.Holidays("BR-SP"))
	testkit.Must(t, err)
	p := *decisiontest.TISSSubmission()
	p.Destination = &decision.DestinationVariable{Variable: "operadora", Default: "tiss"}
	p.Destinations.Named = map[string]destination.Settings{"unimed-sp": {Calendar: c, Pace: destination.Defaults().Pace}}
	return &p
}

// at is an instant of December 2026 in São Paulo.
func at(day, hour, minute int) time.Time {
	return time.Date(2026, 12, day, hour+3, minute, 0, 0, time.UTC)
}

// TestR29Openings: Christmas Eve 2026 is a Thursday.
func TestR29Openings(t *testing.T) {
	p := office(t)
	for _, tt := range []struct {
		name         string
		destination  string
		now          time.Time
		count        int64
		deadline     time.Time
		first        time.Time
		outcome      decision.Outcome
		from, before time.Time // of the next retry
		reason       string
	}{
		{name: "open", destination: "unimed-sp", now: at(24, 10, 0), outcome: decision.Retry, from: at(24, 10, 5), before: at(24, 10, 7),
			reason: "Transient error, retry 1 of 5"},
		{name: "closed by then", destination: "unimed-sp", now: at(23, 17, 56), outcome: decision.Retry, from: at(24, 8, 0), before: at(24, 8, 11),
			reason: "Transient error, retry 1 of 5; closed at 2026-12-23T21:0*Z: outside mon-fri, 08:00-18:00"},
		{name: "a holiday, and a weekend behind it", destination: "unimed-sp", now: at(25, 10, 0), outcome: decision.Retry, from: at(28, 8, 0), before: at(28, 8, 11),
			reason: "Transient error, retry 1 of 5; closed at 2026-12-25T13:0*Z: Natal (Lei 662/1949)"},
		{name: "another destination", destination: "tiss", now: at(25, 10, 0), outcome: decision.Retry, from: at(25, 10, 5), before: at(25, 10, 7),
			reason: "Transient error, retry 1 of 5"},
		{name: "in time", destination: "unimed-sp", now: at(25, 10, 0), deadline: at(28, 8, 1), outcome: decision.Retry, from: at(28, 8, 0), before: at(28, 8, 2)},
		{name: "it opens too late", destination: "unimed-sp", now: at(25, 10, 0), deadline: at(28, 7, 59), outcome: decision.MaxRetriesExceeded,
			reason: "Deadline 2026-12-28T10:59:00Z cannot be met"},
		{name: "a deadline that is past", destination: "unimed-sp", now: at(24, 10, 0), deadline: at(23, 0, 0), outcome: decision.MaxRetriesExceeded,
			reason: "Deadline 2026-12-23T03:00:00Z cannot be met"},
		{name: "closed hours do not count toward the total limit", destination: "unimed-sp", now: at(28, 10, 0), first: at(22, 8, 0),
			outcome: decision.Retry, from: at(28, 10, 5), before: at(28, 10, 7)},
		{name: "others do", destination: "tiss", now: at(28, 10, 0), first: at(22, 8, 0), outcome: decision.MaxRetriesExceeded,
			reason: "Time limit of 48h reached"},
	} {
		f, rejection := p.Read(decision.Variables{ID: decision.Text("CLM-1-1"), Error: decision.Text("TIMEOUT"), Destination: decision.Text(tt.destination)})
		if rejection != nil {
			t.Fatal(rejection)
		}
		f.Deadline = tt.deadline
		d := decision.Decide(&f, p, decision.Past{FirstFailure: tt.first}, tt.now)
		if d.Outcome != tt.outcome || d.NextRetryTime.Before(tt.from) || d.ShouldRetry() && !d.NextRetryTime.Before(tt.before) {
			t.Errorf("%s: %s at %s, want %s from %s until before %s", tt.name, d.Outcome, d.NextRetryTime, tt.outcome, tt.from, tt.before)
		}
		if tt.reason != "" && !matches(tt.reason, d.RetryReason) {
			t.Errorf("%s: %q, want %q", tt.name, d.RetryReason, tt.reason)
		}
		if d.Wait()%time.Minute != 0 {
			t.Errorf("%s: waits %s", tt.name, d.Wait())
		}
	}
}

// matches compares texts of which want may leave out one run of characters, by *.
func matches(want, got string) bool {
	for i := range len(got) {
		for j := i; j <= len(got); j++ {
			if got[:i]+"*"+got[j:] == want {
				return true
			}
		}
	}
	return want == got
}

// TestR29Spread: those that wait for an opening do not come at once, and each comes when it did before.
func TestR29Spread(t *testing.T) {
	p := office(t)
	count := map[time.Time]int{}
	for n := range 1000 {
		id := fmt.Sprintf("CLM-1-%d", n)
		next := p.Open("unimed-sp", id, 1, at(25, 10, 0), time.Time{})
		if again := p.Open("unimed-sp", id, 1, at(26, 11, 0), time.Time{}); !again.Equal(next) {
			t.Fatalf("%s comes at %s, then at %s", id, next, again)
		}
		count[next.Truncate(time.Minute)]++
	}
	if len(count) != 10 {
		t.Errorf("they come in %d minutes, want 10", len(count))
	}
	for minute, n := range count {
		if n < 50 || n > 150 {
			t.Errorf("%d come in the minute of %s", n, minute)
		}
	}
}

// TestR29Rebase: what is given again later is moved and given up as what is decided.
func TestR29Rebase(t *testing.T) {
	p := office(t)
	f, _ := p.Read(decision.Variables{ID: decision.Text("CLM-1-1"), Error: decision.Text("TIMEOUT"), Destination: decision.Text("unimed-sp")})
	d := decision.Decide(&f, p, decision.Past{}, at(24, 10, 0))
	f.Deadline = at(28, 12, 0)
	if again := d.Rebase(p, &f, at(25, 10, 0)); again.NextRetryTime.Before(at(28, 8, 0)) || again.RetryCount != 1 || again.Backoff != d.Backoff {
		t.Errorf("given again: %+v", again)
	}
	if again := d.Rebase(p, &f, at(28, 11, 56)); again.Reason != decision.ReasonDeadline || again.RetryCount != 0 || !again.NextRetryTime.IsZero() {
		t.Errorf("given again too late: %+v", again)
	}
	if reasons := decision.Reasons(); !slices.Contains(reasons, decision.ReasonDeadline) {
		t.Errorf("%v", reasons)
	}
}

// TestStretch: the retry of a claim whose destination is down waits until that is expected back, spread over ten minutes,
// unless it would then come too late.
func TestStretch(t *testing.T) {
	now := at(23, 10, 0)
	for _, tt := range []struct {
		name         string
		stretch      bool
		expected     time.Time
		deadline     time.Time
		first        time.Time
		from, before time.Time
	}{
		{"back later", true, at(23, 11, 0), time.Time{}, now, at(23, 11, 6), at(23, 11, 6)},
		{"back before the ladder's time", true, at(23, 10, 1), time.Time{}, now, at(23, 10, 4), at(23, 10, 7)},
		{"not down", true, time.Time{}, time.Time{}, now, at(23, 10, 4), at(23, 10, 7)},
		{"not asked for", false, at(23, 11, 0), time.Time{}, now, at(23, 10, 4), at(23, 10, 7)},
		{"too late for its deadline", true, at(23, 11, 0), at(23, 10, 30), now, at(23, 10, 4), at(23, 10, 7)},
		{"too late for the policy", true, at(23, 11, 0), time.Time{}, at(16, 12, 30), at(23, 10, 4), at(23, 10, 7)},
		{"closed by then", true, at(23, 17, 55), time.Time{}, now, at(23, 17, 55), at(24, 8, 11)},
		{"closed by then, and due before it opens", true, at(23, 18, 30), at(24, 7, 0), now, at(23, 10, 4), at(23, 10, 7)},
	} {
		p := office(t)
		p.Stretch = tt.stretch
		f := &decision.Failure{ID: "CLM-001-1", Error: "TIMEOUT", Destination: "unimed-sp", Expected: tt.expected, Deadline: tt.deadline}
		f.Match = classify.Match{Class: decision.Transient, Reason: "TIMEOUT"}
		d := decision.Decide(f, p, decision.Past{FirstFailure: tt.first}, now)
		if d.Outcome != decision.Retry || d.NextRetryTime.Before(tt.from) || d.NextRetryTime.After(tt.before) {
			t.Errorf("%s: %s at %s, want a retry from %s to %s", tt.name, d.Outcome, d.NextRetryTime, tt.from, tt.before)
		}
		if told, waits := strings.Contains(d.RetryReason, "; unimed-sp is down and expected back by "), tt.from.After(at(23, 10, 30)); told != waits {
			t.Errorf("%s: it says %s", tt.name, d.RetryReason)
		}
	}
}

// TestToldToWait: a claim that was told when to come again is not sent before, and is given up by that no sooner (R37).
func TestToldToWait(t *testing.T) {
	now := at(23, 10, 0)
	for _, tt := range []struct {
		name, retryAfter string
		expected         time.Time
		deadline         time.Time
		first            time.Time
		from, before     time.Time
		says             string
	}{
		{"longer than the ladder's wait", "3601", time.Time{}, time.Time{}, now, at(23, 11, 1), at(23, 11, 1), "; told to wait until 2026-12-23T14:01:00Z"},
		{"shorter", "60", time.Time{}, time.Time{}, now, at(23, 10, 4), at(23, 10, 7), ""},
		{"a day", "86400", time.Time{}, time.Time{}, now, at(23, 14, 0), at(23, 14, 0), "; told to wait until 2026-12-23T17:00:00Z"},
		{"too late for its deadline", "3600", time.Time{}, at(23, 10, 30), now, at(23, 10, 4), at(23, 10, 7), ""},
		{"too late for the policy", "3600", time.Time{}, time.Time{}, at(16, 12, 30), at(23, 10, 4), at(23, 10, 7), ""},
		{"closed by then", "14400", time.Time{}, time.Time{}, at(23, 15, 0), at(23, 14, 0), at(23, 14, 0), "; told to wait until"},
		{"down until after its deadline", "1800", at(23, 11, 30), at(23, 11, 0), now, at(23, 10, 30), at(23, 10, 30), "; told to wait until 2026-12-23T13:30:00Z"},
		{"down for longer", "3600", at(23, 11, 30), time.Time{}, now, at(23, 11, 30), at(23, 11, 41), "; told to wait until 2026-12-23T14:00:00Z; unimed-sp is down"},
	} {
		p := office(t)
		p.Stretch = true
		f := &decision.Failure{ID: "CLM-001-1", Error: "TIMEOUT", Destination: "unimed-sp", RetryAfter: tt.retryAfter,
			Expected: tt.expected, Deadline: tt.deadline}
		f.Match = classify.Match{Class: decision.Transient, Reason: "TIMEOUT"}
		d := decision.Decide(f, p, decision.Past{FirstFailure: tt.first}, now)
		if d.Outcome != decision.Retry || d.NextRetryTime.Before(tt.from) || d.NextRetryTime.After(tt.before) || !strings.Contains(d.RetryReason, tt.says) ||
			tt.says == "" && strings.Contains(d.RetryReason, "told") {
			t.Errorf("%s: %s at %s (%s), want a retry from %s to %s", tt.name, d.Outcome, d.NextRetryTime, d.RetryReason, tt.from, tt.before)
		}
		f.RetryAfter, f.Expected = "", time.Time{}
		if told := decision.Decide(f, p, decision.Past{FirstFailure: tt.first}, now); told.Backoff != d.Backoff {
			t.Errorf("%s: the draw is %+v, untold it is %+v", tt.name, d.Backoff, told.Backoff)
		}
	}
}
