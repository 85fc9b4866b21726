package statistics_test

import (
	"context"
	"fmt"
	"math/big"
	"testing"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
)

type source []journal.Cases

// stored reads a source's cases, whatever the weeks are.
type stored struct {
	journal.Reader
	all source
}

func (s stored) Cases(context.Context, []int64, int) ([]journal.Cases, error) { return s.all, nil }

func cases(reason decision.Reason, cause, destination string, recovered, lost int64) journal.Cases {
	return journal.Cases{Policy: "p", Reason: reason, Cause: cause, Destination: destination,
		Prospects: journal.Prospects{Recovered: recovered, Lost: lost}}
}

// TestProbability: a cause at a destination borrows four claims' worth from the cause, that from its reason, that from its
// policy; nothing is told where fewer than 20 claims are known.
func TestProbability(t *testing.T) {
	for _, tt := range []struct {
		name string
		all  source
		want float64
	}{
		{"nothing is known", nil, 0},
		{"of 19 claims", source{cases("r", "c", "", 19, 0)}, 0},
		{"of 20, all recovered", source{cases("r", "c", "", 20, 0)}, 0.998},
		{"of 20, none recovered", source{cases("r", "c", "", 0, 20)}, 0.002},
		{"of another policy", source{{Policy: "q", Reason: "r", Cause: "c", Prospects: journal.Prospects{Recovered: 50}}}, 0},
		{"of the policy alone", source{cases("s", "other", "", 20, 0)}, 0.917},
		{"of the reason", source{cases("r", "other", "", 20, 0)}, 0.986},
		{"elsewhere", source{cases("r", "c", "unimed", 20, 0)}, 0.998},
		{"here", source{cases("r", "c", "unimed", 20, 0), cases("r", "c", "tiss", 0, 20)}, 0.083},
		{"never certain", source{cases("r", "c", "", 1e6, 0)}, 0.999},
		{"nor impossible", source{cases("r", "c", "", 0, 1e6)}, 0.001},
	} {
		l := statistics.NewLearner(stored{all: tt.all})
		testkit.Must(t, l.Refresh(t.Context(), time.Now()))
		if got := l.Probability(&journal.Fingerprint{Policy: "p", Reason: "r", ID: "c"}, "tiss"); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestHopelessIsCertain: the smallest number of closed claims that is proof is that of the binomial distribution, in
// fractions.
func TestHopelessIsCertain(t *testing.T) {
	isProof := func(n, recovered int64) bool {
		sum := new(big.Rat)
		for k := range recovered + 1 {
			ways := new(big.Int).Binomial(n, k)
			ways.Mul(ways, new(big.Int).Exp(big.NewInt(9), big.NewInt(n-k), nil))
			sum.Add(sum, new(big.Rat).SetFrac(ways, new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil)))
		}
		return n >= 20 && sum.Cmp(big.NewRat(1, 20)) <= 0
	}
	for n := range int64(150) {
		for k := range min(n, 12) + 1 {
			if p := (journal.Prospects{Recovered: k, Lost: n - k}); p.Hopeless() != isProof(n, k) {
				t.Errorf("%d of %d: hopeless is %t", k, n, p.Hopeless())
			}
		}
	}
	if p := (journal.Prospects{Recovered: 9e3, Lost: 9.1e4}); !p.Hopeless() {
		t.Error("9 % of a hundred thousand are no proof")
	}
}

// clinic has claims fail of causes.
type clinic struct {
	*testkit.Fixture
	t      *testing.T
	claims int
}

// retried has a claim fail until it recovers at its second retry, or is given up.
func (c *clinic) retried(text string, succeeds bool) {
	c.claims++
	id := fmt.Sprintf("CLM-%04d-1", c.claims)
	a := c.Fail(decision.DefaultPolicy, id, text, 0)
	for n := 1; a.Decision.ShouldRetry(); n++ {
		c.Set(a.Decision.NextRetryTime)
		if succeeds && n == 2 {
			c.Succeed(decision.DefaultPolicy, id)
			return
		}
		a = c.Fail(decision.DefaultPolicy, id, text, n)
	}
}

// fails returns what is decided on a new claim's first failure.
func (c *clinic) fails(text string) *journal.Attempt {
	c.claims++
	return c.Fail(decision.DefaultPolicy, fmt.Sprintf("CLM-%04d-1", c.claims), text, 0)
}

func (c *clinic) learn() { testkit.Must(c.t, c.Learner.Refresh(c.t.Context(), c.Now())) }

func open(t *testing.T) *clinic {
	return &clinic{Fixture: testkit.New(t, testkit.At(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC))), t: t}
}

// TestOutcomesComeBack: what the journal recorded comes back as a chance and as counts; nothing that is decided changes by
// it, and after half a year it is forgotten.
func TestOutcomesComeBack(t *testing.T) {
	const hopeless, passing = "setor 7 aguarda o auditor", "fila do lote 9 em formação"
	c := open(t)
	c.learn()
	if p := c.fails(passing).SuccessProbability; p != 0 {
		t.Errorf("before anything came of it the chance is %v", p)
	}
	for range 40 {
		c.retried(hopeless, false)
		c.retried(passing, true)
	}
	c.learn()
	well, badly := c.fails(passing), c.fails(hopeless)
	if well.SuccessProbability < 0.9 || badly.SuccessProbability > 0.1 || !badly.ShouldRetry() ||
		badly.RetryReason != "Unknown error, retry 1 of 5" {
		t.Errorf("the chances are %v and %v: %s", well.SuccessProbability, badly.SuccessProbability, badly.RetryReason)
	}
	for _, tt := range []struct {
		of       *journal.Attempt
		want     journal.Prospects
		hopeless bool
	}{{well, journal.Prospects{Recovered: 40}, false}, {badly, journal.Prospects{Lost: 40}, true}} {
		got := c.Learner.Prospects(journal.CauseOf(decision.DefaultPolicy, tt.of.MatchedRule, tt.of.Error))
		if mean := got.Mean(); (mean > 10*time.Minute && mean < 20*time.Minute) != (got.Recovered > 0) {
			t.Errorf("%s: recovered after %v", tt.of.Error, mean)
		}
		if got.Took = 0; got != tt.want || got.Hopeless() != tt.hopeless {
			t.Errorf("%s: %+v, want %+v", tt.of.Error, got, tt.want)
		}
	}
	c.retried(hopeless, false)
	last, _, err := c.Memory.DeadLetterPage(t.Context(), journal.DeadLetterFilter{Sort: deadletter.Newest}, "", 1)
	testkit.Must(t, err)
	if got := float64(last[0].Chance); got != 1000*badly.SuccessProbability {
		t.Errorf("what is given up has a chance of %v in 1000, want that of its cause, %v", got, badly.SuccessProbability)
	}
	if _, err := audit.Verify(t.Context(), c.Memory, journal.Head{}, nil); err != nil {
		t.Error(err)
	}
	c.Set(c.Now().Add(27 * 7 * 24 * time.Hour))
	c.learn()
	if p := c.fails(passing).SuccessProbability; p != 0 {
		t.Errorf("half a year later the chance is %v", p)
	}
}

// TestLostIsWhatWasRetried: claims are retried after a time-out and then refused. It is the retry after the time-out that came to
// nothing; of the refusal, which is never retried, nothing is learnt, and nobody is told how many of its retries succeeded.
func TestLostIsWhatWasRetried(t *testing.T) {
	c := open(t)
	for n := range 40 {
		id := fmt.Sprintf("CLM-%04d-1", n)
		c.Set(c.Fail(decision.DefaultPolicy, id, "TIMEOUT", 0).Decision.NextRetryTime)
		c.Fail(decision.DefaultPolicy, id, "DUPLICATE_CLAIM", 1)
	}
	c.learn()
	for text, want := range map[string]journal.Prospects{"TIMEOUT": {Lost: 40}, "DUPLICATE_CLAIM": {}} {
		if got := c.Learner.Prospects(journal.CauseOf(decision.DefaultPolicy, text, text)); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

// TestFedOutcomes: whoever feeds outcomes can neither raise a limit, nor stop or move a retry.
func TestFedOutcomes(t *testing.T) {
	p := catalogue.Default().Policies[decision.DefaultPolicy]
	for _, text := range []string{"TIMEOUT", "setor 7 aguarda o auditor"} {
		for _, succeeds := range []bool{true, false} {
			c := open(t)
			for range 60 {
				c.retried(text, succeeds)
			}
			c.learn()
			for n := range 7 {
				got := c.Fail(decision.DefaultPolicy, fmt.Sprintf("CLM-A-%d", n), text, n).Decision
				f, _ := p.Read(decision.Variables{ID: decision.Text(got.SubjectID), Error: decision.Text(text),
					RetryCount: decision.Value(fmt.Sprint(n))})
				want := decision.Decide(&f, p, decision.Past{}, got.AnalysedAt)
				if got.Outcome != want.Outcome || !got.NextRetryTime.Equal(want.NextRetryTime) || got.MaxRetries != 5 {
					t.Errorf("%s, retry %d: %s at %v, want %s at %v", text, n, got.Outcome, got.NextRetryTime, want.Outcome,
						want.NextRetryTime)
				}
			}
		}
	}
}
