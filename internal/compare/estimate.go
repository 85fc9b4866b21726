package compare

import (
	"math"
	"slices"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

const (
	// fewest is how many retries of the like tell what came of them.
	fewest = 5
	// heaviest weight of one retry: that of a claim that was retried all the same (R26).
	heaviest = 1 / decision.ExploredShare
	// normal is the quantile of a 95 % interval.
	normal = 1.96
)

// Result of a comparison.
type Result struct {
	// Failures that both policies decided; Omitted are those for which what is recorded does not suffice.
	Failures int64 `json:"failures"`
	Omitted  int64 `json:"omitted"`
	// Otherwise is how many A and B decide differently: RetriedByA and RetriedByB alone; or both retry, and B Earlier or
	// Later, by medians in minutes; or both give up, to other Teams.
	Otherwise  int64   `json:"decidedOtherwise"`
	RetriedByA int64   `json:"retriedByAAlone"`
	RetriedByB int64   `json:"retriedByBAlone"`
	Earlier    int64   `json:"earlier"`
	EarlierBy  float64 `json:"earlierByMinutes"`
	Later      int64   `json:"later"`
	LaterBy    float64 `json:"laterByMinutes"`
	OtherTeam  int64   `json:"otherTeam"`
	RetriesA   int64   `json:"retriesA"`
	RetriesB   int64   `json:"retriesB"`
	MissedByA  int64   `json:"recoveredThatAGivesUp"`
	MissedByB  int64   `json:"recoveredThatBGivesUp"`
	// Estimates of how many in a hundred failures the next retry recovers.
	Estimates []Estimate `json:"estimates"`
	// Untold is the share of the failures of which no estimate can tell for both.
	Untold float64 `json:"cannotBeTold"`
}

// Method of an estimate. The set is closed.
type Method string

const (
	// Matched takes what came of retries with the same cause, destination state and time since the first failure.
	Matched Method = "matched"
	// Propensity weighs each retry that was made by how likely it would be, over how likely it was.
	Propensity Method = "inversePropensity"
	// Robust corrects what is learnt of the cause by the weighed retries, and holds where either is right.
	Robust Method = "doublyRobust"
)

// Estimate is what a method says of A, of B, and of B less A, for the failures of which it tells for both.
type Estimate struct {
	Method     Method   `json:"method"`
	A          Interval `json:"a"`
	B          Interval `json:"b"`
	Difference Interval `json:"difference"`
	// Told failures, and the share of the others; the intervals are 0 where it tells of none.
	Told   int64   `json:"told"`
	Untold float64 `json:"cannotBeTold"`
}

// Interval holds the truth with 95 % certainty.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Result returns what came of the records so far.
func (c *Comparison) Result() Result {
	r := Result{Failures: int64(len(c.failures)), Omitted: c.omitted}
	var earlier, later []time.Duration
	for _, f := range c.failures {
		a, b := &f.sides[0], &f.sides[1]
		difference := b.NextRetryTime.Sub(a.NextRetryTime)
		switch {
		case a.ShouldRetry() && !b.ShouldRetry():
			r.RetriedByA++
		case !a.ShouldRetry() && b.ShouldRetry():
			r.RetriedByB++
		case a.ShouldRetry() && difference < 0:
			earlier = append(earlier, -difference)
		case a.ShouldRetry() && difference > 0:
			later = append(later, difference)
		case a.Team != b.Team:
			r.OtherTeam++
		}
		for i, n := range []struct{ retries, missed *int64 }{{&r.RetriesA, &r.MissedByA}, {&r.RetriesB, &r.MissedByB}} {
			if f.sides[i].ShouldRetry() {
				*n.retries++
			} else if f.result == succeeded {
				*n.missed++
			}
		}
	}
	r.Earlier, r.EarlierBy = int64(len(earlier)), median(earlier)
	r.Later, r.LaterBy = int64(len(later)), median(later)
	r.Otherwise = r.RetriedByA + r.RetriedByB + r.Earlier + r.Later + r.OtherTeam
	matched, weighed := c.matched(), c.weighed()
	r.Estimates = []Estimate{matched.estimate(Matched), weighed.propensity(), weighed.estimate(Robust)}
	untold := 0.0
	for i := range c.failures {
		if !matched.both(i) && !weighed.both(i) {
			untold++
		}
	}
	r.Untold = share(untold, len(c.failures))
	return r
}

func median(all []time.Duration) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2].Minutes()
}

func share(part float64, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return part / float64(whole)
}

// terms are what each failure adds to the estimates of A and of B; NaN where it cannot tell.
type terms struct {
	claims []uint64
	sides  [2][]float64
	// variance of the mean of a times A's terms and b times B's, of the n that are told; nil is ofClaims.
	variance func(n int, a, b float64) float64
	weights  [2][]float64 // of retries that were made; NaN where there is none
	results  []float64
}

// both reports whether a failure is told for both.
func (t *terms) both(i int) bool { return !math.IsNaN(t.sides[0][i] + t.sides[1][i]) }

func (t *terms) estimate(m Method) Estimate {
	n := 0
	for i := range t.claims {
		if t.both(i) {
			n++
		}
	}
	return Estimate{m, t.interval(n, 1, 0), t.interval(n, 0, 1), t.interval(n, -1, 1), int64(n),
		round(share(float64(len(t.claims)-n), len(t.claims)))}
}

// interval of the mean of a times A's terms and b times B's, of the n that are told.
func (t *terms) interval(n int, a, b float64) Interval {
	if n == 0 {
		return Interval{}
	}
	sum := 0.0
	for i := range t.claims {
		if t.both(i) {
			sum += a*t.sides[0][i] + b*t.sides[1][i]
		}
	}
	mean := sum / float64(n)
	variance := t.variance
	if variance == nil {
		variance = func(n int, a, b float64) float64 { return t.ofClaims(n, a, b, mean) }
	}
	wide := normal * math.Sqrt(variance(n, a, b))
	return Interval{Value: round(mean), Low: round(mean - wide), High: round(mean + wide)}
}

// ofClaims is the variance of the mean where failures of one claim belong together.
func (t *terms) ofClaims(n int, a, b, mean float64) (variance float64) {
	claims := map[uint64]float64{}
	for i, claim := range t.claims {
		if t.both(i) {
			claims[claim] += a*t.sides[0][i] + b*t.sides[1][i] - mean
		}
	}
	for _, x := range claims {
		variance += x * x
	}
	return variance / (float64(n) * float64(n))
}

func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// like is what retries have in common that tell of one another.
type like struct {
	cause       string
	reason      string
	destination string
	down        bool
	before      int // the failure's time since the first one, as journal.RetryBucket
	retry       int // the retry's
}

func (f *failure) like(retry time.Time) like {
	return like{f.cause.Fingerprint, f.cause.Reason, f.cause.Destination, f.down,
		journal.RetryBucket(f.at.Sub(f.first)), journal.RetryBucket(retry.Sub(f.first))}
}

// likes are what the retries of a have in common, each with its share of the draws.
func (f *failure) likes(a *answer) map[like]float64 {
	if !a.plain() {
		return map[like]float64{f.like(a.NextRetryTime): 1}
	}
	all := map[like]float64{}
	for _, delay := range a.delays() {
		all[f.like(f.at.Add(delay))] += 1.0 / draws
	}
	return all
}

// cell is what came of retries of the like.
type cell struct{ made, succeeded float64 }

func (c *Comparison) matched() *terms {
	cells := map[like]*cell{}
	for _, f := range c.failures {
		if f.result == unknown {
			continue
		}
		key := f.like(f.took.NextRetryTime)
		of := cells[key]
		if of == nil {
			of = &cell{}
			cells[key] = of
		}
		of.made++
		if f.result == succeeded {
			of.succeeded++
		}
	}
	t := c.terms()
	for i, f := range c.failures {
		for side := range t.sides {
			a, sum := &f.sides[side], 0.0
			if a.ShouldRetry() {
				for key, share := range f.likes(a) {
					if of := cells[key]; of != nil && of.made >= fewest {
						sum += share * of.succeeded / of.made
					} else {
						sum = math.NaN()
					}
				}
			}
			t.sides[side][i] = sum
		}
	}
	t.variance = func(n int, a, b float64) (sum float64) {
		factors := map[like]float64{}
		for i, f := range c.failures {
			for side, factor := range []float64{a, b} {
				if t.both(i) && factor != 0 && f.sides[side].ShouldRetry() {
					for key, share := range f.likes(&f.sides[side]) {
						factors[key] += share * factor / float64(n)
					}
				}
			}
		}
		for key, factor := range factors {
			of := cells[key]
			p := (of.succeeded + 2) / (of.made + 4) // Agresti and Coull: few retries are not certain
			sum += factor * factor * p * (1 - p) / (of.made - 1)
		}
		return sum
	}
	return t
}

func (c *Comparison) terms() *terms {
	t := &terms{claims: make([]uint64, len(c.failures)), results: make([]float64, len(c.failures))}
	for side := range t.sides {
		t.sides[side], t.weights[side] = make([]float64, len(c.failures)), make([]float64, len(c.failures))
	}
	for i, f := range c.failures {
		t.claims[i] = f.claim
		for side := range t.sides {
			t.sides[side][i], t.weights[side][i] = math.NaN(), math.NaN()
		}
	}
	return t
}

// weighed are the terms of the doubly robust estimate, with the weights of inverse propensity.
func (c *Comparison) weighed() *terms {
	t := c.terms()
	for i, f := range c.failures {
		if f.result == succeeded {
			t.results[i] = 1
		}
		for side := range t.sides {
			a := &f.sides[side]
			switch {
			case !a.ShouldRetry():
				t.sides[side][i] = 0
			case f.tells(a):
				weight := f.weight(a)
				t.weights[side][i] = weight
				t.sides[side][i] = c.foretold(f, a)
				if f.took.ShouldRetry() {
					t.sides[side][i] += weight * (t.results[i] - c.probability(f, f.took.since()))
				}
			}
		}
	}
	return t
}

// tells reports whether chance could have chosen every retry of a where f was decided, and what came of the one that it
// chose is known.
func (f *failure) tells(a *answer) bool {
	if !a.plain() {
		return false
	}
	if f.took.Reason == decision.ReasonNoRecovery { // one in twenty of these was retried
		return f.propensity < 1 && f.sides[0].ShouldRetry() && a.within(&f.sides[0])
	}
	if f.result == unknown || !f.took.plain() {
		return false
	}
	for side := range f.sides {
		by := &f.sides[side]
		if by.plain() && by.Backoff.Raw == f.took.Backoff.Raw && by.Backoff.Delay == f.took.Backoff.Delay {
			return a.within(by)
		}
	}
	return false
}

// weight of what was chosen: how likely a chooses it, over how likely it was.
func (f *failure) weight(a *answer) float64 {
	if !f.took.ShouldRetry() {
		return 0
	}
	return min(a.rule.Chance(f.took.Backoff.Delay, a.made)/f.propensity, heaviest)
}

// foretold returns the chance that the retry succeeds which a makes, over its draws.
func (c *Comparison) foretold(f *failure, a *answer) (p float64) {
	for _, delay := range a.delays() {
		p += c.probability(f, f.at.Add(delay).Sub(f.first)) / draws
	}
	return p
}

// probability that a retry succeeds so long after the first failure, by what came of other claims.
func (c *Comparison) probability(f *failure, since time.Duration) float64 {
	number := int(f.sides[0].made) + 1
	p, _ := c.learnt[1-f.claim%2].Probability(f.cause, number, since, f.at)
	return p
}

// propensity is the estimate by weights alone, which are made to sum up to the retries.
func (t *terms) propensity() Estimate {
	scaled, influence := &terms{claims: t.claims}, &terms{claims: t.claims}
	for side := range t.sides {
		weights, sum, retries := 0.0, 0.0, 0.0
		for i, w := range t.weights[side] {
			if t.both(i) && !math.IsNaN(w) {
				weights, sum, retries = weights+w, sum+w*t.results[i], retries+1
			}
		}
		scaled.sides[side], influence.sides[side] = slices.Clone(t.sides[side]), slices.Clone(t.sides[side])
		for i, w := range t.weights[side] {
			switch {
			case math.IsNaN(w):
			case weights == 0:
				scaled.sides[side][i] = math.NaN()
			default:
				mean := sum / weights
				scaled.sides[side][i] = mean
				influence.sides[side][i] = w * (t.results[i] - mean) * retries / weights
			}
		}
	}
	scaled.variance = func(n int, a, b float64) float64 { return influence.ofClaims(n, a, b, 0) }
	return scaled.estimate(Propensity)
}
