package learning_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// Outcomes that the journal recorded come back as chances, as a sentence, and, where the policy says so, as an early
// hand-over: never of what ranks 1 to 3 or a person say, and not of one in twenty.
func TestOutcomesComeBack(t *testing.T) {
	const hopeless, passing, specified = "setor 7 aguarda o auditor", "fila do lote 9 em formação", "TIMEOUT"
	policies := func(change string) decision.Policies {
		c, err := catalogue.Parse("policies.yaml", []byte("extends: built-in\npolicies: {tiss-submission: {learning: {"+change+"}}}"))
		testkit.Must(t, err)
		return c.Policies
	}
	f := testkit.New(t, testkit.At(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)), testkit.By(policies("handOver: advise")))
	claims := 0
	fail := func(text string, retries int) *journal.Attempt {
		claims++
		return f.Fail(decision.DefaultPolicy, fmt.Sprintf("CLM-%04d-1", claims), text, retries)
	}
	retried := func(text string, succeeds bool) {
		a := fail(text, 0)
		for n := 1; a.Decision.ShouldRetry(); n++ {
			f.Set(a.Decision.NextRetryTime)
			if succeeds && n == 2 {
				f.Succeed(decision.DefaultPolicy, a.Decision.SubjectID)
				return
			}
			a = f.Fail(decision.DefaultPolicy, a.Decision.SubjectID, text, n)
		}
	}
	learn := func() { testkit.Must(t, f.Learner.Refresh(t.Context(), f.Policies(), f.Now())) }
	learn()
	if d := fail(passing, 0).Decision; d.SuccessProbability != 0 || d.Learnt != (decision.Learnt{}) {
		t.Errorf("before anything came of it: %v %+v", d.SuccessProbability, d.Learnt)
	}
	for range 40 {
		retried(hopeless, false)
		retried(passing, true)
		retried(specified, false)
	}
	learn()
	d := fail(passing, 1).Decision
	if d.SuccessProbability < 0.4 || d.Learnt.Version == 0 || strings.Contains(d.RetryReason, "recovered") {
		t.Errorf("of 40 that recovered at their second retry: %v %+v %s", d.SuccessProbability, d.Learnt, d.RetryReason)
	}
	advised := fail(hopeless, 0).Decision
	sentence := fmt.Sprintf("0 of %d claims with this cause recovered by a retry", advised.Learnt.Closed)
	if !advised.ShouldRetry() || advised.Learnt.Closed < 38 || advised.Learnt.Closed > 40 || advised.SuccessProbability > 0.1 || advised.RetryReason != "Unknown error, retry 1 of 5; "+sentence {
		t.Errorf("advised: %s %v %s", advised.Outcome, advised.SuccessProbability, advised.RetryReason)
	}

	f.SetPolicies(policies("handOver: decide"))
	var handed, explored []string
	for range 100 {
		a := fail(hopeless, 0)
		d := &a.Decision
		switch {
		case d.Reason == decision.ReasonNoRecovery && d.RetryReason == sentence+"; given to faturamento now" && d.Team == "faturamento" && d.Outcome == decision.MaxRetriesExceeded:
			handed = append(handed, d.SubjectID)
		case d.ShouldRetry() && d.Learnt.Explored && strings.HasSuffix(d.RetryReason, sentence+", one in twenty is retried all the same"):
			explored = append(explored, d.SubjectID)
		default:
			t.Errorf("%s: %s %s %s", d.SubjectID, d.Outcome, d.Reason, d.RetryReason)
		}
	}
	if len(explored) < 1 || len(explored) > 15 {
		t.Errorf("%d of 100 are retried all the same, want about five", len(explored))
	}
	if d := fail(specified, 0).Decision; !d.ShouldRetry() || strings.Contains(d.RetryReason, "recovered") {
		t.Errorf("a specified code: %s %s", d.Outcome, d.RetryReason)
	}
	again := f.Analysis(decision.DefaultPolicy, "CLM-9000-1", hopeless, 0)
	before, err := f.Journal.Analyze(t.Context(), again)
	testkit.Must(t, err)
	f.Succeed(decision.DefaultPolicy, explored[0])
	learn()
	after, err := f.Journal.Analyze(t.Context(), again)
	if testkit.Must(t, err); after.How != journal.Replayed || after.Decision.RetryReason != before.Decision.RetryReason {
		t.Errorf("delivered again: %s, %s, want %s", after.How, after.Decision.RetryReason, before.Decision.RetryReason)
	}
	_, err = f.DeadLetters.Teach(t.Context(), after.Attempt.Fingerprint, journal.Teaching{Class: decision.Transient, Reason: "x", By: "ada"})
	testkit.Must(t, err)
	if d := fail(hopeless, 0).Decision; !d.ShouldRetry() || strings.Contains(d.RetryReason, "recovered") {
		t.Errorf("taught: %s %s", d.Outcome, d.RetryReason)
	}
	f.SetPolicies(policies("handOver: off"))
	if d := fail(passing, 1).Decision; d.SuccessProbability != 0 {
		t.Errorf("switched off: %v", d.SuccessProbability)
	}

	all, err := audit.Learnings(t.Context(), f.Memory, decision.DefaultPolicy, f.Now())
	testkit.Must(t, err)
	l := all[0]
	if given := int64(len(handed)) + 1; l.HandedOver != given || l.SavedRetries != 5*given || l.Explored != 1 || l.ExploredRecovered != 1 {
		t.Errorf("it came to %+v, want %d handed over, and of one that was explored its recovery", l, given)
	}
	if l.Foretold == 0 || l.Brier == nil || *l.Brier < 0 || *l.Brier > 1 {
		t.Errorf("of what was foretold: %+v", l)
	}
	if _, err := audit.Verify(t.Context(), f.Memory, audit.VerifyOptions{}, nil); err != nil {
		t.Error(err)
	}
	f.Set(f.Now().Add(5 * 7 * 24 * time.Hour))
	f.SetPolicies(policies("handOver: advise"))
	for _, of := range []decision.Policies{{}, f.Policies()} { // the catalogue has the policy again
		testkit.Must(t, f.Learner.Refresh(t.Context(), of, f.Now()))
		if d := fail(passing, 1).Decision; (d.SuccessProbability > 0.4) != (len(of) > 0) {
			t.Errorf("after five weeks, by %d policies: %v", len(of), d.SuccessProbability)
		}
	}
}

// Whoever feeds outcomes can neither raise a limit, nor stop or move the retries of a specified error.
func TestFedOutcomes(t *testing.T) {
	const specified, free = "TIMEOUT", "setor 7 aguarda o auditor"
	c, err := catalogue.Parse("policies.yaml", []byte("extends: built-in\npolicies: {tiss-submission: {learning: {handOver: decide}}}"))
	testkit.Must(t, err)
	for name, succeeds := range map[string]bool{"all success": true, "all failure": false} {
		t.Run(name, func(t *testing.T) {
			f := testkit.New(t, testkit.At(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)), testkit.By(c.Policies))
			for i := range 60 {
				for _, text := range []string{specified, free} {
					id := fmt.Sprintf("CLM-%s-%d", text[:3], i)
					a := f.Fail(decision.DefaultPolicy, id, text, 0)
					for n := 1; a.Decision.ShouldRetry() && !succeeds; n++ {
						f.Set(a.Decision.NextRetryTime)
						a = f.Fail(decision.DefaultPolicy, id, text, n)
					}
					if succeeds {
						f.Succeed(decision.DefaultPolicy, id)
					}
				}
			}
			testkit.Must(t, f.Learner.Refresh(t.Context(), f.Policies(), f.Now()))
			for n := range 7 {
				known := f.Fail(decision.DefaultPolicy, fmt.Sprintf("CLM-A-%d", n), specified, n).Decision
				other := f.Fail(decision.DefaultPolicy, fmt.Sprintf("CLM-B-%d", n), free, n).Decision
				unlearnt, _ := c.Policies[decision.DefaultPolicy].Read(decision.Variables{ID: decision.Text(known.SubjectID),
					Error: decision.Text(specified), RetryCount: decision.Value(fmt.Sprint(n))})
				want := decision.Decide(&unlearnt, c.Policies[decision.DefaultPolicy], decision.Past{}, known.AnalysedAt)
				if known.Outcome != want.Outcome || !known.NextRetryTime.Equal(want.NextRetryTime) || known.MaxRetries != 5 {
					t.Errorf("retry %d of a specified error: %s at %v, want %s at %v", n, known.Outcome, known.NextRetryTime, want.Outcome, want.NextRetryTime)
				}
				if other.MaxRetries != 5 || other.ShouldRetry() && (n >= 5 || !succeeds && !other.Learnt.Explored) {
					t.Errorf("retry %d of another: %s of %d", n, other.Outcome, other.MaxRetries)
				}
			}
		})
	}
}
