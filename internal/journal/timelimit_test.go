package journal_test

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// failsAgain has the job that asked last ask again, word for word.
func (c *clinic) failsAgain(id, text string, count int) journal.Recorded {
	c.t.Helper()
	c.key--
	return c.fails(id, text, count)
}

// TestFiguresOfTheTimeLimit: an episode that ends because its next retry would be too late died by the limit, whether
// a failure ended it or its own job that asked again (R19, R20). It did so once.
func TestFiguresOfTheTimeLimit(t *testing.T) {
	for name, end := range map[string]func(c *clinic) journal.Recorded{
		"a late failure":     func(c *clinic) journal.Recorded { return c.fails("CLM-a-1", "TIMEOUT", 1) },
		"the same job, late": func(c *clinic) journal.Recorded { return c.failsAgain("CLM-a-1", "TIMEOUT", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			c := openClinic(t)
			c.fails("CLM-a-1", "TIMEOUT", 0)
			c.now = c.now.Add(48 * time.Hour)
			for range 3 { // the second and third time it is told the same
				if r := end(c); r.Decision.Reason != decision.ReasonTimeLimit || r.Decision.RetryReason != "Time limit of 48h reached" {
					t.Fatalf("it ends with %s, %q", r.Decision.Reason, r.Decision.RetryReason)
				}
				if name == "a late failure" {
					c.key--
				}
			}
			c.recovers("CLM-b-1", 1, time.Hour)
			c.now = c.now.Add(time.Hour)
			c.wantKPI("success_rate", 0.5)
			c.wantKPI("exhausted_rate", 0.5)
			c.wantDeadLetters(map[journal.DeadLetterState]int64{journal.DeadLetterOpen: 1})
			c.succeeds("CLM-a-1") // a person saw to it: closed once all the same
			if k := c.wantKPI("exhausted_rate", 0.5); k.Samples != 2 {
				t.Errorf("%d episodes ended, want 2", k.Samples)
			}
		})
	}
}

// TestClosedHoursAbandonNothing: a claim of which nothing is heard while its destination is closed goes on where it was.
func TestClosedHoursAbandonNothing(t *testing.T) {
	for name, want := range map[string]int64{"always open": 2, "open for an hour a day": 1} {
		c := openClinic(t)
		if want == 1 {
			c.destinations = opensAtNine(t).Destinations
		}
		c.fails("CLM-a-1", "TIMEOUT", 0)
		c.now = c.now.Add(5*24*time.Hour - 30*time.Minute)
		if r := c.fails("CLM-a-1", "TIMEOUT", 1); r.Attempt.Episode != want || !r.Decision.ShouldRetry() {
			t.Errorf("%s: %s in episode %d, want a retry in episode %d", name, r.Decision.Outcome, r.Attempt.Episode, want)
		}
		if k := c.wantKPI("exhausted_rate", map[int64]float64{1: math.NaN(), 2: 0}[want]); k.Samples != want-1 {
			t.Errorf("%s: %d episodes ended", name, k.Samples)
		}
	}
}

// TestTheTimeLimitClosesOnce: an episode that had died before, and was sent again, ended then (R19).
func TestTheTimeLimitClosesOnce(t *testing.T) {
	c := openClinic(t)
	dead := c.fails("CLM-a-1", "DUPLICATE_CLAIM", 0).Attempt.DeadLetter
	c.waits("CLM-a-1", dead)
	_, err := c.j.Review(t.Context(), &journal.Review{Subject: c.subject("CLM-a-1"), DeadLetter: dead, Reason: "r", By: "ana"})
	testkit.Must(t, err)
	c.fails("CLM-a-1", "TIMEOUT", 1)
	c.now = c.now.Add(72 * time.Hour)
	if r := c.failsAgain("CLM-a-1", "TIMEOUT", 1); r.Decision.Reason != decision.ReasonTimeLimit {
		t.Fatalf("it ends with %s", r.Decision.Reason)
	}
	if k := c.wantKPI("exhausted_rate", 0); k.Samples != 1 {
		t.Errorf("%d episodes ended, want 1", k.Samples)
	}
	c.wantKPI("success_rate", 0) // but its retry came to nothing, by the limit
}

// TestAnOldJobEndsNothing: what it was told before is counted, and what became of the claim since.
func TestAnOldJobEndsNothing(t *testing.T) {
	c := openClinic(t)
	c.fails("CLM-a-1", "TIMEOUT", 0)
	c.succeeds("CLM-a-1")
	before := c.sums()
	c.now = c.now.Add(72 * time.Hour)
	r := c.failsAgain("CLM-a-1", "TIMEOUT", 0)
	if r.How != journal.Rebased || r.Decision.Outcome != decision.MaxRetriesExceeded || r.Attempt.DeadLetter == "" || r.Attempt.Destination != "unimed" {
		t.Fatalf("told %s, %s with dead letter %q at %q", r.How, r.Decision.Outcome, r.Attempt.DeadLetter, r.Attempt.Destination)
	}
	c.wantDeadLetters(map[journal.DeadLetterState]int64{journal.DeadLetterSuperseded: 1})
	if after := c.sums(); !slices.Equal(before, after) {
		t.Errorf("the sums are %v, want %v", after, before)
	}
	for _, f := range c.causes() {
		if f.Failures != 1 || f.Retried != 1 || f.Exhausted != 0 || f.Recovered != 1 {
			t.Errorf("the cause is counted as %+v", f)
		}
	}
}

// TestRecoveryIsOfTheLastCause: of the newest failure's, though the job of an older one was told a new time since.
func TestRecoveryIsOfTheLastCause(t *testing.T) {
	c := openClinic(t)
	c.fails("CLM-a-1", "TIMEOUT", 0)
	c.fails("CLM-a-1", "HTTP 503", 1)
	c.now, c.key = c.now.Add(time.Hour), c.key-1
	if r := c.failsAgain("CLM-a-1", "TIMEOUT", 0); r.How != journal.Rebased {
		t.Fatalf("the older job is told %s", r.How)
	}
	c.succeeds("CLM-a-1")
	recovered := map[decision.Reason]int64{}
	for _, f := range c.causes() {
		recovered[f.Reason] = f.Recovered
	}
	if want := (map[decision.Reason]int64{"TIMEOUT": 0, "503": 1}); !maps.Equal(recovered, want) {
		t.Errorf("recovered are %v, want %v", recovered, want)
	}
	cases, err := c.store.Cases(t.Context(), []int64{journal.WeekOf(c.now)}, 9)
	if testkit.Must(t, err); len(cases) != 1 || cases[0].Recovered != 1 {
		t.Errorf("the cases are %+v, want one that recovered", cases)
	}
}

// TestOneCauseBelowAndAtTheLimits: whatever ended it, a cause has one fingerprint.
func TestOneCauseBelowAndAtTheLimits(t *testing.T) {
	for text, reason := range map[string]decision.Reason{
		"TIMEOUT after 30 s": "TIMEOUT", "what is this 17": decision.ReasonUnknown, "INSURANCE_EXPIRED in 2025": "INSURANCE_EXPIRED",
	} {
		c := openClinic(t)
		c.fails("CLM-a-1", text, 0) // below
		c.now = c.now.Add(47*time.Hour + 59*time.Minute)
		c.fails("CLM-a-1", text, 1) // at the limit of time
		c.fails("CLM-b-1", text, 5) // at the limit of retries
		c.fails("CLM-c-1", text, 0)
		c.now = c.now.Add(72 * time.Hour)
		c.failsAgain("CLM-c-1", text, 0) // at the limit of time, told again
		all := c.causes()
		if len(all) != 1 {
			t.Fatalf("%q has the causes %+v", text, all)
		}
		f := all[0]
		if f.Reason != reason || f.Failures != 4 || f.Retried+f.Exhausted+f.Permanent != f.Failures {
			t.Errorf("%q is counted as %+v", text, f)
		}
		if reason != "INSURANCE_EXPIRED" && (f.Retried != 1 || f.Exhausted != 3) {
			t.Errorf("%q: %d retried and %d given up, want 1 and 3", text, f.Retried, f.Exhausted)
		}
	}
}

// TestCauseIsTheRule: rules that share a reason are causes of their own, and what the ids of codes were they stay.
func TestCauseIsTheRule(t *testing.T) {
	of := func(rule string) *journal.Fingerprint { return journal.CauseOf("p", rule, "TIMEOUT") }
	code := of("TIMEOUT")
	if code.ID != "00b9937ebbe72cf7" { // what a worker of the first version kept
		t.Errorf("the code's fingerprint is %s", code.ID)
	}
	login, certificate := of("tiss-login"), of("api-key")
	if login.ID == certificate.ID || login.Reason != "tiss-login" {
		t.Errorf("two rules are told as %+v and %+v", login, certificate)
	}
}

// TestEveryDecisionNamesItsCatalogue: the one it was made by, though another is in force when it is told again.
func TestEveryDecisionNamesItsCatalogue(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		older, newer := *tiss, *tiss
		older.Catalogue, newer.Catalogue = "aaaaaaaaaaaa", "bbbbbbbbbbbb"
		ask := func(p *decision.Policy, job int64, want string) {
			a := failure(claim(1), job)
			a.Policy = p
			if r := b.analyze(a); r.Attempt.Decision.Catalogue != want || r.Decision.Catalogue != want || r.Decision.MatchedText != "TIMEOUT" {
				t.Errorf("job %d is told %q by %q (recorded %q), want %q", job, r.Decision.MatchedText, r.Decision.Catalogue, r.Attempt.Decision.Catalogue, want)
			}
		}
		ask(&older, 1, "aaaaaaaaaaaa")
		ask(&newer, 1, "aaaaaaaaaaaa") // replayed
		time.Sleep(10 * time.Minute)
		ask(&newer, 1, "aaaaaaaaaaaa") // re-based
		time.Sleep(72 * time.Hour)
		ask(&newer, 1, "bbbbbbbbbbbb") // ended, by the limit that is in force
		ask(&newer, 2, "bbbbbbbbbbbb")
		testkit.Must(t, verifyLedger(b.memory))
	})
}
