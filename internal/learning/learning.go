// Package learning estimates, from recorded outcomes only, whether a retry will succeed (R26).
package learning

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

const (
	// borrowed is how many retries' worth of evidence a cell takes from the one above it.
	borrowed = 4
	// known is the least evidence, in retries, on which a probability rests.
	known = 5
)

// Cause is what failures are alike by.
type Cause struct{ Policy, Reason, Fingerprint, Destination string }

// levels returns what the cause borrows from, the widest first, and the cause itself: its policy, its reason, its
// fingerprint at all destinations and at one, where it names one.
func (c Cause) levels() []Cause {
	all := []Cause{{Policy: c.Policy}, {Policy: c.Policy, Reason: c.Reason},
		{Policy: c.Policy, Reason: c.Reason, Fingerprint: c.Fingerprint}, c}
	if c.Destination == "" {
		return all[:3]
	}
	return all
}

// cell holds the sums of a level; older cases weigh less.
type cell struct {
	at              time.Time
	recovered, lost [journal.MaxLearntRetries]float32 // by retries made
	// made and succeeded count retries by the time since the first failure: succeeded are the times to recovery.
	made, succeeded [journal.RetryBuckets]float32
}

// Figures sum up closed episodes that had a retry. They are not safe for concurrent use while sums are added.
type Figures struct {
	halfLives map[string]time.Duration
	most      int
	cells     map[Cause]*cell
	// past are figures that these add to; nil where there are none.
	past *Figures
}

// New returns figures in which a case weighs half after its policy's half-life (DefaultHalfLife where none is named), of
// most cells.
func New(halfLives map[string]time.Duration, most int) *Figures {
	return &Figures{halfLives: halfLives, most: most, cells: map[Cause]*cell{}}
}

func (f *Figures) halfLife(policy string) time.Duration {
	return cmp.Or(f.halfLives[policy], DefaultHalfLife)
}

// find returns what is known at a level; nil for nothing.
func (f *Figures) find(key Cause) *cell {
	if s := f.cells[key]; s != nil || f.past == nil {
		return s
	}
	return f.past.find(key)
}

// AddSum counts what the journal sums up of a cause; at is when.
func (f *Figures) AddSum(c Cause, at time.Time, name journal.FigureName, bucket, value int64) {
	halfLife := f.halfLife(c.Policy)
	for _, key := range c.levels() {
		s := f.cell(key, at)
		w := s.weigh(at, halfLife) * float32(value)
		switch name {
		case journal.FigureCaseRecovered:
			s.recovered[bucket-1] += w
		case journal.FigureCaseLost:
			s.lost[bucket-1] += w
		case journal.FigureRetryMade:
			s.made[bucket] += w
		case journal.FigureRetrySucceeded:
			s.succeeded[bucket] += w
		}
	}
}

func (f *Figures) cell(key Cause, at time.Time) *cell {
	s := f.cells[key]
	if s == nil {
		if len(f.cells) >= f.most {
			f.forget(at)
		}
		s = &cell{at: at}
		if past := f.find(key); past != nil {
			*s = *past
		}
		f.cells[key] = s
	}
	return s
}

// forget drops the half of the cells on which the fewest cases weigh. Policies and reasons, which are few, stay.
func (f *Figures) forget(now time.Time) {
	type entry struct {
		key    Cause
		weight float64
	}
	all := make([]entry, 0, len(f.cells))
	for key, s := range f.cells {
		if key.Fingerprint != "" {
			n, _ := s.closed(s.weight(now, f.halfLife(key.Policy)))
			all = append(all, entry{key, n})
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.key.Fingerprint, b.key.Fingerprint),
			cmp.Compare(a.key.Destination, b.key.Destination), cmp.Compare(a.key.Reason, b.key.Reason),
			cmp.Compare(a.key.Policy, b.key.Policy))
	})
	for _, e := range all[:(len(all)+1)/2] {
		delete(f.cells, e.key)
	}
}

// weight of the cell's sums at an instant; above 1 before the latest case.
func (s *cell) weight(at time.Time, halfLife time.Duration) float64 {
	return math.Exp2(-float64(at.Sub(s.at)) / float64(halfLife))
}

// weigh returns the weight of what happened at an instant; where that is the latest, the sums weigh less from then on.
func (s *cell) weigh(at time.Time, halfLife time.Duration) float32 {
	if !at.After(s.at) {
		return float32(1 / s.weight(at, halfLife))
	}
	s.scale(float32(s.weight(at, halfLife)))
	s.at = at
	return 1
}

func (s *cell) scale(w float32) {
	for i := range s.recovered {
		s.recovered[i] *= w
		s.lost[i] *= w
	}
	for i := range s.made {
		s.made[i] *= w
		s.succeeded[i] *= w
	}
}

// closed returns how many cases were closed and how many recovered, weighted by w.
func (s *cell) closed(w float64) (n, recovered float64) {
	for i := range s.recovered {
		recovered += float64(s.recovered[i])
		n += float64(s.recovered[i] + s.lost[i])
	}
	return n * w, recovered * w
}

// retry returns how often retries like retry n, since the first failure, were made and succeeded, weighted by w: the
// mean of those of the same number and those at a like time.
func (s *cell) retry(n int, since time.Duration, w float64) (made, succeeded float64) {
	for i := n - 1; i < journal.MaxLearntRetries; i++ {
		made += float64(s.recovered[i] + s.lost[i])
	}
	i := journal.RetryBucket(since)
	made += float64(s.made[i])
	succeeded = float64(s.recovered[n-1] + s.succeeded[i])
	return made * w / 2, succeeded * w / 2
}

// Probability returns the chance that retry n (from 1) succeeds when it is made so long since the first failure. It
// reports false where too little is known. A cause borrows from its reason, and that from its policy.
func (f *Figures) Probability(c Cause, n int, since time.Duration, now time.Time) (float64, bool) {
	n = min(max(n, 1), journal.MaxLearntRetries)
	p, evidence := 0.5, 0.0
	halfLife := f.halfLife(c.Policy)
	for _, key := range c.levels() {
		s := f.find(key)
		if s == nil {
			continue
		}
		made, succeeded := s.retry(n, since, min(1, s.weight(now, halfLife)))
		p = (succeeded + borrowed*p) / (made + borrowed)
		evidence = max(evidence, made)
	}
	return p, evidence >= known
}

// Hopeless returns the closed and recovered cases of a cause at all destinations, and reports whether they show with
// 95 % certainty that fewer than one in ten recovers (R26).
func (f *Figures) Hopeless(c Cause, now time.Time) (closed, recovered int64, hopeless bool) {
	s := f.find(c.levels()[2])
	if s == nil || c.Fingerprint == "" {
		return 0, 0, false
	}
	n, k := s.closed(min(1, s.weight(now, f.halfLife(c.Policy))))
	closed = int64(n + 1e-3)
	recovered = min(int64(math.Ceil(k-1e-3)), closed)
	return closed, recovered, closed >= 20 && unlikely(closed, recovered)
}

// unlikely reports whether k or fewer of n recover in at most 5 % of cases if one in ten does.
func unlikely(n, k int64) bool {
	if most := int64(400); n > most { // fewer claim less certainty, and bound the cost
		n, k = most, (k*most+n-1)/n
	}
	const p = 0.1
	term := math.Pow(1-p, float64(n))
	sum := term
	for i := range k {
		term *= float64(n-i) / float64(i+1) * p / (1 - p)
		if sum += term; sum > 0.05 {
			return false
		}
	}
	return sum <= 0.05
}

// Explores reports whether a claim is retried although its cause is hopeless: one in twenty, the same ones always.
func (prospects) Explores(subject string, retryCount int64) bool {
	h := fnv.New64a()
	_, _ = h.Write([]byte(subject + "\x00" + strconv.FormatInt(retryCount, 10)))
	x := h.Sum64()
	x ^= x >> 33 // spreads the last character over all bits
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11)/(1<<53) < decision.ExploredShare
}
