package main

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
)

// options say what to play.
type options struct {
	policy *decision.Policy
	// destination returns the settings of a service.
	destination func(service string) destination.Settings
	// gate says whether a gate holds claims; without it the policy is the plain ladder.
	gate            bool
	claimsPerMinute float64
	// capacity is how many submissions a minute the portal takes, and the most that the gate lets through.
	capacity int
	seed     uint64
}

// figures sum up the claims that arrived while their destination was down.
type figures struct {
	Claims int `json:"claims"`
	// Recovered is the share that succeeded within the total limit.
	Recovered float64 `json:"recovered"`
	GivenUp   int     `json:"givenUp"`
	Attempts  float64 `json:"attemptsPerClaim"`
	Wasted    float64 `json:"wastedPerClaim"`
	// Lateness is from the later of arrival and recovery to success.
	LatenessP50 float64 `json:"latenessP50Minutes"`
	LatenessP95 float64 `json:"latenessP95Minutes"`
	// Peak is the most submissions in 10 s between a recovery and the end of its backlog, in relation to the capacity.
	Peak float64 `json:"peakRatio"`
	// Drain is how long the backlogs took, in relation to what the capacity needs for them plus 5 minutes each.
	Drain float64 `json:"drainRatio"`
}

// comparison compares a policy with its plain ladder and with a clairvoyant, who knows when the portal is back.
type comparison struct {
	Policy      figures `json:"policy"`
	Ladder      figures `json:"ladder"`
	Clairvoyant figures `json:"clairvoyant"`
}

// compare plays the outages. The same options give the same comparison.
func (o *options) compare(outages []outage) comparison {
	var policy, ladder, clairvoyant tally
	for _, of := range byService(outages) {
		arrivals := o.arrivals(of)
		play(of, arrivals, o, o.gate, &policy)
		play(of, arrivals, o, false, &ladder)
		foresee(of, arrivals, o, &clairvoyant)
	}
	return comparison{policy.figures(), ladder.figures(), clairvoyant.figures()}
}

const (
	// before and after bound the times around an outage in which claims arrive too.
	before = 10 * time.Minute
	after  = time.Hour
)

// claim is one arrival.
type claim struct {
	id      string
	arrived time.Duration
	// outage is the index of the one during which it arrived; -1 if the portal was up.
	outage int
}

// arrivals returns random claims for a service at the given rate, during and around its outages.
func (o *options) arrivals(outages []outage) []claim {
	service := outages[0].service
	h := fnv.New64a()
	h.Write([]byte(service))
	dice := rand.New(rand.NewPCG(o.seed, h.Sum64()))
	var all []claim
	at := time.Duration(0)
	for i, out := range outages {
		at = max(at, out.start-before)
		end := out.end + after
		if i+1 < len(outages) {
			end = min(end, outages[i+1].start)
		}
		for {
			at += time.Duration(dice.ExpFloat64() / o.claimsPerMinute * float64(time.Minute))
			if at >= end {
				at = end
				break
			}
			c := claim{id: "CLM-" + service + "-" + strconv.Itoa(len(all)), arrived: at, outage: -1}
			if at >= out.start && at < out.end {
				c.outage = i
			}
			all = append(all, c)
		}
	}
	return all
}

// tally counts what becomes of claims, over all services.
type tally struct {
	claims, recovered, givenUp, attempts, wasted int
	lateness                                     []float64 // minutes
	peak                                         float64
	drained, ideal                               float64 // minutes
}

// submit counts a submission.
func (t *tally) submit(c *claim, failed bool) {
	if c.outage < 0 {
		return
	}
	if t.attempts++; failed {
		t.wasted++
	}
}

// recover counts a claim that succeeded.
func (t *tally) recover(c *claim, outages []outage, at time.Duration) {
	if c.outage >= 0 {
		t.claims++
		t.recovered++
		t.lateness = append(t.lateness, max(0, (at-max(c.arrived, outages[c.outage].end)).Minutes()))
	}
}

// giveUp counts a claim that is no longer sent.
func (t *tally) giveUp(c *claim) {
	if c.outage >= 0 {
		t.claims++
		t.givenUp++
	}
}

func (t *tally) figures() figures {
	f := figures{Claims: t.claims, GivenUp: t.givenUp, Peak: round(t.peak), Drain: round(t.drained / max(t.ideal, 1))}
	if t.claims == 0 {
		return f
	}
	n := float64(t.claims)
	f.Recovered, f.Attempts, f.Wasted = round(float64(t.recovered)/n), round(float64(t.attempts)/n),
		round(float64(t.wasted)/n)
	slices.Sort(t.lateness)
	f.LatenessP50, f.LatenessP95 = round(quantile(t.lateness, 0.5)), round(quantile(t.lateness, 0.95))
	return f
}

func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(math.Ceil(q*float64(len(sorted))))-1]
}

// round returns x with four decimals, more than the claims can tell.
func round(x float64) float64 { return math.Round(x*1e4) / 1e4 }
