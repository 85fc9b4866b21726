package decision

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/classify"
	"retry-worker/internal/destination"
	"retry-worker/internal/text"
)

// Policy says how the failures of one kind of work are retried. It is a value: built once by the catalogue, shared, and
// never changed. The keys are those of a catalogue.
type Policy struct {
	// Name is the name by which tasks ask for it (header retryPolicy).
	Name string
	// Description for people.
	Description string
	// Catalogue is the version of the catalogue that it comes from; every decision carries it.
	Catalogue string
	// IDVariable and ErrorVariable name the process variables that hold the subject's id and the error text.
	IDVariable, ErrorVariable string
	// HTTPStatusVariable holds the HTTP status of the failure; empty where the policy reads none (R13).
	HTTPStatusVariable string
	// Destination says where claims go; nil if the policy has no destinations.
	Destination *DestinationVariable
	// Context lists what people see with a claim.
	Context []ContextField `yaml:"-"`
	// Destinations says when claims can be sent. A policy without destinations has its own calendar in Others.
	Destinations destination.Configured
	// Stretch makes retries wait until a destination that is down is expected back.
	Stretch bool
	// Own names the variables in which a job brings a retry policy of its own (R15); nil if it cannot.
	Own *OwnVariables `yaml:"jobRetryPolicy"`
	// IDPattern must match the whole id; a rejection quotes it.
	IDPattern *regexp.Regexp
	// InvalidID is the code that rejects an id which does not match.
	InvalidID RejectionCode
	// MaxRetries after the first submission, at least 0 (R12, BIL-005-V1).
	MaxRetries int64 `yaml:"maxRetries"`
	// Backoff between two tries.
	Backoff BackoffRule `yaml:"-"`
	// TotalLimit is the time from the first failure after which no retry is scheduled (R20). An episode is abandoned if
	// nothing is heard of it for that long after its retry was due. 0 means no limit.
	TotalLimit time.Duration `yaml:"totalLimit"`
	// Salt makes this policy's jitter differ from that of a policy with the same name elsewhere (R6).
	Salt string
	// Rules classify the error.
	Rules *classify.Classifier
	// PresumedRetries is how often an error that only looks refused is retried before it is given up (R25).
	PresumedRetries int64 `yaml:"presumedRetries"`
	// EmptyError says how an error without text is treated (R11).
	EmptyError EmptyError `yaml:"emptyError"`
	// UnknownError says how an error that no rule knows is treated (R1.6).
	UnknownError UnknownError `yaml:"unknownError"`
	// LimitTeam acts if the retries are used up (R21), or an error is given up without a rule.
	LimitTeam Team `yaml:"limitTeam"`
}

// DestinationVariable names the process variable that holds a claim's destination, and the destination if it is absent.
type DestinationVariable struct{ Variable, Default string }

// EmptyError is the policy setting emptyError (R11).
type EmptyError string

// The two ways to treat an error without text.
const (
	RejectEmptyError EmptyError = "reject"
	AssumeTransient  EmptyError = "assume-transient"
)

// UnknownError is the policy setting unknownError (R1.6).
type UnknownError string

// The two ways to treat an error that no rule knows. The zero value retries.
const (
	RetryUnknown  UnknownError = "retry"
	GiveUpUnknown UnknownError = "give-up"
)

// Precision returns the unit of the instants that p computes: whole seconds, or milliseconds if its delays are below a
// minute (R7).
func (p *Policy) Precision() time.Duration {
	if p.Own != nil {
		return time.Millisecond // a job may bring any delay
	}
	return p.Backoff.Precision()
}

// DefaultPolicy decides for tasks that name none (R15).
const DefaultPolicy = "tiss-submission"

// Policies holds the policies of a worker by name. It never changes once in use.
type Policies map[string]*Policy

// Find returns the policy that a task names; the empty name means DefaultPolicy. The rejection of an unknown name lists
// the known ones.
func (ps Policies) Find(name string) (*Policy, *Rejection) {
	if name == "" {
		name = DefaultPolicy
	}
	if p, ok := ps[name]; ok {
		return p, nil
	}
	return nil, &Rejection{UnknownPolicy, "retryPolicy", Text(name).describe(), "one of " + strings.Join(ps.Names(), ", ")}
}

// Names returns the policies' names in alphabetical order.
func (ps Policies) Names() []string { return slices.Sorted(maps.Keys(ps)) }

// IDVariables lists the variables in which processes hold a subject's id.
func (ps Policies) IDVariables() []string {
	return ps.list(func(p *Policy) []string { return []string{p.IDVariable} })
}

// GateVariables lists the variables in which processes hold a subject's id, its destination and its context.
func (ps Policies) GateVariables() []string {
	return ps.list(func(p *Policy) []string {
		names := []string{p.IDVariable}
		if p.Destination != nil {
			names = append(names, p.Destination.Variable)
		}
		for i := range p.Context {
			names = append(names, p.Context[i].Variable)
		}
		return names
	})
}

// Variables lists the process variables that the policies read, each once, in alphabetical order.
func (ps Policies) Variables() []string {
	return ps.list(func(p *Policy) (names []string) {
		p.Variables(func(name string) Value {
			names = append(names, name)
			return ""
		})
		return names
	})
}

// list returns the names of all policies' variables, each once, in alphabetical order.
func (ps Policies) list(names func(*Policy) []string) []string {
	var all []string
	for _, p := range ps {
		all = append(all, names(p)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// OwnVariables names the variables in which a job brings its own RetryPolicy (UC-004, R15).
type OwnVariables struct {
	// MaxAttempts is a whole number from 1 to 1000: the first try and the retries. If it is absent there is no
	// RetryPolicy, and the first failure is final (FA-004.1).
	MaxAttempts string `yaml:"maxAttemptsVariable"`
	// Delay is the time between two attempts: an ISO 8601 duration, or a number of milliseconds; 0 counts as 1 s. If it
	// is absent, the policy's backoff holds.
	Delay string `yaml:"delayVariable"`
	// NonRetryable is true if the error is final, whatever the count (FA-004.2).
	NonRetryable string `yaml:"nonRetryableVariable"`
}

// OwnPolicy is the RetryPolicy that a job brought (R15). The zero value is none.
type OwnPolicy struct {
	// MaxAttempts is 0 where the job brought none.
	MaxAttempts int64
	// Delay is meaningful if HasDelay.
	Delay    time.Duration
	HasDelay bool
	// NonRetryable reports whether the error is final (FA-004.2).
	NonRetryable bool
}

// NonRetryableRule is the matched rule of an error that the job itself calls final.
const NonRetryableRule = "nonRetryable"

// leastDelay replaces a delay of 0, with which a process would loop without a pause.
const leastDelay = time.Second

// ReadOwn reads the retry policy that a job brings (R15), or returns the first problem with it.
func (p *Policy) ReadOwn(v *Variables) (own OwnPolicy, refused *Rejection) {
	if p.Own == nil {
		return own, nil
	}
	own.MaxAttempts = optional(&refused, v.MaxAttempts, Value.attempts, InvalidRetryPolicy, p.Own.MaxAttempts,
		"a whole number from 1 to 1000, or none (no retry policy)")
	own.Delay = optional(&refused, v.Delay, Value.duration, InvalidRetryPolicy, p.Own.Delay,
		"an ISO 8601 duration such as PT30S, or milliseconds as a whole number, at most 366 days, or none")
	own.HasDelay = v.Delay.given()
	own.NonRetryable = optional(&refused, v.NonRetryable, Value.boolean, InvalidRetryPolicy, p.Own.NonRetryable,
		"true, false, or none")
	return own, refused
}

// Limits returns the retries and the backoff for a job: its own where it brought them, otherwise p's.
func (p *Policy) Limits(own OwnPolicy) (maxRetries int64, backoff BackoffRule) {
	maxRetries, backoff = p.MaxRetries, p.Backoff
	if own.MaxAttempts > 0 {
		maxRetries = own.MaxAttempts - 1 // R15
	}
	if own.HasDelay {
		delay := cmp.Or(own.Delay, leastDelay)
		backoff = BackoffRule{Base: delay, Max: delay, Factor: 1, Rounding: time.Millisecond}
	}
	return maxRetries, backoff
}

// NoDelay reports whether the job asks for retries without a delay. It gets leastDelay.
func (own OwnPolicy) NoDelay() bool { return own.HasDelay && own.Delay == 0 }

func (v Value) attempts() (int64, bool) {
	n, ok := v.whole()
	return n, ok && n >= 1 && n <= 1000
}

func (v Value) boolean() (is, ok bool) { return v == "true", v == "true" || v == "false" }

// duration returns the time that v holds, from 0 to text.LongestDuration: milliseconds if v is a number, ISO 8601 if it
// is a text.
func (v Value) duration() (time.Duration, bool) {
	if s, ok := v.text(); ok {
		d, ok := text.ParseDuration(s)
		return d, ok && s[0] == 'P'
	}
	n, ok := v.whole()
	return time.Duration(n) * time.Millisecond, ok && n <= text.LongestDuration.Milliseconds()
}

// BackoffRule is a backoff with jitter. The raw delay of retry n (from 0) is min(Base × Factor^n, Max), or item n of
// List. The delay is drawn from raw ± Jitter × raw, rounded to Rounding and kept within [Min, Max] (R5, BIL-004-V3,
// V4).
type BackoffRule struct {
	// Base, Min and Max are positive, Min ≤ Max.
	Base, Min, Max time.Duration
	// List holds raw delays that replace Base and Factor; the last one repeats. It is usually empty.
	List []time.Duration
	// Factor is at least 1.
	Factor float64
	// Jitter is the largest deviation from raw as a fraction, in [0, 1).
	Jitter float64
	// Rounding of the delay: time.Minute for tiss-submission.
	Rounding time.Duration
}

// Backoff is the value object BackoffCalculation of RN-BIL-005 §12.2.
type Backoff struct {
	// Delay to wait: rounded and held in the rule's bounds.
	Delay time.Duration `json:"delay"`
	// Raw delay before jitter.
	Raw time.Duration `json:"raw"`
	// JitterRatio is the drawn deviation from Raw, in [−Jitter, +Jitter), before rounding and bounds (R19).
	JitterRatio float64 `json:"-"`
	// AtMaximum reports whether a growing Raw has reached the rule's Max (R19).
	AtMaximum bool `json:"most,omitempty"`
}

// Precision returns the unit of the instants that r computes: whole seconds, or milliseconds if its delays are below a
// minute (R7).
func (r *BackoffRule) Precision() time.Duration {
	if r.Min < time.Minute {
		return time.Millisecond
	}
	return time.Second
}

// Raw returns the nominal delay before retry number n (0 or more) of a ladder; it never falls as n grows
// and does not overflow for any n.
func (r *BackoffRule) Raw(n int64) time.Duration {
	if last := int64(len(r.List)) - 1; last >= 0 {
		return min(r.List[min(n, last)], r.Max)
	}
	raw := float64(r.Base) * math.Pow(r.Factor, float64(n))
	if raw >= float64(r.Max) {
		return r.Max
	}
	return time.Duration(raw)
}

// After returns the delay before retry number n (0 or more) for a draw in [0, 1).
func (r *BackoffRule) After(draw float64, n int64) Backoff {
	raw := r.Raw(n)
	ratio := r.Jitter * (2*draw - 1)
	if ratio == 0 {
		ratio = 0 // not −0, which some databases do not return
	}
	delay := time.Duration(math.MaxInt64)
	if ns := float64(raw) * (1 + ratio); ns < math.MaxInt64 {
		delay = time.Duration(ns).Round(r.Rounding)
	}
	return Backoff{
		Delay:       min(max(delay, r.Min), r.Max),
		Raw:         raw,
		JitterRatio: ratio,
		AtMaximum:   raw == r.Max && r.Factor > 1,
	}
}

// draw returns a number in [0, 1), uniform over subjects and always the same for the same policy, subject, count and
// salt. A repeated analysis so gets the same backoff without a memory (R6).
func (p *Policy) draw(subject string, count int64) float64 {
	var room [256]byte
	b := room[:0]
	for _, part := range [...]string{p.Name, p.Salt, subject} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	b = binary.AppendVarint(b, count)
	sum := sha256.Sum256(b)
	const bits = 53 // what a float64 holds exactly
	return float64(binary.BigEndian.Uint64(sum[:8])>>(64-bits)) / (1 << bits)
}

// Manual returns the backoff of a retry that a person asks for after count retries (R17). Its draw is the one that an
// automatic retry would have had (R6). After the last step the last delay repeats (R14: 30 s for failed-job). own is
// the policy that the job brought, if any. The total limit (R20) does not apply to people.
func (p *Policy) Manual(subject string, own OwnPolicy, count int64) Backoff {
	_, rule := p.Limits(own)
	return rule.After(p.draw(subject, count), count)
}

// Open returns at or, if the destination is closed then, a time in the first half of its next opening. The time depends
// on subject and count alone, so it is the same each time. It is not after until (zero: no limit), unless the opening
// itself is.
func (p *Policy) Open(destination, subject string, count int64, at, until time.Time) time.Time {
	to := p.Destinations.Of(destination)
	return to.Open(at, until, p.draw(subject, count))
}

// TimeLimit returns the end of the total limit for a first failure at an instant; zero if there is none. Hours in which
// the destination is closed do not count (R27).
func (p *Policy) TimeLimit(destination string, first time.Time) time.Time {
	if p.TotalLimit == 0 {
		return time.Time{}
	}
	return p.Destinations.Of(destination).Calendar.Add(first, p.TotalLimit)
}

// stretchSpread is the time over which retries are spread that wait for a destination to come back.
const stretchSpread = 10 * time.Minute

// stretched returns when to retry if the destination is down and expected back only after wanted: whole minutes after
// AnalysedAt. It returns zero if the retry need not wait.
func (d *Decision) stretched(p *Policy, f *Failure, wanted time.Time) time.Time {
	if !p.Stretch || !f.Expected.After(wanted) {
		return time.Time{}
	}
	spread := time.Duration(p.draw(d.SubjectID, d.RetryCount) * float64(stretchSpread))
	return d.AnalysedAt.Add(time.Duration(Minutes(f.Expected.Add(spread).Sub(d.AnalysedAt))) * time.Minute)
}

// maxTold is the longest wait that a destination can ask for (R37, BIL-004-V3).
const maxTold = 240 * time.Minute

// retryAfterText matches a Retry-After header in an error text, as a number of seconds or as a date. Two separate words
// are a header only before a colon or a date: "retry after 503 failed" is none.
var retryAfterText = regexp.MustCompile(`(?i)` +
	`retry(?:[-_]?after(?:_seconds)?["'\\]*\s*[:=]?|\s+after\s*[:=])\s*["'\\[]*` +
	`([0-9]{1,9})(?:\.0+)?\s?s?(?:[^0-9a-z:-]|$)` +
	`|retry[-_ ]?after["'\\]*\s*[:=]?\s*["'\\[]*` +
	`([a-z]{3}, [0-9]{2} [a-z]{3} [0-9]{4} [0-9:]{8} GMT|[0-9-]{10}T[0-9:.]+(?:Z|[-+][0-9:]{5})?)`)

// RetryAfter returns how long a destination asks to wait. It reads the variable retryAfter or, if that is empty, the
// header of that name in the text: seconds, an HTTP date, or an instant. 0 means that it does not ask.
func RetryAfter(variable, text string, now time.Time) time.Duration {
	value := strings.TrimSpace(variable)
	if value == "" && (strings.Contains(text, "etry") || strings.Contains(text, "ETRY")) {
		if found := retryAfterText.FindStringSubmatch(text); found != nil {
			value = cmp.Or(found[1], found[2])
		}
	}
	if value == "" {
		return 0
	}
	if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds >= 0 && seconds <= math.MaxUint32 {
		return time.Duration(seconds * float64(time.Second)) // a process may hold 120 as 120.0
	}
	at, err := time.Parse(time.RFC1123, value)
	if err != nil {
		at, _ = ParseInstant(value)
	}
	return max(0, at.Sub(now))
}

// told returns how long the destination asks to wait before the next try, in Retry-After or in words, at most maxTold
// (R37). It is 0 for a failure without a destination.
func (f *Failure) told(now time.Time) time.Duration {
	if f.Destination == "" {
		return 0
	}
	return min(max(RetryAfter(f.RetryAfter, f.Error, now), f.Said.Wait), maxTold)
}
