package journal

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/redact"
)

// SumName names a sum that the journal keeps, so that KPIs and gauges scan no records (R19). The set is closed.
type SumName string

// Sums over a slot.
const (
	SumDecisions          SumName = "decisions"         // fresh decisions
	SumPermanent          SumName = "permanent"         // of them, the permanent errors
	SumScheduled          SumName = "scheduled"         // of them, the retries
	SumAtMaximum          SumName = "at_maximum"        // retries whose raw backoff reached the policy's max
	SumBackoff            SumName = "backoff_ms"        // sum over the retries
	SumTook               SumName = "took"              // decisions, by the bucket of their time, in µs
	SumClosed             SumName = "closed"            // episodes at their first end, whichever it is
	SumExhausted          SumName = "exhausted"         // of them, dead by the limit
	SumExhaustedRetried   SumName = "exhausted_retried" // of them, with retries
	SumRecoveredRetried   SumName = "recovered_retried" // recovered with retries
	SumRecoveryTime       SumName = "recovery_ms"       // sum over those, first failure to recovery
	SumRecoveryRetries    SumName = "recovery_retries"  // sum over those
	SumAccepted           SumName = "accepted"          // episodes ended by an acceptance (R33)
	SumRecoveryTimeBucket SumName = "recovery_time"     // those, by their time in s

	// Sums over a week, by cause and destination, to learn from (R26): retried episodes that recovered, their times
	// from first failure to recovery, and those that were lost.
	SumCaseRecovered SumName = "case_recovered"
	SumCaseTime      SumName = "case_ms"
	SumCaseLost      SumName = "case_lost"

	// A Fingerprint's counts, in slot 0.
	SumCauseFailures  SumName = "cause_failures"
	SumCauseExhausted SumName = "cause_exhausted"
	SumCausePermanent SumName = "cause_permanent"
	SumCauseRecovered SumName = "cause_recovered"
)

// Slot is the length of time over which sums are kept. Windows begin with a slot.
const Slot = 10 * time.Minute

// SlotOf returns the number of the slot that t lies in.
func SlotOf(t time.Time) int64 { return t.Unix() / int64(Slot/time.Second) }

// slotsPerHour are kept as one where a sum has many buckets.
const slotsPerHour = int64(time.Hour / Slot)

// Sum is a sum, or an addend to it. N is the value, the other fields are the key.
type Sum struct {
	Slot int64   `json:"slot,omitempty"`
	Name SumName `json:"name"`
	// Policy, Cause (Fingerprint.ID) and Destination are empty in sums that are not kept by them.
	Policy      string `json:"policy,omitempty"`
	Cause       string `json:"cause,omitempty"`
	Destination string `json:"destination,omitempty"`
	// Bucket tells the parts of a distribution apart; 0 where there is none.
	Bucket int64 `json:"bucket,omitempty"`
	N      int64 `json:"n"`
}

// sums maps a Sum with N = 0 to its value.
type sums map[Sum]int64

// add adds s.N to the sum with s's key.
func (all sums) add(s Sum) {
	n := s.N
	s.N = 0
	all[s] += n
}

// list returns the sums that are not 0, in a fixed order.
func (all sums) list() []Sum {
	list := make([]Sum, 0, len(all))
	for s, n := range all {
		if s.N = n; n != 0 {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b Sum) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Policy, b.Policy),
			cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Destination, b.Destination), cmp.Compare(a.Bucket, b.Bucket))
	})
	return list
}

// count adds n to a sum of the slot of the record that is being folded.
func (p *projection) count(name SumName, n int64) {
	p.sums.add(Sum{Slot: SlotOf(p.at), Name: name, Policy: p.policy, N: n})
}

// countCause adds one to a sum of the attempt's cause.
func (p *projection) countCause(name SumName, a *Attempt) {
	p.cause(a)
	p.sums.add(Sum{Name: name, Cause: a.Fingerprint, N: 1})
}

// tookBuckets are upper bounds in µs; longer times are in the last bucket.
var tookBuckets = []int64{100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
	2_500_000, 10_000_000}

// countDecision counts a fresh decision.
func (p *projection) countDecision(a *Attempt) {
	d, slot := &a.Decision, SlotOf(p.at)
	p.count(SumDecisions, 1)
	took, _ := slices.BinarySearch(tookBuckets, a.Took.Microseconds())
	p.sums.add(Sum{Slot: slot - slot%slotsPerHour, Name: SumTook, Policy: p.policy,
		Bucket: tookBuckets[min(took, len(tookBuckets)-1)], N: 1})
	p.countCause(SumCauseFailures, a)
	if d.ErrorClassification == decision.Permanent {
		p.count(SumPermanent, 1)
	}
	switch {
	case d.ShouldRetry():
		p.count(SumScheduled, 1)
		p.count(SumBackoff, d.Backoff.Delay.Milliseconds())
		if d.Backoff.AtMaximum {
			p.count(SumAtMaximum, 1)
		}
	case d.Outcome == decision.PermanentError:
		p.countCause(SumCausePermanent, a)
	default:
		p.countCause(SumCauseExhausted, a)
	}
}

// mostRetries and longestRecovery bound what one episode adds to a sum. A process may say any count and time, and a sum
// that overflows cannot be recorded.
const (
	mostRetries     = 1000 // the most that a policy allows
	longestRecovery = 10 * 366 * 24 * time.Hour
)

// tookUntil returns the time since the first failure.
func (e *Episode) tookUntil(end time.Time) time.Duration {
	return min(max(end.Sub(e.FirstFailure), 0), longestRecovery)
}

// countEnd counts an episode that ended or died (R19). It counts as closed once, whatever people decide afterwards.
func (p *projection) countEnd(e *Episode, byLimit bool) {
	retried, first := e.Scheduled > 0, !e.Counted
	if e.Counted = true; first {
		p.count(SumClosed, 1)
	}
	switch {
	case e.State == Dead && byLimit:
		if first {
			p.count(SumExhausted, 1)
		}
		if retried {
			p.count(SumExhaustedRetried, 1)
		}
	case e.State == Accepted:
		p.count(SumAccepted, 1)
	case e.State == Recovered && retried:
		took := e.tookUntil(e.ClosedAt)
		p.count(SumRecoveredRetried, 1)
		p.count(SumRecoveryTime, took.Milliseconds())
		p.count(SumRecoveryRetries, min(e.Retries, mostRetries))
		seconds := int64((took + time.Second - 1) / time.Second) // rounded up: goals are whole minutes
		p.sums.add(Sum{Slot: SlotOf(p.at), Name: SumRecoveryTimeBucket, Policy: p.policy, Bucket: seconds, N: 1})
	}
}

// cause merges what a says about its cause. A Fingerprint that this version would not make is an older version's and
// stays.
func (p *projection) cause(a *Attempt) {
	f := p.causes[a.Fingerprint]
	if f == nil {
		f = CauseOf(p.policy, a.MatchedRule, a.Error)
		f.ID, f.Classification, f.FirstSeen, f.LastSeen, f.Began = a.Fingerprint, a.ErrorClassification, a.At, a.At, a.At
		p.causes[f.ID] = f
	}
	if f.Pattern == "" { // removed by an erasure
		f.Pattern = pattern(a.Error)
	}
	f.Add(&Fingerprint{FirstSeen: a.At, LastSeen: a.At, Began: a.At, Classification: a.Decision.ErrorClassification})
}

// grow moves what was collected into the changes.
func (p *projection) grow(c *Changes) {
	c.Sums = p.sums.list()
	for _, id := range slices.Sorted(maps.Keys(p.causes)) {
		c.Fingerprints = append(c.Fingerprints, *p.causes[id])
	}
	c.Items = p.items
}

// Fingerprint is what is known of all errors with one cause. It outlives purges, as it holds nothing personal (R24,
// RN-BIL-004 §10.2).
type Fingerprint struct {
	// ID is a digest over policy, reason and pattern.
	ID     string `json:"id"`
	Policy string `json:"policy"`
	// Reason is the code or rule that matched, or why none did.
	Reason decision.Reason `json:"reason"`
	// Classification is the alphabetically first of all errors': PERMANENT before TRANSIENT.
	Classification decision.ErrorClassification `json:"errorClassification"`
	// Pattern is the redacted error without what differs from case to case: numbers, ids, dates and the kinds of
	// redacted data, which may depend on digits.
	Pattern   string    `json:"pattern"`
	FirstSeen time.Time `json:"firstSeen,omitzero"`
	LastSeen  time.Time `json:"lastSeen,omitzero"`
	// Failures counts the failures; of these, Retried those retried, Exhausted those given up at a limit and Permanent
	// those given up as permanent. A store adds them up from sums.
	Failures  int64 `json:"failures,omitempty"`
	Retried   int64 `json:"retried,omitempty"`
	Exhausted int64 `json:"exhausted,omitempty"`
	Permanent int64 `json:"permanent,omitempty"`
	// Recovered counts the episodes that succeeded after a failure of this cause.
	Recovered int64 `json:"recovered,omitempty"`
	// Began is its first failure, or the first after Silence; Prior is the last failure before that, zero for none.
	// News is the latest announcement of the cause; nil for none. They are no part of the audit.
	Began time.Time `json:"-"`
	Prior time.Time `json:"-"`
	News  *News     `json:"-"`
}

// maxPatternBytes bounds a pattern: the text after it does not tell causes apart.
const maxPatternBytes = 200

// CauseOf returns the cause of a failure, without counts. rule is the rule that matched, empty for none; a limit is no
// rule, so that a cause is the same below and at it. redacted is the error with nothing personal in it.
func CauseOf(policy, rule, redacted string) *Fingerprint {
	none := decision.ReasonUnknown
	if redacted == "" {
		none = decision.ReasonEmptyError
	}
	f := &Fingerprint{Policy: policy, Reason: cmp.Or(decision.Reason(rule), none), Pattern: pattern(storable(redacted))}
	f.ID = f.name()
	return f
}

// name returns the ID that follows from policy, reason and pattern.
func (f *Fingerprint) name() string {
	sum := sha256.Sum256(appendText(appendText(appendText(nil, f.Policy), string(f.Reason)), f.Pattern))
	return hex.EncodeToString(sum[:8])
}

// Add merges what o knows of the same cause. Counts are sums, and not added here.
func (f *Fingerprint) Add(o *Fingerprint) {
	f.Pattern = cmp.Or(f.Pattern, o.Pattern)
	f.Classification = min(f.Classification, o.Classification)
	if !o.Began.Before(f.LastSeen.Add(Silence)) {
		f.Began, f.Prior = o.Began, f.LastSeen
	}
	f.FirstSeen = slices.MinFunc([]time.Time{f.FirstSeen, o.FirstSeen}, time.Time.Compare)
	f.LastSeen = slices.MaxFunc([]time.Time{f.LastSeen, o.LastSeen}, time.Time.Compare)
}

// pattern returns s in lower case, cut to maxPatternBytes. Every word with a digit or a redaction's mark becomes #, and
// so do months, weekdays, am and pm beside a number.
func pattern(s string) string {
	words := Words(redact.WithoutKinds(s))
	for i, word := range words {
		if strings.ContainsAny(word, "#0123456789") {
			words[i] = "#"
		}
	}
	var b strings.Builder
	for i, word := range words {
		if isOfDate(words, i) {
			word = "#"
		}
		if b.Len()+1+len(word) > maxPatternBytes {
			break
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word)
	}
	return b.String()
}

// isOfDate reports whether words[i] belongs to a date or time: a number is next to it, or one word further if "de" or
// another date word is between.
func isOfDate(words []string, i int) bool {
	if !dateWords[words[i]] {
		return false
	}
	near := func(at, step int) bool {
		if at += step; at >= 0 && at < len(words) && (words[at] == "de" || dateWords[words[at]]) {
			at += step
		}
		return at >= 0 && at < len(words) && words[at] == "#"
	}
	return near(i, -1) || near(i, 1)
}

var dateWords = func() map[string]bool {
	words := make(map[string]bool)
	for _, word := range strings.Fields(`janeiro fevereiro março marco abril maio junho julho agosto setembro outubro novembro dezembro
		jan fev mar abr mai jun jul ago set out nov dez
		january february march april may june july august september october november december feb apr aug sep sept oct dec
		segunda segunda-feira terça terça-feira terca terca-feira quarta quarta-feira quinta quinta-feira sexta sexta-feira
		sábado sabado domingo seg ter qua qui sex sab sáb dom
		monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun am pm a.m. p.m.`) {
		words[word], words[word+"."] = true, true
	}
	return words
}()

// Words returns the words of s in lower case. A date, an address and an id are one word each.
func Words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s),
		func(r rune) bool { return r <= ' ' || strings.ContainsRune(`"'(),;=<>[]{}|`, r) })
}
