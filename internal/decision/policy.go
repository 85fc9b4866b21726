package decision

import (
	"maps"
	"regexp"
	"slices"
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
func (ps Policies) Names() []string {
	return slices.Sorted(maps.Keys(ps))
}

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
		delay := own.Delay
		if own.NoDelay() {
			delay = leastDelay
		}
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
