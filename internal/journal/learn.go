package journal

import (
	"cmp"
	"context"
	"math"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/redact"
)

// Prospects counts the retried claims of a cause that recovered, and those that were lost (R26).
type Prospects struct {
	Recovered, Lost int64
	// Took is the sum of the times from the first failure to the recovery.
	Took time.Duration
}

// Closed returns how many claims have ended.
func (p *Prospects) Closed() int64 { return p.Recovered + p.Lost }

// Mean returns the mean time from the first failure to the recovery; zero if none recovered.
func (p *Prospects) Mean() time.Duration {
	if p.Recovered == 0 {
		return 0
	}
	return p.Took / time.Duration(p.Recovered)
}

// Add adds other to p.
func (p *Prospects) Add(other Prospects) {
	p.Recovered += other.Recovered
	p.Lost += other.Lost
	p.Took += other.Took
}

// FewestCases is how many closed claims must be known before the next one is predicted.
const FewestCases = 20

// Hopeless reports whether fewer than one claim in ten recovers, with 95 % certainty.
func (p *Prospects) Hopeless() bool {
	return p.Closed() >= FewestCases && p.tail(0.1) <= 0.05
}

// tail returns the probability that at most p.Recovered of the closed claims recover if each does with this chance.
func (p *Prospects) tail(chance float64) (sum float64) {
	n := float64(p.Closed())
	term := n * math.Log(1-chance) // a logarithm, as the first terms underflow
	for k := range p.Recovered + 1 {
		sum += math.Exp(term)
		term += math.Log((n - float64(k)) / float64(k+1) * chance / (1 - chance))
	}
	return sum
}

// Cases are the Prospects of a cause at a destination.
type Cases struct {
	Policy, Cause, Destination string
	Reason                     decision.Reason
	Prospects
}

// Learner knows how the retries of causes ended. Its methods are safe for concurrent use.
type Learner interface {
	// Probability returns the chance that a claim of the cause recovers, between 0 and 1; 0 if too little is known.
	Probability(cause *Fingerprint, destination string) float64
	// Prospects returns what is known of the cause at all destinations.
	Prospects(cause *Fingerprint) Prospects
}

// ChanceOf returns a Learner's probability in thousandths; 500 if too little is known.
func ChanceOf(probability float64) int64 { return cmp.Or(int64(math.Round(probability*1000)), 500) }

// WeekSlots is how many slots a week has.
const WeekSlots = 7 * 24 * slotsPerHour

// WeekOf returns the first slot of t's week, by which cases are kept.
func WeekOf(t time.Time) int64 {
	slot := SlotOf(t)
	return slot - slot%WeekSlots
}

// countCase counts an episode that was retried after the failure a and recovered at an instant; at the zero time, one
// that was lost for that reason. An episode given up for its deadline says nothing about retries and is not counted.
func (p *projection) countCase(e *Episode, a *Attempt, lost decision.Reason, recovered time.Time) {
	retried := e.Retried
	if e.Retried = false; !retried || a == nil || e.State == Dead || lost == decision.ReasonDeadline {
		return
	}
	add := func(name SumName, n int64) {
		p.sums.add(Sum{Slot: WeekOf(p.at), Name: name, Policy: p.policy, Cause: a.Fingerprint, Destination: a.Destination, N: n})
	}
	if recovered.IsZero() {
		add(SumCaseLost, 1)
		return
	}
	add(SumCaseRecovered, 1)
	add(SumCaseTime, e.tookUntil(recovered).Milliseconds())
}

// CauseSubject returns the Subject of a cause's records. It has no tenant. id is a Fingerprint.ID.
func CauseSubject(policy, id string) Subject { return Subject{Policy: policy, ID: id} }

// Teaching is what a person taught about a cause: its errors are permanent, and Team acts, or transient (R26).
type Teaching struct {
	Class decision.ErrorClassification `json:"errorClassification"`
	// Team acts; empty if Class is Transient.
	Team decision.Team `json:"responsibleTeam,omitempty"`
	// Reason and By are a person's words, redacted, and name.
	Reason string `json:"reason"`
	By     string `json:"by"`
	// Record is its record's number, At when that was written. They are no part of the record's body.
	Record int64     `json:"record,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// Cause is a fingerprint with what was taught about it; nil for nothing.
type Cause struct {
	Fingerprint
	Taught *Teaching
}

// TeachingBody is the body of a cause's record: what was taught, or that it no longer holds.
type TeachingBody struct {
	Teaching
	Forgotten bool `json:"forgotten,omitempty"`
}

// Teach records what a person says about a cause, for all later decisions. t replaces what was taught before; an empty
// t.Class forgets it. Its errors are a *Refusal and those of Analyze.
func (j *Journal) Teach(ctx context.Context, policy, cause string, t Teaching) error {
	s, body := CauseSubject(policy, cause), TeachingBody{Teaching: t, Forgotten: t.Class == ""}
	body.Reason, body.By = storable(redact.Line(t.Reason, maxReasonBytes)), bounded(t.By)
	return j.submit(ctx, &item{lookup: Lookup{Subject: s}, apply: func(b *batch, h *History) error {
		if body.Forgotten && h.Taught == nil {
			return Refuse(NothingTaught, "nothing is taught of this cause, so nothing can be taken back")
		}
		b.entry(h, s, TeachingEntry, &body)
		return nil
	}})
}

func (b *TeachingBody) fold(p *projection, h *History) {
	if h.Taught = nil; !b.Forgotten {
		h.Taught = new(b.Teaching)
		h.Taught.Record, h.Taught.At = p.record, p.at
	}
}

// Subject returns the subject of the cause's own records.
func (f *Fingerprint) Subject() Subject { return CauseSubject(f.Policy, f.ID) }

// Apply classifies the failure as t says. A nil t changes nothing.
func (t *Teaching) Apply(f *decision.Failure) {
	if t != nil && f.Teachable() {
		f.Teach(t.Class, t.Team, t.Record)
	}
}

// Silence is how long a cause must not have failed before it counts as back when it fails again (R34).
const Silence = 30 * 24 * time.Hour

// News announces a cause that is new, or back (R34). It names no subject. No two in a journal have the same At, so that
// a watermark on At misses none.
type News struct {
	At          time.Time `json:"at" doc:"When it was told."`
	First       time.Time `json:"first" doc:"The first failure since it is new, or back."`
	Last        time.Time `json:"last" doc:"The last failure by then."`
	Failures    int64     `json:"failures" doc:"By then."`
	Claims      int64     `json:"claims" doc:"That failed."`
	Destination string    `json:"destination" doc:"Of most of them; empty where there is none."`
	Before      *Before   `json:"before" doc:"How it was until then; null where it was never seen."`
}

// Before is what was known of a cause before it came back.
type Before struct {
	Last      time.Time `json:"last" doc:"The last failure."`
	Failures  int64     `json:"failures" doc:"In all."`
	Closed    int64     `json:"closed" doc:"Retried claims that were closed in the half year up to then."`
	Recovered int64     `json:"recovered" doc:"Of these."`
}
